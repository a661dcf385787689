"""Attributes of a dataset or a variable as a mapping."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._dataset import Dataset

__all__ = ["Attributes"]

_INT32 = np.iinfo(np.int32)


class Attributes(MutableMapping[str, Any]):
    """Attributes by name, in the order in which they are in the file.

    Text is ``str``; one number is a NumPy scalar, several are an array. What is set is stored in
    the type that it has: a Python ``int`` as a 32-bit integer if it fits one, a ``float`` as a
    double, NumPy values as they are. In cdf1 and cdf2, which have no 64-bit or unsigned
    integers, these are stored in the smallest type that holds them.
    """

    __slots__ = ("_dataset", "_handle", "_owner")

    def __init__(self, dataset: Dataset, owner: int | None) -> None:
        # A dataset that nobody holds is closed, and these are part of it.
        self._dataset = dataset
        self._handle = dataset._handle
        self._owner = owner

    def __getitem__(self, name: str) -> Any:
        return self._handle.attribute(self._owner, name)

    def __setitem__(self, name: str, value: Any) -> None:
        stored = encode(value, self._handle.format, name)
        self._handle.put_attribute(self._owner, name, stored)

    def __delitem__(self, name: str) -> None:
        self._handle.delete_attribute(self._owner, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._handle.attribute_names(self._owner))

    def __len__(self) -> int:
        return len(self._handle.attribute_names(self._owner))

    def __contains__(self, name: object) -> bool:
        return name in self._handle.attribute_names(self._owner)

    def rename(self, old: str, new: str) -> None:
        """Renames an attribute."""
        self._handle.rename_attribute(self._owner, old, new)

    def __repr__(self) -> str:
        return repr(dict(self))


def encode(value: Any, format: str, name: str) -> bytes | np.ndarray:
    """A value as the native side takes it: bytes for text, or a dense array of one of the eleven types."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    array = np.asarray(value)
    if array.dtype.kind in "US":
        if array.ndim == 0 or array.size == 1:
            return encode(array.reshape(-1)[0].item(), format, name)
        raise TypeError(f"attribute {name!r}: a list of strings cannot be stored in a classic file; join them")
    if array.ndim > 1:
        raise TypeError(f"attribute {name!r}: attributes are lists, not arrays of {array.ndim} dimensions")
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "b":
        array = array.astype(np.int8)
    elif kind in "iu":
        array = _integers(array, value, format, name)
    elif kind == "f":
        array = array.astype({2: np.float32, 4: np.float32}.get(size, np.float64), copy=False)
    else:
        raise TypeError(f"attribute {name!r}: values of dtype {array.dtype} cannot be stored in a classic file")
    return np.ascontiguousarray(array)


def _integers(array: np.ndarray, value: Any, format: str, name: str) -> np.ndarray:
    fits = array.size == 0 or (int(array.min()) >= _INT32.min and int(array.max()) <= _INT32.max)
    untyped = not hasattr(value, "dtype")
    if untyped and fits:
        return array.astype(np.int32)
    if format == "cdf5" or array.dtype in (np.int8, np.int16, np.int32):
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype == np.uint8 and (array.size == 0 or int(array.max()) < 2**15):
        return array.astype(np.int16)
    if fits:
        return array.astype(np.int32)
    raise ValueError(f"attribute {name!r}: {format} has no type for integers of more than 32 bits; use format='cdf5'")
