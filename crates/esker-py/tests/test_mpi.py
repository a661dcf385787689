"""mpi4py from a wheel, on the MPIs of the system."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import netCDF4
import numpy as np
import pytest

pytest.importorskip("mpi4py")

#: How each MPI starts programs, and which library mpi4py is to take.
LAUNCHERS = {
    "mpich": ["mpiexec.mpich"],
    "openmpi": ["mpiexec.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"],
}
LIBRARIES = {"mpich": ["libmpich.so.12", "libmpi.so.12"], "openmpi": ["libmpi.so.40"]}


def library(mpi):
    """The library's path, by the linker's own list."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    for name in LIBRARIES[mpi]:
        for line in listed.splitlines():
            if line.strip().startswith(name + " "):
                return line.split("=> ")[1]
    return None


def run(folder, mpi, ranks, program, *arguments):
    launcher, path = LAUNCHERS[mpi], library(mpi)
    if shutil.which(launcher[0]) is None or path is None:
        pytest.skip(f"{mpi} is not installed")
    environment = {**os.environ, "MPI4PY_LIBMPI": path, "MPI4PY_MPIABI": mpi, "OMP_NUM_THREADS": "1"}
    if mpi == "mpich":
        # The wheel asks for the name that MPICH itself gives it; Debian's has another.
        names = folder / "lib"
        names.mkdir(exist_ok=True)
        (names / "libmpi.so.12").symlink_to(path)
        environment["LD_LIBRARY_PATH"] = str(names)
        del environment["MPI4PY_LIBMPI"]
    command = [*launcher, "-n", str(ranks), sys.executable, str(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


@pytest.mark.parametrize("ranks", [1, 2, 4, 7])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_ranks_write_and_read_one_file(tmp_path, mpi, ranks):
    done = run(tmp_path, mpi, ranks, Path(__file__).with_name("ranks.py"), tmp_path)
    assert done.returncode == 0 and f"done {ranks}" in done.stdout, done.stdout + done.stderr
    # Others read it too.
    with netCDF4.Dataset(tmp_path / "part.classic") as nc:
        np.testing.assert_array_equal(nc["t"][:], np.arange(13 * 6 * 5, dtype="f4").reshape(13, 6, 5))
