"""Writing xarray's datasets: encoded by xarray's own conventions, streamed chunk by chunk."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import xarray as xr
from xarray import conventions
from xarray.coding import strings

from . import _dataset
from ._dataset import Dataset
from ._layout import STORAGE, carried_storage, storage_of_encoding, whole_chunks
from ._rounding import ROUNDING, Rounding, rounding_of_attributes, rounding_of_encoding
from .errors import FormatError

__all__ = ["write"]

#: Encoding that other formats have, and that a dataset which came from them may still carry.
FOREIGN = {
    "blosc_shuffle", "bzip2", "chunksizes", "complevel", "compression", "compression_opts", "contiguous", "endian",
    "filters", "fletcher32", "grid_mapping", "least_significant_digit", "original_shape", "preferred_chunks",
    "quantize_mode", "shuffle", "significant_digits", "source", "szip", "zlib", "zstd", "char_dim_name",
    "chunks", "compressor", "compressors", "serializer", "object_codec", "shards", "coordinates",
}  # fmt: skip

#: Types of CDF-5 that the older formats lack, and what holds their values; what does not fit is an error.
OLDER = {"i8": "i4", "u8": "i4", "u4": "i4", "u2": "i4", "u1": "i2"}


def write(
    dataset: xr.Dataset,
    path: str,
    mode: str,
    *,
    format: str,
    layout: str,
    encoding: dict[Any, dict[str, Any]],
    unlimited_dims: Any,
    append_dim: str | None,
    hints: Any,
    sync: bool,
    progress: Any,
) -> None:
    """Writes ``dataset``; the accessor's ``to_netcdf`` says what the keywords mean."""
    if mode not in ("w", "x", "a"):
        raise ValueError(f"mode {mode!r} is not one of w, x, a")
    if append_dim is not None and mode != "a":
        raise ValueError("append_dim needs mode='a'")
    unknown = set(encoding) - set(dataset.variables)
    if unknown:
        raise ValueError(f"encoding for variables that are not there: {', '.join(map(str, sorted(unknown, key=str)))}")
    exists = os.path.exists(path)
    if append_dim is not None and exists:
        encoding = _as_in_file(path, append_dim, encoding)
    encoding = {name: dict(keys) for name, keys in encoding.items()}
    asked = {
        name: {key: keys.pop(key) for key in (*STORAGE, *ROUNDING) if key in keys} for name, keys in encoding.items()
    }
    variables, attrs = conventions.encode_dataset_coordinates(dataset)
    for name, keys in encoding.items():
        variables[name].encoding = keys
    encoded = {name: _encoded(variable, name, name in encoding) for name, variable in variables.items()}
    storage = {
        name: storage_of_encoding(asked[name], name, variable.shape, variable.dtype)
        if name in asked
        else carried_storage(variables[name].encoding, variable, layout)
        for name, variable in encoded.items()
    }
    rounding = {
        name: rounding_of_encoding(asked[name], name, variable.dtype) for name, variable in encoded.items() if name in asked
    }
    unlimited = _unlimited(dataset, unlimited_dims, append_dim)

    def fill(target: Dataset, sync: bool) -> None:
        with target:
            first = _define(target, encoded, attrs, (storage, rounding), unlimited, append_dim)
            _stream(target, encoded, rounding, first, append_dim, progress)
            if sync:
                target.sync()

    if mode == "a" and exists:
        fill(_dataset.open(path, "r+", hints=hints), sync)
        return
    # It is seen when it is whole: until then, and after any failure, a file of its name is what it was.
    draft = _dataset.begin(path, layout=layout, clobber=mode != "x", hints=hints)
    try:
        target = _dataset.create(draft.path, format=format, layout=layout, fill=False, hints=hints)
        fill(target, sync or draft.replaces)
        draft.take_name(sync)
    finally:
        draft.discard()


def _as_in_file(path: str, dim: str, encoding: dict[Any, dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    """What is appended is encoded as what is there, or the numbers would mean something else."""
    found = dict(encoding)
    with xr.open_dataset(path, engine="esker") as there:
        if dim not in there.encoding.get("unlimited_dims", ()):
            raise ValueError(f"{path}: nothing can be appended along {dim!r}, which is not its unlimited dimension")
        for name, variable in there.variables.items():
            keys = {key: value for key, value in variable.encoding.items() if key not in FOREIGN}
            # How it is stored stays, whatever is said of that, so that every call may say the same.
            stored = (*STORAGE, *ROUNDING)
            given = {key: value for key, value in encoding.get(name, {}).items() if key not in stored}
            if given and given != keys:
                raise ValueError(f"{path}: variable {name!r} is there already, in the encoding that it has")
            found[name] = keys
    return found


def _unlimited(dataset: xr.Dataset, given: Any, append_dim: str | None) -> set[str]:
    if given is None:
        given = {append_dim} if append_dim else dataset.encoding.get("unlimited_dims", ())
        return {dim for dim in given if dim in dataset.dims}
    names = {given} if isinstance(given, str) else set(given)
    if missing := names - set(dataset.dims):
        raise ValueError(f"unlimited_dims: there is no dimension {', '.join(map(str, missing))}")
    if len(names) > 1:
        raise ValueError("classic files have one unlimited dimension at most")
    return names


def _encoded(variable: xr.Variable, name: Any, asked: bool) -> xr.Variable:
    """The variable as numbers and chars, by xarray's own rules."""
    variable = _not_objects(conventions.encode_cf_variable(variable, name=name), name)
    for coder in (strings.EncodedStringCoder(allows_unicode=False), strings.CharacterArrayCoder()):
        variable = coder.encode(variable, name=name)
    # (None says that there is nothing of the kind: `_FillValue=None`.)
    left = {key for key, value in variable.encoding.items() if value is not None} - FOREIGN - {"dtype", "unlimited_dims"}
    if asked and left:
        raise ValueError(f"variable {name!r}: unknown encoding {', '.join(sorted(left))}")
    return variable


def _not_objects(variable: xr.Variable, name: Any) -> xr.Variable:
    """Text that a file was decoded to are objects, of which xarray finds the type."""
    try:
        from xarray.backends.common import ensure_dtype_not_object
    except ImportError:
        return variable  # older ones have done it
    return ensure_dtype_not_object(variable, name=name)


def _define(
    target: Dataset,
    encoded: dict[Any, xr.Variable],
    attrs: dict[Any, Any],
    how: tuple[dict[Any, dict[str, Any]], dict[Any, Rounding | None]],
    unlimited: set[str],
    append_dim: str | None,
) -> int:
    """Defines what is not there; gives the record from which is written. ``how`` is it stored and rounded:
    that of a variable which is there is what it says of itself."""
    storage, rounding = how
    first = target.records if append_dim is not None else 0
    there = target.dims
    sizes: dict[str, int] = {}
    for variable in encoded.values():
        sizes.update({str(dim): size for dim, size in variable.sizes.items()})
    for dim in sorted(sizes, key=lambda dim: dim not in unlimited):
        if dim not in there:
            target.create_dimension(dim, None if dim in unlimited else sizes[dim])
        elif dim != append_dim and there[dim] != sizes[dim]:
            if dim != target.unlimited:
                raise ValueError(f"{target.path}: dimension {dim!r} has length {there[dim]}, not {sizes[dim]}")
    for name, variable in encoded.items():
        if str(name) in target:
            _require_alike(target, str(name), variable)
            rounding[name] = rounding_of_attributes(target[str(name)].attrs)
            continue
        kind = _dataset.dtype_name(variable.dtype, str(name))
        if target.format != "cdf5":
            kind = OLDER.get(kind, kind)
        made = target.create_variable(str(name), kind, tuple(map(str, variable.dims)), **storage.get(name, {}))
        _set_attributes(made, variable.attrs, np.dtype(kind))
        if found := rounding.get(name):
            for key, value in found.attributes.items():
                made.attrs[key] = value
    if append_dim is None:
        for key, value in attrs.items():
            target.attrs[str(key)] = value
    return first


def _set_attributes(variable: Any, attrs: dict[Any, Any], kind: np.dtype) -> None:
    for key, value in attrs.items():
        if key in ("_FillValue", "missing_value") and kind.kind != "S" and not isinstance(value, (str, bytes)):
            value = np.asarray(value).astype(kind)
        variable.attrs[str(key)] = value


def _require_alike(target: Dataset, name: str, variable: xr.Variable) -> None:
    dims = tuple(map(str, variable.dims))
    if target[name].dims != dims:
        raise ValueError(f"{target.path}: variable {name!r} has dimensions {target[name].dims}, not {dims}")


class _Part:
    """A variable from some record on, as a place that dask writes chunks to; counts what went through."""

    def __init__(self, variable: Any, first: int, meter: _Meter, rounding: Rounding | None) -> None:
        self._variable, self.first, self._meter, self._rounding = variable, first, meter, rounding
        self._fill = variable.attrs.get("_FillValue") if rounding is not None else None

    def __setitem__(self, key: Any, value: Any) -> None:
        value = np.asarray(value)
        if not isinstance(key, tuple):
            key = (key,)
        if key and key[0] is not ... and isinstance(key[0], slice):
            records = key[0]
            start = (records.start or 0) + self.first
            stop = records.stop + self.first if records.stop is not None else start + value.shape[0]
            key = (slice(start, stop), *key[1:])
        if self._rounding is not None:
            value = self._rounding(value, self._fill)
        self._variable[key] = value
        self._meter.add(value.nbytes)


class _Meter:
    def __init__(self, total: int, progress: Any) -> None:
        self._total, self._progress, self._done, self._lock = total, progress, 0, threading.Lock()

    def add(self, number: int) -> None:
        if self._progress is not None:
            with self._lock:
                self._done += number
                self._progress(self._done, self._total)


def _stream(
    target: Dataset,
    encoded: dict[Any, xr.Variable],
    rounding: dict[Any, Rounding | None],
    first: int,
    append_dim: str | None,
    progress: Any,
) -> None:
    """Writes the values: arrays at once, those of dask chunk by chunk, several at a time."""
    meter = _Meter(sum(variable.nbytes for variable in encoded.values()), progress)
    sources, places = [], []
    appends = {name: append_dim is not None and append_dim in v.dims for name, v in encoded.items()}
    known = append_dim is not None and first > 0
    for name, variable in encoded.items():
        if known and not appends[name]:
            continue  # the file has it
        if appends[name] and variable.dims[0] != append_dim:
            raise FormatError(f"variable {name!r}: {append_dim!r} must be its first dimension")
        place = _Part(target[str(name)], first if appends[name] else 0, meter, rounding.get(name))
        data = variable.data if hasattr(variable.data, "dask") else variable.values
        if hasattr(data, "dask"):
            if chunks := target[str(name)].chunks:
                begins = [place.first] + [0] * (len(chunks) - 1)
                data = data.rechunk(tuple(map(whole_chunks, data.chunks, chunks, begins)))
            sources.append(data)
            places.append(place)
        elif variable.ndim == 0:
            place[()] = data
        elif data.size:
            place[(slice(0, data.shape[0]), ...)] = data
    if sources:
        import dask.array

        # Definitions end before threads begin to write.
        target.enddef()
        dask.array.store(sources, places, lock=False, compute=True)
