"""pyrevolve's interface: checkpoints and operators of Devito and others as they are."""

from __future__ import annotations

import numpy as np

from .._esker import Vault
from . import _schedules as schedules
from ._run import Store


class Revolver:
    """Takes what ``pyrevolve.Revolver`` takes, and keeps checkpoints in a :class:`Store`.

    ``checkpoint.get_data(timestep)`` gives the arrays of a time step, ``get_data_location(timestep)`` those that are filled in
    place when it is loaded (the same ones, where a checkpoint has no such method); operators have ``apply(t_start=, t_end=)``. Without ``n_checkpoints`` there are as many as raw states fit into the store's memory.
    ``compression_params`` is left alone; ``store=Store(filters=...)`` says which filters there are."""

    def __init__(
        self,
        checkpoint,
        fwd_operator,
        rev_operator,
        n_checkpoints=None,
        n_timesteps=None,
        timings=None,
        profiler=None,
        compression_params=None,
        *,
        store=None,
    ):
        if n_timesteps is None:
            raise ValueError("n_timesteps, the number of time steps, must be given")
        self.checkpoint, self.fwd_operator, self.rev_operator = checkpoint, fwd_operator, rev_operator
        self.n_timesteps, self.profiler, self.timings = n_timesteps, profiler, timings
        store = Store() if store is None else store
        if n_checkpoints is None:
            nbytes = checkpoint.size * np.dtype(checkpoint.dtype).itemsize
            n_checkpoints = max(1, min(n_timesteps, store.ram // max(1, nbytes)))
        self.n_checkpoints = n_checkpoints
        self._vault = Vault(store._options())
        plan = schedules.Revolve(n_timesteps, n_checkpoints)
        self._actions = iter(plan)

    @staticmethod
    def _dense(arrays):
        """Arrays as dense ones, and what has to be copied back."""
        dense, back = {}, []
        for i, array in enumerate(arrays):
            array = np.asarray(array)
            if array.flags.c_contiguous:
                dense[str(i)] = array
            else:
                dense[str(i)] = np.ascontiguousarray(array)
                back.append((array, dense[str(i)]))
        return dense, back

    def save_checkpoint(self, step):
        """Keep the arrays of a step."""
        self._vault.put(step, self._dense(self.checkpoint.get_data(step))[0])

    def load_checkpoint(self, step):
        """Fill the arrays of a step."""
        # What `get_data` gives may be copies.
        location = getattr(self.checkpoint, "get_data_location", self.checkpoint.get_data)
        dense, back = self._dense(location(step))
        self._vault.get(step, dense)
        for array, copy in back:
            array[...] = copy

    def apply_forward(self):
        """Run the model to its end, and keep what the schedule says."""
        for action in self._actions:
            if isinstance(action, schedules.EndForward):
                return
            self._forward(action)

    def _forward(self, action):
        if action.write_ics:
            self.save_checkpoint(action.n0)
        self.fwd_operator.apply(t_start=action.n0, t_end=action.n1)

    def apply_reverse(self):
        """Run the adjoint back to the beginning."""
        for action in self._actions:
            if isinstance(action, schedules.Forward):
                self._forward(action)
            elif isinstance(action, schedules.Reverse):
                self.rev_operator.apply(t_start=action.n0, t_end=action.n1)
            elif isinstance(action, (schedules.Copy, schedules.Move)):
                self.load_checkpoint(action.n)
                if isinstance(action, schedules.Move):
                    self._vault.give_up(action.n)
        self._vault.clear()
