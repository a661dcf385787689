"""Versions of a container: what they are, and names for them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timezone

from . import _esker

__all__ = ["Version", "tag", "tags", "versions"]


@dataclass(frozen=True)
class Version:
    """A version of a container, as :func:`versions` tells of it."""

    #: Its number: ``esker.open(path, version=number)``.
    number: int
    #: ``open``; or ``expired``, ``given up``, ``damaged``, which cannot be opened.
    state: str
    #: What is wrong with one that is damaged.
    damage: str | None
    #: When it was committed, by the clock of who did it; None where nothing says so (format 1).
    time: datetime | None
    #: What its writer said of it.
    message: str
    #: The names that it has.
    tags: tuple[str, ...]
    #: The names that it gave to versions, with their numbers: if there are any, its values are those of the one before it.
    gives: tuple[tuple[str, int], ...]
    #: How many records it has.
    records: int | None
    #: Bytes of values that came with it.
    new_bytes: int | None
    #: Whether it was promised to survive a loss of power.
    synced: bool | None


def versions(path: str | os.PathLike[str], most: int | None = None) -> list[Version]:
    """The versions of a container, newest first, also those that cannot be opened any more; of ``"run.esk@7"``, that one and those before it.

    most: at most so many. Logs are not read for this.

    >>> import esker, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "run.esk")
    >>> with esker.create(path, layout="log") as ds:
    ...     _ = ds.create_dimension("x", 3)
    ...     _ = ds.create_variable("t", "f4", "x", data=[1, 2, 3])
    ...     ds.sync(message="spin-up done")
    >>> esker.versions(path)[0].message
    'spin-up done'
    """
    if most is not None and most < 1:
        raise ValueError(f"most={most}: at least one version is asked for")
    return [_version(found) for found in _esker.versions(os.fsdecode(path), most)]


def _version(found: dict) -> Version:
    time = found["time"]
    if time is not None:
        try:
            time = datetime.fromtimestamp(time, tz=timezone.utc)
        except (OverflowError, OSError, ValueError):
            # A clock that nobody has.
            time = None
    return Version(**{**found, "time": time, "tags": tuple(found["tags"]), "gives": tuple(found["gives"])})


def tags(path: str | os.PathLike[str]) -> dict[str, int]:
    """The tags of a container, and the numbers of their versions."""
    return dict(_esker.tags(os.fsdecode(path)))


def tag(path: str | os.PathLike[str], name: str, version: int | str | None = None, message: str = "") -> int:
    """Gives a version of a container a name for ever: ``esker.open("run.esk@name")``. Gives the version's number.

    version: its number, or a tag that it has; by default the newest.
    message: one line that is told of it.

    One process does it; programs that write to the container at the same time are not disturbed.
    """
    return _esker.tag(os.fsdecode(path), name, None if version is None else str(version), message)
