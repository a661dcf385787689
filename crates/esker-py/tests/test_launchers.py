"""The wrong mpiexec: worlds of one rank that all write one file."""

import os
import subprocess
import sys

import pytest
from test_mpi import LAUNCHERS, library

pytest.importorskip("mpi4py")

PROGRAM = """
import os, sys
from mpi4py import MPI
import esker
# Worlds of one rank would take each other's file away, which is an error of its own.
world = os.getpid() if MPI.COMM_WORLD.size == 1 else 0
for name in ("a.nc", "b.nc"):
    with esker.create(f"{sys.argv[1]}{world}{name}", comm=MPI.COMM_WORLD) as ds:
        ds.create_dimension("x", 3)
with esker.create(f"{sys.argv[1]}own{os.getpid()}", comm=MPI.COMM_SELF) as ds:
    pass
sys.stdout.write(f"world of {MPI.COMM_WORLD.size}\\n")  # at once: ranks share it
"""


def run(folder, launcher, mpi, ranks):
    """The program with mpi4py on one MPI, started by the launcher of another, or by none."""
    path = library(mpi)
    if path is None or (launcher and subprocess.run(["which", LAUNCHERS[launcher][0]], capture_output=True).returncode):
        pytest.skip(f"{launcher} or {mpi} is not installed")
    environment = {**os.environ, "MPI4PY_MPIABI": mpi, "MPI4PY_LIBMPI": path, "OMPI_ALLOW_RUN_AS_ROOT": "1"}
    environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    if mpi == "mpich":
        names = folder / "lib"
        names.mkdir(exist_ok=True)
        (names / "libmpi.so.12").symlink_to(path)
        environment["LD_LIBRARY_PATH"] = str(names)
        del environment["MPI4PY_LIBMPI"]
    start = [*LAUNCHERS[launcher], "-n", str(ranks)] if launcher else []
    command = [*start, sys.executable, "-c", PROGRAM, f"{folder}/"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.parametrize(("launcher", "mpi"), [("mpich", "openmpi"), ("openmpi", "mpich")])
def test_the_launcher_of_another_mpi_is_told_once(tmp_path, launcher, mpi):
    done = run(tmp_path, launcher, mpi, 2)
    assert done.stdout.count("world of 1") == 2, done.stdout
    assert done.stderr.count("worlds of one rank") == 1, done.stderr
    assert "started 2 processes" in done.stderr and "RuntimeWarning" in done.stderr


@pytest.mark.parametrize(
    ("launcher", "mpi", "ranks"),
    [("mpich", "mpich", 2), ("openmpi", "openmpi", 2), ("mpich", "openmpi", 1), (None, "openmpi", 1), (None, "mpich", 1)],
)
def test_the_right_launcher_and_none_are_no_alarm(tmp_path, launcher, mpi, ranks):
    done = run(tmp_path, launcher, mpi, ranks)
    assert f"world of {ranks}" in done.stdout
    assert "worlds of one rank" not in done.stderr, done.stderr
