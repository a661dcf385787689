"""Errors are the exceptions that Python users expect, with the library's sentences."""

import contextlib
import errno
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest
from conftest import shared_data

import esker


def test_a_missing_file_is_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        esker.open(tmp_path / "nothing.nc")
    assert caught.value.errno == errno.ENOENT and caught.value.filename.endswith("nothing.nc")


@contextlib.contextmanager
def as_nobody():
    """Root may read everything, so it is somebody else for a while."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_forbidden_file_is_permission_error():
    # Not in pytest's own folder, which nobody may look into.
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "a.nc")
        esker.create(path).close()
        with as_nobody():
            esker.open(path).close()
        os.chmod(path, 0)
        with as_nobody(), pytest.raises(PermissionError):
            esker.open(path)


def test_a_directory_that_is_not_there_is_told_at_once(tmp_path):
    with pytest.raises(OSError):
        esker.create(tmp_path / "no" / "a.nc")


def test_names_that_are_not_there_bring_the_nearest(path):
    with esker.create(path) as ds:
        ds.create_dimension("latitude", 2)
        ds.create_variable("temperature", "f4", "latitude", attrs={"units": "K"})
        for call in (
            lambda: ds["temprature"],
            lambda: ds["temperature"].attrs["unit"],
            lambda: ds.create_variable("v", "f4", "latitud"),
            lambda: ds.attrs["x"],
        ):
            with pytest.raises(KeyError) as caught:
                call()
            assert str(caught.value).startswith(path)
        with pytest.raises(esker.MissingName, match='did you mean "temperature"'):
            ds["temprature"]
        with pytest.raises(KeyError):
            ds.dimensions["nothing"]
        with pytest.raises(KeyError):
            ds.rename_variable("nothing", "x")


def test_what_newcomers_try_is_answered(cube, tmp_path):
    path, values = cube
    with esker.open(os.fsencode(path)) as ds:
        assert ds["v"].shape == values.shape
        with pytest.raises(TypeError, match="have names"):
            ds[0]
        with pytest.raises(AttributeError, match=r"ds\['v'\]"):
            ds.v
        with pytest.raises(AttributeError, match="nothing"):
            ds.nothing
    with pytest.raises(AttributeError):
        ds.v
    with pytest.raises(ValueError, match="only containers have versions"):
        esker.open(path, version=1)
    with pytest.raises(IsADirectoryError):
        esker.open(tmp_path)
    with esker.create(tmp_path / "times.nc") as ds:
        with pytest.raises(TypeError, match="days since"):
            ds.create_variable("time", "M8[ns]")


def test_what_is_no_dataset_is_format_error(tmp_path):
    (tmp_path / "a.nc").write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(esker.FormatError, match="HDF5"):
        esker.open(tmp_path / "a.nc")


def test_malformed_files_raise_and_do_not_crash():
    folder = shared_data()
    if folder is None:
        pytest.skip("the shared data are not here")
    for file in sorted((folder / "malformed_classic").rglob("*")):
        if not file.is_file():
            continue
        try:
            with esker.open(file) as ds:
                for name in ds:
                    v = ds[name]
                    if v.size < 1e7:
                        v[...]
        except (ValueError, OSError):
            pass


def test_a_file_for_reading_is_not_changed(cube):
    path, _ = cube
    with esker.open(path) as ds:
        for call in (
            lambda: ds["v"].__setitem__(0, 1),
            lambda: ds.create_dimension("q", 2),
            lambda: ds.attrs.__setitem__("a", 1),
            lambda: ds.put("v", 0, np.zeros((4, 6, 7), "i4")),
        ):
            with pytest.raises(ValueError, match="reading only"):
                call()


@pytest.mark.parametrize(
    "long",
    [
        'esker.open(path)["v"][:, ::512]',
        'ds = esker.open(path); ds.collective = True; ds["v"][:, ::512]',
        'esker.convert(path, path + ".copy", layout="log")',
        "esker.check(path, read_data=True)",
    ],
    ids=["read", "collective", "convert", "check"],
)
def test_control_c_ends_what_takes_long(tmp_path, long):
    path = str(tmp_path / "large.nc")
    # A sparse file of 64 GiB: reading it takes long.
    with esker.create(path, fill=False) as ds:
        ds.create_dimension("y", 1 << 20)
        ds.create_dimension("x", 1 << 13)
        ds.create_variable("v", "f8", ("y", "x"))
    program = f"""
import esker
path = {path!r}
print("go", flush=True)
{long}
"""
    # (Whoever started these tests in the background of a script has made them deaf to this signal.)
    hears = ["env", "--default-signal=INT", sys.executable, "-c", program]
    child = subprocess.Popen(hears, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "go\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _, words = child.communicate(timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    computed = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # Time of computing, because the machine may be busy; all of it would take minutes.
    assert "KeyboardInterrupt" in words and computed < 20
    assert os.listdir(tmp_path) == ["large.nc"]
