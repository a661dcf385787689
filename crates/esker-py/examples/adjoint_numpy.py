"""The gradient of a wave's energy by its initial state: 1,000 steps, with the memory of ten states.

    python adjoint_numpy.py
"""

import numpy as np

import esker.adjoint as ea


class Wave:
    def __init__(self, steps, cells=20_000):
        self.steps, x = steps, np.linspace(0, 1, cells, endpoint=False)
        self.u = np.exp(-(((x - 0.5) / 0.05) ** 2))
        self.before = self.u.copy()
        self.a, self.a_before = np.zeros(cells), np.zeros(cells)

    def state(self):
        return {"u": self.u, "before": self.before}

    def adjoint(self):
        return {"a": self.a, "a_before": self.a_before}

    def forward(self, n0, n1):
        for _ in range(n0, n1):
            u = self.u
            new = 2 * u - self.before + 0.2 * (np.roll(u, 1) - 2 * u + np.roll(u, -1)) - 1e-3 * u**3
            self.before[:], self.u[:] = u, new
        if n1 == self.steps:
            self.a[:], self.a_before[:] = 2 * self.u, 0

    def reverse(self, n1, n0):
        a = self.a.copy()
        laplace = np.roll(a, 1) - 2 * a + np.roll(a, -1)
        self.a[:] = self.a_before + (2 - 3e-3 * self.u**2) * a + 0.2 * laplace
        self.a_before[:] = -a


if __name__ == "__main__":
    state = 2 * 20_000 * 8
    for filters in (None, "shuffle zstd,1", "sz,rel=1e-4"):
        model = Wave(1000)
        report = ea.run(model, 1000, ea.Store(ram=10 * state, filters=filters))
        print(f"{filters or 'raw':16} {report.forward:6} forward steps, {report.peak[0]:9,} bytes at most")
