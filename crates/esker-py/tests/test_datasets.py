"""Datasets: definitions, types, records, modes, queues, text, masks."""

import os
import pickle
import shutil
import subprocess
import sys
import threading

import netCDF4
import numpy as np
import pytest
from conftest import TYPES

import esker


def some(dtype, shape):
    """Values that use the type's range."""
    rng = np.random.default_rng(1)
    dtype = np.dtype(dtype)
    if dtype.kind == "S":
        return rng.integers(65, 91, shape, dtype="u1").view("S1")
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def test_every_type_is_what_netcdf4_reads(path):
    values = {name: some(name, (3, 5)) for name in TYPES}
    with esker.create(path, format="cdf5") as ds:
        ds.create_dimension("y", 3)
        ds.create_dimension("x", 5)
        for name, array in values.items():
            ds.create_variable("v_" + name, name, ("y", "x"), data=array, attrs={"a": array[0, :2] if name != "S1" else "ab"})
    with netCDF4.Dataset(path) as nc:
        nc.set_auto_maskandscale(False)
        assert nc.data_model == "NETCDF3_64BIT_DATA"
        for name, array in values.items():
            read = nc["v_" + name]
            assert read.dtype == array.dtype
            np.testing.assert_array_equal(read[:], array)
            if name != "S1":
                np.testing.assert_array_equal(read.a, array[0, :2])
    with esker.open(path) as ds:
        for name, array in values.items():
            assert ds["v_" + name].dtype == array.dtype
            np.testing.assert_array_equal(ds["v_" + name][:], array)
            np.testing.assert_array_equal(ds["v_" + name][2, 3], array[2, 3])


@pytest.mark.parametrize("format, kind", [("cdf1", "NETCDF3_CLASSIC"), ("cdf2", "NETCDF3_64BIT_OFFSET"), ("cdf5", "NETCDF3_64BIT_DATA")])
def test_every_format_is_what_netcdf4_reads(path, format, kind):
    with esker.create(path, format=format) as ds:
        ds.create_dimension("x", 3)
        ds.create_variable("v", "f8", "x", data=[1, 2, 3])
        ds.attrs.update(title="größe", number=7, real=0.5, several=[1, 2], wide=np.int64(9))
        assert ds.format == format
    with netCDF4.Dataset(path) as nc:
        assert nc.data_model == kind
        assert (nc.title, nc.number, nc.real) == ("größe", 7, 0.5)
        assert nc.several.dtype == np.int32 and nc.number.dtype == np.int32
        assert nc.wide == 9 and nc.wide.dtype == (np.int64 if format == "cdf5" else np.int32)
    if shutil.which("ncdump"):
        assert subprocess.run(["ncdump", "-h", path], capture_output=True).returncode == 0


def test_types_that_a_format_lacks_are_refused(path):
    with esker.create(path, format="cdf1") as ds:
        with pytest.raises(ValueError, match="CDF-1"):
            ds.create_variable("v", "u4")
        with pytest.raises(TypeError):
            ds.create_variable("v", "c16")
        with pytest.raises(ValueError, match="cdf5"):
            ds.attrs["a"] = 2**40
        with pytest.raises(ValueError):
            ds.create_dimension("x", 0)


def test_definitions_and_data_come_in_any_order(path):
    with esker.create(path) as ds:
        ds.create_dimension("time")
        ds.create_dimension("x", 4)
        a = ds.create_variable("a", "i4", ("time", "x"))
        a[0] = 1
        b = ds.create_variable("b", "i2", "x", data=[1, 2, 3, 4])
        a[1] = 2
        ds.attrs["a long attribute that needs room in the header"] = "text " * 100
        b.attrs["units"] = "m"
        a[2] = [5, 6, 7, 8]
        ds.rename_variable("b", "c")
        del ds["c"].attrs["units"]
        assert ds["c"] is not b and list(ds["c"].attrs) == []
    with esker.open(path, "r+") as ds:
        ds.create_variable("d", "f4", ("time",), data=[1, 2, 3])
    with esker.open(path) as ds:
        np.testing.assert_array_equal(ds["a"][:], [[1] * 4, [2] * 4, [5, 6, 7, 8]])
        np.testing.assert_array_equal(ds["c"][:], [1, 2, 3, 4])
        np.testing.assert_array_equal(ds["d"][:], [1, 2, 3])
        assert list(ds) == ["a", "c", "d"] and len(ds) == 3 and "a" in ds and "b" not in ds
        assert ds.dims == {"time": 3, "x": 4} and ds.unlimited == "time"
        assert len(ds.dimensions["time"]) == 3 and ds.dimensions["time"].is_unlimited


@pytest.mark.parametrize("layout", ["classic", "log"])
def test_writing_beyond_the_last_record_makes_records(tmp_path, layout):
    path = tmp_path / "a"
    with esker.create(path, layout=layout) as ds:
        ds.create_dimension("time")
        ds.create_dimension("x", 2)
        v = ds.create_variable("v", "i4", ("time", "x"), fill_value=-1)
        w = ds.create_variable("w", "f4", ("time",))
        v[:] = np.arange(6).reshape(3, 2)
        assert v.shape == (3, 2) and w.shape == (3,)
        v[4] = 9
        v[5:7] = [[1, 2], [3, 4]]
        v[7:] = [[5, 6]]
        v.append([7, 8])
        v.append([[9, 10], [11, 12]])
        v[-1] = [0, 0]
        v[:] = v[:] * 2 * (v[:] != -1) + v[:] * (v[:] == -1)
        v[:1] = 100
        with pytest.raises(IndexError):
            v[-30] = 0
    with esker.open(path) as ds:
        expected = [[100, 100], [4, 6], [8, 10], [-1, -1], [18, 18], [2, 4], [6, 8], [10, 12], [14, 16], [18, 20], [0, 0]]
        np.testing.assert_array_equal(ds["v"][:], expected)
        assert ds["w"].masked[:].mask.all()
        assert ds.layout == layout


def test_values_are_converted_and_what_does_not_fit_is_told(path):
    with esker.create(path) as ds:
        ds.create_dimension("x", 3)
        v = ds.create_variable("v", "i1", "x", fill_value=-9)
        for value in ([1.5, 2, 3], np.array([1, 2, 3], ">i8"), np.array([1, 0, 1], bool), np.array([1, 2, 3], "f2"), np.longdouble([1, 2, 3])):
            v[:] = value
            np.testing.assert_array_equal(v[:], np.asarray(value).astype("i1"))
        with pytest.raises(esker.RangeError, match="1000"):
            v[:] = [1, 1000, 3]
        np.testing.assert_array_equal(v[:], [1, -9, 3])
        with pytest.raises(ValueError, match=r"\(2,\)"):
            v[:] = [1, 2]
        with pytest.raises(TypeError):
            v[:] = "text"
        with pytest.raises(TypeError):
            v[:] = 1j
        assert v.read(dtype="f8").dtype == np.float64
        with pytest.raises(esker.RangeError):
            v.read(dtype="u1")


def test_fill_values_are_masks_on_request(path):
    with esker.create(path) as ds:
        ds.create_dimension("x", 4)
        a = ds.create_variable("a", "f4", "x", fill_value=-1)
        b = ds.create_variable("b", "i4", "x")
        c = ds.create_variable("c", "u1", "x")
        d = ds.create_variable("d", "f8", "x", fill_value=np.nan, attrs={"missing_value": 7.0})
        a[:2] = [1, 2]
        a[2:] = np.ma.masked_array([3, 4], mask=[True, False])
        b[1] = 5
        c[0] = 255
        d[:2] = [7, 8]
    with netCDF4.Dataset(path) as nc, esker.open(path) as ds:
        for name in "abd":
            theirs, ours = np.ma.getmaskarray(nc[name][:]), np.ma.getmaskarray(ds[name].masked[:])
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
        # netCDF's guide: no default fill value is assumed for bytes, all of whose values are data.
        assert not np.ma.getmaskarray(ds["c"].masked[:]).any()
        assert isinstance(ds["a"][:], np.ndarray) and not isinstance(ds["a"][:], np.ma.MaskedArray)
    with esker.open(path, masked=True) as ds:
        assert isinstance(ds["a"][:], np.ma.MaskedArray) and ds["a"][:].mask.tolist() == [False, False, True, False]


def test_text_is_written_and_read_as_strings(path):
    names = np.array(["Bergen", "Zürich", "", "x" * 12])
    with esker.create(path) as ds:
        ds.create_dimension("station", 4)
        ds.create_dimension("len", 12)
        v = ds.create_variable("name", str, ("station", "len"))
        v[:] = names
        w = ds.create_variable("title", "S1", "len", data="Hello")
        c = ds.create_variable("flag", "S1", data="y")
        np.testing.assert_array_equal(v.asstr()[:], names)
        v[2] = "Oslo"
        v.asstr()[0] = b"Bonn"
        assert v.asstr()[2] == "Oslo" and v.asstr()[0] == "Bonn" and w.asstr()[...] == "Hello"
        assert v[1, 0] == b"Z" and c[...] == b"y"
        with pytest.raises(ValueError, match="12"):
            v[0] = "much too long for it"
        with pytest.raises(TypeError):
            v[0] = 1
    with netCDF4.Dataset(path) as nc:
        nc.set_auto_mask(False)
        read = netCDF4.chartostring(nc["name"][:], encoding="utf-8")
        assert read.tolist() == ["Bonn", "Zürich", "Oslo", "x" * 12]


def test_queued_requests_take_keys_with_arrays(cube, path):
    shared, values = cube
    shutil.copy(shared, path)
    with esker.open(path, "r+") as ds:
        points = ds.get("v", ([0, 2, 2], slice(None), [1, 0, 1]))
        mask = np.arange(values.shape[1]) % 2 == 0
        into = np.empty_like(values[:, mask])
        assert ds.get("v", (slice(None), mask), out=into) is into
        none = ds.get("v", [])
        with pytest.raises(IndexError, match="out of bounds"):
            ds.get("v", [1000])
        with pytest.raises(ValueError, match="does not fit"):
            ds.get("v", [0, 1], out=np.empty(3, values.dtype))
        ds.wait()
        assert (points == values[[0, 2, 2], :, [1, 0, 1]]).all()
        assert (into == values[:, mask]).all() and none.shape == values[[]].shape
        ds.put("v", [2, 0], np.stack([values[0], values[1]]))
        ds.put("v", (1, [0, 1]), -7)
        ds.wait()
        values = values.copy()
        values[[2, 0]] = np.stack([values[0], values[1]])
        values[1, [0, 1]] = -7
        assert (ds["v"][...] == values).all()


def test_queued_requests_move_at_wait(path):
    with esker.create(path) as ds:
        ds.create_dimension("x", 100)
        names = [f"v{i}" for i in range(20)]
        for name in names:
            ds.create_variable(name, "f4", "x")
        arrays = {name: some("f4", 100) for name in names}
        for name, array in arrays.items():
            ds.put(name, ..., array)
        temporary = np.ones(10)
        ds.put("v0", slice(0, 10), temporary, copy=True)
        temporary[:] = 0
        assert ds.queued == 21
        ds.wait()
        arrays["v0"][:10] = 1
        out = np.zeros((3, 100), "f8")
        got = {name: ds.get(name) for name in names}
        # Into one array, whose parts overlap as memory.
        ds.get("v1", ..., out=out[0])
        ds.get("v2", slice(0, 50), out=out[1, ::2])
        ds.get("v3", slice(0, 50), out=out[1, 1::2])
        ds.get("v4", slice(None, None, -1), out=out[2])
        ds.wait()
        for name in names:
            np.testing.assert_array_equal(got[name], arrays[name])
        np.testing.assert_array_equal(out[0], arrays["v1"])
        np.testing.assert_array_equal(out[1, ::2], arrays["v2"][:50])
        np.testing.assert_array_equal(out[1, 1::2], arrays["v3"][:50])
        np.testing.assert_array_equal(out[2], arrays["v4"][::-1])
        ds.put("v0", 0, 5.0)
        assert ds.cancel() == 1 and ds["v0"][0] == 1
        with pytest.raises(IndexError):
            ds.get("v0", 100)


def test_parts_of_a_dataset_keep_it_open(path):
    with esker.create(path) as ds:
        ds.create_dimension("x", 3)
        ds.create_variable("v", "i4", "x", attrs={"units": "K"}, data=[1, 2, 3])
        ds.attrs["title"] = "a"
    assert esker.open(path).attrs["title"] == "a" and esker.open(path)["v"].attrs["units"] == "K"
    assert esker.open(path).dimensions["x"].size == 3 and esker.open(path).variables["v"].oindex[[2]].tolist() == [3]
    assert esker.open(path)["v"].masked[1:].tolist() == [2, 3]


def test_a_container_has_versions_and_filters(tmp_path):
    path = tmp_path / "run.esk"
    values = np.linspace(0, 1, 1000, dtype="f4")
    with esker.create(path, layout="log") as ds:
        ds.create_dimension("x", 1000)
        v = ds.create_variable("v", "f4", "x", filters=["shuffle", ("zstd", 3)])
        v[:] = values
        ds.sync()
        first = ds.version
        v[0] = 9
    with esker.open(path) as ds:
        assert ds["v"][0] == 9 and ds["v"].filters == "shuffle zstd,3" and ds.layout == "log"
    with esker.open(path, version=first) as ds:
        np.testing.assert_array_equal(ds["v"][:], values)
    with pytest.raises(ValueError, match="filters"), esker.create(tmp_path / "a.nc") as ds:
        ds.create_variable("v", "f4", filters="zstd,3")


def test_nothing_of_a_dataset_that_failed_stays(path):
    with pytest.raises(ZeroDivisionError), esker.create(path) as ds:
        ds.create_dimension("x", 1)
        1 / 0
    with pytest.raises(FileNotFoundError):
        esker.open(path)


def test_modes_are_those_of_files(path):
    esker.open(path, "w").close()
    with pytest.raises(FileExistsError):
        esker.open(path, "x")
    with esker.open(path, "a") as ds:
        ds.create_dimension("x", 2)
    with esker.open(path, "a") as ds:
        assert ds.dims == {"x": 2}
    with pytest.raises(ValueError):
        esker.open(path, "q")


def test_threads_share_a_dataset(path):
    values = some("f8", (64, 1000))
    with esker.create(path) as ds:
        ds.create_dimension("y", 64)
        ds.create_dimension("x", 1000)
        v = ds.create_variable("v", "f8", ("y", "x"), data=values)
        w = ds.create_variable("w", "f8", ("y", "x"))
        wrong = []

        def work(first):
            for row in range(first, 64, 8):
                w[row] = v[row] * 2
                if not np.array_equal(w[row], values[row] * 2):
                    wrong.append(row)
                ds.attrs[f"row_{row}"] = row

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong and len(ds.attrs) == 64
        np.testing.assert_array_equal(w[:], values * 2)


def test_a_dataset_pickles_by_its_path(cube):
    path, values = cube
    with esker.open(path) as ds:
        again = pickle.loads(pickle.dumps(ds["v"]))
        np.testing.assert_array_equal(again[1], values[1])
    with esker.open(path, "r+") as ds, pytest.raises(TypeError):
        pickle.dumps(ds)


def test_it_can_be_looked_at(path):
    with esker.create(path) as ds:
        ds.create_dimension("time")
        ds.create_dimension("x", 4)
        ds.create_variable("t", "f4", ("time", "x"), attrs={"long_name": "a <name>", "units": "K"})
        ds.attrs["title"] = "the title"
        for text in (repr(ds), repr(ds["t"]), ds._repr_html_(), ds["t"]._repr_html_()):
            assert "time" in text and "K" in text
        assert "a &lt;name&gt;" in ds._repr_html_() and "unlimited" in repr(ds)
        assert "units" in repr(ds["t"].attrs) and "esker.Dimension" in repr(ds.dimensions)
    assert "closed" in repr(ds) and "closed" in ds._repr_html_()
    with pytest.raises(ValueError, match="closed"):
        ds["t"]
        ds["t"][:]


def test_hints_are_taken_and_wrong_ones_are_told(path):
    with esker.create(path, hints={"cb_buffer_size": 1 << 20}) as ds:
        assert ds.hints["cb_buffer_size"] == str(1 << 20)
    with pytest.warns(UserWarning, match="cb_bufer_size"):
        esker.open(path, hints={"cb_bufer_size": 1}).close()


def test_a_dataset_that_is_forgotten_is_closed(tmp_path):
    ds = esker.create(tmp_path / "a.esk", layout="log")
    ds.create_dimension("x", 3)
    ds.create_variable("v", "i4", "x", data=[1, 2, 3])
    del ds
    with esker.open(tmp_path / "a.esk") as ds:
        assert ds["v"][:].tolist() == [1, 2, 3]
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(100):
        esker.open(tmp_path / "a.esk")["v"][0]
    assert len(os.listdir("/proc/self/fd")) <= before + 2
    program = f"import esker; ds = esker.create({str(tmp_path / 'b.nc')!r}); ds.create_dimension('x', 2); ds.create_variable('v', 'i4', 'x', data=[7, 8])"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert esker.open(tmp_path / "b.nc")["v"][1] == 8
