"""Transactions with numbers, definitions in them, and readers that wait for versions."""

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import esker

FILL = -2147483647


@pytest.fixture
def path(tmp_path):
    """Its newest version is 2, without values."""
    path = tmp_path / "run.esk"
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("x", 4)
        ds.create_variable("v", "i4", "x")
        ds.enddef()
        ds.attrs["title"] = "as it was"
    return path


def values(path, version=None):
    with esker.open(path, version=version) as ds:
        return ds["v"][:].tolist()


def newest(path):
    return esker.versions(path)[0].number


def test_numbers_appear_in_their_order_whatever_the_order_of_commits(path):
    first = newest(path) + 1
    for number in (first + 2, first + 1):
        with esker.transaction(path, number=number, message=f"number {number}") as ds:
            assert ds.outcome is None
            ds["v"][: number - first] = number
        assert ds.outcome == esker.Outcome(number, False)
        assert esker.number_state(path, number) == "prepared"
        assert values(path) == [FILL] * 4
    with esker.transaction(path, number=first) as ds:
        ds["v"][:] = first
    assert ds.outcome == (first, True)
    assert values(path) == [first + 2, first + 2, first, first]
    assert values(path, first + 1) == [first + 1, first, first, first]
    assert [v.message for v in esker.versions(path)[:2]] == [f"number {first + 2}", f"number {first + 1}"]
    with pytest.raises(esker.FormatError, match="was decided by another writer"), esker.transaction(path, number=first) as ds:
        ds["v"][0] = 1


def test_an_exception_gives_the_number_up_and_what_needs_it(path):
    first = newest(path) + 1
    with esker.transaction(path, number=first + 1, needs=[first]) as ds:
        ds["v"][0] = 1
    with esker.transaction(path, number=first + 2) as ds:
        ds["v"][1] = 2
    with pytest.raises(KeyError), esker.transaction(path, number=first) as ds:
        ds["v"][:] = 9
        raise KeyError
    assert [esker.number_state(path, first + i) for i in range(4)] == ["given up", "given up", "version", "open"]
    assert values(path) == [FILL, 2, FILL, FILL]
    with pytest.raises(esker.GivenUp, match="it needs number"), esker.transaction(path, needs=[first]) as ds:
        ds["v"][:] = 9
    assert values(path) == [FILL, 2, FILL, FILL]
    with pytest.raises(ValueError, match="begin with 1"), esker.transaction(path, number=0):
        pass


def test_definitions_and_values_become_one_version(path):
    before = newest(path)
    with esker.transaction(path) as ds:
        ds["v"][0] = 1
        ds.create_variable("w", "f8", "x", data=np.arange(4.0))
        ds.attrs["title"] = "new"
        with esker.open(path) as other:
            assert "w" not in other and other.attrs["title"] == "as it was"
    assert newest(path) == before + 1
    with esker.open(path) as ds:
        assert ds["w"][:].tolist() == [0, 1, 2, 3] and ds.attrs["title"] == "new" and ds["v"][0] == 1


def test_a_base_is_what_is_read_and_since_when_others_count(path):
    for value in (1, 2):
        with esker.transaction(path) as ds:
            ds["v"][0] = value
    esker.tag(path, "one", newest(path) - 1)
    with esker.transaction(path, base="one") as ds:
        assert ds["v"][0] == 1
        ds["v"][1] = 5
    assert values(path) == [2, 5, FILL, FILL]
    with pytest.raises(esker.Conflict), esker.transaction(path, base="one") as ds:
        ds["v"][0] = 9
    assert values(path) == [2, 5, FILL, FILL]


def test_a_transaction_that_is_killed_never_was(path):
    program = """
import os, signal, sys, esker
with esker.transaction(sys.argv[1]) as ds:
    ds["v"][:] = 7
    ds.attrs["title"] = "no"
    ds.sync()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    job = subprocess.run([sys.executable, "-c", program, str(path)])
    assert job.returncode == -signal.SIGKILL
    esker.recover(path)
    assert values(path) == [FILL] * 4
    with esker.open(path) as ds:
        assert ds.attrs["title"] == "as it was"
    # One that nobody ends, either.
    import esker._transaction as module

    generator = module.transaction.__wrapped__(path)
    ds = next(generator)
    ds["v"][:] = 7
    del ds, generator
    assert values(path) == [FILL] * 4


def test_a_reader_waits_for_what_others_commit(path):
    before = newest(path)
    seen = []

    def follow():
        for ds in esker.follow(path, before, timeout=30):
            seen.append((ds.version, ds["v"][0].item()))
            if len(seen) == 3:
                return

    reader = threading.Thread(target=follow)
    reader.start()
    for value in range(3):
        time.sleep(0.02)
        with esker.transaction(path) as ds:
            ds["v"][0] = value
        esker.tag(path, f"t{value}")
    reader.join(60)
    # Names are no versions to wait for.
    assert seen == [(before + 1, 0), (before + 3, 1), (before + 5, 2)]
    with pytest.raises(TimeoutError, match=f"no version behind {before + 6} was committed within 0 seconds"):
        esker.open(path, after=before + 6, timeout=0)
    with pytest.raises(TypeError, match="not both"):
        esker.open(path, after=1, version=1)
    with esker.open(path, after=before) as ds:
        assert ds.version == before + 1
