"""Reads decomposed variables as docs/format/decomposed.md says, and compares them with ordinary ones."""

import sys

import netCDF4
import numpy


def array(ds, var):
    name = var.getncattr("decomposition")
    about = ds[f"{name}.nreqs"]
    shape = tuple(int(n) for n in numpy.atleast_1d(about.getncattr("decomposed_shape")))
    offsets, lengths = ds[f"{name}.offsets"][:], ds[f"{name}.lengths"][:]
    stored = var[:]
    fill = getattr(var, "_FillValue", netCDF4.default_fillvals[var.dtype.str[1:]])
    out = numpy.full(stored.shape[:-1] + shape, fill, dtype=var.dtype)
    position = 0
    for offset, length in zip(offsets, lengths):
        first = numpy.unravel_index(offset, shape)
        last = numpy.unravel_index(offset + length - 1, shape)
        count = tuple(b - a + 1 for a, b in zip(first, last))
        n = int(numpy.prod(count))
        block = stored[..., position : position + n].reshape(stored.shape[:-1] + count)
        out[(..., *(slice(a, b + 1) for a, b in zip(first, last)))] = block
        position += n
    assert position == stored.shape[-1], (position, stored.shape)
    return out


decomposed, ordinary = netCDF4.Dataset(sys.argv[1]), netCDF4.Dataset(sys.argv[2])
compared = 0
for ds in (decomposed, ordinary):
    ds.set_auto_maskandscale(False)
for name, var in ordinary.variables.items():
    same = decomposed[name]
    if "decomposition" in same.ncattrs():
        assert numpy.array_equal(array(decomposed, same), var[:]), name
        compared += 1
print(compared)
