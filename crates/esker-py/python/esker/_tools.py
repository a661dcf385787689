"""What people do with whole files, as in the command."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _esker
from ._layout import filters_text

__all__ = ["Check", "Finding", "References", "check", "convert", "refs"]


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
    chunks: Mapping[str, Any] | None = None,
    filters: str | Sequence[Any] | Mapping[str, Any] | None = None,
    contiguous: bool = False,
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
    chunks: lengths of chunks by dimension, ``{"lat": 90, "lon": 90}``, or by variable,
        ``{"t": {"lat": 90}}``. Without it variables keep their chunks and filters.
    filters: as in ``create_variable``, for all large variables or by variable, ``{"t": "zstd,3"}``.
    contiguous: stores every variable as an ordinary one, which all netCDF programs read.
    fix_unlimited: makes the unlimited dimension a fixed one.
    convert_types: lets types that the format lacks become the smallest that holds the values.
    canonical: makes ordinary variables of decomposed ones.
    """
    _warn(source)
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
        chunks=_shape_wishes(chunks or {}),
        filters=_filter_wishes(filters),
        contiguous=contiguous,
        fix_unlimited=fix_unlimited,
        convert_types=convert_types,
        overwrite=overwrite,
        canonical=canonical,
        history=history,
        progress=progress,
    )


def recover(
    path: str | os.PathLike[str],
    *,
    dirs: Sequence[str | os.PathLike[str]] = (),
    keep: bool = False,
    dry_run: bool = False,
    superseded: bool = False,
) -> dict[str, Any]:
    """Finishes what a program that died has left (``esker recover``); tells what was found.

    Of a file, what the logs of its burst buffer have and it has not; ``dirs`` are their directories, ``keep`` leaves
    them. Of a container, a new version of everything that is whole; ``superseded`` takes in sessions that others
    have committed after. ``dry_run`` changes nothing. The answer has ``records``, ``writes`` that were found,
    ``damages`` in sentences, and whether it is ``complete``.
    """
    return _esker.recover(
        os.fspath(path),
        dirs=[os.fspath(one) for one in dirs],
        keep=keep,
        dry_run=dry_run,
        superseded=superseded,
    )


def replay(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    version: int | None = None,
    overwrite: bool = True,
    sync: bool = False,
    comm: Any = None,
) -> dict[str, int]:
    """Makes the classic file that a container stands for (``esker replay``). Collective over ``comm``."""
    return _esker.replay(
        os.fspath(source), os.fspath(target), version=version, overwrite=overwrite, sync=sync, comm=comm
    )


def _warn(path: str | os.PathLike[str]) -> None:
    """Tells what somebody who reads this dataset has to know."""
    for note in _esker.reader_notes(os.fspath(path)):
        warnings.warn(f"{os.fspath(path)}: {note}", stacklevel=3)


def _shape_wishes(chunks: Mapping[str, Any]) -> list[str]:
    """Chunks in the command's words: ``t:lat/90,lon/90``."""
    everywhere = {name: length for name, length in chunks.items() if not isinstance(length, Mapping)}
    wishes = {"": everywhere} if everywhere else {}
    wishes.update({f"{name}:": lengths for name, lengths in chunks.items() if isinstance(lengths, Mapping)})
    return [of + ",".join(f"{dim}/{int(n)}" for dim, n in lengths.items()) for of, lengths in wishes.items()]


def _filter_wishes(filters: Any) -> list[str]:
    """Filters in the command's words: ``t:shuffle zstd,3``."""
    if isinstance(filters, Mapping):
        return [f"{name}:{text}" for name, one in filters.items() if (text := filters_text(one))]
    text = filters_text(filters)
    return [text] if text else []


@dataclass(frozen=True)
class References:
    """References that were written. Goes wherever a path goes."""

    path: str
    #: ``json`` or ``parquet``.
    form: str
    #: Where they say that the file is.
    url: str
    #: The variables that can be read, and the number of their chunks.
    variables: dict[str, int]
    #: The variables that cannot, and why.
    left_out: dict[str, str]
    #: What a reader should know of variables.
    notes: dict[str, str]

    def __fspath__(self) -> str:
        return self.path


def refs(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    form: str | None = None,
    url: str | None = None,
    relative: bool = False,
    variables: Sequence[str] = (),
    inline: int = 32,
    overwrite: bool = True,
    progress: Any = None,
) -> References:
    """Writes references, with which plain xarray and Zarr read a file without Esker (``esker refs``).

    out: the references, ``.json`` or ``.parq``; beside the file without it.
    form: ``json`` or ``parquet``, where the name does not say it.
    url: where the file will be, as fsspec understands it; without it, where it is.
    relative: the path from the directory of the references, for files that move together.
    variables: these only.
    inline: record variables of at most so many bytes in a record are copied into the references.

    Variables that cannot be read so, because Zarr lacks their filters, are left out, with a warning.
    docs/refs.md tells how they are opened.
    """
    _warn(path)
    where, form, url, found, left_out = _esker.refs(
        os.fspath(path),
        None if out is None else os.fspath(out),
        form=form,
        url=url,
        relative=relative,
        variables=[variables] if isinstance(variables, str) else list(variables),
        inline=inline,
        overwrite=overwrite,
        progress=progress,
    )
    for name, why in left_out:
        warnings.warn(f"{os.fspath(path)}: variable {name!r} is left out: {why}", stacklevel=2)
    return References(
        os.fspath(where),
        form,
        url,
        {name: chunks for name, chunks, _, _ in found},
        dict(left_out),
        {name: note for name, _, _, note in found if note},
    )
