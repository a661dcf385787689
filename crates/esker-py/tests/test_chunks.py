"""Chunked variables of classic files: NumPy sees arrays, and every tool sees a classic file."""

import json
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import netCDF4
import numpy as np
import pytest
from conftest import TYPES

import esker


def values_of(kind, shape):
    numbers = np.arange(np.prod(shape)).reshape(shape)
    if kind == "S1":
        return (numbers % 26 + 65).astype("u1").view("S1")
    return (numbers % 120).astype(kind)


def grid(ds, records=None):
    ds.create_dimension("time", records)
    ds.create_dimension("y", 18)
    ds.create_dimension("x", 36)
    return ("time", "y", "x")


@pytest.mark.parametrize("kind", TYPES)
def test_all_types_are_indexed_as_numpy(path, kind):
    values = values_of(kind, (7, 18, 36))
    with esker.create(path) as ds:
        v = ds.create_variable("v", kind, grid(ds), chunks=(2, 5, 9), filters=[("deflate", 4)])
        v[:] = values
        v[3, ::2, 5:30:3] = values[2, ::2, 5:30:3]
        v[[0, 6], :, 4] = values[[1, 5], :, 4]
    values = values.copy()
    values[3, ::2, 5:30:3] = values[2, ::2, 5:30:3]
    values[[0, 6], :, 4] = values[[1, 5], :, 4]
    with esker.open(path) as ds:
        v = ds["v"]
        assert v.chunks == (2, 5, 9) and v.filters == "deflate,4" and v.shape == (7, 18, 36)
        for key in (
            ..., 0, -1, (slice(None), 3), (slice(1, 6, 2), slice(None, None, -1)), (2, 17, 35), (..., [3, 1, 30]),
            (slice(0, 0),), (np.arange(7) % 2 == 0, 4), ([0, 6], [1, 2], [35, 0]),
        ):  # fmt: skip
            np.testing.assert_array_equal(v[key], values[key])
        np.testing.assert_array_equal(v.oindex[[6, 0], :, [1, 2]], values[np.ix_([6, 0], range(18), [1, 2])])


def test_the_file_is_a_classic_one_to_others(path):
    with esker.create(path, format="cdf2") as ds:
        v = ds.create_variable("v", "f4", grid(ds), chunks=(1, 9, 9), filters="shuffle zstd,3", attrs={"units": "K"})
        v[:] = np.ones((2, 18, 36))
        ds.create_variable("x", "f4", "x", data=np.arange(36))
    with netCDF4.Dataset(path) as nc:
        assert nc["x"][:].tolist() == list(range(36)) and nc["v"].units == "K" and nc["v"].shape == ()


def test_filters_alone_choose_a_shape_and_chunks_alone_have_none(path):
    with esker.create(path) as ds:
        dims = grid(ds)
        a = ds.create_variable("a", "f4", dims, filters=["shuffle", ("zstd", 3)])
        b = ds.create_variable("b", "f4", dims, chunks=(1, 9, 9))
        c = ds.create_variable("c", "f4", dims)
        d = ds.create_variable("d", "f4", "x", chunks=10)
        assert (a.chunks, b.chunks, c.chunks) == (None, (1, 9, 9), None)
        ds.enddef()
        assert a.chunks == (1, 18, 36) and a.filters == "shuffle zstd,3"
        assert b.chunks == (1, 9, 9) and b.filters is None
        assert c.chunks is None and c.filters is None and d.chunks == (10,)
        assert "chunks 1×18×36, filters shuffle zstd,3" in repr(a) and "__" not in repr(a)
        assert "1×9×9" in b._repr_html_() and "chunks" not in repr(c)


def test_what_nobody_wrote_is_the_fill_value(path):
    with esker.create(path) as ds:
        v = ds.create_variable("v", "i4", grid(ds), chunks=(1, 9, 9), filters="zstd,1", fill_value=-5)
        v[2, :9, :9] = 1
        assert v.shape[0] == 3
        assert (v[0] == -5).all() and (v[2, :9, :9] == 1).all() and (v[2, 9:] == -5).all()
        assert v.masked[2].mask.sum() == 18 * 36 - 81


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"chunks": (1, 9)}, 'chunked variable "v"'),
        ({"chunks": (0, 9, 9)}, "at least 1"),
        ({"filters": "zstdd,3"}, "zstdd"),
        ({"filters": ["zfp"]}, 'chunked variable "v"'),
        ({"chunks": (2**31, 1, 1)}, 'chunked variable "v"'),
    ],
)
def test_what_cannot_be_is_a_value_error(path, keywords, sentence):
    with pytest.raises(ValueError, match=sentence), esker.create(path) as ds:
        ds.create_variable("v", "i4", grid(ds), **keywords)
    assert not os.path.exists(path)
    # And nothing of it stays.
    with esker.create(path) as ds:
        dims = grid(ds)
        with pytest.raises(ValueError, match=sentence):
            ds.create_variable("v", "i4", dims, **keywords)
        assert "v" not in ds
        ds.create_variable("v", "i4", dims, chunks=(1, 9, 9), filters="zstd,3")[0] = 1
    assert (esker.open(path)["v"][:] == 1).all()


def test_containers_have_chunks_beside_ordinary_variables(tmp_path):
    path = tmp_path / "a.esk"
    values = np.arange(4 * 20 * 30, dtype="i4").reshape(4, 20, 30)
    with esker.create(path, layout="log") as ds:
        for name, size in zip("tyx", values.shape):
            ds.create_dimension(name, size)
        v = ds.create_variable("v", "i4", tuple("tyx"), chunks=(2, 9, 9), filters=["shuffle", ("zstd", 1)])
        w = ds.create_variable("w", "i4", tuple("tyx"))
        assert v.chunks == (2, 9, 9) and w.chunks is None
        v[...], w[...] = values, values
        v[1, 3:17:2, 5] = -1
    values[1, 3:17:2, 5] = -1
    with esker.open(path) as ds:
        assert ds["v"].chunks == (2, 9, 9) and ds["v"].filters == "shuffle zstd,1"
        assert (ds["v"][...] == values).all() and (ds["v"][:, 4, 3:9] == values[:, 4, 3:9]).all()
    # What goes on to a container or a file goes on as it should be.
    esker.convert(path, tmp_path / "b.esk", layout="log")
    assert esker.open(tmp_path / "b.esk")["v"].chunks == (2, 9, 9)
    esker.convert(path, tmp_path / "b.nc")
    assert esker.open(tmp_path / "b.nc")["v"].chunks is None
    assert (netCDF4.Dataset(tmp_path / "b.nc")["v"][...] == values).all()


def test_scalars_have_no_chunks(tmp_path):
    with pytest.raises(ValueError, match="scalar"), esker.create(tmp_path / "a.nc") as ds:
        ds.create_variable("v", "i4", filters="zstd,3")
    with pytest.raises(TypeError, match="a length for each"), esker.create(tmp_path / "a.nc") as ds:
        ds.create_variable("v", "i4", grid(ds), chunks="auto")


def test_long_transfers_write_each_chunk_once(path):
    # 96 MB go in pieces of 32 MiB, which end where chunks do.
    values = np.arange(30 * 800 * 1000, dtype="f4").reshape(30, 800, 1000)
    told = []
    with esker.create(path, fill=False) as ds:
        for name, size in zip("zyx", values.shape):
            ds.create_dimension(name, size)
        v = ds.create_variable("v", "f4", tuple("zyx"), chunks=(7, 300, 300))
        v.write(..., values, progress=lambda done, total: told.append(done))
    assert len(told) > 1 and told[-1] == values.nbytes
    chunks = 5 * 3 * 4 * 7 * 300 * 300 * 4
    # With a piece that ends inside of chunks, these would be there twice.
    assert os.path.getsize(path) < chunks * 1.05
    with esker.open(path) as ds:
        np.testing.assert_array_equal(ds["v"][...], values)
        np.testing.assert_array_equal(ds["v"][::-1, 1::2], values[::-1, 1::2])


def test_threads_share_a_dataset_and_datasets_pickle(path):
    values = values_of("f8", (40, 18, 36))
    with esker.create(path) as ds:
        ds.create_variable("v", "f8", grid(ds), chunks=(4, 9, 9), filters="shuffle deflate,1")[:] = values
    with esker.open(path) as ds, ThreadPoolExecutor(8) as pool:
        for n, got in enumerate(pool.map(lambda n: ds["v"][n % 40, n % 18 :], range(400))):
            np.testing.assert_array_equal(got, values[n % 40, n % 18 :])
        again = pickle.loads(pickle.dumps(ds["v"]))
        assert again.chunks == (4, 9, 9)
        np.testing.assert_array_equal(again[7], values[7])


def test_records_are_appended_and_changed(path):
    values = values_of("f4", (9, 18, 36))
    with esker.create(path) as ds:
        v = ds.create_variable("v", "f4", grid(ds), chunks=(2, 9, 36), filters="zstd,3")
        t = ds.create_variable("time", "f8", "time")
        for n in range(4):
            v.append(values[n])
            t[n] = n
    for n in range(4, 9):
        with esker.open(path, "r+") as ds:
            ds.put("v", slice(n, n + 1), values[n : n + 1])
            ds.put("time", slice(n, n + 1), np.array([float(n)]))
            ds.wait()
    with esker.open(path) as ds:
        np.testing.assert_array_equal(ds["v"][:], values)
        assert ds["time"][:].tolist() == list(range(9))
    assert esker.check(path, read_data=True)


def test_fewer_records_than_were_begun_are_a_warning(path, tmp_path):
    with esker.create(path) as ds:
        dims = grid(ds)
        ds.create_variable("v", "f8", dims, chunks=(1, 9, 36))
        ds["v"][0:3] = np.ones((3, 18, 36))
    with open(path, "r+b") as file:
        file.seek(11)
        assert file.read(1) == b"\x03"
        file.seek(11)
        file.write(b"\x02")
    with pytest.warns(UserWarning, match="counts 2 records, but 3 were begun"):
        ds = esker.open(path)
    with ds:
        np.testing.assert_array_equal(ds["v"][:], np.ones((2, 18, 36)))
    with pytest.warns(UserWarning, match="counts 2 records, but 3 were begun"):
        esker.convert(path, tmp_path / "other.nc")
    found = [finding.code for finding in esker.check(path).findings]
    assert "records-begun" in found and esker.check(path).valid


def test_a_broken_seal_is_a_warning(path, tmp_path):
    with esker.create(path) as ds:
        ds.create_dimension("x", 6)
        ds.create_variable("chunked", "f4", ("x",), chunks=(3,))
        ds.create_variable("regular", "f4", ("x",))
    with open(path, "r+b") as file:
        data = file.read()
        file.seek(0)
        file.write(data.replace(b"chunked\0", b"another\0", 1).replace(b"regular\0", b"chunked\0", 1))
    # Another variable has the name now, and nothing but the seal that was broken can say so.
    with pytest.warns(UserWarning, match='variable "another": its seal'):
        ds = esker.open(path)
    with ds:
        assert ds["chunked"].shape == (6,)
        with pytest.raises(Exception, match="__esker_seal"):
            ds["another"][:]
    with pytest.warns(UserWarning, match='variable "another": its seal'), pytest.raises(Exception, match="__esker_seal"):
        esker.convert(path, tmp_path / "other.nc")


def test_a_damaged_chunk_is_named(path):
    with esker.create(path) as ds:
        ds.create_dimension("x", 4000)
        ds.create_variable("v", "i4", "x", chunks=1000)[:] = np.arange(4000)
    with open(path, "r+b") as file:
        found = file.read().rindex((3500).to_bytes(4, "big"))
        file.seek(found)
        file.write(b"\xff\xff")
    with esker.open(path) as ds:
        assert ds["v"][0] == 0
        with pytest.raises(ValueError, match='chunked variable "v"'):
            ds["v"][3000:]


def test_the_sub_filed_form_is_a_folder(tmp_path):
    values = values_of("f4", (3, 18, 36))
    with esker.create(tmp_path / "run", hints={"esker_chunk_files": "rank"}) as ds:
        ds.create_variable("v", "f4", grid(ds), chunks=(1, 9, 9), filters="zstd,3")[:] = values
    assert (tmp_path / "run" / "data.nc").is_file() and esker.is_dataset(tmp_path / "run")
    with esker.open(tmp_path / "run") as ds:
        np.testing.assert_array_equal(ds["v"][:], values)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(ds))["v"][1], values[1])
    (tmp_path / "other").mkdir()
    assert not esker.is_dataset(tmp_path / "other")


def test_a_hint_asks_for_references_at_close(tmp_path):
    values = values_of("f4", (3, 18, 36))
    for name, hints in (("one.nc", {}), ("folder", {"esker_chunk_files": "rank"})):
        with esker.create(tmp_path / name, hints={**hints, "esker_chunk_refs": "json"}) as ds:
            ds.create_variable("v", "f4", grid(ds), chunks=(1, 9, 9), filters="zstd,3")[:] = values
        refs = json.loads((tmp_path / f"{name}.json").read_text())["refs"]
        url, offset, size = refs["v/2.1.3"]
        assert url == ("{{u}}" if name == "one.nc" else "{{c}}1") and offset > 0 and size > 0
        again = esker.refs(tmp_path / name)
        assert again.variables == {"v": 24} and not again.left_out
    # What is in the way is an error of close, and the data are there.
    (tmp_path / "safe.nc.json").mkdir()
    with pytest.raises((OSError, ValueError), match="closed and whole"):
        with esker.create(tmp_path / "safe.nc", hints={"esker_chunk_refs": "json"}) as ds:
            ds.create_variable("v", "f4", grid(ds), chunks=(1, 9, 9))[:] = values
    with esker.open(tmp_path / "safe.nc") as ds:
        np.testing.assert_array_equal(ds["v"][:], values)


def test_copies_are_chunked_and_contiguous(tmp_path):
    values = values_of("f4", (40, 18, 36))
    with esker.create(tmp_path / "a.nc") as ds:
        ds.create_variable("v", "f4", grid(ds, 40), data=values)
    esker.convert(tmp_path / "a.nc", tmp_path / "b.nc", chunks={"y": 9, "time": 4}, filters=["shuffle", ("zstd", 3)])
    esker.convert(tmp_path / "a.nc", tmp_path / "c.nc", chunks={"v": {"x": 6}}, filters={"v": "deflate,1"})
    esker.convert(tmp_path / "b.nc", tmp_path / "d.nc")
    esker.convert(tmp_path / "b.nc", tmp_path / "e.nc", contiguous=True)
    found = {}
    for name in "abcde":
        with esker.open(tmp_path / f"{name}.nc") as ds:
            np.testing.assert_array_equal(ds["v"][:], values)
            found[name] = ds["v"].chunks and (ds["v"].chunks[1:], ds["v"].filters)
    assert found["b"] == found["d"] == ((9, 36), "shuffle zstd,3")
    assert found["c"] == ((18, 6), "deflate,1") and found["a"] is found["e"] is None
    with pytest.raises(ValueError, match="excludes"):
        esker.convert(tmp_path / "a.nc", tmp_path / "f.nc", contiguous=True, filters="zstd,3")
    with pytest.raises(ValueError, match="zstdd"):
        esker.convert(tmp_path / "a.nc", tmp_path / "f.nc", filters="zstdd")


def test_the_second_writer_is_told_and_readers_are_let_in(path):
    with esker.create(path) as ds:
        ds.create_variable("v", "f4", grid(ds), chunks=(1, 9, 9), filters="zstd")[:] = np.ones((2, 18, 36))
    with esker.open(path, "r+") as ds:
        ds["v"][0] = 2
        for second in (lambda: esker.open(path, "r+"), lambda: esker.create(path)):
            with pytest.raises(BlockingIOError, match="open for writing"):
                second()
        assert esker.open(path)["v"][:, 0, 0].tolist() == [2, 1]
    esker.open(path, "r+").close()


def test_a_damaged_table_is_an_error_and_no_array_of_fill_values(path):
    with esker.create(path, format="cdf5") as ds:
        ds.create_variable("v", "f4", grid(ds), chunks=(1, 9, 9), filters="zstd")[:] = np.ones((2, 18, 36))
    with open(path, "rb") as file:
        sound = file.read()
    entry = sound.index(b"EskT") + 32
    length = sound.index(b"\x01y\0\0\0") + 12
    assert sound[length] == 18
    for at, new, words in (
        (entry, bytes(32), "chunk 0"),
        (length, b"\x24", "made for float"),
        (length - 3, b"\x40", "made for float"),
        (8, b"\0\x10\0\0", "2 were ever begun"),
    ):
        with open(path, "wb") as file:
            file.write(sound[:at] + new + sound[at + len(new) :])
        # What the header says of a variable has a seal, which tells at once.
        told = pytest.warns(UserWarning, match="its seal") if words == "made for float" else nullcontext()
        with told:
            ds = esker.open(path)
        with ds:
            with pytest.raises(ValueError, match=words):
                ds["v"][:, 0, 0]
            with pytest.raises(ValueError, match=words):
                ds["v"][...]
        assert not esker.check(path, read_data=True)
