"""Meshes and hierarchies for tests, made by the rules of their conventions and not by ours."""

import itertools

import netCDF4
import numpy as np


def neighbours(rows):
    """For each face those that share two nodes with it, by looking at all pairs."""
    sets = [set(int(n) for n in row if n >= 0) for row in rows]
    return [[b for b in range(len(sets)) if a != b and len(sets[a] & sets[b]) >= 2] for a in range(len(sets))]


def squares(path, n, *, start=1, format="NETCDF3_64BIT_DATA"):
    """A mesh of n x n squares, the first one cut into two triangles, with fields; gives the table of nodes from 0 on."""
    side = n + 1
    rows = []
    for face in range(n * n):
        a = face // n * side + face % n
        around = [a, a + 1, a + side + 1, a + side]
        rows += [[a, a + 1, a + side + 1, -1], [a, a + side + 1, a + side, -1]] if face == 0 else [around]
    table = np.array(rows, dtype="i4")
    with netCDF4.Dataset(path, "w", format=format) as nc:
        for name, size in (("time", None), ("node", side * side), ("cell", len(rows)), ("four", 4), ("layer", 3)):
            nc.createDimension(name, size)
        mesh = nc.createVariable("mesh", "i4", ())
        mesh.setncatts(
            {
                "cf_role": "mesh_topology",
                "topology_dimension": np.int32(2),
                "node_coordinates": "x y",
                "face_node_connectivity": "faces",
            }
        )
        for name, values in (("x", np.arange(side * side) % side), ("y", np.arange(side * side) // side)):
            nc.createVariable(name, "f8", ("node",))[:] = values
        faces = nc.createVariable("faces", "i4", ("cell", "four"), fill_value=-9)
        faces.start_index = np.int32(start)
        faces[:] = np.where(table < 0, -9, table + start)
        for name, kind, dims, at in (
            ("t", "f8", ("time", "cell"), "face"),
            ("u", "f4", ("time", "layer", "cell"), "face"),
            ("w", "i2", ("time", "cell", "layer"), "face"),
            ("h", "f4", ("node",), "node"),
            ("label", "i4", ("cell",), "face"),
        ):
            var = nc.createVariable(name, kind, dims)
            var.setncatts({"mesh": "mesh", "location": at})
            shape = [2 if dim == "time" else len(nc.dimensions[dim]) for dim in dims]
            var[:] = (np.arange(np.prod(shape)) * 7 % 101).reshape(shape)
    return table


def esmf(path):
    """Two triangles and a square in ESMF's convention, with a layered field, its vertical coordinate, times and their bounds."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as nc:
        for name, size in (("time", None), ("nodeCount", 6), ("elementCount", 3), ("maxNodePElement", 4), ("coordDim", 2)):
            nc.createDimension(name, size)
        for name, size in (("layer", 4), ("bnds", 2), ("strlen", 5), ("unused", 7)):
            nc.createDimension(name, size)
        coords = nc.createVariable("nodeCoords", "f8", ("nodeCount", "coordDim"))
        coords.units = "degrees"
        coords[:] = [[0, 0], [1, 0], [1, 1], [0, 1], [2, 0], [2, 1]]
        conn = nc.createVariable("elementConn", "i4", ("elementCount", "maxNodePElement"), fill_value=-1)
        conn.start_index = np.int32(1)
        conn[:] = [[1, 2, 3, -1], [1, 3, 4, -1], [2, 5, 6, 3]]
        nc.createVariable("numElementConn", "i1", ("elementCount",))[:] = [3, 3, 4]
        time = nc.createVariable("time", "f8", ("time",))
        time.setncatts({"units": "days since 2000-01-01", "bounds": "time_bnds"})
        time[:] = [0.5, 1.5]
        nc.createVariable("time_bnds", "f8", ("time", "bnds"))[:] = [[0, 1], [1, 2]]
        nc.createVariable("stamp", "S1", ("time", "strlen"))[:] = np.array([list("day 1"), list("day 2")], "S1")
        layer = nc.createVariable("layer", "f4", ("layer",))
        layer.setncatts({"standard_name": "ocean_sigma_coordinate", "formula_terms": "sigma: layer eta: eta depth: depth zref: zref"})
        layer[:] = [-0.125, -0.375, -0.625, -0.875]
        nc.createVariable("zref", "f8", ())[...] = 7.5
        nc.createVariable("depth", "f8", ("elementCount",))[:] = [10, 20, 30]
        nc.createVariable("eta", "f8", ("time", "elementCount"))[:] = [[1, 2, 3], [4, 5, 6]]
        nc.createVariable("alone", "f8", ("unused",))[:] = 0
        temp = nc.createVariable("temp", "f4", ("time", "layer", "elementCount"))
        temp[:] = np.arange(24).reshape(2, 4, 3) / 4


#: How AMReX describes numbers of 8 and 4 bytes.
REALS = {
    8: "((8, (64 11 52 0 1 12 0 1023)),(8, (8 7 6 5 4 3 2 1)))",
    4: "((8, (32 8 23 0 1 9 0 127)),(4, (4 3 2 1)))",
}


def corner(cells):
    return "(" + ",".join(str(int(c)) for c in cells) + ")"


def box_text(box):
    lo, hi = box
    return f"({corner(lo)} {corner(hi)} {corner([0] * len(lo))})"


def values(level, components, box, dtype):
    """The values of a box, odd bits and all, known by place: component, x, y, z."""
    lo, hi = box
    axes = [np.arange(a, b + 1) for a, b in zip(lo, hi)]
    grid = np.zeros([len(axis) for axis in axes])
    for d, axis in enumerate(axes):
        shape = [1] * len(axes)
        shape[d] = len(axis)
        grid = grid * 31 + axis.reshape(shape)
    return np.stack([(grid * (c + 1) + 1000 * level + 0.1) / 3 for c in range(components)]).astype(dtype)


def plotfile(path, names, levels, *, dtype="f8"):
    """A plotfile as AMReX writes it; levels are lists of boxes, of two corners each. Gives what each level's domain is."""
    dtype = np.dtype(dtype)
    path.mkdir()
    dims = len(levels[0][0][0])
    high = np.max([box[1] for box in levels[0]], axis=0)
    domains = [(np.zeros(dims, int), (high + 1) * 2**n - 1) for n in range(len(levels))]
    number = lambda x: repr(float(x))  # noqa: E731
    head = ["HyperCLaw-V1.1", str(len(names)), *names, str(dims), number(0.1 + 0.2), str(len(levels) - 1)]
    head += [" ".join([number(-1 / 3)] * dims), " ".join([number(np.pi)] * dims)]
    head += ["2 " * (len(levels) - 1), " ".join(box_text(d) for d in domains), "17 " * len(levels)]
    head += [" ".join(number((0.1 + d) / 2**n / 3) for d in range(dims)) for n in range(len(levels))]
    head += ["0", "0"]
    for n, boxes in enumerate(levels):
        head += [f"{n} {len(boxes)} {number(0.1 + 0.2)}", "17"]
        head += ["0.0 1.0"] * (dims * len(boxes)) + [f"Level_{n}/Cell"]
        folder = path / f"Level_{n}"
        folder.mkdir()
        data, places = bytearray(), []
        for box in boxes:
            places.append(f"FabOnDisk: Cell_D_00000 {len(data)}")
            data += f"FAB {REALS[dtype.itemsize]}{box_text(box)} {len(names)}\n".encode()
            for component in values(n, len(names), box, dtype):
                data += component.astype(dtype.newbyteorder("<")).tobytes(order="F")
        cell = ["1", "1", str(len(names)), "0", f"({len(boxes)} 0", *map(box_text, boxes), ")", str(len(boxes)), *places]
        (folder / "Cell_H").write_text("\n".join(cell) + "\n")
        (folder / "Cell_D_00000").write_bytes(bytes(data))
    (path / "Header").write_text("\n".join(head) + "\n")
    return domains


def covering(levels, components, level, component, lo, hi, dtype="f8"):
    """The finest value there is in each cell, by a search of all boxes, one cell after the other."""
    out = np.full([b - a + 1 for a, b in zip(lo, hi)], np.nan)
    stored = [[(box, values(n, components, box, dtype)[component]) for box in boxes] for n, boxes in enumerate(levels)]
    for cell in itertools.product(*(range(a, b + 1) for a, b in zip(lo, hi))):
        for n in range(level, -1, -1):
            at = [c // 2 ** (level - n) for c in cell]
            found = [v for (a, b), v in stored[n] if all(x <= y <= z for x, y, z in zip(a, at, b))]
            if found:
                (first, _) = next(box for box, v in stored[n] if v is found[0])
                out[tuple(c - a for c, a in zip(cell, lo))] = found[0][tuple(x - y for x, y in zip(at, first))]
                break
    return out


#: A plane hierarchy in which levels cover parts of each other, and one level has no boxes.
LEVELS = [
    [((0, 0), (7, 7)), ((8, 0), (15, 7)), ((0, 8), (15, 15))],
    [((4, 4), (11, 19)), ((12, 4), (23, 11))],
    [((12, 12), (19, 15)), ((30, 10), (41, 19))],
    [],
]
