"""How a variable is stored: the one place where ``chunks=`` and ``filters=`` become what the library wants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from ._variable import Variable

__all__ = ["Filter", "filters_text", "preferred_chunks", "storage_of"]

#: A filter: its name, or its name and parameters (``("zstd", 3)``).
Filter = Union[str, Sequence[Any]]


def filters_text(filters: str | Iterable[Filter] | None) -> str | None:
    """Filters as the library writes them: ``shuffle zstd,3``.

    >>> filters_text(["shuffle", ("zstd", 3)])
    'shuffle zstd,3'
    >>> filters_text("shuffle deflate,6")
    'shuffle deflate,6'
    """
    if filters is None:
        return None
    if isinstance(filters, str):
        return filters or None
    words = []
    for one in filters:
        if isinstance(one, str):
            words.append(one)
        else:
            words.append(",".join(str(part) for part in one))
    return " ".join(words) or None


def storage_of(
    chunks: Sequence[int] | None, filters: str | Iterable[Filter] | None
) -> str | None:
    """What is asked for a new variable, checked as far as Python can."""
    if chunks is not None:
        raise NotImplementedError(
            "chunked variables are not there yet; filters= works in a container (layout='log')"
        )
    return filters_text(filters)


#: Records of at least this many bytes are chunks of their own to dask.
LARGE_RECORD = 1 << 20


def preferred_chunks(variable: Variable) -> dict[str, int]:
    """How a variable is best read in parts, by dimension; empty if any way is as good."""
    shape = variable.shape
    if not variable.is_record or len(shape) < 2 or shape[0] < 2:
        return {}
    record = variable.nbytes // shape[0]
    return {variable.dims[0]: 1} if record >= LARGE_RECORD else {}
