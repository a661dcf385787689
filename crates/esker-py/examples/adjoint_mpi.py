"""Each rank has a part of the model; all make the same steps, and go on together after a kill.

    mpiexec -n 2 python adjoint_mpi.py
"""

import numpy as np
from mpi4py import MPI

import esker.adjoint as ea


class Ring:
    """Diffusion on a ring of ranks; each cell is moved towards its neighbours."""

    def __init__(self, comm, steps, cells=1000):
        self.comm, self.steps = comm, steps
        rank, size = comm.rank, comm.size
        x = (np.arange(cells) + rank * cells) / (cells * size)
        self.u, self.a = np.sin(2 * np.pi * x), np.zeros(cells)

    def state(self):
        return {"u": self.u}

    def adjoint(self):
        return {"a": self.a}

    def _laplace(self, u):
        left, right = (self.comm.rank - 1) % self.comm.size, (self.comm.rank + 1) % self.comm.size
        before = self.comm.sendrecv(u[-1], right, source=left)
        after = self.comm.sendrecv(u[0], left, source=right)
        padded = np.concatenate([[before], u, [after]])
        return padded[:-2] - 2 * u + padded[2:]

    def forward(self, n0, n1):
        for _ in range(n0, n1):
            self.u += 0.1 * self._laplace(self.u) - 0.01 * self.u**3
        if n1 == self.steps:
            self.a[:] = 2 * self.u

    def reverse(self, n1, n0):
        self.a += 0.1 * self._laplace(self.a) - 0.03 * self.u**2 * self.a


if __name__ == "__main__":
    comm = MPI.COMM_WORLD
    model = Ring(comm, 200)
    report = ea.run(model, 200, ea.Store(ram="40 kB", filters="shuffle zstd,1", comm=comm))
    norm = comm.allreduce(float(model.a @ model.a)) ** 0.5
    if comm.rank == 0:
        print(f"gradient {norm:.12e}, {report.forward} forward steps on {comm.size} ranks")
