"""Containers of which a version is lost: nobody sees an older one without a word."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import xarray as xr

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
    versions = sorted((path / "refs" / "main").iterdir())
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


def versions_of_three(path):
    numbers = []
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("x", 3)
        v = ds.create_variable("v", "i4", "x")
        for value in (10, 20, 30):
            v[:] = value
            ds.sync()
            numbers.append(ds.version)
    return numbers


def test_a_path_names_a_version(tmp_path):
    path = tmp_path / "run.esk"
    first, second, _ = versions_of_three(path)
    with esker.open(f"{path}@{first}") as ds:
        assert ds.version == first and ds["v"][0] == 10 and ds.path == str(path)
    assert xr.open_dataset(f"{path}@{second}", engine="esker")["v"].values.tolist() == [20, 20, 20]
    assert xr.open_dataset(f"{path}@{second}")["v"].values[0] == 20, "by content, without an engine"
    for mode in ("r+", "a"):
        with pytest.raises(esker.errors.FormatError, match="it can be read, not written"):
            esker.open(f"{path}@{first}", mode)
    for mode in ("r", "r+", "a"):
        with pytest.raises(esker.errors.FormatError, match="there is no tag of this name"):
            esker.open(f"{path}@newest", mode)


def test_a_pickle_and_xarray_keep_the_version_that_was_open(tmp_path):
    path = tmp_path / "run.esk"
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("x", 3)
        ds.create_variable("v", "i4", "x", data=[1, 1, 1])
    with esker.open(path) as ds:
        pickled = pickle.dumps(ds)
    lazy = xr.open_dataset(path, engine="esker")
    copied = pickle.loads(pickle.dumps(lazy))
    with esker.open(path, "r+") as ds:
        ds["v"][:] = 2
    with pickle.loads(pickled) as ds:
        assert ds["v"][:].tolist() == [1, 1, 1]
    for dataset in (lazy, copied, pickle.loads(pickle.dumps(lazy))):
        assert dataset["v"].values.tolist() == [1, 1, 1]
    assert xr.open_dataset(path, engine="esker")["v"].values.tolist() == [2, 2, 2]


def test_four_processes_commit_to_one_container_and_nothing_is_lost(tmp_path):
    path = tmp_path / "run.esk"
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("step", 10)
        ds.create_dimension("x", 8)
        ds.create_variable("v", "i4", ("step", "x"))
    program = """
import sys, esker
path, who = sys.argv[1], int(sys.argv[2])
for step in range(10):
    with esker.open(path, "r+") as ds:
        ds["v"][step, 2 * who : 2 * who + 2] = 100 * step + who
    print("committed", step, flush=True)
"""
    words = [sys.executable, "-c", program, str(path)]
    jobs = [subprocess.Popen([*words, str(who)], stdout=subprocess.PIPE) for who in range(4)]
    told = [job.communicate()[0].count(b"committed") for job in jobs]
    assert [job.returncode for job in jobs] == [0] * 4
    assert told == [10] * 4
    with esker.open(path) as ds:
        values = ds["v"][:]
        assert ds.version == 41
    expected = 100 * np.arange(10)[:, None] + np.arange(8)[None, :] // 2
    np.testing.assert_array_equal(values, expected)
    # Each version has one pair of values more than the one before it.
    for version in (1, 2, 20, 40):
        with esker.open(f"{path}@{version}") as ds:
            assert np.count_nonzero(ds["v"][:] != -2147483647) == 2 * (version - 1)


def test_a_conflict_is_an_exception_of_its_own_and_names_the_element(tmp_path):
    path = tmp_path / "run.esk"
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("x", 3)
        ds.create_variable("v", "i4", "x", data=[1, 1, 1])
    one, two = esker.open(path, "r+"), esker.open(path, "r+")
    one["v"][1:] = 2
    two["v"][:2] = 3
    one.close()
    with pytest.raises(esker.Conflict, match=r'"v" at \[1\]'):
        two.sync()
    with pytest.raises(esker.Conflict):
        two.close()
    with esker.open(path) as ds:
        assert ds["v"][:].tolist() == [1, 2, 2]


def test_a_commit_makes_a_version_and_the_dataset_stays_open(tmp_path):
    path = tmp_path / "run.esk"
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("x", 3)
        v = ds.create_variable("v", "i4", "x")
        numbers = []
        for value in (10, 20, 30):
            v[:] = value
            ds.commit()
            numbers.append(ds.version)
            with esker.open(path) as reader:
                assert reader["v"][:].tolist() == [value] * 3 and reader.version == ds.version
        assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]
    for number, value in zip(numbers, (10, 20, 30)):
        with esker.open(f"{path}@{number}") as ds:
            assert ds["v"][0] == value
            with pytest.raises(Exception, match="commit"):
                ds.commit()


def test_blocks_are_what_was_written_together(tmp_path):
    path = tmp_path / "a.esk"
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("t")
        ds.create_dimension("x", 6)
        v = ds.create_variable("v", "i4", ("t", "x"))
        v[0:2, 0:3] = np.ones((2, 3), "i4")
        v[0:2, 3:6] = np.full((2, 3), 2, "i4")
        v[1, ::2] = [7, 8, 9]
    with esker.open(path) as ds:
        one, other, strided = ds["v"].blocks
        assert (one.start, one.count, one.dense, one.rank) == ((0, 0), (2, 3), True, 0)
        assert other.slices == (slice(0, 2), slice(3, 6))
        assert (other.elements, other.nbytes) == (6, 24)
        assert other.version == one.version == strided.version
        assert not strided.dense
        assert (strided.start, strided.count, strided.elements) == ((1, 0), (1, 5), 3)
        np.testing.assert_array_equal(ds["v"][other.slices], [[2, 2, 2], [2, 9, 2]])
    classic = tmp_path / "a.nc"
    esker.convert(path, classic)
    with esker.open(classic) as ds:
        (whole,) = ds["v"].blocks
        assert (whole.count, whole.rank, whole.version) == ((2, 6), None, None)
