"""What several tests need."""

import os
from pathlib import Path

import numpy as np
import pytest

import esker

#: NumPy's names of the eleven types.
TYPES = ["i1", "S1", "i2", "i4", "f4", "f8", "u1", "u2", "u4", "i8", "u8"]


def shared_data():
    """The folder of real files, or None."""
    named = os.environ.get("ESKER_SHARED_DATA")
    if named:
        return Path(named)
    for parent in Path(__file__).resolve().parents:
        if (parent / "shared" / "data").is_dir():
            return parent / "shared" / "data"
    return None


def classic_files():
    """Every real classic file."""
    folder = shared_data()
    return sorted((folder / "netcdf_classic").iterdir()) if folder else []


@pytest.fixture
def path(tmp_path):
    """A place for a file."""
    return str(tmp_path / "a.nc")


@pytest.fixture(scope="session", params=["contiguous", "chunked"])
def cube(request, tmp_path_factory):
    """A file with one variable of four dimensions, and the array that is in it."""
    storage = {"chunks": (2, 3, 6, 4), "filters": "shuffle zstd,1"} if request.param == "chunked" else {}
    path = str(tmp_path_factory.mktemp("cube") / "cube.nc")
    values = np.arange(5 * 4 * 6 * 7, dtype="i4").reshape(5, 4, 6, 7)
    with esker.create(path) as ds:
        for name, size in zip("tzyx", values.shape):
            ds.create_dimension(name, None if name == "t" else size)
        ds.create_variable("v", "i4", tuple("tzyx"), data=values, **storage)
    return path, values
