"""Compares what xarray reads through references with what it reads from a netCDF file.

The one argument is a list of lines `FILE.nc <tab> REFERENCES <tab> WAYS`. Every pair is opened as
stored and decoded, and the references in these ways: the engine kerchunk, zarr alone, and for Parquet
zarr with consolidated metadata.
"""

import sys
import warnings

import numpy as np
import xarray as xr

warnings.simplefilter("ignore")
STORED = dict(mask_and_scale=False, decode_times=False, concat_characters=False)


def by_kerchunk(refs, **how):
    return xr.open_dataset(refs, engine="kerchunk", **how)


def by_zarr(refs, **how):
    how["backend_kwargs"] = {"consolidated": False, "storage_options": {"fo": refs}}
    return xr.open_dataset("reference://", engine="zarr", **how)


def consolidated(refs, **how):
    how["backend_kwargs"] = {"consolidated": True, "storage_options": {"fo": refs}}
    return xr.open_dataset("reference://", engine="zarr", **how)


def same_attributes(expected, seen, where):
    assert set(expected) == set(seen), (where, set(expected) ^ set(seen))
    for name, value in expected.items():
        if isinstance(value, (str, bytes)):
            # netCDF4-python drops zero bytes.
            text = value if isinstance(value, str) else value.decode()
            found = seen[name] if isinstance(seen[name], str) else seen[name].decode()
            assert text == found.replace("\0", ""), (where, name, value, seen[name])
        else:
            np.testing.assert_array_equal(value, seen[name], err_msg=f"{where}: {name}")


def same(file, refs, way):
    with xr.open_dataset(file, engine="netcdf4", **STORED) as expected, way(refs, **STORED) as seen:
        assert set(expected.variables) == set(seen.variables), (refs, set(expected.variables) ^ set(seen.variables))
        for name in expected.variables:
            a, b = expected[name], seen[name]
            where = f"{refs}: {name}"
            assert a.dims == b.dims and a.dtype.kind == b.dtype.kind, where
            assert a.dtype.itemsize == b.dtype.itemsize, where
            np.testing.assert_array_equal(a.values, b.values, err_msg=where)
            same_attributes(a.attrs, b.attrs, where)
        same_attributes(expected.attrs, seen.attrs, refs)
    try:
        expected = xr.open_dataset(file, engine="netcdf4")
    except ValueError:  # times that nobody can decode
        return
    with expected, way(refs) as seen:
        for name in expected.variables:
            a, b = expected[name].values, seen[name].values
            if a.dtype.kind == "f" or b.dtype.kind == "f":
                # Attributes of JSON have no type, so that xarray may decode to another float.
                np.testing.assert_allclose(
                    a.astype("f8"), b.astype("f8"), rtol=2e-6, err_msg=f"{refs}: {name}"
                )
            elif a.dtype.kind == "O" or b.dtype.kind == "O":
                assert [str(x) for x in a.flat] == [str(x) for x in b.flat], f"{refs}: {name}"
            else:
                np.testing.assert_array_equal(a, b, err_msg=f"{refs}: {name}")


WAYS = {"kerchunk": by_kerchunk, "zarr": by_zarr, "consolidated": consolidated}

for line in open(sys.argv[1], encoding="utf-8"):
    file, refs, ways = line.rstrip("\n").split("\t")
    for way in ways.split():
        same(file, refs, WAYS[way])
