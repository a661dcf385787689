# %% [markdown]
# # Arrays in a classic netCDF file
# Run this file, or open it as a notebook (VS Code, or `jupytext --to ipynb serial.py`).

# %%
import numpy as np

import esker

# %% [markdown]
# A new file: CDF-5, which has all eleven types. Definitions and data come in any order.

# %%
lat, lon = np.linspace(-90, 90, 91), np.arange(0, 360, 2.0)
with esker.create("waves.nc") as ds:
    ds.attrs["title"] = "standing waves"
    ds.create_dimension("time")  # unlimited: grows with every record
    ds.create_dimension("lat", lat.size)
    ds.create_dimension("lon", lon.size)
    ds.create_variable("lat", "f8", "lat", data=lat, attrs={"units": "degrees_north"})
    ds.create_variable("lon", "f8", "lon", data=lon, attrs={"units": "degrees_east"})
    height = ds.create_variable("height", "f4", ("time", "lat", "lon"), attrs={"units": "m"}, fill_value=-9999)
    for step in range(24):
        wave = np.cos(np.radians(lat))[:, None] * np.cos(np.radians(lon) * 3 + step / 4)
        height.append(wave)

# %% [markdown]
# Reading: a dataset shows itself, and a variable is indexed as an array. Only what is asked for is read.

# %%
ds = esker.open("waves.nc")
print(ds)
height = ds["height"]
equator = height[:, 45, :]
assert equator.shape == (24, 180)
coarse = height[::6, ::10, ::-20]
some_days = height[[0, 5, 23], 45, 10]  # arrays select points, as in NumPy
block = height.oindex[[0, 5, 23], 40:50, [1, 2, 3]]  # or along each dimension
assert coarse.shape == (4, 10, 9) and some_days.shape == (3,) and block.shape == (3, 10, 3)

# %% [markdown]
# Fill values are masks when asked for; many requests can be moved together.

# %%
with esker.open("waves.nc", "r+") as change:
    change["height"][0, :, :5] = np.ma.masked
    assert change["height"].masked[0].mask.sum() == 5 * lat.size
    first, last = change.get("height", 1), change.get("height", -1)
    change.wait()  # one plan for all that is queued
assert abs(float(last.max())) <= 1 and first.shape == (91, 180)

# %% [markdown]
# Chunks that go through filters make a file smaller; to programs the variable is what it always was.

# %%
with esker.create("small.nc") as small:
    small.create_dimension("time")
    small.create_dimension("x", 10_000)
    wave = small.create_variable("wave", "f4", ("time", "x"), chunks=(1, 5_000), filters=["shuffle", ("zstd", 3)])
    for step in range(3):
        wave.append(np.round(np.sin(np.arange(10_000) / 1000 + step), 3))
    print(wave)
assert esker.open("small.nc")["wave"].shape == (3, 10_000) and esker.check("small.nc", read_data=True)

# %% [markdown]
# A container takes writes as fast as they come, keeps every version, and compresses.

# %%
with esker.create("waves.esk", layout="log") as run:
    run.create_dimension("x", 100_000)
    v = run.create_variable("v", "f4", "x", filters=["shuffle", ("zstd", 3)])
    v[:] = np.sin(np.arange(100_000) / 1000)
    run.sync()
    before = run.version
    v[:10] = 0
print(esker.open("waves.esk", version=before)["v"][5], "became", esker.open("waves.esk")["v"][5])
esker.convert("waves.esk", "waves_from_log.nc")
assert esker.check("waves_from_log.nc")
