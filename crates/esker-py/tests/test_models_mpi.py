"""Graphs, meshes and hierarchies of mpi4py's ranks."""

from pathlib import Path

import pytest

pytest.importorskip("mpi4py")
pytest.importorskip("h5py")
from test_mpi import run


@pytest.mark.parametrize("mpi, ranks", [("mpich", 1), ("mpich", 3), ("openmpi", 3), ("mpich", 5)])
def test_models_of_several_ranks_are_those_of_one(tmp_path, mpi, ranks):
    done = run(tmp_path, mpi, ranks, Path(__file__).with_name("model_ranks.py"), tmp_path)
    assert done.returncode == 0 and f"done {ranks}" in done.stdout, done.stdout + done.stderr
