"""The examples of the documentation run."""

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

import esker
import esker._layout
import esker._progress

CRATE = Path(__file__).resolve().parents[1]
GUIDE = CRATE.parents[1] / "docs" / "python.md"


def test_the_examples_of_docstrings_are_right():
    names = ("_dataset", "_transaction", "_versions")
    for module in (esker, esker._layout, esker._progress, *(sys.modules[f"esker.{name}"] for name in names)):
        assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize("page", [GUIDE, GUIDE.parents[1] / "README.md"], ids=lambda page: page.name)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    """All of Python, from top to bottom, in one program; blocks for MPI are notebooks' business."""
    text = page.read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    monkeypatch.chdir(tmp_path)
    program = "\n".join(block for block in blocks if "mpi4py" not in block)
    exec(compile(program, str(page), "exec"), {"__name__": "page"})


@pytest.mark.parametrize("name", ["serial", "xarray_dask"])
def test_notebooks_run(name, tmp_path):
    script = CRATE / "notebooks" / f"{name}.py"
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=300, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_notebook_of_mpi_runs(tmp_path):
    from test_mpi import run

    for mpi in ("mpich", "openmpi"):
        place = tmp_path / mpi
        place.mkdir()
        done = run(place, mpi, 2, CRATE / "notebooks" / "mpi.py", place)
        assert done.returncode == 0, done.stdout + done.stderr
