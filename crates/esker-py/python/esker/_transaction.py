"""Transactions: all that is written to a container, or nothing of it; and versions that others commit, as they come."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from . import _esker
from ._dataset import Dataset, Outcome, _begun, open

__all__ = ["Outcome", "follow", "number_state", "skip", "transaction"]


@contextmanager
def transaction(
    path: str | os.PathLike[str],
    *,
    message: str | None = None,
    number: int | None = None,
    base: int | str | None = None,
    needs: Sequence[int] = (),
    durable: bool = True,
    comm: Any = None,
    hints: Mapping[str, Any] | None = None,
    fill: bool = True,
    masked: bool = False,
) -> Iterator[Dataset]:
    """A container that is open for writing: what the block writes and defines becomes one version, or nothing of it does::

        with esker.transaction("run.esk", message="corrected the pressure") as ds:
            ds["p"][...] += 100

    An exception in the block, and a commit that fails (:class:`esker.Conflict`), give it up, for good: ``esker recover`` does not bring it back,
    also if the process is killed. ``ds.sync()`` makes no version in it. ``ds.commit()``, ``ds.close()`` and ``ds.abort()`` end it before the block ends.

    message: one line that is told of the version, as in :meth:`Dataset.sync`.
    number: the number of the version. Such transactions are committed in any order, also by programs that know nothing of each other, and appear in
        that of their numbers, which decides which values win. ``ds.outcome`` says whether it is a version already. An exception
        gives the number up; so does :func:`skip`. One that changes definitions is committed when all numbers before it are decided.
    base: the version that it is made for, a number or a tag; by default the newest.
    needs: numbers that must become versions: it is given up with them.
    durable: whether the commit waits until the version is safe from a loss of power.
    comm: an mpi4py communicator; then all ranks make the call. Any rank may call ``ds.abort()``: then those that commit get :class:`esker.GivenUp`. A rank
        with an exception cannot wait for the others: it notes that the transaction is void, and its exception goes on.
    Other keywords are those of :func:`esker.open`.

    >>> import esker, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "run.esk")
    >>> with esker.create(path, layout="log") as ds:
    ...     _ = ds.create_dimension("x", 3)
    ...     _ = ds.create_variable("t", "f4", "x", data=[1, 2, 3])
    >>> try:
    ...     with esker.transaction(path) as ds:
    ...         ds["t"][0] = 99
    ...         raise RuntimeError("no")
    ... except RuntimeError:
    ...     print(esker.open(path)["t"][0])
    1.0
    """
    path = os.fsdecode(path)
    if isinstance(base, str):
        base = _esker.number_of_version(path, base)
    if number is not None and number < 1:
        raise ValueError(f"number={number}: numbers of versions begin with 1")
    arguments = {"number": number, "base": base, "message": message, "needs": list(needs), "durable": durable, "fill": fill, "comm": comm}
    ds = _begun(path, masked, hints, arguments)
    # Whether all ranks are in the same call.
    together = ds.size == 1
    try:
        yield ds
        if not ds.closed and ds.outcome is None:
            if ds.queued:
                ds.wait()
            try:
                ds.commit(message=message)
            except Exception:
                together = True
                raise
    except BaseException:
        if not ds.closed:
            try:
                ds._handle.abort(together)
            except Exception as error:
                warnings.warn(f"what was not committed could not be given up: {error}", stacklevel=3)
        raise
    else:
        if not ds.closed:
            # Asked while it is open.
            _ = ds.outcome
            ds.close()


def skip(path: str | os.PathLike[str], number: int, message: str = "") -> None:
    """Gives up a number of a container for good, so that transactions with later numbers need not wait for it. One process does it.

    message: one line that is told of it.

    >>> import esker, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "run.esk")
    >>> with esker.create(path, layout="log") as ds:
    ...     _ = ds.create_dimension("x", 3)
    ...     _ = ds.create_variable("t", "f4", "x", data=[1, 2, 3])
    >>> newest = esker.versions(path)[0].number
    >>> with esker.transaction(path, number=newest + 2) as ds:
    ...     ds["t"][0] = 99
    >>> ds.outcome.visible, esker.open(path)["t"][0].item()
    (False, 1.0)
    >>> esker.skip(path, newest + 1)
    >>> esker.open(path)["t"][0].item()
    99.0
    """
    _esker.skip(os.fsdecode(path), number, message)


def number_state(path: str | os.PathLike[str], number: int) -> str:
    """What a number of a container has become: ``open``, ``prepared``, ``version`` or ``given up``."""
    return _esker.number_state(os.fsdecode(path), number)


def follow(
    path: str | os.PathLike[str], after: int = 0, *, timeout: float | None = None, **arguments: Any
) -> Iterator[Dataset]:
    """The versions of a container behind one, as others commit them::

        for ds in esker.follow("run.esk", after=7, timeout=60):
            plot(ds["t"][-1])

    Each is closed when the next one is asked for. It ends when none has come for ``timeout`` seconds, and never without one. Numbers that were given up, and versions
    that only give names, are passed over. Other keywords are those of :func:`esker.open`; with ``comm=`` collective: rank 0 looks, the others sleep.

    >>> import esker, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "run.esk")
    >>> with esker.create(path, layout="log") as ds:
    ...     _ = ds.create_dimension("x", 3)
    ...     _ = ds.create_variable("t", "f4", "x", data=[1, 2, 3])
    >>> [ds["t"][0].item() for ds in esker.follow(path, after=1, timeout=0)][-1]
    1.0
    """
    while True:
        try:
            ds = open(path, after=after, timeout=timeout, **arguments)
        except TimeoutError:
            return
        with ds:
            if ds.version is not None:
                after = ds.version
            yield ds
