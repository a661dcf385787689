"""What several ranks make together, and appears when it is complete."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from .errors import RankError

T = TypeVar("T")


class Nothing:
    """What ranks other than 0 have instead of a folder."""

    def __enter__(self) -> str:
        return ""

    def __exit__(self, *_: Any) -> None:
        pass


def is_hdf5(path: str) -> bool:
    """Whether a file is HDF5, by its first bytes."""
    try:
        with open(path, "rb") as file:
            return file.read(8) == b"\x89HDF\r\n\x1a\n"
    except OSError:
        # Whoever opens it next says what is wrong.
        return False


def everyone(comm: Any, work: Callable[[], T]) -> T:
    """What each rank does; if one of them fails, all do. Collective."""
    if comm is None:
        return work()
    outcome, error = None, None
    try:
        outcome = work()
    except Exception as raised:
        error = raised
    told = comm.allgather(None if error is None else str(error))
    if error is not None:
        raise error
    for rank, message in enumerate(told):
        if message is not None:
            raise RankError(f"rank {rank} failed: {message}")
    return outcome  # type: ignore[return-value]


def together(comm: Any, work: Callable[[], T]) -> T:
    """What rank 0 does, with its outcome on every rank. Collective."""
    if comm is None:
        return work()
    outcome = everyone(comm, lambda: work() if comm.rank == 0 else None)
    return comm.bcast(outcome, root=0)


@contextmanager
def whole(target: str, overwrite: bool, comm: Any) -> Iterator[str]:
    """A path to write a file at, which takes its name when everything went well; else there is what was there before. Collective.

    Until then it is in a folder of its own, which nobody else can look into or plant anything in. What it replaces leaves it its
    permissions, owner and attributes, and a link stays a link."""
    real = os.path.realpath(target)

    def begin() -> str:
        if not overwrite and os.path.exists(real):
            raise FileExistsError(f"{target}: exists already")
        folder = tempfile.mkdtemp(prefix=".esker-", dir=os.path.dirname(real))
        return os.path.join(folder, os.path.basename(real))

    def finish() -> None:
        if os.path.exists(real):
            with contextlib.suppress(OSError):
                os.chown(draft, os.stat(real).st_uid, os.stat(real).st_gid)
            shutil.copystat(real, draft)
            os.utime(draft)
        os.replace(draft, real)
        os.rmdir(os.path.dirname(draft))

    def forget() -> None:
        # Ranks fail together, but perhaps not of the same: nobody waits for another here.
        if comm is None or comm.rank == 0:
            shutil.rmtree(os.path.dirname(draft), ignore_errors=True)

    draft = together(comm, begin)
    try:
        yield draft
        together(comm, finish)
    except BaseException:
        forget()
        raise
