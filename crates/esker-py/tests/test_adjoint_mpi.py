"""Adjoint runs over MPI: the same gradient on any number of ranks, and after a rank was killed."""

import os
import random
import time
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


def await_ranks(folder):
    """A launcher may end before the ranks that it ends, which keep their locks until then."""
    for path in folder.glob("pid.*"):
        for _ in range(6000):
            try:
                state = Path(f"/proc/{path.read_text()}/stat").read_text().rsplit(") ", 1)[1][0]
            except FileNotFoundError:
                break
            if state in "ZX":
                break
            time.sleep(0.01)
        path.unlink()


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_ranks_that_are_killed_anywhere_are_resumed_to_the_same_gradient(tmp_path, mpi):
    """ESKER_KILLS=100 kills so many on each MPI (a quarter of an hour); forward and back, any rank, in the middle of anything."""
    kills, seed = int(os.environ.get("ESKER_KILLS", 3)), int(os.environ.get("ESKER_SEED", time.time()))
    generator, hit = random.Random(seed), 0
    for kill in range(kills):
        folder, ranks = tmp_path / str(kill), generator.choice([2, 3])
        folder.mkdir()
        # 37 steps forward, some of them again, and 37 back: the run has more than 80 calls.
        how = [generator.randint(1, 80), generator.randrange(ranks), generator.choice([1, 200, 2000])]
        what = f"ESKER_SEED={seed}, kill {kill} on {ranks} ranks: {how}"
        died = run(folder, mpi, ranks, PROGRAM, folder, "die-in", *how)
        await_ranks(folder)
        hit += died.returncode != 0
        (folder / "lib" / "libmpi.so.12").unlink(missing_ok=True)
        done = run(folder, mpi, ranks, PROGRAM, folder, "resume")
        assert done.returncode == 0 and f"done {ranks}" in done.stdout, what + done.stdout + done.stderr
        assert np.array_equal(gradient(folder, ranks), expected()), what
    assert hit * 2 > kills, f"only {hit} of {kills} were hit"
