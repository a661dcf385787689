"""A pyadjoint tape whose checkpoints are in a store: the energy of a wave after 200 steps, by its initial state.

    python adjoint_pyadjoint.py
"""

import numpy as np
import numpy_adjoint  # noqa: F401  overloads of NumPy's arrays
import pyadjoint

import esker.adjoint as ea
import esker.adjoint.pyadjoint

CELLS, STEPS = 2000, 200


def laplace(u):
    return np.roll(u, 1) - 2 * u + np.roll(u, -1)


def step(now, before):
    return 2 * now - before + 0.2 * laplace(now) - 1e-3 * now**3


class Step(pyadjoint.Block):
    def __init__(self, now, before):
        super().__init__()
        self.add_dependency(now)
        self.add_dependency(before)

    def recompute_component(self, inputs, block_variable, idx, prepared):
        return pyadjoint.create_overloaded_object(step(*(np.asarray(x) for x in inputs)))

    def evaluate_adj_component(self, inputs, adj_inputs, block_variable, idx, prepared=None):
        a, now = np.asarray(adj_inputs[0]), np.asarray(inputs[0])
        return -a if idx == 1 else (2 - 3e-3 * now**2) * a + 0.2 * laplace(a)


class Energy(pyadjoint.Block):
    def __init__(self, u):
        super().__init__()
        self.add_dependency(u)

    def recompute_component(self, inputs, block_variable, idx, prepared):
        return pyadjoint.create_overloaded_object(float(np.sum(np.asarray(inputs[0]) ** 2)))

    def evaluate_adj_component(self, inputs, adj_inputs, block_variable, idx, prepared=None):
        return 2 * np.asarray(inputs[0]) * float(adj_inputs[0])


def on_tape(block, value):
    out = pyadjoint.create_overloaded_object(value)
    pyadjoint.get_working_tape().add_block(block)
    block.add_output(out.create_block_variable())
    return out


def gradient(store):
    tape = pyadjoint.Tape()
    pyadjoint.set_working_tape(tape)
    pyadjoint.continue_annotation()
    control = pyadjoint.create_overloaded_object(np.sin(np.arange(CELLS) / 15))
    steps = range(STEPS)
    if store is not None:
        ea.pyadjoint.enable(tape, store, ea.Revolve(STEPS, 10))
        steps = tape.timestepper(iter(steps))
    now, before = control, control
    for _ in steps:
        new = step(np.asarray(now), np.asarray(before))
        now, before = on_tape(Step(now, before), new), now
    energy = on_tape(Energy(now), float(np.sum(np.asarray(now) ** 2)))
    pyadjoint.pause_annotation()
    return np.asarray(pyadjoint.ReducedFunctional(energy, pyadjoint.Control(control)).derivative()).copy()


if __name__ == "__main__":
    store = ea.Store(ram="1 MB", filters="shuffle zstd,1")
    assert np.array_equal(gradient(store), gradient(None))
    print("the gradient with ten checkpoints is that of the whole tape, bit by bit")
