"""How a variable is stored: the one place where ``chunks=`` and ``filters=`` become what the library wants."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np

if TYPE_CHECKING:
    from ._variable import Variable

__all__ = ["STORAGE", "Filter", "carried_storage", "chunk_lengths", "filters_text", "preferred_chunks", "storage_of_encoding", "whole_chunks"]

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


def chunk_lengths(chunks: int | Sequence[int] | None) -> list[int] | None:
    """The lengths of chunks as a list of numbers; whether they fit the variable, the library says.

    >>> chunk_lengths((1, 90, 90))
    [1, 90, 90]
    >>> chunk_lengths(100)
    [100]
    """
    if chunks is None:
        return None
    try:
        lengths = [operator.index(chunks)] if not hasattr(chunks, "__iter__") else [operator.index(n) for n in chunks]
    except TypeError:
        raise TypeError(f"chunks are a length for each dimension, as (1, 90, 90), and not {chunks!r}") from None
    if any(length < 1 for length in lengths):
        raise ValueError(f"the lengths of chunks are at least 1, and not {tuple(lengths)}")
    return lengths


#: Keys of an encoding that say how a variable is stored: ours, and those of netCDF4-python and xarray.
STORAGE = (
    "chunks", "filters", "chunksizes", "contiguous", "zlib", "zstd", "complevel", "shuffle", "compression", "compression_opts",
    "fletcher32", "endian", "szip", "szip_coding", "szip_pixels_per_block", "bzip2", "blosc", "blosc_shuffle",
    "compressor", "compressors", "serializer", "object_codec", "shards",
)  # fmt: skip

#: What compresses here, by the names that others have for it.
CODECS = {"zlib": "deflate", "gzip": "deflate", "deflate": "deflate", "zstd": "zstd"}

#: Keys of other formats that have no counterpart, and what to say instead.
REFUSED = {
    "szip": "filters=['shuffle', ('deflate', 4)], or ('zfp', 'reversible')",
    "szip_coding": "filters=",
    "szip_pixels_per_block": "filters=",
    "bzip2": "filters=['shuffle', ('zstd', 9)]",
    "blosc": "filters=['shuffle', 'lz4'], or ['bitshuffle', ('zstd', 3)]",
    "blosc_shuffle": "filters=['shuffle', 'lz4'], or ['bitshuffle', ('zstd', 3)]",
    "compressor": "filters=['shuffle', ('zstd', 3)]",
    "compressors": "filters=['shuffle', ('zstd', 3)]",
    "serializer": "filters=['shuffle', ('zstd', 3)]",
    "object_codec": "dtype='S1', text being chars",
    "shards": "chunks=, and hints={'esker_chunk_files': 'rank'} for files of chunks",
}


def storage_of_encoding(keys: dict[str, Any], name: Any, shape: Sequence[int], kind: np.dtype[Any]) -> dict[str, Any]:
    """What an encoding says of storage, as ``chunks=`` and ``filters=`` of ``create_variable``.

    ``filters`` is taken as it is. netCDF4's keys become filters: ``zlib=True`` (or ``compression="zlib"``,
    ``"zstd"``) with ``complevel`` and with ``shuffle``, which is on with them as it is there; ``fletcher32``
    becomes ``crc32c``. What has no counterpart is refused (docs/python.md has the table).

    >>> storage_of_encoding({"zlib": True, "chunksizes": (1, 90)}, "t", (3, 180), np.dtype("f4"))
    {'chunks': (1, 90), 'filters': ['shuffle', ('deflate', 4)]}
    """
    given = {key: keys[key] for key in STORAGE if keys.get(key) is not None}
    chunks = given.get("chunks", given.get("chunksizes"))
    filters = given.get("filters")
    for key, instead in REFUSED.items():
        if key in given and given[key] is not False and given[key] != 0:
            raise ValueError(f"variable {name!r}: {key}={given[key]!r} has no counterpart in classic files: use {instead}")
    if given.get("endian", "native") not in ("native", "big"):
        raise ValueError(f"variable {name!r}: endian={given['endian']!r}: classic files are big-endian, whatever programs see")
    asked = [key for key in ("zlib", "zstd") if given.get(key)]
    if given.get("compression"):
        asked.append(str(given["compression"]))
    if len({CODECS.get(key, key) for key in asked}) > 1:
        raise ValueError(f"variable {name!r}: {' and '.join(asked)} both say how it is compressed: choose one")
    codec = asked[0] if asked else None
    if filters is not None and codec:
        raise ValueError(f"variable {name!r}: filters and {codec} both say how it is compressed: choose one")
    for key in ("complevel", "compression_opts", "shuffle"):
        if given.get(key) and codec is None and filters is None:
            raise ValueError(f"variable {name!r}: {key}={given[key]!r} does nothing without zlib=True or compression=")
    for key in ("complevel", "compression_opts", "shuffle"):
        if given.get(key) and filters is not None:
            raise ValueError(f"variable {name!r}: {key}={given[key]!r} goes into filters= where these are given")
    if not shape and "chunks" not in given and filters is None:
        # netCDF4 lets whole datasets be asked for compression, with their scalars.
        return {}
    if codec is not None:
        if codec not in CODECS:
            raise ValueError(f"variable {name!r}: compression {codec!r} is not one of zlib, gzip, zstd; filters= has more")
        if "complevel" in given and "compression_opts" in given:
            raise ValueError(f"variable {name!r}: complevel and compression_opts both say the level: choose one")
        try:
            level = operator.index(given.get("complevel", given.get("compression_opts", 4)))
        except TypeError:
            raise ValueError(f"variable {name!r}: the level of {codec} is a number") from None
        coding = (CODECS[codec], level)
        wants = given.get("shuffle", True) and kind.itemsize > 1
        filters = ["shuffle", coding] if wants else [coding]
        if level == 0 and coding[0] == "deflate":
            filters = ["shuffle"] if wants else None
    if given.get("fletcher32"):
        # A checksum of the stored bytes, which readers compare.
        filters = " ".join(filter(None, (filters_text(filters), "crc32c")))
    if chunks is not None and not isinstance(chunks, int) and len(chunks) == len(shape) - 1 and kind.kind == "S":
        # Text has one dimension more than its strings.
        chunks = (*chunks, shape[-1])
    if given.get("contiguous"):
        if chunks is not None or filters is not None:
            raise ValueError(f"variable {name!r}: contiguous variables have no chunks and no filters")
        return {}
    return {key: value for key, value in (("chunks", chunks), ("filters", filters)) if value is not None}


def carried_storage(encoding: dict[str, Any], variable: Any, layout: str) -> dict[str, Any]:
    """How a variable that our engine opened was stored, if what is written is still like it.

    Only ours: a file whose source was compressed HDF5 stays one that every netCDF program reads.
    """
    filters, chunks = encoding.get("filters"), encoding.get("chunksizes")
    if not isinstance(filters, str) or encoding.get("dtype", variable.dtype) != variable.dtype or not variable.ndim:
        return {}
    if layout == "log" and chunks is None:
        return {"filters": filters} if filters else {}
    if chunks is None or len(chunks) != variable.ndim:
        return {}
    return {"chunks": tuple(chunks), **({"filters": filters} if filters else {})}


#: Records of at least this many bytes are chunks of their own to dask.
LARGE_RECORD = 1 << 20


def preferred_chunks(variable: Variable) -> dict[str, int]:
    """How a variable is best read in parts, by dimension; empty if any way is as good."""
    chunks = variable.chunks
    if chunks is not None:
        return dict(zip(variable.dims, chunks))
    shape = variable.shape
    if not variable.is_record or len(shape) < 2 or shape[0] < 2:
        return {}
    record = variable.nbytes // shape[0]
    return {variable.dims[0]: 1} if record >= LARGE_RECORD else {}


def whole_chunks(blocks: Sequence[int], chunk: int, first: int) -> tuple[int, ...]:
    """Blocks of an array along a dimension that begin and end where chunks of the file do.

    A block that ends within a chunk has the chunk read, decoded and encoded again for the next one.
    ``first`` is where the array begins in the file. They are about as long as the longest of ``blocks``.

    >>> whole_chunks((30, 30, 30, 10), chunk=25, first=0)
    (25, 25, 25, 25)
    >>> whole_chunks((5, 5), chunk=4, first=6)
    (2, 4, 4)
    >>> whole_chunks((8, 4, 1), chunk=4, first=0)
    (8, 4, 1)
    """
    ends = list(itertools.accumulate(blocks))
    if not ends or all((first + end) % chunk == 0 for end in ends[:-1]):
        return tuple(blocks)
    step = max(max(blocks) // chunk, 1) * chunk
    borders = [0, *range(step - first % chunk, ends[-1], step), ends[-1]]
    return tuple(end - start for start, end in itertools.pairwise(borders) if end > start)
