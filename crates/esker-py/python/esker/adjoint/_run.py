"""Runs of a model with checkpoints in a store."""

from __future__ import annotations

import os
import re
import sys
import warnings
from dataclasses import dataclass, field

import numpy as np

from .._esker import adjoint_forecast, adjoint_resume, adjoint_run
from ._schedules import Budget, _Planned

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"\s*([0-9.]+)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)


def bytes_of(size):
    """A number of bytes, from a number or a text such as "2 GiB"."""
    if isinstance(size, str):
        found = _SIZE.fullmatch(size)
        if found is None:
            raise ValueError(f"{size!r} is no number of bytes: write 2 GiB, 500 MB or 4096")
        number, unit, binary = found.groups()
        return int(float(number) * (_BINARY if binary else _UNITS)[unit.lower()])
    if size < 0:
        raise ValueError(f"a budget of {size} bytes is less than nothing")
    return int(min(size, sys.maxsize))


class Store:
    """Where checkpoints are kept: so many bytes of memory, and so many in the folder ``path``, of each rank.

    ``filters`` names the filters of arrays (``{"u": "sz,rel=1e-4", "*": "shuffle zstd,1"}``, ``*`` for all others), or
    is one text for all. Bounds of error are divided by the number of checkpoints that a state may go through.
    ``adjoint_every``: the adjoint is stored after so many steps, to resume from. ``drift_limit``: how far a state that
    is computed again may be off, relative to the largest values of its array; ``on_drift`` is "error" or "lossless".
    ``measure``: whether measured times decide how much of the disk is used. ``beside``: whether states are encoded, written
    and read ahead by threads beside the model; without, it waits for all of it."""

    def __init__(
        self,
        path=None,
        *,
        ram=None,
        disk=None,
        filters=None,
        comm=None,
        adjoint_every=None,
        drift_limit=0.1,
        on_drift="error",
        check_finite=True,
        measure=True,
        beside=True,
    ):
        if on_drift not in ("error", "lossless"):
            raise ValueError(f"on_drift is {on_drift!r}: it is 'error' or 'lossless'")
        self.path = None if path is None else os.fspath(path)
        if self.path is None and disk:
            raise ValueError("a budget on disk needs a folder: Store('run.chk', disk=...)")
        self.ram = sys.maxsize if ram is None else bytes_of(ram)
        self.disk = (sys.maxsize if path is not None else 0) if disk is None else bytes_of(disk)
        if isinstance(filters, str):
            filters = {"*": filters}
        self.filters = dict(filters or {})
        self.comm = comm
        self.adjoint_every = adjoint_every
        self.drift_limit, self.on_drift = float(drift_limit), on_drift
        self.check_finite, self.measure = bool(check_finite), bool(measure)
        self.beside = bool(beside)

    def __repr__(self):
        return f"Store({self.path!r}, ram={self.ram}, disk={self.disk}, filters={self.filters})"

    def _options(self):
        return {
            "path": self.path,
            "ram": self.ram,
            "disk": self.disk,
            "filters": list(self.filters.items()),
            "adjoint_every": self.adjoint_every,
            "drift_limit": self.drift_limit,
            "lossless_on_drift": self.on_drift == "lossless",
            "check_finite": self.check_finite,
            "measure": self.measure,
            "beside": self.beside,
        }


@dataclass
class Report:
    """What a run did. Pairs are memory and disk; of ``bytes`` before and after filters, of ``moved`` written to and read from disk.
    ``chosen`` tells at which states ``auto`` chose which filters."""

    steps: int
    forward: int
    stored: tuple
    loaded: tuple
    peak: tuple
    bytes: tuple
    moved: tuple
    drift: float
    model_seconds: float
    waited_seconds: float
    storing_seconds: float = 0.0
    chosen: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    @classmethod
    def _of(cls, told):
        pairs = ("stored", "loaded", "peak", "bytes", "moved")
        return cls(**{k: tuple(v) if k in pairs else v for k, v in told.items()})


class _Real:
    """A model whose complex arrays are seen as pairs of reals."""

    def __init__(self, model):
        self.model = model
        for name in ("forward", "reverse", "finished", "reshape"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        if hasattr(model, "deps"):
            self.deps = lambda: _reals(model.deps())

    def state(self):
        return _reals(self.model.state())

    def adjoint(self):
        return _reals(self.model.adjoint())


def _reals(arrays):
    if not isinstance(arrays, dict):
        raise TypeError(f"a dict of arrays is needed, not {type(arrays).__name__}")

    def real(array):
        if isinstance(array, np.ndarray) and array.dtype.kind == "c" and array.flags.c_contiguous:
            return array.view(array.real.dtype)
        return array

    return {name: real(array) for name, array in arrays.items()}


def _tell(told):
    report = Report._of(told)
    for note in report.notes:
        warnings.warn(note, RuntimeWarning, stacklevel=3)
    return report


def forecast(
    steps,
    state,
    ram,
    disk=0,
    *,
    step=1.0,
    reverse=None,
    encode=0.0,
    decode=0.0,
    write=0.0,
    read=0.0,
    deps=False,
    beside=True,
):
    """How long a run would take with each schedule: a dict from its name to (seconds, forward steps), without those that cannot be.

    Sizes are bytes, of an encoded state and of the budgets; times are seconds, of one step or one state. ``reverse`` is by
    default twice ``step``. ``deps``: whether the adjoint of a step needs more than the state before it."""
    found = adjoint_forecast(
        int(steps),
        bytes_of(state),
        bytes_of(ram),
        bytes_of(disk),
        float(step),
        2.0 * step if reverse is None else float(reverse),
        float(encode),
        float(decode),
        float(write),
        float(read),
        bool(deps),
        bool(beside),
    )
    return {name: (seconds, forward) for name, seconds, forward in found}


def run(model, schedule, store=None):
    """Run ``model`` forward and back as ``schedule`` says, with checkpoints in ``store``; gives a :class:`Report`.

    ``schedule`` is one of this package, or a number of steps for a :class:`Budget`. Collective over ``store.comm``."""
    store = Store() if store is None else store
    if isinstance(schedule, (int, np.integer)):
        plan, steps = None, int(schedule)
    elif isinstance(schedule, Budget):
        plan, steps = None, schedule.max_n
    elif isinstance(schedule, _Planned):
        if schedule.n or schedule.r:
            raise ValueError("the schedule has been used: make a new one for each run")
        plan, steps = schedule._plan, 0
    else:
        raise TypeError(
            f"a schedule of esker.adjoint or a number of steps is needed, not {type(schedule).__name__}"
        )
    return _tell(adjoint_run(_Real(model), plan, steps, store._options(), store.comm))


def resume(path, model, store=None):
    """Go on with the run in the folder ``path`` whose program ended before it was done.

    ``model`` is made as for the run and stands at its initial state. Budgets and filters are those of the
    run; ``store`` may give other budgets, and the communicator."""
    store = Store(path, ram=None, disk=None) if store is None else store
    options = {**store._options(), "path": os.fspath(path)}
    if store.ram == sys.maxsize:
        options["ram"] = 2**64 - 1
    if store.disk == sys.maxsize:
        options["disk"] = 0
    return _tell(adjoint_resume(_Real(model), options, store.comm))
