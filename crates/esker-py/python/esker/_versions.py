"""Versions of a container: what they are, and names for them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from . import _esker

__all__ = ["Collected", "Version", "expire", "gc", "tag", "tags", "versions"]


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


def expire(
    path: str | os.PathLike[str],
    *,
    keep_last: int | None = None,
    keep_within: timedelta | None = None,
    every: int | None = None,
    dry_run: bool = False,
) -> list[range]:
    """Lets versions of a container expire: they cannot be opened any more, and :func:`gc` removes what only they need. Gives which, as ranges.

    keep_last: keep so many of the newest that have changed something.
    keep_within: keep those that are not older than this, by the clocks of who made them.
    every: keep those whose numbers are multiples of this.
    dry_run: only say what would expire.

    A version is kept if any of the three wants it, and at least one of them must be given. The newest and those with tags are always kept.

    >>> import esker, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "run.esk")
    >>> with esker.create(path, layout="log") as ds:
    ...     _ = ds.create_dimension("x", 3)
    ...     v = ds.create_variable("v", "i4", "x")
    ...     for step in range(5):
    ...         v[:] = step
    ...         ds.sync()
    >>> esker.expire(path, keep_last=2)
    [range(1, 5)]
    """
    if keep_last is None and keep_within is None and every is None:
        raise ValueError("one of keep_last, keep_within and every must say what is kept")
    for name, value in (("keep_last", keep_last), ("every", every)):
        if value is not None and value < 1:
            raise ValueError(f"{name}={value}: it is at least 1")
    since = None
    if keep_within is not None:
        since = int((datetime.now(timezone.utc) - keep_within).timestamp())
    last = 1 if keep_last is None else keep_last
    expired = _esker.expire(os.fsdecode(path), last, since, every, dry_run)
    return [range(first, last + 1) for first, last in expired]


@dataclass(frozen=True)
class Collected:
    """What :func:`gc` did, or would do."""

    #: Files that were removed, from the container on.
    removed: tuple[str, ...]
    #: Bytes in them.
    bytes: int
    #: Sessions that were given up: they can commit nothing any more.
    given_up: tuple[str, ...]
    #: Sessions whose logs no version needs, and which may still be written, with the bytes in their logs.
    left: dict[str, int]


def gc(
    path: str | os.PathLike[str],
    *,
    abandoned: Iterable[str] = (),
    all_idle: bool = False,
    dry_run: bool = False,
) -> Collected:
    """Removes what no version of a container needs: what only expired ones had, what killed commits left, logs of sessions that are given up.

    abandoned: sessions that are given up, by what the names of their logs begin with (``left`` tells them).
    all_idle: nobody is writing; all sessions whose logs no version needs are given up.
    dry_run: only say what would be done.

    Logs that no version needs, but somebody may still be writing, stay unless they are given up. Whoever was given up wrongly is told when it
    commits, and loses what it has not committed; versions are never touched.
    """
    names = [abandoned] if isinstance(abandoned, str) else list(abandoned)
    if all_idle and names:
        raise ValueError("all_idle gives up all sessions, also those that are named")
    told = _esker.gc(os.fsdecode(path), names, all_idle, dry_run)
    for note in told["notes"]:
        warnings.warn(f"{os.fspath(path)}: {note}", stacklevel=2)
    return Collected(tuple(told["removed"]), told["bytes"], tuple(told["given_up"]), dict(told["left"]))
