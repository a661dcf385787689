"""The examples of adjoint runs that need nothing but what the tests need."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("name, needs", [("adjoint_numpy", "numpy"), ("adjoint_pyadjoint", "pyadjoint")])
def test_an_example_runs_to_its_end(name, needs, tmp_path):
    pytest.importorskip(needs)
    program = EXAMPLES / f"{name}.py"
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout
