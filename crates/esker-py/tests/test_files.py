"""Who may read a file that is replaced, and what a failure leaves."""

import os
import stat

import numpy as np
import pytest

import esker


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def small(path):
    with esker.create(path) as ds:
        ds.create_dimension("x", 3)
        ds.create_variable("t", "f4", "x", data=[1, 2, 3])


def test_a_replaced_file_keeps_who_may_read_it(tmp_path):
    path, source = str(tmp_path / "a.nc"), str(tmp_path / "b.nc")
    small(source)
    for make in (small, lambda path: esker.convert(source, path, overwrite=True)):
        small(path)
        os.chmod(path, 0o600)
        make(path)
        assert mode(path) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["a.nc", "b.nc"]


def test_a_failed_to_netcdf_leaves_the_old_file(tmp_path):
    xr = pytest.importorskip("xarray")
    import esker.xarray  # noqa: F401

    path = str(tmp_path / "a.nc")
    small(path)
    os.chmod(path, 0o640)
    with open(path, "rb") as file:
        old = file.read()

    def fails(done, total):
        raise RuntimeError("no more")

    new = xr.Dataset({"u": ("y", np.arange(5.0))})
    for mode_, there in (("w", True), ("x", False)):
        if not there:
            os.remove(path)
        with pytest.raises(RuntimeError, match="no more"):
            new.esker.to_netcdf(path, mode_, progress=fails)
        if there:
            with open(path, "rb") as file:
                assert file.read() == old
        assert os.listdir(tmp_path) == (["a.nc"] if there else [])
    small(path)
    os.chmod(path, 0o640)
    with pytest.raises(FileExistsError):
        new.esker.to_netcdf(path, "x")
    new.esker.to_netcdf(path)
    assert mode(path) == 0o640
    with esker.open(path) as ds:
        assert ds["u"][...].tolist() == [0, 1, 2, 3, 4]


def test_names_in_exceptions_do_not_steer_the_terminal(tmp_path):
    name = "no\x1b[2J\u202e.nc"
    with pytest.raises(OSError) as raised:
        esker.open(str(tmp_path / name))
    assert not any(c in str(raised.value) for c in "\x1b\u202e")


def test_names_in_a_representation_do_not_steer_the_terminal(tmp_path):
    path, evil = str(tmp_path / "a.nc"), "v\u009b31m\u202e"
    with esker.create(path) as ds:
        ds.create_dimension(f"d{evil}", 2)
        ds.create_variable(evil, "i4", f"d{evil}", data=[1, 2], attrs={f"a{evil}": "x\x1b[2J", "units": evil})
        ds.attrs[evil] = evil
    with esker.open(path) as ds:
        for text in (repr(ds), repr(ds[evil]), str(ds)):
            assert not any(c in text for c in "\x1b\u009b\u202e")
