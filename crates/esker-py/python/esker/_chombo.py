"""Chombo's HDF5 files, through h5py.

A file has a group for each level. There ``boxes`` are compounds of corners, ``data:datatype=0`` has the values of one box after the other (the component
slowest, x fastest, with as many ghost cells as ``data_attributes`` says), ``data:offsets=0`` says where each begins. That is the order of our levels too, so that values are
copied as they are. What Chombo has no place for (corners of the problem, the step and exact sizes of cells of each level) stands in attributes that begin with
``esker_``, which Chombo's readers do not look at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _dataset
from ._whole import everyone, together
from .errors import FormatError

#: Values that are copied at a time.
AT_ONCE = 1 << 22
_AXES = "ijk"


def _box_type(dims: int) -> np.dtype[Any]:
    return np.dtype([(f"{side}_{axis}", "<i4") for side in ("lo", "hi") for axis in _AXES[:dims]])


def _vector_type(dims: int) -> np.dtype[Any]:
    return np.dtype([(f"intvect{axis}", "<i4") for axis in _AXES[:dims]])


def _boxes(corners: np.ndarray, dims: int, what: str) -> np.ndarray:
    """Corners as compounds of 32-bit integers, which are all that Chombo has."""
    flat = np.asarray(corners, dtype=np.int64).reshape(-1, 2 * dims)
    if flat.size and (flat.min() < -(2**31) or flat.max() >= 2**31):
        raise ValueError(f"{what}: cells beyond 32 bits cannot be stored in a Chombo file")
    made = np.empty(len(flat), dtype=_box_type(dims))
    for at, name in enumerate(made.dtype.names or ()):
        made[name] = flat[:, at]
    return made


def write(source: str, target: str) -> None:
    """Writes a hierarchy of ours as a Chombo file."""
    import h5py

    from . import amr

    with amr.open(source) as a, _dataset.open(source) as ds, h5py.File(target, "w", libver=("earliest", "v108")) as file:
        _write_header(file, a)
        for number, level in enumerate(a.levels):
            _write_level(file.create_group(f"level_{number}"), a, number, level, ds)


def _text(value: str) -> np.bytes_:
    return np.bytes_(value.encode())


def _write_header(file: Any, a: Any) -> None:
    file.attrs["filetype"] = _text("VanillaAMRFileType")
    file.attrs["num_levels"] = np.int32(len(a.levels))
    file.attrs["max_level"] = np.int32(len(a.levels) - 1)
    file.attrs["num_components"] = np.int32(len(a.components))
    for number, name in enumerate(a.components):
        file.attrs[f"component_{number}"] = _text(name)
    file.attrs["iteration"] = np.int32(a.levels[0].step if a.levels else 0)
    file.attrs["time"] = np.float64(a.time)
    file.attrs["esker_lo"] = np.array(a.lo)
    file.attrs["esker_hi"] = np.array(a.hi)
    file.attrs["esker_coordinates"] = np.int64(a.coordinates)
    file.attrs["esker_single"] = np.int32(a.dtype == np.float32)
    group = file.create_group("Chombo_global")
    group.attrs["SpaceDim"] = np.int32(a.dimensions)
    group.attrs["testReal"] = a.dtype.type(0)


def _write_level(group: Any, a: Any, number: int, level: Any, ds: _dataset.Dataset) -> None:
    dims, what = a.dimensions, f"{a.path}: level {number}"
    finer = a.levels[number + 1] if number + 1 < len(a.levels) else None
    group.attrs["dx"] = np.float64(level.cell_size[0])
    group.attrs["dt"] = np.float64(0.0)
    group.attrs["time"] = np.float64(level.time)
    # Chombo says it at the coarser level; the finest has one too.
    group.attrs["ref_ratio"] = np.int32(finer.ratio[0] if finer else 2)
    group.attrs["prob_domain"] = _boxes(level.domain, dims, what)[0]
    group.attrs["esker_ratio"] = np.array(level.ratio, dtype=np.int64)
    group.attrs["esker_cell_size"] = np.array(level.cell_size)
    group.attrs["esker_step"] = np.int64(level.step)
    of_data = group.create_group("data_attributes")
    of_data.attrs["comps"] = np.int32(len(a.components))
    of_data.attrs["objectType"] = _text("FArrayBox")
    none = np.zeros(1, dtype=_vector_type(dims))[0]
    of_data.attrs["ghost"] = none
    of_data.attrs["outputGhost"] = none
    group.create_dataset("boxes", data=_boxes(level.boxes, dims, what))
    group.create_dataset("Processors", data=np.zeros(len(level), dtype=np.int32))
    cells = np.prod(level.boxes[:, 1] - level.boxes[:, 0] + 1, axis=1, dtype=np.int64) * len(a.components)
    offsets = np.concatenate([[0], np.cumsum(cells)]).astype(np.int64)
    group.create_dataset("data:offsets=0", data=offsets)
    values = group.create_dataset("data:datatype=0", shape=(int(offsets[-1]),), dtype=a.dtype.newbyteorder("<"))
    stored = ds[f"level_{number}"] if offsets[-1] else None
    for begin in range(0, int(offsets[-1]), AT_ONCE):
        end = min(begin + AT_ONCE, int(offsets[-1]))
        values[begin:end] = stored[begin:end]


class ChomboFile:
    """An open Chombo file: what it has, and its boxes one by one. Every rank opens it for itself."""

    def __init__(self, path: str, comm: Any = None) -> None:
        import h5py

        self.path = path
        # The file is the same for all.
        self.hierarchy, self._ghosts = together(comm, lambda: _described(path))
        self._file = everyone(comm, lambda: h5py.File(path, "r"))

    def __enter__(self) -> ChomboFile:
        return self

    def __exit__(self, *_: Any) -> None:
        self._file.close()

    def read_box(self, level: int, number: int) -> np.ndarray:
        """The values of a box without ghost cells: the component slowest, x fastest."""
        dims, components = self.hierarchy["dimensions"], len(self.hierarchy["components"])
        group = self._file[f"level_{level}"]
        lo, hi = self.hierarchy["levels"][level]["boxes"].reshape(-1, 2, dims)[number]
        ghost = self._ghosts[level]
        shape = (hi - lo + 1 + 2 * ghost)[::-1]
        begin, end = (int(offset) for offset in group["data:offsets=0"][number : number + 2])
        values = group["data:datatype=0"][begin:end].astype(np.float64).reshape([components, *shape])
        inner = tuple(slice(width, length - width) for width, length in zip(ghost[::-1], shape))
        return np.ascontiguousarray(values[(slice(None), *inner)]).reshape(-1)


def _described(path: str) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The hierarchy of a file, and the ghost cells of each level."""
    import h5py

    with h5py.File(path, "r") as file:
        try:
            return _hierarchy(file, path)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"{path}: it is no Chombo file of levels: {error}") from error


def _string(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _hierarchy(file: Any, path: str) -> tuple[dict[str, Any], list[np.ndarray]]:
    dims = int(file["Chombo_global"].attrs["SpaceDim"])
    if not 1 <= dims <= 3:
        raise FormatError(f"{path}: Chombo_global: SpaceDim is {dims}: 1 to 3 are known")
    count, components = int(file.attrs["num_levels"]), int(file.attrs["num_components"])
    if not 0 < count <= 1000 or not 0 <= components <= len(file.attrs):
        raise FormatError(f"{path}: num_levels is {count} and num_components {components}")
    names = [_string(file.attrs[f"component_{number}"]) for number in range(components)]
    time = float(file.attrs.get("time", 0.0))
    levels: list[dict[str, Any]] = []
    ghosts: list[np.ndarray] = []
    single = None
    ratio = 1
    for number in range(count):
        group = file[f"level_{number}"]
        attrs = group.attrs
        domain = _corners(attrs["prob_domain"], dims)
        boxes = np.ascontiguousarray(_corners(group["boxes"][...], dims).reshape(-1))
        data = group["data:datatype=0"]
        if data.dtype.kind != "f" or data.ndim != 1 or data.dtype.itemsize not in (4, 8):
            raise FormatError(f"{path}: level {number}: its data are {data.dtype} of {data.ndim} dimensions, not float or double of one")
        if len(boxes):
            kind = data.dtype.itemsize == 4
            if single not in (None, kind):
                raise FormatError(f"{path}: level {number}: its data are {data.dtype}, and those of coarser levels are not")
            single = kind
        ghosts.append(_ghost(group, boxes.reshape(-1, 2, dims), components, dims, f"{path}: level {number}"))
        size = float(np.ravel(attrs["dx"])[0])
        levels.append(
            {
                "domain": domain.reshape(-1).tolist(),
                "ratio": [int(r) for r in attrs.get("esker_ratio", [ratio] * dims)],
                "cell_size": [float(s) for s in attrs.get("esker_cell_size", [size] * dims)],
                "step": int(attrs.get("esker_step", file.attrs.get("iteration", 0))),
                "time": float(attrs.get("time", time)),
                "boxes": boxes,
            }
        )
        ratio = int(np.ravel(attrs.get("ref_ratio", 2))[0])
    coarse = np.array(levels[0]["domain"], dtype=np.float64).reshape(2, dims)
    size = np.array(levels[0]["cell_size"])
    return {
        "dimensions": dims,
        "components": names,
        "time": time,
        "lo": [float(x) for x in file.attrs.get("esker_lo", coarse[0] * size)],
        "hi": [float(x) for x in file.attrs.get("esker_hi", (coarse[1] + 1) * size)],
        "coordinates": int(file.attrs.get("esker_coordinates", 0)),
        "single": bool(file.attrs.get("esker_single", 0) if single is None else single),
        "levels": levels,
    }, ghosts


def _corners(stored: Any, dims: int) -> np.ndarray:
    """Compounds of corners as a table: box, lowest or highest, dimension."""
    stored = np.atleast_1d(stored)
    names = _box_type(dims).names or ()
    table = [stored[name].astype(np.int64) for name in names]
    return np.stack(table, axis=-1).reshape(-1, 2, dims)


def _ghost(group: Any, boxes: np.ndarray, components: int, dims: int, what: str) -> np.ndarray:
    """The ghost cells that the values of each box have, as offsets confirm: a file may say one thing and have another."""
    offsets, total = group["data:offsets=0"][...].astype(np.int64), len(group["data:datatype=0"])
    if len(offsets) != len(boxes) + 1:
        raise FormatError(f"{what}: {len(offsets)} offsets for {len(boxes)} boxes")
    said = [np.zeros(dims, dtype=np.int64)]
    attrs = group["data_attributes"].attrs if "data_attributes" in group else {}
    for name in ("outputGhost", "ghost"):
        if name in attrs:
            vector = np.atleast_1d(attrs[name])[0]
            said.append(np.array([int(vector[f"intvect{axis}"]) for axis in _AXES[:dims]], dtype=np.int64))
    # What is said first, then none.
    candidates = [*said[1:], said[0]]
    wrong = ""
    for ghost in candidates:
        if (ghost < 0).any():
            wrong = wrong or f"ghost cells of {ghost.tolist()}"
            continue
        shapes = boxes[:, 1] - boxes[:, 0] + 1 + 2 * ghost
        sizes = np.prod(shapes.astype(object), axis=1) * components if len(boxes) else np.empty(0, dtype=object)
        found = np.diff(offsets)
        bad = [at for at in range(len(boxes)) if int(found[at]) != int(sizes[at])]
        if not bad and offsets[0] == 0 and offsets[-1] == total:
            return ghost
        at = bad[0] if bad else len(boxes)
        has = f"box {at} has {found[at]} values for {sizes[at]}" if bad else f"boxes end at {offsets[-1]} of {total} values"
        wrong = wrong or has
    raise FormatError(f"{what}: {wrong}")
