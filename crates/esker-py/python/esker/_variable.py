"""Variables: arrays in a file that are indexed as NumPy's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _checksums, _indexing, _masks, _text
from ._attributes import Attributes
from ._blocks import Block

if TYPE_CHECKING:
    from . import _esker
    from ._dataset import Dataset

__all__ = ["Variable"]

Progress = Callable[[int, int], Any]


class Variable:
    """An array in a dataset. ``v[key]`` reads, ``v[key] = value`` writes.

    Keys are NumPy's: integers, slices (with steps, also negative), ``...``, arrays of integers or
    bools. Only what is selected is read, straight into the memory of the array that is returned.
    Writing broadcasts the value, converts it to the variable's type, and makes new records where the
    key goes beyond the last one; ``v[:] = array`` writes as many records as the array has.

    ``v.oindex[key]`` lets each array select along its own dimension; ``v.masked[key]`` gives masked
    arrays; ``v.asstr()[key]`` gives text.
    """

    __slots__ = ("_dataset", "_handle", "_id", "__weakref__")

    def __init__(self, dataset: Dataset, number: int) -> None:
        self._dataset = dataset
        self._handle = dataset._handle
        self._id = number

    # What it is.

    @property
    def name(self) -> str:
        """Its name."""
        return self._handle.variable(self._id)[0]

    @property
    def dataset(self) -> Dataset:
        """The dataset that it is in."""
        return self._dataset

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of its dimensions, slowest first."""
        return tuple(self._handle.variable(self._id)[2])

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The same as :attr:`dims`, under netCDF4-python's name."""
        return self.dims

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of its dimensions, with the records that there are."""
        return self._handle.shape(self._id)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type of its values."""
        return self._handle.dtype(self._id)

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """How many bytes its elements take in memory."""
        return self.size * self.dtype.itemsize

    @property
    def is_record(self) -> bool:
        """Whether its first dimension is the unlimited one."""
        return self._handle.is_record(self._id)

    @property
    def attrs(self) -> Attributes:
        """Its attributes, a mapping."""
        return Attributes(self._dataset, self._id)

    @property
    def fill_value(self) -> Any:
        """What elements are that nobody wrote."""
        return self._handle.fill_value(self._id)

    @property
    def filters(self) -> str | None:
        """The filters that its values go through, as ``shuffle zstd,3``; None if there are none."""
        return self._handle.filters(self._id)

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of its chunks; None if it is contiguous.

        Where only filters were asked for, the shape is there when definitions have ended.
        """
        return self._handle.chunks(self._id)

    @property
    def blocks(self) -> list[Block]:
        """What was written together, and where it lies, those that lie under others first.

        In a container there is one for each write; any other variable is one block. No value is read.
        """
        all_parts = self._handle.blocks(self._id)
        return [Block(tuple(start), tuple(count), *rest) for start, count, *rest in all_parts]

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("a variable without dimensions has no length")
        return shape[0]

    # Data.

    def __getitem__(self, key: Any) -> Any:
        if self._dataset.masked:
            return _masks.masked(self, self.read(key))
        array = self._handle.read(self._id, key)
        if array is NotImplemented:
            return self._planned(_indexing.numpy_plan, key, None, None, None)
        return array

    def __setitem__(self, key: Any, value: Any) -> None:
        self.write(key, value)

    def read(
        self,
        key: Any = ...,
        *,
        dtype: Any = None,
        out: np.ndarray | None = None,
        progress: Progress | None = None,
        crc32c: bool = False,
    ) -> Any:
        """Reads what ``key`` selects.

        dtype: another type to read into; values that do not fit it are an error.
        out: an array of the result's shape to read into, in any order of memory.
        progress: a function that is told (bytes done, bytes in all) now and then;
            :func:`esker.progress_bar` makes one.
        crc32c: whether to give the checksum of the result (:func:`esker.crc32c`), too: then it is a pair.
        """
        if crc32c:
            array = self.read(key, dtype=dtype, out=out, progress=progress)
            return array, _checksums.crc32c(array)
        if dtype is not None:
            dtype = np.dtype(dtype)
        array = self._handle.read(self._id, key, dtype, out, progress)
        if array is NotImplemented:
            return self._planned(_indexing.numpy_plan, key, dtype, out, progress)
        return array

    def write(self, key: Any, value: Any, *, progress: Progress | None = None, crc32c: int | None = None) -> None:
        """Writes ``value`` to what ``key`` selects; ``v[key] = value`` with progress.

        crc32c: the checksum that ``value`` has (:func:`esker.crc32c`); if it has another, nothing is written.
        """
        self._agreed(self._require, key, value, crc32c)
        array = self._agreed(self._to_write, value)
        if not self._handle.write(self._id, key, array, progress):
            self._write_planned(_indexing.numpy_plan, key, array, progress)

    def read_start(self, key: Any = ...) -> _esker.Token:
        """Begins to read integers and slices in the background; ``wait()`` of the token gives the array. Independent."""
        return self._handle.read_start(self._id, key)

    def put_part(self, value: Any, start: Sequence[int] = (), count: Sequence[int] | None = None) -> None:
        """Writes what this rank has of a decomposed variable, in the order of its blocks.

        start, count: indices of the dimensions before the map's; one of each without ``count``.
        """
        start, count = self._outer(start, count)
        array = np.ascontiguousarray(self._to_write(value))
        self._handle.move_blob(self._id, start, count, array.reshape(-1), True)

    def get_part(self, start: Sequence[int] = (), count: Sequence[int] | None = None) -> np.ndarray:
        """Reads what this rank has of a decomposed variable, in the order of its blocks: a row for each index before."""
        start, count = self._outer(start, count)
        own = self._handle.blob_elements(self._id)
        out = np.empty((*count, own), dtype=self.dtype)
        self._handle.move_blob(self._id, start, count, out.reshape(-1), False)
        return out

    def _outer(self, start: Sequence[int], count: Sequence[int] | None) -> tuple[list[int], list[int]]:
        first = [int(n) for n in np.atleast_1d(np.asarray(start, dtype=np.int64))]
        many = [1] * len(first) if count is None else [int(n) for n in np.atleast_1d(np.asarray(count, dtype=np.int64))]
        if len(first) != len(many) or min([*first, *many, 0]) < 0:
            raise ValueError(f"start {first} and count {many}: one of each for every dimension before the map's, none negative")
        return first, many

    def append(self, value: Any) -> None:
        """Writes records behind the last one."""
        if not self.is_record:
            raise ValueError(f"variable {self.name!r} has no record dimension, so nothing can be appended")
        array = self._to_write(value)
        if array.ndim < self.ndim:
            array = array[np.newaxis]
        first = self._dataset.records
        self.write(slice(first, first + array.shape[0]), array)

    def put(self, key: Any, value: Any, *, copy: bool = False, crc32c: int | None = None) -> None:
        """Queues a write for :meth:`Dataset.wait`. The array is lent until then, unless it is copied.

        crc32c: the checksum that ``value`` has (:func:`esker.crc32c`); if it has another, it is not queued.
        """
        self._require(key, value, crc32c)
        array = self._to_write(value)
        if copy and (array is value or array.base is not None):
            array = array.copy()
        if not self._handle.queue_put(self._id, key, array):
            made, dense = self._prepared(_indexing.numpy_plan, key, array)
            self._handle.queue_list(self._id, made.starts, list(made.count), dense, True)

    def get(self, key: Any = ..., *, out: np.ndarray | None = None) -> np.ndarray:
        """Queues a read; the array that is returned has its values after :meth:`Dataset.wait`."""
        array = self._handle.queue_get(self._id, key, out)
        if array is not NotImplemented:
            return array
        made = _indexing.numpy_plan(key, self.shape, self.dims, self.name)
        result = self._empty(made.shape, self.dtype) if out is None else out
        if result.shape != made.shape:
            raise ValueError(f"an array of shape {result.shape} does not fit the selection, which has shape {made.shape}")
        dense = self._empty((len(made.starts), *made.count), result.dtype)
        self._handle.queue_list(self._id, made.starts, list(made.count), dense, False)
        self._dataset._unfinished.append((result, made.finish, dense))
        return result

    @property
    def oindex(self) -> _Outer:
        """Indexing in which each array selects along its own dimension, as xarray's and zarr's."""
        return _Outer(self)

    @property
    def masked(self) -> _Masked:
        """Indexing that gives masked arrays: fill values and ``missing_value`` are masked."""
        return _Masked(self)

    def asstr(self, encoding: str = "utf-8", errors: str = "strict") -> _text.Strings:
        """Indexing that gives ``str``: the last dimension of a char variable is the text."""
        return _text.Strings(self, encoding, errors)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("values are read from a file, which is always a copy")
        return np.asarray(self.read(dtype=dtype))

    def _planned(self, plan: Any, key: Any, dtype: Any, out: Any, progress: Any) -> np.ndarray:
        made = self._agreed(plan, key, self.shape, self.dims, self.name)
        dense = self._agreed(self._empty, (len(made.starts), *made.count), dtype or self.dtype)
        if len(made.starts) or self._handle.collective:
            self._handle.read_list(self._id, made.starts, list(made.count), dense, progress)
        array = made.finish(dense)
        if out is None:
            return array
        out[...] = array
        return out

    def _write_planned(self, plan: Any, key: Any, value: np.ndarray, progress: Any) -> None:
        made, dense = self._agreed(self._prepared, plan, key, value)
        if len(made.starts) or self._handle.collective:
            self._handle.write_list(self._id, made.starts, list(made.count), dense, progress)

    def _prepared(self, plan: Any, key: Any, value: np.ndarray) -> tuple[_indexing.Plan, np.ndarray]:
        """Where a value goes, and its elements in that order."""
        made = plan(key, self.shape, self.dims, self.name, writing=True, grows=self.is_record)
        while value.ndim > len(made.shape) and value.shape[0] == 1:
            value = value[0]
        dense = made.prepare(np.broadcast_to(value, made.shape))
        return made, dense.reshape(len(made.starts), *made.count)

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Memory for what is read."""
        try:
            return np.empty(shape, dtype)
        except MemoryError:
            wanted = math.prod(shape) * np.dtype(dtype).itemsize
            raise MemoryError(
                f"{self._dataset.path}: variable {self.name!r}: there is no memory for {wanted} bytes at once: read it in parts"
            ) from None

    def _require(self, key: Any, value: Any, crc32c: int | None) -> None:
        _checksums.require(value, crc32c, f"{self._dataset.path}: variable {self.name!r}, {key!r}")

    def _agreed(self, prepare: Callable[..., Any], *arguments: Any) -> Any:
        """Prepares a transfer; if that fails, the other ranks of a collective call are told."""
        try:
            return prepare(*arguments)
        except Exception as error:
            self._handle.refuse(str(error))
            raise

    def _to_write(self, value: Any) -> np.ndarray:
        """The value as an array that can be lent: its own memory wherever that is possible."""
        own = self.dtype
        if own.kind == "S":
            return _text.to_chars(value, self)
        if isinstance(value, np.ma.MaskedArray):
            value = _masks.filled(self, value)
        array = np.asarray(value)
        if array.dtype.kind in "biuf" and array.dtype.itemsize <= 8 and array.dtype.isnative:
            if array.dtype.itemsize >= 4 or array.dtype.kind != "f":
                if all(stride % array.dtype.itemsize == 0 for stride in array.strides):
                    return array
                return array.copy()
        if array.dtype.kind in "biuf":
            # float16, long doubles, the other byte order.
            wide = {"f": np.float64}.get(array.dtype.kind, array.dtype.newbyteorder("="))
            return array.astype(wide if array.dtype.itemsize != 4 else array.dtype.newbyteorder("="))
        raise TypeError(f"values of dtype {array.dtype} cannot be written to variable {self.name!r} of {own}")

    # How it looks.

    def __repr__(self) -> str:
        if self._handle.mode == "closed":
            return "<esker.Variable of a closed dataset>"
        from ._show import variable_text

        return variable_text(self)

    def _repr_html_(self) -> str:
        from ._show import variable_html

        return variable_html(self)

    def __reduce__(self) -> Any:
        return _of_dataset, (self._dataset, self.name)


def _of_dataset(dataset: Dataset, name: str) -> Variable:
    return dataset[name]


class _Outer:
    __slots__ = ("_variable",)

    def __init__(self, variable: Variable) -> None:
        self._variable = variable

    def __getitem__(self, key: Any) -> Any:
        variable = self._variable
        array = variable._handle.read(variable._id, key)
        if array is NotImplemented:
            return variable._planned(_indexing.outer_plan, key, None, None, None)
        return array

    def __setitem__(self, key: Any, value: Any) -> None:
        variable = self._variable
        array = variable._agreed(variable._to_write, value)
        if not variable._handle.write(variable._id, key, array):
            variable._write_planned(_indexing.outer_plan, key, array, None)


class _Masked:
    __slots__ = ("_variable",)

    def __init__(self, variable: Variable) -> None:
        self._variable = variable

    def __getitem__(self, key: Any) -> Any:
        return _masks.masked(self._variable, self._variable.read(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._variable.write(key, value)
