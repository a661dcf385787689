"""Text in char variables: the last dimension is the length of the strings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._variable import Variable

__all__ = ["Strings", "to_chars"]


class Strings:
    """A char variable whose last dimension is text: ``v.asstr()[0]`` is a ``str``."""

    __slots__ = ("_encoding", "_errors", "_variable")

    def __init__(self, variable: Variable, encoding: str, errors: str) -> None:
        if variable.dtype.kind != "S":
            raise TypeError(f"variable {variable.name!r} has values of {variable.dtype}, not text")
        if not variable.dims:
            raise TypeError(f"variable {variable.name!r} is one char, and has no strings")
        self._variable, self._encoding, self._errors = variable, encoding, errors

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the strings: all dimensions but the last."""
        return self._variable.shape[:-1]

    def __getitem__(self, key: Any) -> Any:
        key = key if isinstance(key, tuple) else (key,)
        if not any(item is Ellipsis for item in key):
            key = (*key, ...)
        # Read with the last dimension whole, whatever the key says of the others.
        chars = np.asarray(self._variable.read((*key, slice(None)) if key[-1] is not ... else key))
        if chars.ndim == 0 or chars.shape[-1] != self._variable.shape[-1]:
            raise IndexError("the key of strings is for all dimensions but the last, which is the text")
        joined = from_chars(chars)
        decode = lambda raw: raw.decode(self._encoding, self._errors)  # noqa: E731
        if joined.ndim == 0:
            return decode(joined.item())
        texts = [decode(raw) for raw in joined.reshape(-1).tolist()]
        return np.array(texts, dtype=np.str_ if texts else "U1").reshape(joined.shape)

    def __setitem__(self, key: Any, value: Any) -> None:
        key = key if isinstance(key, tuple) else (key,)
        if not any(item is Ellipsis for item in key):
            key = (*key, ...)
        self._variable.write(key, value)


def from_chars(chars: np.ndarray) -> np.ndarray:
    """Chars joined along the last dimension; zeros at the end are not part of the text."""
    chars = np.ascontiguousarray(chars)
    width = chars.shape[-1]
    if width == 0 or chars.size == 0:
        return np.zeros(chars.shape[:-1], "S1")
    return chars.view(f"S{width}").reshape(chars.shape[:-1])


def to_chars(value: Any, variable: Variable) -> np.ndarray:
    """Text, bytes or lists of them as an array of single chars, padded with zeros to the variable's width."""
    if isinstance(value, np.ndarray) and value.dtype == "S1" and value.ndim > 0:
        return value
    width = variable.shape[-1] if variable.dims else 1
    array = np.asarray(value)
    if array.dtype.kind in "U" or array.dtype == object:
        encoded = [str(text).encode() for text in array.reshape(-1).tolist()]
        longest = max((len(text) for text in encoded), default=1)
        array = np.array(encoded, dtype=f"S{max(longest, 1)}").reshape(array.shape)
    if array.dtype.kind != "S":
        raise TypeError(f"variable {variable.name!r} holds text, and values of dtype {array.dtype} are none")
    size = array.dtype.itemsize
    if size == 1 and width != 1 and array.ndim == variable.ndim and array.shape[-1:] == (width,):
        return array
    if size > width:
        raise ValueError(f"text of {size} bytes does not fit variable {variable.name!r}, which has room for {width}")
    array = np.ascontiguousarray(array.astype(f"S{width}"))
    if not variable.dims:
        return array.astype("S1")
    return array.reshape(array.shape + (1,)).view("S1").reshape(array.shape + (width,))
