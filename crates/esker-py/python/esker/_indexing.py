"""Keys with arrays, decomposed into hyperslabs.

NumPy's rules (:func:`numpy_plan`): arrays of one key are broadcast together and select points. Outer
rules (:func:`outer_plan`): each array selects along its own dimension. Both end in a :class:`Plan`: a
list of hyperslabs of one shape, read or written by one request, and how the dense array of their
elements becomes the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

__all__ = ["Plan", "numpy_plan", "outer_plan"]

#: Indices of one dimension that fill at least this share of their range are read with what lies between.
DENSE = 0.25
#: Points that are at least this share of the box of their coordinates are taken out of the box.
CROWDED = 0.25


@dataclass
class Plan:
    """Hyperslabs of one shape, and what to do with their elements."""

    #: Where each begins: a table of (hyperslabs, dimensions).
    starts: np.ndarray
    #: The shape of each.
    count: tuple[int, ...]
    #: The dense array of (hyperslabs, *count) as the result.
    finish: Callable[[np.ndarray], np.ndarray]
    #: The shape of the result.
    shape: tuple[int, ...]
    #: A value of the result's shape as the dense array; only for writing.
    prepare: Callable[[np.ndarray], np.ndarray] | None = None


def _expand(key: Any, rank: int, name: str) -> tuple[list[Any], int | None]:
    """One item for each dimension, a mask for all of its own, and before which item the ellipsis stood."""
    items = list(key) if isinstance(key, tuple) else [key]
    expanded: list[Any] = []
    for item in items:
        if item is None:
            raise IndexError("None (numpy.newaxis) cannot index a variable: index the array that is read")
        if item is Ellipsis or isinstance(item, slice):
            expanded.append(item)
            continue
        array = np.asarray(item)
        if array.size == 0 and not hasattr(item, "dtype"):
            array = array.astype(np.intp)  # an empty list
        if array.dtype.kind == "b":
            if array.ndim == 0:
                raise IndexError("a single bool cannot index a variable")
            expanded.append(_Mask(array))
        elif array.dtype.kind in "iu":
            expanded.append(array.astype(np.int64))
        else:
            raise IndexError(f"arrays used as indices must be of integers or bools, not of {array.dtype}")
    used = sum(item.array.ndim if isinstance(item, _Mask) else item is not Ellipsis for item in expanded)
    if used > rank:
        raise IndexError(f"too many indices: variable {name!r} has {rank} dimensions, but {used} were indexed")
    dots = [place for place, item in enumerate(expanded) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("a key can have a single ellipsis ('...')")
    at = dots[0] if dots else len(expanded)
    expanded[at : at + len(dots)] = [slice(None)] * (rank - used)
    return expanded, dots[0] if dots else None


class _Mask:
    def __init__(self, array: np.ndarray) -> None:
        self.array = array


def _checked(indices: np.ndarray, length: int, dim: str, grows: bool) -> np.ndarray:
    """Indices from the beginning, all inside (or beyond the end, where the dimension grows)."""
    bad = indices < -length if grows else (indices < -length) | (indices >= length)
    if bad.any():
        first = int(indices[bad].flat[0])
        raise IndexError(f"index {first} is out of bounds for dimension {dim!r} with length {length}")
    return np.where(indices < 0, indices + length, indices)


def _resolve(
    key: Any, shape: tuple[int, ...], dims: tuple[str, ...], name: str, grows: bool
) -> tuple[list[Any], int | None]:
    """Slices stay, everything else becomes arrays of good indices; and the dimension where the ellipsis stood."""
    resolved: list[Any] = []
    dots = None
    items, before = _expand(key, len(shape), name)
    for place, item in enumerate([*items, None]):
        dim = len(resolved)
        if place == before:
            dots = dim
        if item is None:
            break
        if isinstance(item, _Mask):
            for offset, true in enumerate(item.array.nonzero()):
                length = item.array.shape[offset]
                if length != shape[dim + offset]:
                    raise IndexError(
                        f"a boolean index has length {length}, but dimension {dims[dim + offset]!r} has {shape[dim + offset]}"
                    )
                resolved.append(true.astype(np.int64))
        elif isinstance(item, slice):
            resolved.append(item)
        else:
            resolved.append(_checked(item, shape[dim], dims[dim], grows and dim == 0))
    return resolved, dots


def _ranges(item: slice, length: int) -> np.ndarray:
    return np.arange(*item.indices(length), dtype=np.int64)


def _is_run(indices: np.ndarray) -> bool:
    return indices.size > 0 and (indices.size == 1 or bool((np.diff(indices) == 1).all()))


def outer_plan(
    key: Any, shape: tuple[int, ...], dims: tuple[str, ...], name: str, writing: bool = False, grows: bool = False
) -> Plan:
    """Each array selects along its own dimension, and an integer takes its dimension away."""
    items, _ = _resolve(key, shape, dims, name, grows)
    dropped = [dim for dim, item in enumerate(items) if not isinstance(item, slice) and item.ndim == 0]
    wanted = []
    for dim, item in enumerate(items):
        indices = _ranges(item, shape[dim]) if isinstance(item, slice) else item
        if indices.ndim > 1:
            raise IndexError("outer indexing takes arrays of one dimension")
        wanted.append(indices.reshape(-1))
    return _outer(wanted, dropped, writing)


def _outer(wanted: list[np.ndarray], dropped: list[int], writing: bool) -> Plan:
    """The outer product of indices along each dimension."""
    rank = len(wanted)
    full = tuple(len(indices) for indices in wanted)
    result = tuple(n for dim, n in enumerate(full) if dim not in dropped)
    if 0 in full:
        return Plan(np.zeros((0, rank), np.int64), (1,) * rank, lambda _: _.reshape(result), result, lambda v: v.reshape(0))
    # A dimension is read as one run, whose elements are taken afterwards, or index by index.
    begin, count, take, scattered = [0] * rank, [1] * rank, [None] * rank, []
    for dim, indices in enumerate(wanted):
        low, high = int(indices.min()), int(indices.max())
        if _is_run(indices):
            begin[dim], count[dim] = low, len(indices)
        elif not writing and len(indices) >= DENSE * (high - low + 1):
            begin[dim], count[dim], take[dim] = low, high - low + 1, indices - low
        else:
            scattered.append(dim)
    if writing:
        chosen = {dim: wanted[dim] for dim in scattered}
    else:
        # Sorted and once each, as the file has them.
        chosen = {}
        for dim in scattered:
            chosen[dim], back = np.unique(wanted[dim], return_inverse=True)
            take[dim] = back.reshape(-1)
    lengths = tuple(len(chosen[dim]) for dim in scattered)
    slabs = int(np.prod(lengths, dtype=np.int64))
    starts = np.empty((slabs, rank), np.int64)
    starts[:] = begin
    for place, dim in enumerate(scattered):
        along = [1] * len(lengths)
        along[place] = -1
        starts[:, dim] = np.broadcast_to(chosen[dim].reshape(along), lengths).reshape(-1)
    # The array has the scattered dimensions first; each keeps a place of length 1 behind them.
    order = [scattered.index(dim) if dim in scattered else len(scattered) + dim for dim in range(rank)]

    def finish(array: np.ndarray) -> np.ndarray:
        array = array.reshape(lengths + tuple(count))
        array = array.transpose(order + [len(scattered) + dim for dim in scattered])
        array = array.reshape(array.shape[:rank])
        for dim, places in enumerate(take):
            if places is not None:
                array = array.take(places, axis=dim)
        return array.reshape(result)

    def prepare(value: np.ndarray) -> np.ndarray:
        value = value.reshape(full)
        front = [dim for dim in scattered]
        return np.ascontiguousarray(value.transpose(front + [dim for dim in range(rank) if dim not in front]))

    return Plan(starts, tuple(count), finish, result, prepare)


def numpy_plan(
    key: Any, shape: tuple[int, ...], dims: tuple[str, ...], name: str, writing: bool = False, grows: bool = False
) -> Plan:
    """NumPy's own rules: all arrays (and integers) of the key are broadcast together."""
    items, dots = _resolve(key, shape, dims, name, grows)
    rank = len(items)
    arrayed = [dim for dim, item in enumerate(items) if not isinstance(item, slice)]
    try:
        points = np.broadcast_arrays(*(items[dim] for dim in arrayed))
    except ValueError:
        shapes = " ".join(str(items[dim].shape) for dim in arrayed)
        raise IndexError(f"the arrays of the key cannot be broadcast together: they have shapes {shapes}") from None
    common = points[0].shape
    sliced = [dim for dim in range(rank) if dim not in arrayed]
    ranges = {dim: _ranges(items[dim], shape[dim]) for dim in sliced}
    # Where the arrays stand side by side their dimensions do too; else those come first.
    adjacent = arrayed == list(range(arrayed[0], arrayed[-1] + 1))
    # An ellipsis parts them even when it stands for nothing.
    adjacent &= dots is None or not arrayed[0] < dots <= arrayed[-1]
    before = [dim for dim in sliced if adjacent and dim < arrayed[0]]
    after = [dim for dim in sliced if dim not in before]
    lengths = {dim: len(ranges[dim]) for dim in sliced}
    result = tuple(lengths[d] for d in before) + common + tuple(lengths[d] for d in after)
    to_result = list(range(1, 1 + len(before))) + [0] + list(range(1 + len(before), 1 + len(sliced)))
    flat = [point.reshape(-1) for point in points]
    number = flat[0].size

    if number == 0 or 0 in lengths.values():
        empty = np.zeros((0, rank), np.int64)
        return Plan(empty, (1,) * rank, lambda a: a.reshape(result), result, lambda v: v.reshape(0))

    # One array, or points that crowd in a box: read the box of their coordinates, and take them out of it.
    if not writing:
        uniques, inverses = zip(*(np.unique(coordinates, return_inverse=True) for coordinates in flat))
        box = int(np.prod([len(unique) for unique in uniques], dtype=np.float64))
        if number >= CROWDED * box:
            wanted = [ranges.get(dim) for dim in range(rank)]
            for unique, dim in zip(uniques, arrayed):
                wanted[dim] = unique
            outer = _outer(wanted, [], False)
            places = tuple(inverse.reshape(-1) for inverse in inverses)

            def out_of_box(array: np.ndarray) -> np.ndarray:
                array = outer.finish(array).transpose(arrayed + sliced)[places]
                return array.transpose(to_result).reshape(result)

            return Plan(outer.starts, outer.count, out_of_box, result)

    # One hyperslab for each point, and for each index of a slice that has gaps.
    begin, count, take, gapped = [0] * rank, [1] * rank, {}, []
    for dim in sliced:
        indices = ranges[dim]
        low, high = int(indices.min()), int(indices.max())
        if _is_run(indices):
            begin[dim], count[dim] = low, len(indices)
        elif not writing and len(indices) >= DENSE * (high - low + 1):
            begin[dim], count[dim], take[dim] = low, high - low + 1, indices - low
        else:
            gapped.append(dim)
    grid = (number,) + tuple(lengths[dim] for dim in gapped)
    starts = np.empty((int(np.prod(grid, dtype=np.int64)), rank), np.int64)
    starts[:] = begin
    for dim, coordinates in zip(arrayed, flat):
        along = coordinates.reshape((number,) + (1,) * len(gapped))
        starts[:, dim] = np.broadcast_to(along, grid).reshape(-1)
    for place, dim in enumerate(gapped):
        along = [1] * len(grid)
        along[1 + place] = -1
        starts[:, dim] = np.broadcast_to(ranges[dim].reshape(along), grid).reshape(-1)
    runs = [dim for dim in sliced if dim not in gapped]
    # In memory: points, slices with gaps, runs.
    memory = grid + tuple(count[dim] for dim in runs)
    places = gapped + runs
    order = [0] + [1 + places.index(dim) for dim in sliced]

    def finish(array: np.ndarray) -> np.ndarray:
        array = array.reshape(memory).transpose(order)
        for axis, dim in enumerate(sliced, 1):
            if dim in take:
                array = array.take(take[dim], axis=axis)
        return array.transpose(to_result).reshape(result)

    def prepare(value: np.ndarray) -> np.ndarray:
        split = tuple(lengths[d] for d in before) + (number,) + tuple(lengths[d] for d in after)
        value = value.reshape(split).transpose(np.argsort(to_result)).transpose(np.argsort(order))
        return np.ascontiguousarray(value)

    return Plan(starts, tuple(count), finish, result, prepare)
