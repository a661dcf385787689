"""Whole files: copies, checks, and the command."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import esker
from esker import _esker


def test_copies_have_other_versions_layouts_and_parts(cube, tmp_path):
    path, values = cube
    copied = esker.convert(path, tmp_path / "a.nc", format="cdf1", select={"t": slice(1, 4), "x": slice(None, None, 2), "z": 2})
    assert copied["variables"] == 1 and copied["records"] == 3
    with esker.open(tmp_path / "a.nc") as ds:
        assert ds.format == "cdf1"
        np.testing.assert_array_equal(ds["v"][:], values[1:4, 2:3, :, ::2])
    esker.convert(path, tmp_path / "a.esk", layout="log")
    esker.convert(tmp_path / "a.esk", tmp_path / "b.nc")
    with esker.open(path) as ds, esker.open(tmp_path / "b.nc") as back:
        np.testing.assert_array_equal(back["v"][:], values)
        # A container keeps no chunks.
        assert ds["v"].chunks or (tmp_path / "b.nc").read_bytes() == Path(path).read_bytes()
    with pytest.raises(FileExistsError):
        esker.convert(path, tmp_path / "a.nc", overwrite=False)
    with pytest.raises(KeyError, match="there is no variable"):
        esker.convert(path, tmp_path / "c.nc", variables=["nothing"])
    with pytest.raises(FileNotFoundError):
        esker.convert(tmp_path / "nothing.nc", tmp_path / "c.nc")


def test_a_check_says_what_is_wrong_and_where(cube, tmp_path):
    path, _ = cube
    good = esker.check(path)
    assert good and good.valid and good.format == "cdf5" and "valid" in str(good)
    data = bytearray(Path(path).read_bytes())
    (tmp_path / "short.nc").write_bytes(data[: len(data) // 2])
    bad = esker.check(tmp_path / "short.nc")
    assert not bad and bad.findings and "invalid" in str(bad)
    with pytest.raises(FileNotFoundError):
        esker.check(tmp_path / "nothing.nc")


def test_python_m_esker_is_the_command(cube):
    path, _ = cube
    run = lambda *words: subprocess.run([sys.executable, "-m", "esker", *words], capture_output=True, text=True)  # noqa: E731
    shown = run("info", path)
    assert shown.returncode == 0 and "v" in shown.stdout
    assert run("dump", "-h", path).stdout.startswith("netcdf cube {")
    assert run("diff", path, path).returncode == 0
    wrong = run("info", "/nothing.nc")
    assert wrong.returncode == 2 and wrong.stderr.startswith("esker: ")


def test_the_stubs_have_what_the_module_has():
    text = Path(inspect.getfile(esker)).with_name("_esker.pyi").read_text()
    parts = re.split(r"^(?=class |def )", text, flags=re.M)
    classes = {re.match(r"class (\w+)", part)[1]: part for part in parts if part.startswith("class ")}
    functions = {re.match(r"def (\w+)", part)[1] for part in parts if part.startswith("def ")}
    there = {name for name in dir(_esker) if not name.startswith("_")}
    assert functions | classes.keys() == there
    for name, part in classes.items():
        members = set(re.findall(r"^    def (\w+)", part, re.M)) | set(re.findall(r"^    (\w+):", part, re.M))
        missing = {one for one in dir(getattr(_esker, name)) if not one.startswith("_")} - members
        assert not missing, f"{name} has {missing}"


def test_everything_public_is_documented():
    for name in esker.__all__:
        one = getattr(esker, name)
        if name == "__version__":
            continue
        assert inspect.getdoc(one), name
        if inspect.isclass(one):
            for member, value in vars(one).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    assert inspect.getdoc(value), f"{name}.{member}"
