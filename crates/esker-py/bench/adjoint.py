"""Adjoint runs beside pyrevolve and checkpoint_schedules, in one process and one run: `./test adjoint-speed`.

    adjoint.py [--cells N] [--steps N] [--json FILE]

Planning: all actions of a schedule, ours and checkpoint_schedules 1.0.4. A wave on a square of N x N cells, in NumPy, with the memory of
ten raw states: pyrevolve with ten checkpoints beside `Budget` without filters, with lossless ones, with `sz`, and with `auto`.
"""

import argparse
import json
import time

import checkpoint_schedules as theirs
import numpy as np
import pyrevolve

import esker.adjoint as ea


def planning():
    plans = [
        ("Revolve 1000/10", lambda m: m.Revolve(1000, 10)),
        ("mixed 1000/10", lambda m: m.MixedCheckpointSchedule(1000, 10)),
        ("H-Revolve 400/4/8", lambda m: m.HRevolve(400, 4, 8)),
    ]
    rows = []
    for name, make in plans:
        times, counts = [], []
        for module in (theirs, ea):
            begin, forward = time.perf_counter(), 0
            for action in make(module):
                if type(action).__name__ == "Forward":
                    forward += action.n1 - action.n0
                if type(action).__name__ == "EndReverse":
                    break
            times.append(time.perf_counter() - begin)
            counts.append(forward)
        ratio = times[0] / times[1]
        rows.append({"plan": name, "theirs": times[0], "ours": times[1], "ratio": ratio, "forward": counts})
        print(f"{name:20} {times[0]:9.4f} s theirs {times[1]:9.6f} s ours {ratio:8.0f} times faster")
    return rows


class Wave:
    """u'' = c^2 laplace(u) - k u^3; the sum of squares at the end. Counts its forward steps."""

    def __init__(self, cells, steps):
        self.steps, x = steps, np.linspace(-1, 1, cells)
        self.u = np.exp(-(x[:, None] ** 2 + x[None, :] ** 2) / 0.02)
        self.before = self.u.copy()
        self.a, self.a_before = np.zeros_like(self.u), np.zeros_like(self.u)
        self.forward_steps = 0

    @staticmethod
    def laplace(u):
        out = -4 * u
        out[1:] += u[:-1]
        out[:-1] += u[1:]
        out[:, 1:] += u[:, :-1]
        out[:, :-1] += u[:, 1:]
        return out

    def state(self):
        return {"u": self.u, "before": self.before}

    def adjoint(self):
        return {"a": self.a, "a_before": self.a_before}

    def forward(self, n0, n1):
        for _ in range(n0, n1):
            new = 2 * self.u - self.before + 0.2 * self.laplace(self.u) - 1e-3 * self.u**3
            self.before[:], self.u[:] = self.u, new
            self.forward_steps += 1
        if n1 == self.steps:
            self.a[:], self.a_before[:] = 2 * self.u, 0

    def reverse(self, n1, n0):
        a = self.a.copy()
        self.a[:] = self.a_before + (2 - 3e-3 * self.u**2) * a + 0.2 * self.laplace(a)
        self.a_before[:] = -a


class Checkpoint(pyrevolve.Checkpoint):
    def __init__(self, model):
        self.model = model

    dtype = np.float64

    @property
    def size(self):
        return 2 * self.model.u.size

    def get_data(self, timestep):
        return [self.model.u, self.model.before]

    get_data_location = get_data


class Forward(pyrevolve.Operator):
    def __init__(self, model):
        self.model = model

    def apply(self, t_start, t_end):
        self.model.forward(t_start, t_end)


class Reverse(pyrevolve.Operator):
    def __init__(self, model):
        self.model = model

    def apply(self, t_start, t_end):
        # pyrevolve has run the step: the field before it is in `before`.
        u, before = self.model.u.copy(), self.model.before.copy()
        self.model.u[:] = before
        self.model.reverse(t_end, t_start)
        self.model.u[:] = u


def wave(cells, steps):
    slots = 10
    rows = []
    model = Wave(cells, steps)
    begin = time.perf_counter()
    revolver = pyrevolve.Revolver(Checkpoint(model), Forward(model), Reverse(model), slots, steps)
    revolver.apply_forward()
    revolver.apply_reverse()
    seconds = time.perf_counter() - begin
    expected = model.a.copy()
    rows.append({"how": "pyrevolve", "seconds": seconds, "forward": model.forward_steps, "error": 0.0})
    state = 2 * model.u.nbytes
    for filters in (None, "shuffle zstd,1", "sz,rel=1e-4", "auto", "auto,rel=1e-4"):
        model = Wave(cells, steps)
        begin = time.perf_counter()
        report = ea.run(model, steps, ea.Store(ram=slots * state, filters=filters))
        seconds = time.perf_counter() - begin
        assert report.peak[0] <= slots * state
        error = np.linalg.norm(model.a - expected) / np.linalg.norm(expected)
        rows.append({"how": filters or "raw", "seconds": seconds, "forward": model.forward_steps, "error": error})
    first = rows[0]["seconds"]
    for row in rows:
        print(
            f"{row['how']:16} {row['seconds']:8.2f} s ({first / row['seconds']:5.2f} of pyrevolve's speed)"
            f" {row['forward'] / steps:6.2f} n forward steps, gradient off by {row['error']:.1e}"
        )
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=300)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    found = {"planning": planning(), "wave": wave(arguments.cells, arguments.steps)}
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(found, file, indent=2)
