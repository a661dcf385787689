"""Transactions: all that is written to a container, or nothing of it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._dataset import Dataset, open

__all__ = ["transaction"]


@contextmanager
def transaction(
    path: str | os.PathLike[str], *, message: str | None = None, comm: Any = None, **arguments: Any
) -> Iterator[Dataset]:
    """A container that is open for writing: what the block writes becomes a version, safe from power loss, or nothing of it does::

        with esker.transaction("run.esk", message="corrected the pressure") as ds:
            ds["p"][...] += 100

    An exception in the block, and a commit that fails (:class:`esker.Conflict`), give up what was written since the last
    version, for good: ``esker recover`` does not bring it back. That is the container's version, or one that the block itself has
    made: by ``ds.sync()``, or by a change of definitions or attributes, which is a version at once, with what was written before it. So
    definitions come first in a block, or before it.

    message: one line that is told of the version, as in :meth:`Dataset.sync`.
    comm: an mpi4py communicator; then all ranks make the call. A rank that fails alone cannot wait for the others: it notes that the
        transaction is void, and its exception goes on.
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
    ds = open(path, "r+", comm=comm, **arguments)
    if ds.version is None:
        ds.close()
        raise ValueError(f"{os.fsdecode(path)}: only containers have transactions: what is written to a classic file is in it")
    # Whether all ranks are in the same call.
    together = ds.size == 1
    try:
        yield ds
        if not ds.closed:
            if ds.queued:
                ds.wait()
            try:
                ds.sync(message=message)
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
        ds.close()
