# %% [markdown]
# # xarray and dask
# The engine `"esker"` is there when the package is installed; `import esker.xarray` adds the writer.

# %%
import dask.array
import numpy as np
import pandas as pd
import xarray as xr

import esker.xarray  # noqa: F401

# %% [markdown]
# A dataset larger than we want to hold: dask makes it chunk by chunk, and so it is written. 64-bit integers
# are exact, because the file is CDF-5, which xarray's own writer does not make.

# %%
time = pd.date_range("2024-01-01", periods=60)
t = dask.array.random.default_rng(0).normal(280, 10, size=(60, 180, 360), chunks=(5, 180, 360)).astype("f4")
ds = xr.Dataset(
    {"t": (("time", "lat", "lon"), t, {"units": "K"}), "count": ("time", np.arange(60) + 2**40)},
    coords={"time": time, "lat": np.arange(-89.5, 90), "lon": np.arange(0.5, 360)},
)
ds.esker.to_netcdf("daily.nc", format="cdf5", unlimited_dims="time", encoding={"t": {"_FillValue": np.float32(-1)}})

# %% [markdown]
# Reading is lazy, and dask's threads read at the same time: there is no lock.

# %%
with xr.open_dataset("daily.nc", engine="esker", chunks={"time": 10}) as back:
    mean = back.t.mean("time").compute()
    assert back["count"].dtype == np.int64 and int(back["count"][-1]) == 2**40 + 59
    assert mean.shape == (180, 360) and abs(float(mean.mean()) - 280) < 1

# %% [markdown]
# New days go behind the last record, in the encoding that the file has.

# %%
more = ds.isel(time=slice(0, 3)).assign_coords(time=pd.date_range("2024-03-01", periods=3))
more.esker.to_netcdf("daily.nc", mode="a", append_dim="time")
with xr.open_dataset("daily.nc", engine="esker") as back:
    assert back.sizes["time"] == 63 and back.time.values[-1] == np.datetime64("2024-03-03")

# %% [markdown]
# Many files as one.

# %%
for month, part in ds.groupby("time.month"):
    part.esker.to_netcdf(f"month{month:02}.nc", unlimited_dims="time")
with xr.open_mfdataset("month*.nc", engine="esker") as year:
    print(year)
    assert year.sizes["time"] == 60

# %% [markdown]
# Compressed, in a file that is still a classic one: chunks and filters by our names or netCDF4's. dask takes the
# file's chunks for its own.

# %%
ds.esker.to_netcdf("small.nc", encoding={"t": {"chunksizes": (5, 90, 360), "zlib": True, "complevel": 1}})
with xr.open_dataset("small.nc", engine="esker", chunks={}) as small:
    assert small.t.chunks[1] == (90, 90) and small.t.encoding["filters"] == "shuffle deflate,1"
    assert bool((small.t == ds.t).all())
