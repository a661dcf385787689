"""What netCDF4's and xarray's encodings mean here: the same, or an error that says what to use."""

import netCDF4
import numpy as np
import pytest
import xarray as xr

import esker
import esker.xarray  # noqa: F401


def values(kind):
    """Numbers of all sizes, halves between two rounded ones among them, and special ones."""
    dice = np.random.default_rng(5)
    some = dice.normal(size=3000) * 10.0 ** dice.integers(-30, 30, 3000)
    halves = 1 + np.arange(1, 400) / 256 + 2.0**-11
    special = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e36, -1.5, 3.4e38 if kind == "f4" else 1.7e308, 9.969209968386869e36]
    with np.errstate(over="ignore"):
        return np.concatenate([some, halves, -halves, special]).astype(kind)


def dataset(kind, fill=None):
    ds = xr.Dataset({"t": (("x",), values(kind))})
    if fill is not None:
        ds.t.values[7] = fill
    return ds


@pytest.mark.parametrize("fill", [None, -7.7])
@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("bits", [1, 3, 7, 10, 22])
def test_bitround_rounds_as_netcdf4_does(tmp_path, kind, bits, fill):
    ds = dataset(kind, fill)
    keys = {"significant_digits": bits, "quantize_mode": "BitRound"}
    with netCDF4.Dataset(tmp_path / "their.nc", "w") as nc:
        nc.createDimension("x", ds.sizes["x"])
        # (Of a variable without filters netCDF-C rounds as well.)
        made = nc.createVariable("t", kind, ("x",), fill_value=fill, zlib=True, **keys)
        made.set_auto_maskandscale(False)
        # xarray writes what is not a number as the fill value.
        made[:] = ds.t.values if fill is None else np.where(np.isnan(ds.t.values), np.dtype(kind).type(fill), ds.t.values)
    encoding = {"t": {**keys, "_FillValue": fill, "zlib": True}}
    ds.esker.to_netcdf(tmp_path / "our.nc", encoding=encoding)
    with netCDF4.Dataset(tmp_path / "their.nc") as nc, esker.open(tmp_path / "our.nc") as our:
        nc.set_auto_maskandscale(False)
        np.testing.assert_array_equal(our["t"][:], nc["t"][:])
        assert our["t"].attrs["_QuantizeBitRoundNumberOfSignificantBits"] == bits
        assert nc["t"]._QuantizeBitRoundNumberOfSignificantBits == bits

@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("places", [-2, 0, 1, 3, 5])
def test_least_significant_digit_rounds_as_netcdf4_does(tmp_path, kind, places):
    dice = np.random.default_rng(6)
    ds = xr.Dataset({"t": (("x",), (dice.normal(size=2000) * 300).astype(kind))})
    with netCDF4.Dataset(tmp_path / "their.nc", "w") as nc:
        nc.createDimension("x", 2000)
        nc.createVariable("t", kind, ("x",), zlib=True, least_significant_digit=places)[:] = ds.t.values
    ds.esker.to_netcdf(tmp_path / "our.nc", encoding={"t": {"least_significant_digit": places, "zlib": True}})
    with netCDF4.Dataset(tmp_path / "their.nc") as nc, esker.open(tmp_path / "our.nc") as our:
        np.testing.assert_array_equal(our["t"][:], nc["t"][:])
        assert our["t"].attrs["least_significant_digit"] == places == nc["t"].least_significant_digit


def test_what_is_appended_is_rounded_as_the_rest(tmp_path):
    path = tmp_path / "a.nc"
    ds = xr.Dataset({"t": (("time", "x"), values("f4")[:3000].reshape(10, 300))})
    encoding = {"t": {"significant_digits": 5, "quantize_mode": "BitRound"}}
    ds.isel(time=slice(0, 4)).esker.to_netcdf(path, unlimited_dims="time", encoding=encoding)
    ds.isel(time=slice(4, 7)).esker.to_netcdf(path, mode="a", append_dim="time")
    ds.isel(time=slice(7, 10)).chunk({"time": 1}).esker.to_netcdf(path, mode="a", append_dim="time", encoding=encoding)
    ds.esker.to_netcdf(tmp_path / "b.nc", encoding=encoding)
    with esker.open(path) as appended, esker.open(tmp_path / "b.nc") as whole:
        np.testing.assert_array_equal(appended["t"][:], whole["t"][:])


FILTERS = [
    ({"zlib": True}, "shuffle deflate,4"),
    ({"zlib": True, "complevel": 7, "shuffle": False}, "deflate,7"),
    ({"zstd": True}, "shuffle zstd,4"),
    ({"zstd": True, "complevel": 9}, "shuffle zstd,9"),
    ({"compression": "zstd"}, "shuffle zstd,4"),
    ({"compression": "gzip", "compression_opts": 6}, "shuffle deflate,6"),
    ({"zlib": True, "fletcher32": True}, "shuffle deflate,4 crc32c"),
    ({"fletcher32": True}, "crc32c"),
    ({"fletcher32": True, "filters": ["lz4"]}, "lz4 crc32c"),
    # What netCDF4 says of a variable that has none of these.
    ({"zlib": False, "szip": False, "zstd": False, "bzip2": False, "blosc": False, "shuffle": False,
      "complevel": 0, "fletcher32": False, "contiguous": True, "chunksizes": None, "endian": "native"}, None),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "filters"), FILTERS)
def test_encodings_become_filters(tmp_path, keys, filters):
    ds = dataset("f4")
    ds.esker.to_netcdf(tmp_path / "a.nc", encoding={"t": keys})
    with esker.open(tmp_path / "a.nc") as found:
        assert found["t"].filters == filters
        np.testing.assert_array_equal(found["t"][:], ds.t.values)


REFUSED = [
    ({"szip": True}, "szip=True has no counterpart"),
    ({"bzip2": True}, "use filters="),
    ({"blosc": True}, "lz4"),
    ({"blosc_shuffle": 1}, "blosc_shuffle"),
    ({"compression": "szip"}, "compression 'szip' is not one of zlib"),
    ({"compression": "blosc_zstd"}, "filters= has more"),
    ({"compression": "lzf"}, "'lzf'"),
    ({"complevel": 5}, "does nothing without zlib=True"),
    ({"shuffle": True}, "does nothing without"),
    ({"compression_opts": 5}, "does nothing without"),
    ({"zlib": True, "zstd": True}, "choose one"),
    ({"zlib": True, "filters": "zstd,3"}, "choose one"),
    ({"filters": "zstd,3", "complevel": 3}, "goes into filters="),
    ({"zlib": True, "complevel": 3, "compression_opts": 4}, "choose one"),
    ({"endian": "little"}, "big-endian"),
    ({"significant_digits": 3}, "quantize_mode 'BitGroom' .the default of netCDF4. is not written"),
    ({"significant_digits": 3, "quantize_mode": "BitGroom"}, "use quantize_mode='BitRound'"),
    ({"significant_digits": 3, "quantize_mode": "GranularBitRound"}, "'GranularBitRound'"),
    ({"significant_digits": 24, "quantize_mode": "BitRound"}, "1 to 23 bits"),
    ({"significant_digits": 3.5, "quantize_mode": "BitRound"}, "whole number"),
    ({"quantize_mode": "BitRound"}, "needs significant_digits"),
    ({"significant_digits": 3, "quantize_mode": "BitRound", "least_significant_digit": 2}, "choose one"),
    ({"significant_digits": 3, "quantize_mode": "BitRound", "dtype": "i4", "_FillValue": -1}, "only floating-point"),
    ({"compressor": "zlib"}, "compressor='zlib' has no counterpart"),
    ({"shards": (10,)}, "shards"),
    ({"nonsense": 1}, "unknown encoding"),
]


@pytest.mark.parametrize(("keys", "why"), REFUSED)
def test_encodings_without_a_counterpart_are_refused(tmp_path, keys, why):
    with pytest.raises(ValueError, match=why) as refused:
        xr.Dataset({"t": (("x",), np.ones(4, "f4"))}).esker.to_netcdf(tmp_path / "a.nc", encoding={"t": keys})
    assert "'t'" in str(refused.value)
    assert not (tmp_path / "a.nc").exists()


def test_a_read_of_more_than_memory_is_an_error(tmp_path):
    path = tmp_path / "huge.nc"
    with esker.create(path) as ds:
        ds.create_dimension("y", 1 << 21)
        ds.create_dimension("x", 1 << 21)
        ds.create_variable("t", "f8", ("y", "x"), chunks=(1024, 1024), filters="lz4")
    with esker.open(path) as ds:
        for key in (..., (slice(None), np.arange(0, 1 << 21, 2))):
            with pytest.raises(MemoryError, match="'t'.*no memory for [0-9]{13,} bytes|\"t\".*no memory for [0-9]{13,} bytes"):
                ds["t"][key]
        assert ds["t"][0, 0] > 9e36


def test_ill_formed_hints_of_the_environment_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PNETCDF_HINTS", "cb_nodes=3; oops ;a b=c;=4;cb_buffer_size=")
    with pytest.warns(UserWarning) as told:
        esker.create(tmp_path / "a.nc").close()
    words = [str(warning.message) for warning in told]
    assert len(words) == 4 and all("ill-formed" in word for word in words), words
