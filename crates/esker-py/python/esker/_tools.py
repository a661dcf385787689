"""What people do with whole files, as in the command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _esker

__all__ = ["Check", "Finding", "check", "convert"]


@dataclass(frozen=True)
class Finding:
    """One thing that a check found."""

    #: ``note``, ``warning`` or ``error``.
    severity: str
    #: A short name that stays the same between versions, for programs.
    code: str
    #: The byte of the file at which it is, where it is at one.
    offset: int | None
    #: What it is about: ``variable "time"``.
    object: str
    #: What is wrong, in words.
    sentence: str

    def __str__(self) -> str:
        place = "" if self.offset is None else f"[{self.offset:#010x}] "
        return f"{place}{self.object}: {self.sentence}"


@dataclass(frozen=True)
class Check:
    """What a check says of a file. True if it is valid."""

    path: str
    format: str | None
    length: int
    findings: tuple[Finding, ...]

    @property
    def valid(self) -> bool:
        """Whether there is no error; there may be warnings."""
        return all(finding.severity != "error" for finding in self.findings)

    def __bool__(self) -> bool:
        return self.valid

    def __str__(self) -> str:
        words = [f"{self.path}: {'valid' if self.valid else 'invalid'}"]
        return "\n  ".join(words + [f"{found.severity}: {found}" for found in self.findings])


def check(path: str | os.PathLike[str], *, read_data: bool = False) -> Check:
    """Whether a file is what the specification says, and where it is not (``esker check``)."""
    path = os.fspath(path)
    format, length, findings = _esker.check(path, read_data)
    return Check(path, format, length, tuple(Finding(*found) for found in findings))


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    format: str | None = None,
    layout: str = "classic",
    variables: Sequence[str] = (),
    exclude: Sequence[str] = (),
    select: Mapping[str, slice | int] | None = None,
    fix_unlimited: bool = False,
    convert_types: bool = False,
    canonical: bool = False,
    overwrite: bool = True,
    history: str | None = None,
    progress: Any = None,
) -> dict[str, int]:
    """Copies a dataset into one of another version or layout (``esker copy``); tells what was copied.

    format: cdf1, cdf2 or cdf5; without it the source's.
    layout: ``log`` makes a container of it, ``classic`` a file of a container.
    variables, exclude: what to copy; everything without them.
    select: ranges of dimensions, ``{"time": slice(0, 12), "lat": slice(None, None, 2)}``.
    fix_unlimited: makes the unlimited dimension a fixed one.
    convert_types: lets types that the format lacks become the smallest that holds the values.
    canonical: makes ordinary variables of decomposed ones.
    """
    ranges = []
    for name, part in (select or {}).items():
        if isinstance(part, slice):
            ranges.append((name, part.start, part.stop, part.step))
        else:
            ranges.append((name, int(part), int(part) + 1 or None, 1))
    return _esker.convert(
        os.fspath(source),
        os.fspath(target),
        format=format,
        layout=layout,
        variables=[variables] if isinstance(variables, str) else list(variables),
        exclude=[exclude] if isinstance(exclude, str) else list(exclude),
        ranges=ranges,
        fix_unlimited=fix_unlimited,
        convert_types=convert_types,
        overwrite=overwrite,
        canonical=canonical,
        history=history,
        progress=progress,
    )
