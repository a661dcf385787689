"""Relations: which elements of one dimension belong to which of another, as sparse tables.

A relation has rows; each names elements of another dimension, perhaps with weights. With ``comm=`` every rank has a share of the
rows, and no rank ever has all of them::

    r = esker.relation.from_scipy(matrix)            # or from_metis("mesh.graph"), from_table(ds["face_nodes"], columns=n)
    back = r.invert()                                # the transpose
    (r @ back).at_least(2).without_itself()          # faces that share two nodes
    r.to_scipy()                                     # this rank's rows as scipy.sparse.csr_matrix
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _esker

if TYPE_CHECKING:
    from ._variable import Variable

__all__ = ["Relation", "from_metis", "from_ragged", "from_rows", "from_scipy", "from_table"]


class Relation:
    """A sparse table, of which this rank has some contiguous rows. Calls are collective over its ranks."""

    __slots__ = ("_native",)

    def __init__(self, native: _esker.Relation) -> None:
        self._native = native

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of all ranks, and elements that a row can name."""
        return self._native.rows, self._native.columns

    @property
    def first(self) -> int:
        """The number of this rank's first row."""
        return self._native.first

    @property
    def offsets(self) -> np.ndarray:
        """Where each of this rank's rows begins in :attr:`indices`, and where the last one ends."""
        return self._native.offsets()

    @property
    def indices(self) -> np.ndarray:
        """The elements of this rank's rows, one row after the other, from 0 on."""
        return self._native.indices()

    @property
    def weights(self) -> np.ndarray | None:
        """How much each belongs to its row, if that is said."""
        return self._native.weights()

    def __len__(self) -> int:
        """This rank's rows."""
        return len(self.offsets) - 1

    def rows(self) -> list[np.ndarray]:
        """The elements of each of this rank's rows."""
        return np.split(self.indices, self.offsets[1:-1]) if len(self) else []

    def invert(self) -> Relation:
        """The relation the other way round: for each element the rows that name it (the transpose)."""
        return Relation(self._native.invert())

    def compose(self, other: Relation) -> Relation:
        """This relation followed by another one (the product of sparse matrices; without weights each way counts 1)."""
        return Relation(self._native.compose(other._native))

    __matmul__ = compose

    def at_least(self, least: float) -> Relation:
        """Only what weighs at least so much, without the weights."""
        return Relation(self._native.at_least(float(least)))

    def without_itself(self) -> Relation:
        """Without rows' relations to themselves."""
        return Relation(self._native.without_itself())

    def fetch(self, rows: Any) -> Relation:
        """The rows of these numbers, of any rank, in this order; the result is this rank's alone."""
        return Relation(self._native.fetch(_numbers(rows)))

    def to_scipy(self) -> Any:
        """This rank's rows as a ``scipy.sparse.csr_matrix`` of as many rows; without weights its values are 1."""
        from scipy.sparse import csr_matrix

        indices, weights = self.indices, self.weights
        data = np.ones(len(indices)) if weights is None else weights
        return csr_matrix((data, indices, self.offsets), shape=(len(self), self.shape[1]))

    def to_array(self, fill: int = -1) -> np.ndarray:
        """This rank's rows as a table of fixed width, which is that of the longest row of all ranks."""
        return dense_rows(self.offsets, self.indices, self._native.width(), fill)

    def to_metis(self, path: str | os.PathLike[str]) -> None:
        """Writes a METIS graph; the relation must be symmetric and of a dimension with itself."""
        self._native.write_metis(os.fsdecode(path))

    def to_table(self, variable: Variable, *, start: int = 0, fill: int | None = -1, transposed: bool = False) -> None:
        """Writes the rows into a variable of two dimensions; numbers begin at ``start``."""
        self._native.write_table(variable._handle, variable._id, start=start, fill=fill, transposed=transposed)

    def to_ragged(
        self, offsets: Variable, indices: Variable, weights: Variable | None = None, *, start: int = 0
    ) -> None:
        """Writes the rows into variables of one dimension, of rows + 1 and :meth:`total` elements."""
        others = (offsets._id, indices._id, None if weights is None else weights._id)
        self._native.write_ragged(offsets._handle, *others, start=start)

    def total(self) -> int:
        """Elements of all rows of all ranks."""
        return self._native.total()

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<esker.Relation of {rows} rows to {columns} elements, rows {self.first} to {self.first + len(self)} here>"


def _numbers(values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"numbers of elements are whole, not {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.int64).reshape(-1)


def dense_rows(offsets: np.ndarray, indices: np.ndarray, width: int, fill: int) -> np.ndarray:
    """Rows of unequal length as a table of fixed width."""
    lengths = np.diff(offsets)
    table = np.full((len(lengths), width), fill, dtype=np.int64)
    table[np.arange(width) < lengths[:, None]] = indices
    return table


def from_scipy(matrix: Any, *, comm: Any = None, weights: bool = True) -> Relation:
    """A relation of the rows that each rank gives, as a sparse matrix of SciPy's, in the order of ranks. Collective.

    weights: whether the matrix' values are kept.
    """
    rows = matrix.tocsr()
    values = np.ascontiguousarray(rows.data, dtype=np.float64) if weights else None
    return Relation(_esker.relation_of(rows.shape[1], _numbers(rows.indptr), _numbers(rows.indices), values, comm))


def from_rows(rows: Any, columns: int, *, comm: Any = None) -> Relation:
    """A relation of lists of elements, one for each row; each rank gives some, in the order of ranks. Collective."""
    lists = [_numbers(row) for row in rows]
    offsets = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    indices = np.concatenate(lists) if lists else np.empty(0, dtype=np.int64)
    return Relation(_esker.relation_of(int(columns), offsets, indices, None, comm))


def from_metis(path: str | os.PathLike[str], *, comm: Any = None) -> Relation:
    """A METIS graph. Collective."""
    return Relation(_esker.relation_of_metis(os.fsdecode(path), comm))


def from_table(
    variable: Variable, *, columns: int, start: int | None = None, fill: int | None = None, transposed: bool = False
) -> Relation:
    """A variable of two dimensions: rows of numbers, with a fill value where a row is shorter. Collective over its dataset.

    start, fill: the number of the first element and the fill value; the attributes ``start_index`` and ``_FillValue`` without them.
    transposed: whether the rows are the second dimension.
    """
    attrs = dict(variable.attrs)
    if start is None:
        start = int(attrs.get("start_index", 0))
    if fill is None and "_FillValue" in attrs:
        fill = int(attrs["_FillValue"])
    native = _esker.relation_of_table(
        variable._handle, variable._id, columns=int(columns), start=start, fill=fill, transposed=transposed
    )
    return Relation(native)


def from_ragged(
    offsets: Variable, indices: Variable, weights: Variable | None = None, *, columns: int, start: int = 0
) -> Relation:
    """Variables of one dimension: where each row begins (and the end), elements, and perhaps weights. Collective."""
    others = (offsets._id, indices._id, None if weights is None else weights._id)
    return Relation(_esker.relation_of_ragged(offsets._handle, *others, columns=int(columns), start=start))
