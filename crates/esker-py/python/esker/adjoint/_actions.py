"""The actions of ``checkpoint_schedules`` where it is installed, because programs dispatch on its classes; else our
own with the same names and attributes."""

from __future__ import annotations

try:
    from checkpoint_schedules.schedule import (
        CheckpointSchedule,
        Copy,
        EndForward,
        EndReverse,
        Forward,
        Move,
        Reverse,
        StorageType,
    )

    HAVE_PEER = True
except ImportError:
    import enum
    from dataclasses import dataclass

    HAVE_PEER = False

    class StorageType(enum.Enum):
        """Where data of a step are."""

        RAM = 0
        DISK = 1
        WORK = -1
        NONE = None

    class _Steps:
        """Steps between n0 and n1."""

        def __contains__(self, step):
            return self.n0 <= step < self.n1

        def __len__(self):
            return self.n1 - self.n0

    @dataclass(frozen=True)
    class Forward(_Steps):
        """Run the model from n0 to n1, and keep what the flags say."""

        n0: int
        n1: int
        write_ics: bool
        write_adj_deps: bool
        storage: StorageType

        def __iter__(self):
            return iter(range(self.n0, self.n1))

    @dataclass(frozen=True)
    class Reverse(_Steps):
        """Run the adjoint from n1 to n0."""

        n1: int
        n0: int
        clear_adj_deps: bool

        def __iter__(self):
            return iter(range(self.n1 - 1, self.n0 - 1, -1))

    @dataclass(frozen=True)
    class Copy:
        """Copy what is kept of step n."""

        n: int
        from_storage: StorageType
        to_storage: StorageType

    @dataclass(frozen=True)
    class Move:
        """Move what is kept of step n."""

        n: int
        from_storage: StorageType
        to_storage: StorageType

    @dataclass(frozen=True)
    class EndForward:
        """The model has reached its end."""

    @dataclass(frozen=True)
    class EndReverse:
        """The adjoint has reached step 0."""

    class CheckpointSchedule:
        """An iterator of actions."""

        def __init__(self, max_n=None):
            if max_n is not None and max_n < 1:
                raise ValueError("max_n must be positive")
            self._n, self._r, self._max_n = 0, 0, max_n
            self._actions = None

        def __iter__(self):
            return self

        def __next__(self):
            if self._actions is None:
                self._actions = self._iterator()
            return next(self._actions)

        @property
        def n(self):
            """Where the model is."""
            return self._n

        @property
        def r(self):
            """Steps that have been reversed."""
            return self._r

        @property
        def max_n(self):
            """The number of steps, if it is known."""
            return self._max_n

        def finalize(self, n):
            """Say where the model ended."""
            if n < 1:
                raise ValueError("n must be positive")
            if self._max_n is None and self._n >= n:
                self._n = self._max_n = n
            elif self._n != n or self._max_n != n:
                raise RuntimeError(f"the model ended after {n} steps; it was promised {self._max_n}")


__all__ = [
    "CheckpointSchedule",
    "Copy",
    "EndForward",
    "EndReverse",
    "Forward",
    "HAVE_PEER",
    "Move",
    "Reverse",
    "StorageType",
]
