"""Esker beside netCDF4-python, scipy, h5py and zarr, in one run: ``python speed.py [--size 1024] [--repeat 5]``.

Everyone reads the same values, in turn, whoever begins changing from round to round; files are in the page cache.
What is reported are medians and ratios (another's time divided by ours: above 1 we are faster).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import esker


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


class Board:
    """Times of contenders by case."""

    def __init__(self, repeat):
        self.repeat, self.cases = repeat, {}

    def run(self, case, contenders, check=None):
        """Lets contenders (a name and a call each) take turns; "in memory" reads nothing."""
        names = [name for name, call in contenders.items() if call is not None]
        times = {name: [] for name in names}
        if check is not None:
            answers = {name: check(contenders[name]()) for name in names}
            assert len(set(answers.values())) == 1, (case, answers)
        for turn in range(self.repeat):
            for place in range(len(names)):
                name = names[(place + turn) % len(names)]
                times[name].append(timed(contenders[name]))
        medians = {name: statistics.median(values) for name, values in times.items()}
        self.cases[case] = medians
        ours = medians["esker"]
        row = "  ".join(f"{name} {value * 1e3:9.2f} ms" + ("" if name == "esker" else f" ({value / ours:.2f})") for name, value in medians.items())
        print(f"{case:<44} {row}", flush=True)


def optional(name):
    try:
        return __import__(name)
    except ImportError:
        print(f"{name} is not installed and left out", file=sys.stderr)
        return None


def digest(array):
    array = np.asarray(array)
    return (array.shape, float(array.sum(dtype="f8")))


def classic(folder, size, board):
    """Whole, strided and plane reads of a classic file; dask's threads."""
    import netCDF4
    import scipy.io
    import xarray as xr

    n = 512
    records = max(size * 2**20 // (n * n * 4), 4)
    path = str(folder / "classic.nc")
    with esker.create(path, format="cdf2", fill=False) as ds:
        ds.create_dimension("z", records)
        ds.create_dimension("y", n)
        ds.create_dimension("x", n)
        v = ds.create_variable("v", "f4", ("z", "y", "x"))
        plane = np.random.default_rng(1).random((n, n), "f4")
        for z in range(records):
            v[z] = plane + z
    ours, theirs = esker.open(path), netCDF4.Dataset(path)
    theirs.set_auto_maskandscale(False)
    scipys = scipy.io.netcdf_file(path, "r", mmap=True)  # its default, and the faster way
    a, b, c = ours["v"], theirs["v"], scipys.variables["v"]
    native = lambda array: np.array(array, "f4")  # noqa: E731  (scipy gives views in the file's byte order)
    for case, key in (
        ("whole", (Ellipsis,)),
        ("strided [:, ::2, ::2]", (slice(None), slice(None, None, 2), slice(None, None, 2))),
        ("strided [::4, ::4, ::4]", (slice(None, None, 4),) * 3),
        ("plane [:, 100, :]", (slice(None), 100, slice(None))),
        ("plane [:, :, 100]", (slice(None), slice(None), 100)),
        ("block [10:20, 100:300, 100:300]", (slice(10, 20), slice(100, 300), slice(100, 300))),
    ):
        board.run(case, {"esker": lambda: a[key], "netCDF4": lambda: b[key], "scipy": lambda: native(c[key])}, digest)
    c = None
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scipys.close()
    import dask

    chunk = max(records // 32, 1)
    lazy = {"esker": "esker", "netCDF4": "netcdf4"}
    lazy = {name: xr.open_dataset(path, engine=engine, chunks={"z": chunk}) for name, engine in lazy.items()}
    corner = lambda block: block[:1, :1, :1]  # noqa: E731
    with dask.config.set(scheduler="threads", num_workers=4):
        for case, work in (
            # What reading takes: of each block one element is kept.
            ("dask, 4 threads, blocks alone", lambda ds: ds.v.data.map_blocks(corner, chunks=(1, 1, 1)).compute()),
            ("dask, 4 threads, max(skipna=False)", lambda ds: ds.v.max(skipna=False).values),
        ):
            board.run(case, {name: (lambda ds=ds: work(ds)) for name, ds in lazy.items()}, digest)
        # Reductions that leave NaNs out make several arrays of each block: what they take of one in memory is
        # NumPy's own, whoever reads.
        memory = lazy["esker"].copy()
        memory["v"] = (("z", "y", "x"), a[...])
        contenders = {**lazy, "in memory": memory.chunk({"z": chunk})}
        for case, work in (
            ("dask, 4 threads, sum", lambda ds: float(ds.v.sum(dtype="f8"))),
            ("dask, 4 threads, mean of planes", lambda ds: ds.v.mean(("y", "x")).values),
        ):
            board.run(case, {name: (lambda ds=ds: work(ds)) for name, ds in contenders.items()})
        del memory, contenders
    ours.close()
    theirs.close()


def many_variables(folder, board):
    """Opening a file with 1,000 variables, and small calls."""
    import netCDF4
    import scipy.io
    import xarray as xr

    path = str(folder / "many.nc")
    with esker.create(path, format="cdf2") as ds:
        ds.create_dimension("x", 10)
        for i in range(1000):
            ds.create_variable(f"v{i}", "f4", "x", attrs={"units": "K", "long_name": f"variable {i}"})
    board.run(
        "open 1,000 variables",
        {
            "esker": lambda: esker.open(path).close(),
            "netCDF4": lambda: netCDF4.Dataset(path).close(),
            "scipy": lambda: scipy.io.netcdf_file(path, mmap=False).close(),
        },
    )
    board.run(
        "open 1,000 variables, all of one",
        {"esker": lambda: [esker.open(path)["v500"].attrs["units"]], "netCDF4": lambda: [netCDF4.Dataset(path)["v500"].units]},
    )
    board.run(
        "xarray.open_dataset, 1,000",
        {e: (lambda e=e: xr.open_dataset(path, engine=e).close()) for e in ("esker", "netcdf4")},
    )
    a, b = esker.open(path)["v3"], netCDF4.Dataset(path)["v3"]
    b.set_auto_maskandscale(False)
    board.run("10,000 small reads", {"esker": lambda: [a[2:5] for _ in range(10000)], "netCDF4": lambda: [b[2:5] for _ in range(10000)]})


def compressed(folder, size, board):
    """Chunked variables of a classic file, and filtered ones of a container, beside HDF5's and Zarr's chunks with the same codec."""
    h5py, zarr = optional("h5py"), optional("zarr")
    hdf5plugin = optional("hdf5plugin") if h5py else None
    n = 128
    number = max(size * 2**20 // (n**3 * 4), 2)
    rng = np.random.default_rng(2)
    # Smooth, with noise in the last bits, as fields are.
    z, y, x = np.meshgrid(*[np.linspace(0, 6, n, dtype="f4")] * 3, indexing="ij")
    field = (np.sin(z) * np.cos(y) + np.sin(x * 2) + rng.normal(0, 1e-3, (n, n, n))).astype("f4")
    shape, chunk = (number, n, n, n), (1, n, n, n // 2)

    def fill(array):
        for t in range(number):
            array[t] = field + t

    for codec, filters in (("deflate", ["shuffle", ("deflate", 4)]), ("zstd", ["shuffle", ("zstd", 3)])):
        files = {"chunked": folder / f"{codec}.nc", "container": folder / f"{codec}.esk"}
        for kind, path in files.items():
            with esker.create(path, layout="log" if kind == "container" else "classic", fill=False) as ds:
                for dim, length in zip("tzyx", shape):
                    ds.create_dimension(dim, length)
                storage = {"filters": filters} if kind == "container" else {"filters": filters, "chunks": chunk}
                fill(ds.create_variable("v", "f4", tuple("tzyx"), **storage))
        # Opened anew each time: what was decoded is kept as long as a dataset is open.
        rivals = {}
        # HDF5's own zlib; zstd by the plug-in of the package hdf5plugin.
        codings = {"deflate": {"compression": "gzip", "compression_opts": 4}}
        if hdf5plugin:
            codings["zstd"] = dict(hdf5plugin.Zstd(clevel=3))
        if h5py and codec in codings:
            place = str(folder / f"{codec}.h5")
            with h5py.File(place, "w") as f:
                fill(f.create_dataset("v", shape, "f4", chunks=chunk, shuffle=True, **codings[codec]))
            rivals["h5py"] = lambda key, place=place: h5py.File(place, "r")["v"][key]
        if zarr:
            from zarr.codecs import ZstdCodec
            from zarr.codecs.numcodecs import Shuffle, Zlib

            coding = ZstdCodec(level=3) if codec == "zstd" else Zlib(level=4)
            place = str(folder / f"{codec}.zarr")
            fill(zarr.create_array(place, shape=shape, chunks=chunk, dtype="f4", compressors=[Shuffle(elementsize=4), coding]))
            rivals["zarr"] = lambda key, place=place: zarr.open_array(place, mode="r")[key]
        for case, key in (("whole", (Ellipsis,)), ("plane [:, 64]", (slice(None), 64)), ("cube [1]", (1,))):
            for kind, path in files.items():
                calls = {"esker": lambda: esker.open(path)["v"][key]}
                calls.update({name: (lambda call=call: call(key)) for name, call in rivals.items()})
                board.run(f"{kind}, shuffle + {codec}, {case}", calls, digest)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1024, help="MiB of the classic file (1024)")
    parser.add_argument("--repeat", type=int, default=5, help="rounds, of which the median counts (5)")
    parser.add_argument("--json", help="a file for the figures")
    parser.add_argument("--folder", help="where the files are made (a temporary directory)")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()}, {arguments.size} MiB, medians of {arguments.repeat}")
    board = Board(arguments.repeat)
    try:
        classic(folder, arguments.size, board)
        many_variables(folder, board)
        compressed(folder, max(arguments.size // 8, 16), board)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if arguments.json:
        facts = {"cores": os.cpu_count(), "load": load, "size_mib": arguments.size, "repeat": arguments.repeat, "seconds": board.cases}
        Path(arguments.json).write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
