"""Checkpoints of a pyadjoint tape in a :class:`~esker.adjoint.Store`: encoded, in memory and on disk, within its bytes.

::

    tape = pyadjoint.get_working_tape()
    ea.pyadjoint.enable(tape, ea.Store(ram="2 GiB"), ea.Revolve(1000, 20))
    for n in tape.timestepper(iter(range(1000))): ...
"""

from __future__ import annotations

import numpy as np
from pyadjoint.tape import TapePackageData, TimeStep

from .._esker import Vault
from ._run import Store


class _Elsewhere:
    """An array that the vault holds."""

    __slots__ = ("dtype", "kind", "shape")

    def __init__(self, array):
        self.shape, self.dtype, self.kind = array.shape, array.dtype, type(array)

    def empty(self):
        return np.empty(self.shape, self.dtype)


def _numbers(array):
    """The array as one of reals, which the vault takes."""
    array = np.ascontiguousarray(np.asarray(array))
    return array.view(array.real.dtype) if array.dtype.kind == "c" else array


class _KeptStep(TimeStep):
    """A time step whose arrays are in the vault; what is no array of numbers stays where it is."""

    def __init__(self, vault, number):
        super().__init__()
        self._vault, self._number = vault, number
        # Variables in the order of their names in the vault.
        self._stored = []

    def checkpoint(self, checkpointable_state, adj_dependencies, global_deps):
        self._fetch()
        super().checkpoint(checkpointable_state, adj_dependencies, global_deps)
        arrays = {}
        self._stored = []
        for var, value in self._checkpoint.items():
            # What is the same object at all steps takes no room here.
            shared = var in global_deps and value is var._checkpoint
            if not shared and isinstance(value, np.ndarray) and value.dtype.kind in "fciu" and value.size:
                arrays[str(len(self._stored))] = _numbers(value)
                self._stored.append(var)
        if not arrays:
            self._vault.give_up(self._number)
            return
        self._vault.put(self._number, arrays)
        for var in self._stored:
            self._checkpoint[var] = _Elsewhere(self._checkpoint[var])

    def _fetch(self):
        """Decodes what the vault has of this step."""
        if not self._stored:
            return
        arrays = [self._checkpoint[var].empty() for var in self._stored]
        self._vault.get(self._number, {str(i): _view(array) for i, array in enumerate(arrays)})
        for var, array in zip(self._stored, arrays):
            kind = self._checkpoint[var].kind
            self._checkpoint[var] = array if kind is np.ndarray else array.view(kind)
        self._stored = []

    def restore_from_checkpoint(self, from_storage):
        stored = list(self._stored)
        kept = {var: self._checkpoint[var] for var in stored}
        self._fetch()
        super().restore_from_checkpoint(from_storage)
        # The vault still has them.
        self._checkpoint.update(kept)
        self._stored = stored

    def delete_checkpoint(self):
        super().delete_checkpoint()
        self._stored = []
        self._vault.give_up(self._number)


def _view(array):
    return array.view(array.real.dtype) if array.dtype.kind == "c" else array


class _OnTape(TapePackageData):
    """Tells the tape that checkpoints on disk are taken care of."""

    def __init__(self, vault):
        self.vault = vault

    def clear(self):
        self.vault.clear()

    def reset(self):
        pass

    def checkpoint(self):
        return None

    def restore_from_checkpoint(self, state):
        pass

    def copy(self):
        return self

    def continue_checkpointing(self):
        pass

    def pause_checkpointing(self):
        pass


def enable(tape, store, schedule, **options):
    """Checkpoint ``tape`` by ``schedule``, with arrays of numbers in ``store``.

    ``schedule`` is any of this package or of ``checkpoint_schedules``. The store's bytes are never exceeded: a checkpoint
    that does not fit into memory goes to its folder, and one that does not fit there either is a ValueError with
    the numbers. ``options`` go to ``tape.enable_checkpointing``."""
    if not isinstance(store, Store):
        raise TypeError(f"a Store is needed, not {type(store).__name__}")
    vault = Vault(store._options())
    tape._package_data["esker"] = _OnTape(vault)
    blocks = tape.get_blocks()

    def append_kept_step(step=None):
        # An empty step is false, and pyadjoint would put one of its own in its place.
        blocks.steps.append(_KeptStep(vault, len(blocks.steps)) if step is None else step)

    blocks.append_step = append_kept_step
    tape.enable_checkpointing(schedule, **options)
    return vault
