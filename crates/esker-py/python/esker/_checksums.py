"""Checksums of arrays: crc32c of the values as they lie in memory when they are dense."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _esker
from .errors import ChecksumError


def crc32c(array: Any) -> int:
    """The crc32c of an array's values as they lie in memory when they are dense: in its type and order of bytes, the last
    dimension fastest.

    >>> hex(esker.crc32c(np.frombuffer(b"123456789", "u1")))
    '0xe3069283'
    """
    dense = np.ascontiguousarray(array)
    return _esker.crc32c(dense.reshape(-1).view(np.uint8))


def require(array: Any, expected: int | None, what: str) -> None:
    """Fails unless the array has this checksum."""
    if expected is None:
        return
    found = crc32c(array)
    if found != expected:
        raise ChecksumError(
            f"{what}: the caller's crc32c is {expected:#010x}, but what is to be written has {found:#010x}"
        )
