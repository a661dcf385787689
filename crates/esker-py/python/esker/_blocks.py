"""The blocks that a variable consists of."""

from __future__ import annotations

from typing import NamedTuple


class Block(NamedTuple):
    """Values that were written together, and where they lie in their variable."""

    start: tuple[int, ...]
    """The first index in each dimension; of a record variable the first is the record."""
    count: tuple[int, ...]
    """How many of each dimension it reaches over."""
    dense: bool
    """Whether it has all elements of that box: a strided write and a list do not."""
    elements: int
    """How many elements it has."""
    nbytes: int
    """Bytes that it takes in the file, behind filters."""
    rank: int | None
    """The rank that wrote it, if one did."""
    version: int | None
    """The version of the container that brought it, if one has."""

    @property
    def slices(self) -> tuple[slice, ...]:
        """The box as an index: ``ds["t"][block.slices]``."""
        return tuple(slice(s, s + n) for s, n in zip(self.start, self.count, strict=True))
