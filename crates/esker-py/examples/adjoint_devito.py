"""The gradient of an acoustic model in Devito: its checkpoints and operators as they are, checkpoints in a store.

    python adjoint_devito.py
"""

import numpy as np
from devito import Eq, Function, Grid, Operator, TimeFunction, solve
from devito.checkpointing import CheckpointOperator, DevitoCheckpoint

import esker.adjoint as ea

STEPS, DT = 60, 0.002


def operators(save):
    """A forward and a gradient operator over one grid; with ``save`` all time steps are kept."""
    grid = Grid(shape=(61, 61), extent=(1.0, 1.0))
    u = TimeFunction(name="u", grid=grid, time_order=2, space_order=4, save=STEPS + 2 if save else None)
    v = TimeFunction(name="v", grid=grid, time_order=2, space_order=4)
    gradient = Function(name="gradient", grid=grid)
    forward = Operator([Eq(u.forward, solve(u.dt2 - u.laplace, u.forward))])
    reverse = Operator(
        [Eq(gradient, gradient + u * v), Eq(v.backward, solve(v.dt2 - v.laplace, v.backward))]
    )
    x = np.linspace(0, 1, 61)
    pulse = np.exp(-(((x[:, None] - 0.5) ** 2 + (x[None, :] - 0.5) ** 2) / 0.01))
    u.data[0] = u.data[1] = pulse
    v.data[:] = np.roll(pulse, 7, axis=0)
    return u, v, gradient, forward, reverse


def everything():
    u, v, gradient, forward, reverse = operators(save=True)
    forward.apply(u=u, time_m=1, time_M=STEPS, dt=DT)
    reverse.apply(u=u, v=v, gradient=gradient, time_m=1, time_M=STEPS, dt=DT)
    return np.array(gradient.data)


def with_checkpoints(store, checkpoints):
    u, v, gradient, forward, reverse = operators(save=False)
    revolver = ea.Revolver(
        DevitoCheckpoint([u]),
        CheckpointOperator(forward, u=u, dt=DT, time_m=1, time_M=STEPS),
        CheckpointOperator(reverse, u=u, v=v, gradient=gradient, dt=DT, time_m=1, time_M=STEPS),
        checkpoints,
        STEPS,
        store=store,
    )
    revolver.apply_forward()
    revolver.apply_reverse()
    return np.array(gradient.data)


if __name__ == "__main__":
    expected = everything()
    found = with_checkpoints(ea.Store(filters="shuffle zstd,1"), 6)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    print(f"gradient from 6 checkpoints differs from that of all {STEPS} states by {error:.2e} of its range")
