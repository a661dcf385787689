"""Versions of containers: messages, names, lists, transactions."""

import pickle
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

import esker

xr = pytest.importorskip("xarray")
FILL = -2147483647


@pytest.fixture
def path(tmp_path):
    """Versions 1 and 2 have the definitions (enddef and sync), version 3 the values 1, 1, 1."""
    path = tmp_path / "run.esk"
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("x", 3)
        ds.create_variable("v", "i4", "x")
        ds.sync(message="begin")
        ds["v"][:] = 1
        ds.close(message="ones")
    return path


def values(path):
    with esker.open(path) as ds:
        return ds["v"][:].tolist()


def test_messages_are_told_newest_first(path):
    before = datetime.now(timezone.utc)
    with esker.open(path, "r+", hints={"esker_message": "of a hint"}) as ds:
        ds["v"][0] = 2
        ds.sync()
        ds["v"][1] = 3
        ds.sync(message="grüße")
        ds.sync(message="nothing new")
        ds.commit(message="nothing new")
        ds["v"][2] = 4
        assert [version.number for version in ds.versions] == [5, 4, 3, 2, 1]
    told = esker.versions(path)
    assert [version.message for version in told] == ["of a hint", "grüße", "of a hint", "ones", "begin", "begin"]
    newest = told[0]
    assert (newest.state, newest.synced, newest.new_bytes, newest.records) == ("open", False, 4, 0)
    assert abs(newest.time - before) < timedelta(days=1)
    assert esker.versions(path, most=2) == told[:2]
    assert esker.versions(f"{path}@{told[1].number}") == told[1:]
    for wrong in ("a\nb", "x" * 5000):
        with esker.open(path, "r+") as ds:
            ds["v"][0] = 9
            with pytest.raises(esker.FormatError, match="a message"):
                ds.sync(message=wrong)
            ds.abort()
    assert esker.versions(path) == told
    with pytest.raises(ValueError, match="at least one"):
        esker.versions(path, most=0)


def test_a_commit_that_does_not_wait_has_a_message_too(path):
    with esker.open(path, "r+") as ds:
        ds["v"][0] = 2
        ds.commit(message="first")
        ds["v"][1] = 3
        ds.commit()
    told = esker.versions(path, most=2)
    assert [(version.message, version.synced) for version in told] == [("", False), ("first", False)]
    assert values(path) == [2, 3, 1]


def test_the_message_of_a_close_is_that_of_the_definitions_if_nothing_else_is_new(tmp_path):
    path = tmp_path / "run.esk"
    ds = esker.create(path, layout="log")
    ds.create_dimension("x", 3)
    ds.close(message="only definitions")
    assert [version.message for version in esker.versions(path)] == ["only definitions"]


def test_only_containers_have_messages_versions_and_transactions(tmp_path):
    path = tmp_path / "a.nc"
    with esker.create(path) as ds:
        ds.create_dimension("x", 3)
        with pytest.raises(esker.FormatError, match="which has no versions"):
            ds.sync(message="new")
        assert ds.versions == []
        ds.sync()
    with pytest.raises(esker.FormatError, match="it is no container"):
        esker.versions(path)
    with pytest.raises(ValueError, match="only containers have transactions"), esker.transaction(path):
        pass


def test_a_tag_is_a_version_wherever_a_path_is_read(path):
    number = 3
    assert esker.tag(path, "ones", message="why") == number
    assert esker.versions(path)[0].message == "why"
    with esker.open(path, "r+") as ds:
        ds["v"][:] = 5
    assert esker.tag(path, "first", 1) == 1 and esker.tag(path, "uno", "ones") == number
    assert esker.tags(path) == {"ones": number, "first": 1, "uno": number}
    for named in (esker.open(f"{path}@ones"), esker.open(path, version="ones")):
        with named as ds:
            assert ds.version == number and ds["v"][:].tolist() == [1, 1, 1]
            again = pickle.loads(pickle.dumps(ds))
            assert again.version == number and again["v"][0] == 1
            again.close()
    lazy = xr.open_dataset(f"{path}@ones")
    for dataset in (lazy, pickle.loads(pickle.dumps(lazy)), xr.open_dataset(path, engine="esker", version="ones")):
        assert dataset["v"].values.tolist() == [1, 1, 1]
    named = {version.number: version.tags for version in esker.versions(path)}
    assert named[number] == ("ones", "uno") and named[1] == ("first",)
    assert [version.gives for version in esker.versions(path)][:2] == [(("uno", number),), (("first", 1),)]
    for name, version, said in [
        ("ones", 1, "is called \"ones\""),
        ("1st", None, "cannot be the name of a tag"),
        ("x", 99, "no version 99"),
        ("x", "frist", "its tags are"),
    ]:
        with pytest.raises(esker.FormatError, match=said):
            esker.tag(path, name, version)


def test_a_transaction_happens_or_not(path):
    count = len(esker.versions(path))
    with esker.transaction(path, message="fives") as ds:
        ds["v"][:] = 5
        ds.put("v", 0, 6)
    assert values(path) == [6, 5, 5]
    newest = esker.versions(path)[0]
    assert (newest.message, newest.synced, len(esker.versions(path))) == ("fives", True, count + 1)
    for wrong in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(wrong), esker.transaction(path) as ds:
            ds["v"][:] = 9
            assert ds["v"][0] == 9
            raise wrong
        assert values(path) == [6, 5, 5]
    # In define mode, and after a sync, which makes no version here.
    with pytest.raises(RuntimeError), esker.transaction(path) as ds:
        ds["v"][0] = 7
        ds.sync()
        ds["v"][1] = 9
        ds.redef()
        ds.create_variable("w", "i4", "x")
        raise RuntimeError
    assert values(path) == [6, 5, 5]
    with esker.transaction(path) as ds:
        ds["v"][2] = 9
        ds.abort()
    assert values(path) == [6, 5, 5]
    esker.recover(path)
    assert values(path) == [6, 5, 5], "nothing comes back"
    with esker.open(path) as ds:
        assert list(ds) == ["v"]
    # What is defined belongs to it.
    with pytest.raises(RuntimeError), esker.transaction(path) as ds:
        ds.attrs["title"] = "new"
        ds["v"][1] = 9
        raise RuntimeError
    with esker.open(path) as ds:
        assert "title" not in ds.attrs and ds["v"][:].tolist() == [6, 5, 5]


def test_a_transaction_that_meets_another_is_given_up(path):
    with pytest.raises(esker.Conflict), esker.transaction(path) as ds:
        ds["v"][0] = 2
        ds["v"][1] = 2
        with esker.transaction(path) as other:
            other["v"][0] = 3
    assert values(path) == [3, 1, 1]
    esker.recover(path)
    assert values(path) == [3, 1, 1], "what was refused does not come back"


def test_processes_with_transactions_that_fail_now_and_then(tmp_path):
    path = tmp_path / "run.esk"
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("x", 30)
        ds.create_variable("v", "i4", "x")
    program = """
import sys, esker
path, who = sys.argv[1], int(sys.argv[2])
for step in range(10):
    try:
        with esker.transaction(path, message=f"{who} {step}") as ds:
            ds["v"][10 * who + step] = step
            if step % 3 == 1:
                raise RuntimeError
    except RuntimeError:
        pass
    esker.tag(path, f"w{who}s{step}")
"""
    words = [sys.executable, "-c", program, str(path)]
    jobs = [subprocess.Popen([*words, str(who)]) for who in range(3)]
    assert [job.wait() for job in jobs] == [0, 0, 0]
    expected = np.array([[step if step % 3 != 1 else FILL for step in range(10)]] * 3).ravel()
    assert values(path) == expected.tolist()
    esker.recover(path)
    assert values(path) == expected.tolist()
    assert len(esker.tags(path)) == 30
    said = [version.message for version in esker.versions(path) if version.message]
    assert sorted(said) == sorted(f"{who} {step}" for who in range(3) for step in range(10) if step % 3 != 1)


def test_versions_expire_and_what_nobody_needs_goes(path):
    with esker.open(path, "r+") as ds:
        for value in range(4, 130):
            ds["v"][:] = value
            ds.commit()
    esker.tag(path, "ten", 10)
    expected = [range(1, 10), range(11, 128)]
    assert esker.expire(path, keep_last=2, dry_run=True) == expected
    assert esker.expire(path, keep_within=timedelta(days=1)) == []
    reader = esker.open(f"{path}@129")
    assert esker.expire(path, keep_last=2, keep_within=-timedelta(days=1)) == expected
    with pytest.raises(esker.FormatError, match="version 12 has expired, and cannot be opened any more"):
        esker.open(f"{path}@12")
    states = {version.number: version.state for version in esker.versions(path)}
    assert [number for number, state in states.items() if state == "open"] == [131, 130, 129, 128, 10]
    would = esker.gc(path, dry_run=True)
    assert esker.gc(path) == would and len(would.removed) >= 1 and would.bytes > 0
    assert all(not (path / name).exists() for name in would.removed)
    assert would.given_up == () and would.left == {}
    assert esker.gc(path, all_idle=True).removed == ()
    assert values(f"{path}@ten") == [10, 10, 10] and values(path) == [129, 129, 129]
    assert reader["v"][:].tolist() == [129, 129, 129]
    reader.close()
    lazy = xr.open_dataset(f"{path}@ten", engine="esker")
    assert lazy["v"].values.tolist() == [10, 10, 10]
    assert esker.check(path).valid
    for wrong in ({}, {"keep_last": 0}, {"every": 0}):
        with pytest.raises(ValueError, match="must say what is kept|at least 1"):
            esker.expire(path, **wrong)


def test_a_writer_that_was_given_up_is_told(path):
    ds = esker.open(path, "r+")
    ds["v"][:] = 5
    assert ds["v"][:].tolist() == [5, 5, 5]
    (session,) = esker.gc(path).left
    with pytest.raises(ValueError, match="also those that are named"):
        esker.gc(path, abandoned=session, all_idle=True)
    with pytest.raises(esker.FormatError, match="there are no logs of a session"):
        esker.gc(path, abandoned=["7-12"])
    assert esker.gc(path, abandoned=session).given_up == (session,)
    with pytest.raises(esker.FormatError, match="given up by a collection of garbage"):
        ds.sync()
    ds.abort()
    assert values(path) == [1, 1, 1]
