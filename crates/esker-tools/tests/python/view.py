"""What netCDF4-python sees in classic files, in a form that a test can compare.

usage: view.py LIST, where LIST has a line NCFILE<TAB>VIEWFILE<TAB>DATAFILE for each file.

VIEWFILE gets the definitions, a line each; DATAFILE the values of all variables, in the order
of definition, big-endian. A file that cannot be read gets the one line "error: why".
"""
import sys

import netCDF4
import numpy as np

KINDS = {"NETCDF3_CLASSIC": 1, "NETCDF3_64BIT_OFFSET": 2, "NETCDF3_64BIT_DATA": 5}
TYPES = {
    "i1": "byte", "S1": "char", "i2": "short", "i4": "int", "f4": "float", "f8": "double",
    "u1": "ubyte", "u2": "ushort", "u4": "uint", "i8": "int64", "u8": "uint64",
}


def type_name(dtype):
    return TYPES[np.dtype(dtype).str[1:]]


def big_endian(array):
    return np.ascontiguousarray(array).astype(np.asarray(array).dtype.newbyteorder(">")).tobytes()


def attribute(owner, name, value):
    if isinstance(value, str):
        # netCDF4-python drops zero bytes and replaces what is not UTF-8.
        return f"attribute\t{owner}\t{name}\tchar\t{value.encode('utf-8').hex()}"
    value = np.atleast_1d(np.asarray(value))
    return f"attribute\t{owner}\t{name}\t{type_name(value.dtype)}\t{big_endian(value).hex()}"


def definitions(kind, dims, attributes, variables):
    """dims: (name, length, unlimited); variables: (name, type, dimension names)."""
    yield f"version\t{kind}"
    for name, length, unlimited in dims:
        yield f"dimension\t{name}\t{length}\t{'unlimited' if unlimited else 'fixed'}"
    for name, ty, names in variables:
        yield "variable\t" + "\t".join([name, ty, *names])
    yield from attributes


def view(path, data):
    with netCDF4.Dataset(path) as ds:
        ds.set_auto_maskandscale(False)
        ds.set_always_mask(False)
        ds.set_auto_chartostring(False)
        dims = [(d.name, len(d), d.isunlimited()) for d in ds.dimensions.values()]
        attributes = [attribute("", n, ds.getncattr(n)) for n in ds.ncattrs()]
        variables = []
        for var in ds.variables.values():
            variables.append((var.name, type_name(var.dtype), var.dimensions))
            attributes += [attribute(var.name, n, var.getncattr(n)) for n in var.ncattrs()]
            data.write(big_endian(var[...]))
        return list(definitions(KINDS[ds.data_model], dims, attributes, variables))


def main():
    for line in open(sys.argv[1], encoding="utf-8"):
        path, view_path, data_path = line.rstrip("\n").split("\t")
        with open(data_path, "wb") as data, open(view_path, "w", encoding="utf-8") as out:
            try:
                lines = view(path, data)
            except Exception as error:  # the test says which file it was
                lines = [f"error: {type(error).__name__}: {error}"]
            out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
