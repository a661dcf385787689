"""Schedules with the names and arguments of ``checkpoint_schedules``, planned in Rust."""

from __future__ import annotations

import sys

from .._esker import Plan
from ._actions import (
    HAVE_PEER,
    CheckpointSchedule,
    Copy,
    EndForward,
    EndReverse,
    Forward,
    Move,
    Reverse,
    StorageType,
)

_STORAGE = {storage.value: storage for storage in StorageType}


class _Planned(CheckpointSchedule):
    """A schedule whose actions come from a plan in Rust."""

    def __init__(self, max_n, kind, **numbers):
        CheckpointSchedule.__init__(self, max_n)
        defaults = {
            "steps": max_n or 0,
            "memory": 0,
            "disk": 0,
            "period": 0,
            "place": 0,
            "maximum": True,
            "costs": (1.0, 2.0, 2.0),
            "raw": 1,
        }
        unknown = numbers.keys() - defaults.keys()
        assert not unknown, unknown
        for name in ("memory", "disk", "period"):
            if numbers.get(name, 0) < 0:
                raise ValueError(f"{name} is {numbers[name]}: it must not be negative")
        self._kind, self._numbers = kind, {**defaults, **numbers}
        self._plan = Plan(kind, self._numbers)

    def _iterator(self):
        plan = self._plan
        # Asking whether the end is known costs as much as an action: only where it may become so.
        ask = plan.next if plan.steps is not None else lambda: self._next(plan)
        while (action := ask()) is not None:
            name = action[0]
            if name == "forward":
                _, n0, n1, ics, deps, storage = action
                self._n = min(n1, sys.maxsize)
                yield Forward(n0, self._n, ics, deps, _STORAGE[storage])
            elif name in ("copy", "move"):
                _, n, source, target = action
                if target == StorageType.WORK.value:
                    self._n = n
                kind = Copy if name == "copy" else Move
                yield kind(n, _STORAGE[source], _STORAGE[target])
            elif name == "reverse":
                _, n1, n0 = action
                self._r += n1 - n0
                yield Reverse(n1, n0, True)
            elif name == "end_forward":
                yield EndForward()
            else:
                yield self._end_reverse(plan)

    def _next(self, plan):
        if self._max_n is not None and plan.steps is None:
            plan.finalize(self._max_n)
        return plan.next()

    def _end_reverse(self, plan):
        if not plan.is_exhausted:
            self._r = 0
        return EndReverse()

    @property
    def is_exhausted(self):
        """Whether there are no more actions."""
        return self._plan.is_exhausted

    def uses_storage_type(self, storage_type):
        """Whether something may be kept there."""
        if storage_type == StorageType.NONE:
            return False
        return self._plan.uses(storage_type.value)


class Revolve(_Planned):
    """Binomial checkpoints in memory, for the least number of forward steps."""

    def __init__(self, max_n, snapshots_in_ram, uf=1, ub=1, wd=2, rd=2):
        super().__init__(max_n, "multistage", memory=snapshots_in_ram)


class MultistageCheckpointSchedule(_Planned):
    """Binomial checkpoints, some in memory and some on disk."""

    def __init__(self, max_n, snapshots_in_ram, snapshots_on_disk, *, trajectory="maximum"):
        if trajectory not in ("maximum", "revolve"):
            raise ValueError(f"trajectory is {trajectory!r}: it is 'maximum' or 'revolve'")
        super().__init__(
            max_n,
            "multistage",
            memory=snapshots_in_ram,
            disk=snapshots_on_disk,
            maximum=trajectory == "maximum",
        )


class HRevolve(_Planned):
    """Checkpoints in memory and on disk, for the least time when transfers to and from disk cost."""

    def __init__(self, max_n, snapshots_in_ram, snapshots_on_disk, uf=1, ub=1, wd=2, rd=2):
        costs = (float(uf), float(wd), float(rd))
        super().__init__(
            max_n, "hrevolve", memory=snapshots_in_ram, disk=snapshots_on_disk, costs=costs
        )


class DiskRevolve(_Planned):
    """Checkpoints in memory, and as many on disk as pay."""

    def __init__(self, max_n, snapshots_in_ram, uf=1, ub=1, wd=2, rd=2):
        costs = (float(uf), float(wd), float(rd))
        super().__init__(max_n, "diskrevolve", memory=snapshots_in_ram, costs=costs)


class PeriodicDiskRevolve(_Planned):
    """Checkpoints on disk at equal distances, binomial ones in memory between them."""

    def __init__(self, max_n, snapshots_in_ram, uf=1, ub=1, wd=2, rd=2):
        costs = (float(uf), float(wd), float(rd))
        super().__init__(max_n, "periodic", memory=snapshots_in_ram, costs=costs)


class MixedCheckpointSchedule(_Planned):
    """Units that hold restart data or the dependencies of one step."""

    def __init__(self, max_n, snapshots, *, storage=StorageType.DISK):
        super().__init__(max_n, "mixed", memory=snapshots, place=_tier(storage))


class TwoLevelCheckpointSchedule(_Planned):
    """A checkpoint on disk every ``period`` steps, binomial ones between them. The number of steps may be unknown."""

    def __init__(
        self,
        period,
        binomial_snapshots,
        *,
        binomial_storage=StorageType.DISK,
        binomial_trajectory="maximum",
    ):
        super().__init__(
            None,
            "twolevel",
            period=period,
            memory=binomial_snapshots,
            place=_tier(binomial_storage),
            maximum=binomial_trajectory == "maximum",
        )


class Online(_Planned):
    """``snapshots`` checkpoints that are at good places whenever the model ends."""

    def __init__(self, snapshots, *, storage=StorageType.RAM):
        super().__init__(None, "online", memory=snapshots, place=_tier(storage))


class SingleDiskStorageSchedule(_Planned):
    """The dependencies of every step on disk."""

    def __init__(self, move_data=False):
        super().__init__(None, "disk_move" if move_data else "disk_copy")


class NoneCheckpointSchedule(_Planned):
    """No adjoint: nothing is kept."""

    def __init__(self):
        super().__init__(None, "none")


if HAVE_PEER:
    from checkpoint_schedules import SingleMemoryStorageSchedule as _PeerSingleMemory
else:
    _PeerSingleMemory = object


class SingleMemoryStorageSchedule(_Planned, _PeerSingleMemory):
    """The dependencies of all steps in work. (pyadjoint asks for the peer's class by name.)"""

    def __init__(self):
        _Planned.__init__(self, None, "memory")


class Budget(_Planned):
    """Bytes instead of a number of checkpoints: those of a :class:`Store`.

    :func:`esker.adjoint.run` tells it the size of every state. Iterated without that, all states count as
    ``state_bytes``, or a tenth of the budget."""

    def __init__(self, max_n, store, state_bytes=None):
        raw = state_bytes or max(1, (store.ram + store.disk) // 10)
        disk = store.disk if store.path is not None else 0
        super().__init__(max_n, "budget", memory=store.ram, disk=disk, raw=raw)


def _tier(storage):
    if storage not in (StorageType.RAM, StorageType.DISK):
        raise ValueError(f"checkpoints are in StorageType.RAM or DISK, not {storage}")
    return storage.value
