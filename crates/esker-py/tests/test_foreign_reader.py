"""The pages docs/format suffice: a reader that was written from them alone reads every version of a container."""

import random
import shutil
import subprocess
import sys
from pathlib import Path

import foreign_reader as foreign
import numpy as np
import pytest
from conftest import TYPES
from test_mpi import run as run_ranks

import esker

PLAIN_FILLS = {code: np.array(fill).astype(foreign.TYPES[code]) for code, fill in foreign.FILLS.items()}


class Model:
    """Plain arrays, as they were after each commit."""

    def __init__(self):
        self.arrays, self.fills, self.records, self.committed = {}, {}, 0, {}

    def define(self, name, dtype, shape, fill=None):
        """A variable; None in its shape is the record dimension."""
        dtype = np.dtype(dtype).newbyteorder(">")
        code = next(code for code, text in foreign.TYPES.items() if np.dtype(text) == dtype)
        self.fills[name] = PLAIN_FILLS[code] if fill is None else np.array(fill, dtype)
        self.arrays[name] = shape, np.full([length or 0 for length in shape], self.fills[name], dtype)

    def put(self, name, key, value):
        shape, array = self.arrays[name]
        if shape[:1] == (None,):
            first = key[0] if isinstance(key, tuple) else key
            last = np.max(np.arange(10_000)[first]) if isinstance(first, slice) else np.max(first)
            self.records = max(self.records, int(last) + 1)
            array = self.grown(name)
        array[key] = value
        self.arrays[name] = shape, array

    def grown(self, name):
        shape, array = self.arrays[name]
        if shape[:1] != (None,) or len(array) == self.records:
            return array
        more = np.full((self.records - len(array), *array.shape[1:]), self.fills[name], array.dtype)
        return np.concatenate([array, more])

    def commit(self, version):
        self.committed[version] = {name: self.grown(name).copy() for name in self.arrays}


def same(path, model):
    """The foreign reader, Esker and the model agree on every version and every element."""
    container = foreign.Container(path)
    told = {found.number for found in container.versions()}
    assert set(model.committed) <= told, "every commit is a version"
    promises = container.promises()
    for number in sorted(model.committed):
        assert promises[number]["decision"] == container.decision(number).sum
        version, expected = container.version(number), model.committed[number]
        assert not version.data or version.are_whole(), f"version {number}"
        with esker.open(f"{path}@{number}") as ds:
            assert sorted(version.variables()) == sorted(expected) == sorted(ds.variables)
            for name, array in expected.items():
                read = version.read(name)
                assert read.dtype.newbyteorder("=") == ds[name].dtype, name
                np.testing.assert_array_equal(read, array, err_msg=f"{name} of version {number}, beside the model")
                np.testing.assert_array_equal(read, ds[name][...], err_msg=f"{name} of version {number}, beside Esker")
                if version.data:
                    np.testing.assert_array_equal(version.read_by_sections(name), array, err_msg=f"{name}, by sections")
                    for record in range(0, len(array) if array.ndim > 1 else 0, 3):
                        if version.is_record(version.header.variables[version.variables().index(name)]):
                            one = version.read_by_sections(name, record)
                            np.testing.assert_array_equal(one, array[record], err_msg=f"{name}[{record}], by sections")


def values(rng, dtype, shape):
    if np.dtype(dtype).kind == "S":
        return rng.integers(97, 123, shape, "u1").view("S1").reshape(shape)
    kind = np.dtype(dtype)
    limit = 2**53 if kind.itemsize == 8 else 100
    return rng.integers(0 if kind.kind == "u" else -limit, limit, shape).astype(kind)


@pytest.mark.parametrize("format", ["cdf1", "cdf2", "cdf5"])
def test_all_types_strided_and_listed_writes_records_and_definitions_of_later(tmp_path, format):
    path, model, rng = tmp_path / "run.esk", Model(), np.random.default_rng(17)
    types = TYPES if format == "cdf5" else [kind for kind in TYPES if kind in ("i1", "S1", "i2", "i4", "f4", "f8")]

    def put(ds, name, key, value):
        ds[name][key] = value
        model.put(name, key, value)

    with esker.create(path, layout="log", format=format) as ds:
        ds.create_dimension("t")
        ds.create_dimension("y", 7)
        ds.create_dimension("x", 9)
        for kind in types:
            ds.create_variable(f"fixed_{kind}", kind, ("y", "x"))
            ds.create_variable(f"record_{kind}", kind, ("t", "x"))
            model.define(f"fixed_{kind}", kind, (7, 9))
            model.define(f"record_{kind}", kind, (None, 9))
        ds.create_variable("scalar", "f8")
        model.define("scalar", "f8", ())
        ds.create_variable("filled", "i2", ("t", "y"), fill_value=-5)
        model.define("filled", "i2", (None, 7), fill=-5)
        ds.sync()
        model.commit(ds.version)
        for kind in types:
            put(ds, f"fixed_{kind}", (slice(1, None, 2), slice(None, None, 3)), values(rng, kind, (3, 3)))
            put(ds, f"record_{kind}", slice(0, 2), values(rng, kind, (2, 9)))
        put(ds, "scalar", (), 2.5)
        put(ds, "filled", (slice(1, 6, 2), slice(2, 5)), values(rng, "i2", (3, 3)))
        ds.sync()
        model.commit(ds.version)
        for kind in types:
            # Lists: rows and columns that are no hyperslab, one of them backwards.
            put(ds, f"fixed_{kind}", (np.array([0, 1, 5])[:, None], np.array([8, 2, 3])), values(rng, kind, (3, 3)))
            put(ds, f"record_{kind}", (slice(1, 8, 3), slice(0, 9, 4)), values(rng, kind, (3, 3)))
        put(ds, "scalar", (), -1.0)
        ds.sync()
        model.commit(ds.version)
        # Defined later, with a fill value of its own.
        ds.create_variable("late", "f4", ("t",), fill_value=0.5)
        model.define("late", "f4", (None,), fill=0.5)
        ds.sync()
        model.commit(ds.version)
        put(ds, "late", 3, 7.0)
    model.commit(foreign.Container(path).newest())
    same(path, model)


def put_at(ds, model, name, key, value):
    ds[name][key] = value
    model.put(name, key, value)


def test_hundreds_of_commits_of_several_writers_whose_facts_are_in_runs(tmp_path):
    path, model, rng = tmp_path / "run.esk", Model(), np.random.default_rng(3)
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("t")
        ds.create_dimension("x", 30)
        ds.create_variable("v", "i4", ("t", "x"))
        ds.create_variable("w", "f8", "x")
    model.define("v", "i4", (None, 30))
    model.define("w", "f8", (30,))
    model.commit(1)
    chance = random.Random(5)
    writers = [None, None, None]
    for _ in range(200):
        who = chance.randrange(3)
        if writers[who] is None or chance.random() < 0.1:
            if writers[who] is not None:
                writers[who].close()
                model.commit(foreign.Container(path).newest())
            writers[who] = esker.open(path, "r+")
        ds = writers[who]
        # Each has elements of its own, which it overwrites, strided; records grow together.
        own, record = slice(who, None, 3), chance.randrange(6)
        put_at(ds, model, "v", (slice(record, record + 1), own), values(rng, "i4", (1, 10)))
        if chance.random() < 0.3:
            put_at(ds, model, "w", own, values(rng, "f8", 10))
        ds.sync()
        model.commit(ds.version)
    for ds in writers:
        if ds is not None:
            ds.close()
    container = foreign.Container(path)
    assert container.newest() >= 200
    newest = container.decision(container.newest())
    assert newest.levels and newest.parent, "this is about runs"
    # Of so many versions some.
    numbers = sorted(model.committed)
    model.committed = {number: model.committed[number] for number in (*numbers[:5], *numbers[20:-3:23], *numbers[-3:])}
    same(path, model)


@pytest.mark.parametrize("filters", ["deflate,4", "shuffle zstd,3", "lz4 crc32c", "f32 shuffle deflate,1", "bitround,20 zstd,1"])
def test_payloads_that_went_through_filters(tmp_path, filters):
    path, model, rng = tmp_path / "run.esk", Model(), np.random.default_rng(1)
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("t")
        ds.create_dimension("x", 5000)
        ds.create_variable("v", "f8", ("t", "x"), filters=filters)
        ds.create_variable("n", "i4", "x", filters="shuffle zstd,1" if "f32" in filters or "bit" in filters else filters)
        model.define("v", "f8", (None, 5000))
        model.define("n", "i4", (5000,))
        for record in range(3):
            # Small whole numbers are the same as floats, and with twenty bits.
            put_at(ds, model, "v", (slice(record, record + 2), slice(record, None, 2)), values(rng, "i2", (2, (5001 - record) // 2)))
            put_at(ds, model, "n", slice(record * 1000, None), np.arange(5000 - 1000 * record))
            ds.sync()
            model.commit(ds.version)
        # What no float can hold goes without the filter.
        put_at(ds, model, "v", (0, slice(0, 3)), 1e300 if "f32" in filters else 4.0)
        ds.sync()
        model.commit(ds.version)
    same(path, model)


def test_a_dataset_that_replaced_another_and_payloads_of_many_pieces(tmp_path):
    path, model = tmp_path / "run.esk", Model()
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("x", 3)
        ds.create_variable("old", "i4", "x", data=[1, 2, 3])
    replaced = foreign.Container(path).newest()
    with esker.create(path, layout="log", clobber=True) as ds:
        ds.create_dimension("x", 100_001)
        ds.create_variable("new", "i8", "x")
        model.define("new", "i8", (100_001,))
        put_at(ds, model, "new", slice(None), np.arange(100_001) * 3)
        put_at(ds, model, "new", slice(5, None, 7), -np.arange(14_286))
    container = foreign.Container(path)
    model.commit(container.newest())
    assert replaced not in [found.number for found in container.versions()], "what was replaced has expired"
    assert container.promises()[container.newest()]["first"] == replaced + 1
    same(path, model)


def test_lists_of_all_three_forms(tmp_path, monkeypatch):
    path, model, rng = tmp_path / "run.esk", Model(), np.random.default_rng(8)
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("x", 50_000)
        ds.create_variable("v", "f4", "x")
        model.define("v", "f4", (50_000,))
        put_at(ds, model, "v", slice(None, None, 5), np.arange(10_000))
        put_at(ds, model, "v", np.array([7, 3, 4, 40_000]), np.arange(4))
        put_at(ds, model, "v", rng.permutation(50_000)[:20_000], np.arange(20_000))
    model.commit(foreign.Container(path).newest())
    forms, footprint = set(), foreign.footprint

    def seen(name, data):
        rest = foreign.Bytes(name, data)
        rest.number(), rest.number()
        forms.add(rest.byte())
        return footprint(name, data)

    monkeypatch.setattr(foreign, "footprint", seen)
    same(path, model)
    assert forms == {0, 1, 2}, "regular, a list, a compressed list"


RANKS = """
import sys
import numpy as np
from mpi4py import MPI
import esker
comm, path, files = MPI.COMM_WORLD, sys.argv[1], sys.argv[2]
rank, size = comm.rank, comm.size
with esker.create(path, comm=comm, layout="log", hints={"esker_log_files": files}) as ds:
    ds.create_dimension("t")
    ds.create_dimension("x", 4000 * size)
    v = ds.create_variable("v", "f8", ("t", "x"))
    for step in range(4):
        v[step, rank::size] = 1e6 * step + np.arange(4000) * size + rank
        ds.sync()
        if rank == 0:
            print("version", ds.version, flush=True)
    # All of them the same elements: the highest rank wins, and then a later call.
    v[1, 10:20] = -1.0 - rank
    v[1, 15:18] = -100.0 - rank
"""


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
@pytest.mark.parametrize("files", ["process", "node"])
def test_logs_of_ranks_alone_and_in_lanes_of_one_file(tmp_path, mpi, files):
    program, path, ranks = tmp_path / "program.py", tmp_path / "run.esk", 3
    program.write_text(RANKS)
    done = run_ranks(tmp_path, mpi, ranks, program, path, files)
    assert done.returncode == 0, done.stdout + done.stderr
    names = {name.name.split(".", 1)[1] for name in (path / "segments").iterdir()}
    assert ("1.data" in names) == (files == "process"), names
    expected = 1e6 * np.arange(4)[:, None] + np.arange(4000 * ranks)
    model = Model()
    numbers = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("version")]
    assert len(numbers) == 4, done.stdout
    for step, number in enumerate(numbers):
        model.committed[number] = {"v": expected[: step + 1].copy()}
    expected[1, 10:20] = -1.0 - (ranks - 1)
    expected[1, 15:18] = -100.0 - (ranks - 1)
    model.committed[foreign.Container(path).newest()] = {"v": expected}
    same(path, model)


KILLED = """
import os, signal, sys
import esker
ds = esker.open(sys.argv[1], "r+")
ds["v"][0:2] = 7
ds.sync()
ds["v"][4:6] = 9
ds["v"][0]
print("written", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_recovered_container_is_read_with_what_the_recovery_made(tmp_path):
    path = tmp_path / "run.esk"
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("x", 8)
        ds.create_variable("v", "i4", "x", data=np.arange(8))
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], capture_output=True, text=True)
    assert killed.stdout == "written\n", killed.stderr
    before = foreign.Container(path).newest()
    # A frame that was not finished: the recovery writes this log anew.
    newest = max((path / "segments").glob("*.meta"), key=lambda log: int(log.name.split("-")[0]))
    with newest.open("ab") as log:
        log.write(b"ESKF\x10\0\0\0half of a fra")
    model = Model()
    model.committed[before] = {"v": np.array([7, 7, 2, 3, 4, 5, 6, 7])}
    same(path, model)
    esker.recover(path)
    after = foreign.Container(path).newest()
    assert after > before
    model.committed[after] = {"v": np.array([7, 7, 2, 3, 9, 9, 6, 7])}
    del model.committed[before]
    same(path, model)


def test_a_flipped_bit_anywhere_is_told_or_changes_nothing(tmp_path):
    whole = tmp_path / "whole.esk"
    with esker.create(whole, layout="log") as ds:
        ds.create_dimension("t")
        ds.create_dimension("x", 50)
        ds.create_variable("v", "i4", ("t", "x"))
        for step in range(20):
            ds["v"][step] = np.arange(50) + step
            ds.sync()
    number = foreign.Container(whole).newest()
    expected = foreign.Container(whole).version(number).read("v")
    chance, told = random.Random(7), 0
    files = sorted(name.relative_to(whole) for name in whole.rglob("*") if name.is_file())
    for name in files:
        for _ in range(4):
            damaged = tmp_path / "damaged.esk"
            shutil.copytree(whole, damaged)
            data = bytearray((damaged / name).read_bytes())
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            (damaged / name).write_bytes(data)
            try:
                read = foreign.Container(damaged).version(number).read("v")
            except (foreign.Damaged, foreign.Unknown, ValueError):
                told += 1
            else:
                np.testing.assert_array_equal(read, expected, err_msg=str(name))
            shutil.rmtree(damaged)
    assert told > 20, f"{told} of {4 * len(files)}"


def test_it_has_nothing_of_esker():
    source = Path(foreign.__file__).read_text()
    assert "import esker" not in source and "from esker" not in source


def test_versions_that_expired_are_not_told_and_the_others_are_whole_after_a_collection(tmp_path):
    path, model = tmp_path / "run.esk", Model()
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("t")
        ds.create_dimension("x", 5)
        ds.create_variable("v", "i4", ("t", "x"))
        model.define("v", "i4", (None, 5))
        for step in range(130):
            put_at(ds, model, "v", (step % 7, slice(step % 3, None, 2)), step)
            ds.sync()
            model.commit(ds.version)
    esker.tag(path, "paper", 20)
    expired = esker.expire(path, keep_last=3, every=100)
    gone = {number for numbers in expired for number in numbers}
    assert len(gone) > 100 and 20 not in gone
    assert len(esker.gc(path).removed) > 2
    told = {found.number for found in foreign.Container(path).versions()}
    assert told == {found.number for found in esker.versions(path) if found.state == "open"}
    model.committed = {number: arrays for number, arrays in model.committed.items() if number not in gone}
    assert set(model.committed) == {20, 100, 129, 130, 131}
    same(path, model)
