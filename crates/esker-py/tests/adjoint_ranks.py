"""An adjoint run of several ranks, started by test_adjoint_mpi.py: ``python adjoint_ranks.py DIRECTORY HOW [...]``.

HOW is run, resume, die STEP (rank 1 is killed before it reverses STEP) or die-in CALL VICTIM MICROSECONDS (so long after that
rank's CALL-th step, forward or back, wherever it is then)."""

import os
import signal
import sys

import numpy as np
from mpi4py import MPI

import esker.adjoint as ea

CELLS, STEPS = 240, 37


class Ring:
    """Diffusion with a source on a ring that is shared by the ranks."""

    def __init__(self, comm, dies_at=None, dies_in=None):
        self.comm, self.dies_at, self.dies_in, self.calls = comm, dies_at, dies_in, 0
        part = slice(CELLS * comm.rank // comm.size, CELLS * (comm.rank + 1) // comm.size)
        self.u = np.sin(np.arange(CELLS) / 11)[part].copy()
        self.a = np.zeros_like(self.u)

    def state(self):
        return {"u": self.u}

    def adjoint(self):
        return {"a": self.a}

    def laplace(self, u):
        left, right = (self.comm.rank - 1) % self.comm.size, (self.comm.rank + 1) % self.comm.size
        before = self.comm.sendrecv(u[-1], right, source=left)
        after = self.comm.sendrecv(u[0], left, source=right)
        padded = np.concatenate([[before], u, [after]])
        return padded[:-2] - 2 * u + padded[2:]

    def step(self):
        self.calls += 1
        if self.dies_in and self.dies_in[:2] == [self.calls, self.comm.rank]:
            # A signal that nobody handles ends a process as SIGKILL does.
            signal.setitimer(signal.ITIMER_REAL, self.dies_in[2] * 1e-6)

    def forward(self, n0, n1):
        for _ in range(n0, n1):
            self.step()
            self.u += 0.1 * self.laplace(self.u) - 0.01 * self.u**3
        if n1 == STEPS:
            self.a[:] = 2 * self.u

    def reverse(self, n1, n0):
        self.step()
        if n0 == self.dies_at and self.comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        self.a += 0.1 * self.laplace(self.a) - 0.03 * self.u**2 * self.a


if __name__ == "__main__":
    comm, folder, how = MPI.COMM_WORLD, sys.argv[1], sys.argv[2]
    with open(f"{folder}/pid.{comm.rank}", "w") as file:
        file.write(str(os.getpid()))
    numbers = [int(word) for word in sys.argv[3:]]
    model = Ring(comm, numbers[0] if how == "die" else None, numbers if how == "die-in" else None)
    store = ea.Store(f"{folder}/run.chk", ram="3 kB", disk="20 kB", adjoint_every=4, comm=comm)
    report = ea.resume(f"{folder}/run.chk", model, store) if how == "resume" else ea.run(model, STEPS, store)
    assert report.peak[0] <= 3000
    np.save(f"{folder}/{comm.size}.{comm.rank}.npy", model.a)
    comm.barrier()
    if comm.rank == 0:
        print(f"done {comm.size}")
