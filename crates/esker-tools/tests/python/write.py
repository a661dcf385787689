"""Random classic files, written by netCDF4-python, and what they must hold.

usage: write.py DIRECTORY COUNT SEED

Writes N.nc, N.view and N.data for N below COUNT; the last two are as view.py makes them, but
from the arrays in memory, not from the file.
"""
import os
import random
import sys

import netCDF4
import numpy as np

import view

OLD = ["i1", "S1", "i2", "i4", "f4", "f8"]
NEW = OLD + ["u1", "u2", "u4", "i8", "u8"]
NAMES = ["x", "temp", "größe", "温度", "a b", "x+y", "_under", "2m", "Z", "été", "p.q", "lon@1"]


def values(rng, dtype, shape):
    n = int(np.prod(shape, dtype=np.int64))
    raw = np.frombuffer(rng.randbytes(n * np.dtype(dtype).itemsize), dtype=dtype).copy()
    if dtype == "S1":
        # numpy's S1 has no zero byte of its own: it reads as empty, and is written as one.
        raw = np.frombuffer(bytes(rng.choices(b"abcxyz \xc3", k=n)), dtype="S1").copy()
    return raw.reshape(shape)


def attribute_value(rng, types):
    dtype = rng.choice(types)
    n = rng.choice([1, 1, 2, 3, 7])
    if dtype == "S1":
        return rng.choice(["", "K", "degrees_north", "größe 温度", "two\nlines"])
    array = values(rng, dtype, (n,))
    return array[0] if n == 1 else array


def write(path, rng):
    kind = rng.choice(list(view.KINDS))
    types = NEW if kind == "NETCDF3_64BIT_DATA" else OLD
    ds = netCDF4.Dataset(path, "w", format=kind)
    fill = rng.random() < 0.7
    names = NAMES[:]
    rng.shuffle(names)
    dims, attributes, variables, arrays = [], [], [], []
    records = rng.randrange(0, 5)
    unlimited = rng.randrange(-1, 3)
    for i in range(rng.randrange(0, 9)):
        length = records if i == unlimited else rng.randrange(1, 4)
        ds.createDimension(names[i], None if i == unlimited else length)
        dims.append([names[i], length, i == unlimited])
    for _ in range(rng.randrange(0, 4)):
        name, value = rng.choice(NAMES), attribute_value(rng, types)
        if all(a[1] != name for a in attributes):
            ds.setncattr(name, value)
            attributes.append(("", name, value))
    has_records = False
    rng.shuffle(names)
    for name in names[: rng.randrange(0, 7)]:
        dtype = rng.choice(types)
        fixed = [d for d in dims if not d[2]]
        chosen = [rng.choice(fixed) for _ in range(rng.randrange(0, 9))] if fixed else []
        chosen = chosen[:8]
        if rng.random() < 0.5:
            chosen = [d for d in dims if d[2]] + chosen[:7]
        while np.prod([d[1] for d in chosen]) > 3000:
            chosen.pop()
        var = ds.createVariable(name, dtype, [d[0] for d in chosen], fill_value=None if fill else False)
        var.set_auto_maskandscale(False)
        var.set_auto_chartostring(False)
        shape = tuple(d[1] for d in chosen)
        default = b"\0" if dtype == "S1" else netCDF4.default_fillvals[dtype]
        array = np.full(shape, default, dtype=dtype)
        for _ in range(rng.randrange(0, 3)):
            attr, value = rng.choice(NAMES), attribute_value(rng, types)
            if all(a[:2] != (name, attr) for a in attributes):
                var.setncattr(attr, value)
                attributes.append((name, attr, value))
        has_records |= any(d[2] for d in chosen)
        variables.append((name, view.type_name(dtype), [d[0] for d in chosen]))
        arrays.append((var, array, dtype))
    if not has_records:
        for dim in dims:
            dim[1] = 0 if dim[2] else dim[1]
    for var, array, dtype in arrays:
        if array.size == 0:
            continue
        # The whole first: records exist, and nothing is left to chance without fill values.
        array[...] = values(rng, dtype, array.shape)
        var[...] = array
        for _ in range(rng.randrange(0, 3) if array.ndim else 0):
            slab = tuple(
                slice(start, rng.randrange(start + 1, n + 1), rng.randrange(1, 3))
                for n in array.shape
                for start in [rng.randrange(n)]
            )
            array[slab] = values(rng, dtype, array[slab].shape)
            var[slab] = array[slab]
    ds.close()
    ordered = [view.attribute(*a) for a in attributes if a[0] == ""]
    for name, _, _ in variables:
        ordered += [view.attribute(*a) for a in attributes if a[0] == name]
    return view.definitions(view.KINDS[kind], dims, ordered, variables), arrays


def main():
    directory, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for n in range(count):
        base = os.path.join(directory, str(n))
        lines, arrays = write(base + ".nc", random.Random(seed * 1_000_003 + n))
        with open(base + ".view", "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")
        with open(base + ".data", "wb") as out:
            for _, array, _ in arrays:
                out.write(view.big_endian(array))


if __name__ == "__main__":
    main()
