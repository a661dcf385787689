"""Adjoint runs over MPI: the same gradient on any number of ranks, and after a rank was killed."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mpi4py")

from test_mpi import run  # noqa: E402

PROGRAM = Path(__file__).with_name("adjoint_ranks.py")


def gradient(folder, ranks):
    return np.concatenate([np.load(folder / f"{ranks}.{rank}.npy") for rank in range(ranks)])


def expected():
    """By keeping everything, without ranks."""
    u, states = np.sin(np.arange(240) / 11), []

    def laplace(u):
        padded = np.concatenate([u[-1:], u, u[:1]])
        return padded[:-2] - 2 * u + padded[2:]

    for _ in range(37):
        states.append(u.copy())
        u += 0.1 * laplace(u) - 0.01 * u**3
    a = 2 * u
    for state in reversed(states):
        a += 0.1 * laplace(a) - 0.03 * state**2 * a
    return a


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_the_gradient_is_the_same_on_any_number_of_ranks(tmp_path, mpi, ranks):
    done = run(tmp_path, mpi, ranks, PROGRAM, tmp_path, "run")
    assert done.returncode == 0 and f"done {ranks}" in done.stdout, done.stdout + done.stderr
    assert np.array_equal(gradient(tmp_path, ranks), expected())


@pytest.mark.parametrize("step", [36, 20, 3])
def test_a_rank_that_is_killed_is_resumed_to_the_same_gradient(tmp_path, step):
    died = run(tmp_path, "mpich", 2, PROGRAM, tmp_path, "die", step)
    assert died.returncode != 0
    (tmp_path / "lib" / "libmpi.so.12").unlink(missing_ok=True)
    done = run(tmp_path, "mpich", 2, PROGRAM, tmp_path, "resume")
    assert done.returncode == 0 and "done 2" in done.stdout, done.stdout + done.stderr
    assert np.array_equal(gradient(tmp_path, 2), expected())
