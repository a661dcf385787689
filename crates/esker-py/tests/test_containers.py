"""Containers of which a version is lost: nobody sees an older one without a word."""

import warnings

import numpy as np
import pytest

import esker


def container(path, *, synced):
    """Version 2 is synced; version 3 has another first value, and is synced or closed."""
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("x", 4)
        ds.create_variable("v", "i4", "x", data=[7, 7, 7, 7])
        ds.sync()
    with esker.open(path, "r+") as ds:
        ds["v"][0] = 8
        if synced:
            ds.sync()
    versions = sorted((path / "versions").iterdir())
    newest = versions[-1]
    return newest, newest.read_bytes(), len(versions)


@pytest.mark.parametrize("damage", ["flip", "empty", "remove"])
def test_a_closed_version_that_is_lost_is_a_warning(tmp_path, damage):
    path = tmp_path / "a.esk"
    newest, whole, _ = container(path, synced=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with esker.open(path) as ds:
            np.testing.assert_array_equal(ds["v"][:], [8, 7, 7, 7])
    if damage == "flip":
        newest.write_bytes(whole[:30] + bytes([whole[30] ^ 4]) + whole[31:])
    elif damage == "empty":
        newest.write_bytes(b"")
    else:
        newest.unlink()
    with pytest.warns(UserWarning, match=f"version {int(newest.name)} .*not synced"):
        ds = esker.open(path)
    with ds:
        np.testing.assert_array_equal(ds["v"][:], [7, 7, 7, 7])
    with pytest.warns(UserWarning, match="not synced"):
        esker.convert(path, tmp_path / "a.nc")
    assert not esker.check(path).valid


@pytest.mark.parametrize("remove", [False, True])
def test_a_synced_version_that_is_lost_is_an_error(tmp_path, remove):
    path = tmp_path / "a.esk"
    newest, whole, _ = container(path, synced=True)
    if remove:
        newest.unlink()
    else:
        newest.write_bytes(whole[:-1])
    with pytest.raises(Exception, match="was synced"):
        esker.open(path)
    with pytest.raises(Exception, match="was synced"):
        esker.convert(path, tmp_path / "a.nc")
    assert not (tmp_path / "a.nc").exists()
