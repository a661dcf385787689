"""The xarray engine agrees with engine netcdf4, and what the accessor writes other engines read."""

import pickle
import warnings

import dask
import dask.array
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from conftest import classic_files

import esker
import esker.xarray  # noqa: F401  (registers the accessor)

FILES = classic_files()
real = pytest.mark.parametrize("file", FILES or [None], ids=lambda file: file.name if file else "none")


@pytest.fixture(autouse=True)
def calm():
    """Old files have attributes that xarray warns of, with any engine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def opened(file, **options):
    """The file by both engines; without the decoding that both refuse."""
    if file is None:
        pytest.skip("the shared data are not here")
    try:
        theirs = xr.open_dataset(file, engine="netcdf4", **options)
    except ValueError as error:
        with pytest.raises(ValueError, match="decode"):
            xr.open_dataset(file, engine="esker", **options)
        assert "decode_times" not in options, error
        return opened(file, decode_times=False, **options)
    return theirs, xr.open_dataset(file, engine="esker", **options)


def same_text(dataset):
    """Text that is not UTF-8 is Latin-1 to us and full of replacements to netCDF4."""
    dataset = dataset.copy()
    for owner in [dataset, *dataset.variables.values()]:
        for name, value in list(owner.attrs.items()):
            if isinstance(value, str):
                owner.attrs[name] = "".join(c if c.isascii() else "?" for c in value)
    return dataset


@real
@pytest.mark.parametrize(
    "options",
    [{}, {"decode_cf": False}, {"mask_and_scale": False}, {"decode_times": False}, {"chunks": {}}, {"concat_characters": False}],
    ids=lambda options: "-".join(f"{k}" for k in options) or "defaults",
)
def test_real_files_are_what_netcdf4_reads(file, options):
    theirs, ours = opened(file, **options)
    with theirs, ours:
        assert list(ours.variables) == list(theirs.variables)
        assert ours.encoding["unlimited_dims"] == theirs.encoding["unlimited_dims"]
        xr.testing.assert_identical(same_text(ours), same_text(theirs))
        for name, variable in theirs.variables.items():
            for key in ("dtype", "_FillValue", "units", "calendar", "scale_factor", "add_offset", "missing_value"):
                assert str(variable.encoding.get(key)) == str(ours[name].encoding.get(key)), (name, key)


def same(ours, theirs, what):
    if theirs.dtype == object:  # text with gaps, where NaN is not equal to itself
        ours, theirs = ours.astype(str), theirs.astype(str)
    np.testing.assert_array_equal(ours, theirs, err_msg=what)


@real
def test_every_way_of_indexing_real_files_agrees(file):
    theirs, ours = opened(file, decode_times=False)
    rng = np.random.default_rng(5)
    with theirs, ours:
        for name, variable in theirs.variables.items():
            if name in theirs.indexes or variable.ndim == 0:
                continue
            if len(set(variable.dims)) < variable.ndim:  # which xarray does not index
                same(ours[name].values, theirs[name].values, name)
                continue
            sizes = variable.sizes
            if variable.size == 0:
                assert ours[name].shape == theirs[name].shape
                continue
            some = {dim: np.sort(rng.choice(n, min(n, 3), replace=False)) for dim, n in sizes.items()}
            points = {dim: xr.DataArray(rng.integers(0, n, 4), dims="points") for dim, n in sizes.items()}
            first = next(iter(sizes))
            for key in (
                {dim: 0 for dim in sizes},
                {dim: slice(None, None, 2) for dim in sizes},
                {dim: slice(-1, None) for dim in sizes},
                {first: slice(None, None, -1)},
                {first: slice(0, 0)},
                some,
                {dim: rng.permutation(indices) for dim, indices in some.items()},
                {first: some[first] == some[first][0]} if len(some[first]) == sizes[first] else {first: some[first]},
                points,
                {first: points[first]},
            ):
                same(ours[name].isel(key).values, theirs[name].isel(key).values, f"{name} {key}")


def test_the_engine_is_registered_and_claims_by_content(tmp_path):
    odd = tmp_path / "no_ending"
    with esker.create(odd) as ds:
        ds.create_dimension("x", 2)
        ds.create_variable("v", "i8", "x", data=[1, 2**40])
    container = tmp_path / "run.esk"
    esker.convert(odd, container, layout="log")
    entry = xr.backends.list_engines()["esker"]
    assert entry.guess_can_open(str(odd)) and entry.guess_can_open(container)
    other = tmp_path / "other.nc"
    other.write_bytes(b"\x89HDF\r\n\x1a\n")
    assert not entry.guess_can_open(other) and not entry.guess_can_open(tmp_path) and not entry.guess_can_open(b"CDF\1")
    for path in (odd, container):
        with xr.open_dataset(path, engine="esker") as ds:
            assert ds.v.dtype == np.int64 and ds.v.values.tolist() == [1, 2**40]
    with xr.open_dataset(container) as ds:  # nobody else claims it
        assert ds.v.values.tolist() == [1, 2**40]


def made(records=6):
    """A dataset with most of what xarray encodes."""
    time = pd.date_range("2000-01-01", periods=records)
    rng = np.random.default_rng(3)
    t = rng.standard_normal((records, 4, 5)).astype("f4")
    t[0, 0, 0] = np.nan
    return xr.Dataset(
        {
            "t": (("time", "y", "x"), t, {"units": "K"}),
            "packed": (("time", "x"), rng.uniform(0, 10, (records, 5)), {}, {"dtype": "i2", "scale_factor": 0.01, "_FillValue": -1}),
            "large": (("x",), np.array([2**62, -(2**62), 1, 2, 3])),
            "unsigned": (("x",), np.array([2**64 - 1, 0, 1, 2, 3], "u8")),
            "flag": (("x",), np.array([True, False, True, True, False])),
            "name": (("y",), np.array(["a", "bc", "", "größe"])),
            "scalar": ((), 7.5),
        },
        coords={"time": time, "y": [1.0, 2.0, 3.0, 4.0], "label": ("x", np.arange(5))},
        attrs={"title": "made up", "number": 3},
    )


@pytest.mark.parametrize("layout", ["classic", "log"])
@pytest.mark.parametrize("chunked", [False, True])
def test_what_is_written_is_what_was_meant(tmp_path, layout, chunked):
    path = tmp_path / "a.nc"
    ds = made()
    (ds.chunk({"time": 2, "x": 3}) if chunked else ds).esker.to_netcdf(path, layout=layout, unlimited_dims="time")
    for engine in ["esker", "netcdf4"] if layout == "classic" else ["esker"]:
        with xr.open_dataset(path, engine=engine) as back:
            xr.testing.assert_allclose(back, ds, atol=0.006)
            for name in ("large", "unsigned", "flag", "t", "name", "time"):
                np.testing.assert_array_equal(back[name].values, ds[name].values)
                assert name == "name" or back[name].dtype.kind == ds[name].dtype.kind  # text is of objects
            assert back.encoding["unlimited_dims"] == {"time"} and dict(back.attrs) == dict(ds.attrs)
            assert back.large.encoding["dtype"] == np.int64 and set(back.coords) == set(ds.coords)


def test_the_file_is_what_xarrays_own_writer_makes(tmp_path):
    ours, theirs = tmp_path / "ours.nc", tmp_path / "theirs.nc"
    ds = made().drop_vars(["large", "unsigned"])
    ds.esker.to_netcdf(ours, format="cdf2")
    ds.to_netcdf(theirs, format="NETCDF3_64BIT", engine="netcdf4")
    with xr.open_dataset(ours, engine="netcdf4", decode_cf=False) as a, xr.open_dataset(theirs, engine="netcdf4", decode_cf=False) as b:
        xr.testing.assert_identical(a, b)


def test_values_that_an_old_format_cannot_hold_are_an_error(tmp_path):
    ds = xr.Dataset({"v": ("x", np.array([1, 2**40]))})
    with pytest.raises(esker.RangeError):
        ds.esker.to_netcdf(tmp_path / "a.nc", format="cdf1")


def test_records_are_appended_in_the_encoding_of_the_file(tmp_path):
    path = tmp_path / "a.nc"
    ds = made(9)
    for start, stop in ((0, 3), (3, 4), (4, 9)):
        part = ds.isel(time=slice(start, stop))
        if start == 4:
            part = part.chunk({"time": 2})
        part.esker.to_netcdf(path, mode="a", append_dim="time")
    with xr.open_dataset(path, engine="netcdf4") as back:
        xr.testing.assert_allclose(back, ds, atol=0.006)
        assert back.time.encoding["units"] == "days since 2000-01-01 00:00:00"
    with pytest.raises(ValueError, match="unlimited"):
        ds.esker.to_netcdf(path, mode="a", append_dim="x")


def test_variables_are_added_to_a_file(tmp_path):
    path = tmp_path / "a.nc"
    made().esker.to_netcdf(path)
    xr.Dataset({"more": ("x", np.arange(5.0))}).esker.to_netcdf(path, mode="a")
    with xr.open_dataset(path, engine="netcdf4") as back:
        assert back.more.values.tolist() == [0, 1, 2, 3, 4] and "t" in back


def test_wrong_encodings_are_refused(tmp_path):
    ds = made()
    with pytest.raises(ValueError, match="unknown encoding"):
        ds.esker.to_netcdf(tmp_path / "a.nc", encoding={"t": {"compresion": 3}})
    with pytest.raises(ValueError, match="nothing"):
        ds.esker.to_netcdf(tmp_path / "a.nc", encoding={"nothing": {}})
    ds.esker.to_netcdf(tmp_path / "a.esk", layout="log", encoding={"t": {"filters": ["shuffle", ("zstd", 3)]}})
    with xr.open_dataset(tmp_path / "a.esk", engine="esker") as back:
        assert back.t.encoding["filters"] == "shuffle zstd,3"
        np.testing.assert_array_equal(back.t.values, ds.t.values)


def test_large_arrays_of_dask_are_streamed(tmp_path):
    path = tmp_path / "a.nc"
    computed = []
    live = [0]

    def block(block_info=None):
        live[0] += 1
        computed.append(live[0])
        return np.ones((1, 500, 500), "f4")

    data = dask.array.map_blocks(block, chunks=((1,) * 40, (500,), (500,)), dtype="f4", meta=np.empty((0, 0, 0), "f4"))
    told = []
    xr.Dataset({"v": (("time", "y", "x"), data)}).esker.to_netcdf(path, progress=lambda done, total: told.append(done / total))
    assert len(computed) == 40 and told[-1] == 1
    with xr.open_dataset(path, engine="netcdf4") as back:
        assert float(back.v.sum()) == 40 * 500 * 500


def test_dask_reads_in_threads_and_in_processes(tmp_path):
    path = tmp_path / "a.nc"
    values = np.arange(64 * 300 * 300, dtype="f4").reshape(64, 300, 300)
    xr.Dataset({"v": (("time", "y", "x"), values)}).esker.to_netcdf(path, unlimited_dims="time")
    with xr.open_dataset(path, engine="esker", chunks={"time": 8}) as ds:
        total = ds.v.sum(dtype="f8")
        with dask.config.set(scheduler="threads", num_workers=8):
            assert float(total) == values.sum(dtype="f8")
        again = pickle.loads(pickle.dumps(ds))
        np.testing.assert_array_equal(again.v[3].values, values[3])
        with dask.config.set(scheduler="processes", num_workers=2):
            assert float(total) == values.sum(dtype="f8")
    with xr.open_dataset(path, engine="esker", chunks={}) as ds:
        assert ds.v.chunks[0] == (64,)  # records of 360 KB are no chunks of their own


def test_large_records_are_preferred_chunks(tmp_path):
    path = tmp_path / "a.nc"
    values = np.zeros((3, 600, 600), "f4")
    xr.Dataset({"v": (("time", "y", "x"), values)}).esker.to_netcdf(path, unlimited_dims="time")
    with xr.open_dataset(path, engine="esker", chunks={}) as ds:
        assert ds.v.chunks == ((1, 1, 1), (600,), (600,))


def test_many_files_open_as_one(tmp_path):
    ds = made(12)
    paths = []
    for start in range(0, 12, 3):
        paths.append(tmp_path / f"part{start:02}.nc")
        ds.isel(time=slice(start, start + 3)).esker.to_netcdf(paths[-1])
    with xr.open_mfdataset(paths, engine="esker", data_vars="minimal", compat="override", coords="minimal") as back:
        xr.testing.assert_allclose(back[["t", "packed"]].compute(), ds[["t", "packed"]], atol=0.006)


def test_more_files_than_may_be_open_are_opened_again(tmp_path):
    arrays = []
    with xr.set_options(file_cache_maxsize=2):
        for i in range(5):
            path = tmp_path / f"{i}.nc"
            xr.Dataset({"v": ("x", np.full(4, i))}).esker.to_netcdf(path)
            arrays.append(xr.open_dataset(path, engine="esker", chunks={}))
        together = xr.concat([a.v for a in arrays], "file")
        for _ in range(3):
            assert together.sum("x").values.tolist() == [0, 4, 8, 12, 16]


def test_datasets_without_records_or_values_are_read(tmp_path):
    path = tmp_path / "a.nc"
    with esker.create(path) as ds:
        ds.create_dimension("time")
        ds.create_dimension("x", 3)
        ds.create_variable("v", "f4", ("time", "x"))
        ds.create_variable("time", "f8", ("time",), attrs={"units": "days since 2000-01-01"})
    with xr.open_dataset(path, engine="esker") as ours, xr.open_dataset(path, engine="netcdf4") as theirs:
        assert ours.v.shape == (0, 3) and ours.v.values.shape == (0, 3)
        assert ours.v.isel(x=[2, 0]).values.shape == (0, 2)
        xr.testing.assert_identical(ours, theirs)


STORED = {
    "ours": {"chunks": (1, 2, 3), "filters": ["shuffle", ("zstd", 3)]},
    "zlib": {"chunksizes": (1, 2, 3), "zlib": True, "complevel": 6},
    "zlib alone": {"zlib": True},
    "without shuffle": {"zlib": True, "shuffle": False, "complevel": 1},
    "zstd": {"chunksizes": (2, 4, 5), "compression": "zstd"},
    "contiguous": {"contiguous": True, "zlib": False, "chunksizes": None},
}
FILTERS = {
    "ours": ((1, 2, 3), "shuffle zstd,3"),
    "zlib": ((1, 2, 3), "shuffle deflate,6"),
    "zlib alone": ((1, 4, 5), "shuffle deflate,4"),
    "without shuffle": ((1, 4, 5), "deflate,1"),
    "zstd": ((2, 4, 5), "shuffle zstd,4"),
    "contiguous": (None, None),
}


@pytest.mark.parametrize("stored", STORED)
def test_chunks_and_filters_go_around(tmp_path, stored):
    ds = made()
    path = tmp_path / "a.nc"
    assert ds.t.dims == ("time", "y", "x")
    ds.esker.to_netcdf(path, unlimited_dims="time", encoding={"t": STORED[stored]})
    with esker.open(path) as raw:
        assert (raw["t"].chunks, raw["t"].filters) == FILTERS[stored]
    opened = [xr.open_dataset(path, engine="esker", **options) for options in ({}, {"chunks": {}})]
    with opened[0] as back, opened[1] as lazy:
        np.testing.assert_array_equal(back.t.values, ds.t.values)
        np.testing.assert_array_equal(back.time.values, ds.time.values)
        chunks, filters = FILTERS[stored]
        assert not [name for name in back.t.attrs if name.startswith("__")]
        if chunks:
            assert back.t.encoding["chunksizes"] == chunks and back.t.encoding["filters"] == filters
            assert back.t.encoding["preferred_chunks"] == dict(zip(ds.t.dims, chunks))
            assert tuple(sizes[0] for sizes in lazy.t.chunks) == chunks
            np.testing.assert_array_equal(lazy.t.values, ds.t.values)
        # It keeps them, unless something else is asked for.
        back.esker.to_netcdf(tmp_path / "b.nc")
        lazy.esker.to_netcdf(tmp_path / "c.nc", encoding={"t": {}})
    with esker.open(tmp_path / "b.nc") as raw:
        assert (raw["t"].chunks, raw["t"].filters) == FILTERS[stored]
        np.testing.assert_array_equal(raw["t"][:], ds.t.values)
    with esker.open(tmp_path / "c.nc") as raw:
        assert raw["t"].chunks is None
        np.testing.assert_array_equal(raw["t"][:], ds.t.values)


def test_whole_datasets_are_compressed_with_text_and_scalars(tmp_path):
    path = tmp_path / "a.nc"
    ds = made()
    ds.esker.to_netcdf(path, encoding={name: {"zlib": True} for name in ds.variables})
    ds[["name"]].drop_vars("y").esker.to_netcdf(tmp_path / "b.nc", encoding={"name": {"chunksizes": (2,)}})
    with xr.open_dataset(path, engine="esker") as back:
        assert float(back.scalar) == 7.5 and back["name"].values.tolist() == ds["name"].values.tolist()
        np.testing.assert_array_equal(back.t.values, ds.t.values)
        np.testing.assert_array_equal(back.time.values, ds.time.values)
    with esker.open(tmp_path / "b.nc") as raw:
        assert raw["name"].chunks == (2, 7) and raw["name"].asstr()[3] == "größe"


def test_records_of_chunked_variables_are_appended(tmp_path):
    path = tmp_path / "a.nc"
    ds = made(12)
    keep = {"t": {"chunks": (2, 2, 5), "filters": ["shuffle", ("deflate", 2)]}}
    for start in range(0, 12, 3):
        part = ds.isel(time=slice(start, start + 3))
        if start == 6:
            part = part.chunk(time=1)
        part.esker.to_netcdf(path, mode="a", append_dim="time", encoding=keep)
    with xr.open_dataset(path, engine="esker") as back:
        np.testing.assert_array_equal(back.t.values, ds.t.values)
        np.testing.assert_array_equal(back.time.values, ds.time.values)
        assert back.t.encoding["chunksizes"] == (2, 2, 5)
    assert esker.check(path, read_data=True)


def test_storage_that_contradicts_itself_is_refused(tmp_path):
    for keys, sentence in (
        ({"filters": "zstd,3", "zlib": True}, "choose one"),
        ({"compression": "szip"}, "szip"),
        ({"contiguous": True, "zlib": True}, "contiguous"),
        ({"chunks": (1, 2)}, 'chunked variable "t"'),
    ):
        with pytest.raises(ValueError, match=sentence):
            made().esker.to_netcdf(tmp_path / "a.nc", encoding={"t": keys})
    assert not (tmp_path / "a.nc").exists()


def test_chunked_variables_are_read_by_threads_and_processes(tmp_path):
    path = tmp_path / "a.nc"
    values = np.arange(32 * 100 * 100, dtype="f4").reshape(32, 100, 100)
    data = dask.array.from_array(values, chunks=(3, 100, 70))  # across the file's chunks
    ds = xr.Dataset({"v": (("time", "y", "x"), data)})
    with dask.config.set(scheduler="threads", num_workers=4):
        ds.esker.to_netcdf(path, encoding={"v": {"chunks": (2, 50, 100), "filters": "shuffle zstd,1"}})
    with xr.open_dataset(path, engine="esker", chunks={}) as ds:
        assert ds.v.chunks == ((2,) * 16, (50, 50), (100,))
        for scheduler in ("threads", "processes"):
            with dask.config.set(scheduler=scheduler, num_workers=4):
                assert float(ds.v.sum(dtype="f8")) == values.sum(dtype="f8")
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(ds)).v.values, values)


def test_blocks_of_dask_are_written_as_whole_chunks(tmp_path):
    """Chunks that are changed in part are stored without filters that lose something."""
    path = tmp_path / "a.nc"
    x = np.linspace(0, 6, 200)
    values = np.sin(x[:, None]) * np.cos(x)
    data = dask.array.from_array(values, chunks=(30, 70))
    ds = xr.Dataset({"v": (("time", "x"), data)})
    encoding = {"v": {"chunks": (20, 50), "filters": "sz,abs=0.001"}}
    ds.isel(time=slice(0, 90)).esker.to_netcdf(path, unlimited_dims="time", encoding=encoding)
    ds.isel(time=slice(90, 200)).esker.to_netcdf(path, mode="a", append_dim="time")
    with xr.open_dataset(path, engine="esker") as ds:
        assert np.abs(ds.v.values - values).max() <= 0.001
    # So are the chunks in which the second call begins: they were not packed before they were full.
    assert path.stat().st_size < values.nbytes / 3


def test_containers_and_folders_are_claimed_by_content(tmp_path):
    ds = made()
    keys = {"t": {"filters": "shuffle zstd,3"}}
    ds.esker.to_netcdf(tmp_path / "log", layout="log", encoding=keys)
    ds.esker.to_netcdf(tmp_path / "folder", encoding=keys, hints={"esker_chunk_files": "shared"})
    assert (tmp_path / "folder" / "data.nc").is_file()
    for name in ("log", "folder"):
        with xr.open_dataset(tmp_path / name) as back:
            np.testing.assert_array_equal(back.t.values, ds.t.values)
            assert back.t.encoding["filters"] == "shuffle zstd,3"


def test_text_that_was_read_is_written_again(tmp_path):
    made().esker.to_netcdf(tmp_path / "a.nc")
    with xr.open_dataset(tmp_path / "a.nc", engine="esker") as back:
        back.esker.to_netcdf(tmp_path / "b.nc")
        with xr.open_dataset(tmp_path / "b.nc", engine="netcdf4") as again:
            assert again["name"].values.tolist() == ["a", "bc", "", "größe"]


@pytest.mark.parametrize("form", ["json", "parq"])
def test_references_are_opened_by_plain_xarray(tmp_path, form):
    pytest.importorskip("zarr")
    pytest.importorskip("fsspec")
    if form == "parq":
        pytest.importorskip("fastparquet")
    ds = made()
    ds.esker.to_netcdf(tmp_path / "a.nc", encoding={"t": {"chunks": (1, 2, 5), "zlib": True}})
    with esker.open(tmp_path / "a.nc", "r+") as raw:
        raw.create_variable("left", "f4", ("y", "x"), filters="pco", data=np.ones((4, 5), "f4"))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        refs = esker.refs(tmp_path / "a.nc", tmp_path / f"a.{form}")
    assert ["left" in str(warning.message) for warning in told] == [True]
    assert refs.variables["t"] == 2 * ds.sizes["time"] and list(refs.left_out) == ["left"]
    assert refs.form == {"json": "json", "parq": "parquet"}[form]
    options = {"consolidated": False, "storage_options": {"fo": refs.path}}
    with xr.open_dataset("reference://", engine="zarr", backend_kwargs=options) as back:
        np.testing.assert_array_equal(back.t.values, ds.t.values)
        np.testing.assert_array_equal(back.time.values, ds.time.values)
