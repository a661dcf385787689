"""Adjoint runs beside pyrevolve, checkpoint_schedules and raw files of h5py, in one process and one run: `./test adjoint-speed`.

    adjoint.py [--cells N] [--steps N] [--esker PROGRAM] [--dir DIR] [--only PART,…] [--json FILE]

Every line of the closing table is a figure with its target, and is measured here beside its peer; exit code 1 where one is missed. Figures
with a `*` are of clocks, and mean something only where nothing else runs: the table begins with the machine's load before and behind.

- plan: all actions of a schedule, ours and checkpoint_schedules 1.0.4's; Revolve of a million steps; mixed 10,000/100.
- wave: a wave on a square of N x N cells, in NumPy, with the memory of ten raw states: pyrevolve with ten checkpoints beside ours without
  filters, with lossless ones, with `sz`, and with `auto`; the time that was predicted.
- disk: the same with some states on disk, beside H-Revolve whose executor writes raw h5py files.
- store: raw states to memory beside memcpy, to disk beside pwrite; how much of that is hidden behind steps.
- bench: `esker bench adjoint-wave adjoint-ice`, where the program is given.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import checkpoint_schedules as theirs
import h5py
import numpy as np
import pyrevolve

import esker.adjoint as ea
from bench_actions import actions

ROWS = []


def judge(what, value, target, least=True, unit="", quiet=True):
    """A line of the closing table; `quiet`: it needs a machine on which nothing else runs."""
    value = float(value)
    good = value >= target if least else value <= target
    ROWS.append({"what": what, "value": value, "target": target, "at": "least" if least else "most", "good": good, "quiet": quiet})
    sign = ">=" if least else "<="
    print(f"    {what}: {value:.3g}{unit} ({sign} {target:g}){'' if good else '   MISSED'}", flush=True)


def planning():
    plans = [
        ("Revolve 1000/10", "Revolve(1000, 10)"),
        ("mixed 1000/10", "MixedCheckpointSchedule(1000, 10)"),
        ("H-Revolve 400/4/8", "HRevolve(400, 4, 8)"),
    ]
    for name, text in plans:
        # In turn, and the best of each: others may be at work. Theirs in a new process each, because it remembers what it has planned.
        best = {theirs: float("inf"), ea: float("inf")}
        for _ in range(3):
            code = f"import bench_actions as b, checkpoint_schedules as m; print(b.actions(lambda: m.{text})[0])"
            code = f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); {code}"
            done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
            best[theirs] = min(best[theirs], float(done.stdout))
            best[ea] = min(best[ea], *(actions(lambda: eval(f"ea.{text}"))[0] for _ in range(3)))
        print(f"  {name:20} {best[theirs]:9.4f} s theirs {best[ea]:9.6f} s ours")
        judge(f"planning {name}, times faster", best[theirs] / best[ea], 100, quiet=False)
    seconds, _ = actions(lambda: ea.Revolve(10**6, 10))
    print(f"  Revolve 1000000/10: {seconds:.2f} s with all actions in Python")
    # In a process of its own, whose memory is known.
    program = (
        "import resource, time, esker.adjoint as ea\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "before, begin = peak(), time.perf_counter()\n"
        "next(iter(ea.MixedCheckpointSchedule(10000, 100)))\n"
        "print(time.perf_counter() - begin, peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    seconds, mebibytes = map(float, done.stdout.split())
    judge("mixed 10,000/100, seconds", seconds, 5, least=False, quiet=False)
    judge("mixed 10,000/100, MiB", mebibytes, 100, least=False, quiet=False)


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


def with_pyrevolve(cells, steps, slots):
    model = Wave(cells, steps)
    begin = time.perf_counter()
    revolver = pyrevolve.Revolver(Checkpoint(model), Forward(model), Reverse(model), slots, steps)
    revolver.apply_forward()
    revolver.apply_reverse()
    return time.perf_counter() - begin, model


def wave(cells, steps):
    slots, rounds = 10, 2
    state = 2 * Wave(cells, steps).u.nbytes
    columns = [None, "shuffle zstd,1", "sz,rel=1e-4", "auto,rel=1e-4"]
    seconds = {name: [] for name in ["pyrevolve", *columns]}
    forward, error, reports = {}, {}, {}
    for _ in range(rounds):
        taken, model = with_pyrevolve(cells, steps, slots)
        seconds["pyrevolve"].append(taken)
        forward["pyrevolve"], error["pyrevolve"], expected = model.forward_steps, 0.0, model.a.copy()
        for filters in columns:
            model = Wave(cells, steps)
            begin = time.perf_counter()
            report = ea.run(model, steps, ea.Store(ram=slots * state, filters=filters))
            seconds[filters].append(time.perf_counter() - begin)
            assert report.peak[0] <= slots * state
            forward[filters], reports[filters] = model.forward_steps, report
            error[filters] = np.linalg.norm(model.a - expected) / np.linalg.norm(expected)
    best = {name: min(times) for name, times in seconds.items()}
    for name, taken in best.items():
        print(
            f"  {name or 'raw':16} {taken:8.2f} s ({best['pyrevolve'] / taken:5.2f} of pyrevolve's speed)"
            f" {forward[name] / steps:6.2f} n forward steps, gradient off by {error[name]:.1e}"
        )
    few = [name for name in columns if forward[name] <= 2.0 * steps]
    fast = min(few or columns, key=best.get)
    judge(f"wave, memory of ten states ({fast or 'raw'}), forward steps over n", forward[fast] / steps, 2.0, least=False, quiet=False)
    judge(f"wave, memory of ten states ({fast or 'raw'}), times faster than pyrevolve", best["pyrevolve"] / best[fast], 1.5)
    judge("wave, gradient's error at rel 1e-4", max(error["sz,rel=1e-4"], error["auto,rel=1e-4"]), 1e-3, least=False, quiet=False)
    predicted(cells, steps, slots, best[None], reports[None])


def predicted(cells, steps, slots, found, report):
    """What `forecast` says of the run without filters, by a few steps and copies of the same model."""
    model, few = Wave(cells, steps), 40
    begin = time.perf_counter()
    model.forward(0, few)
    step = (time.perf_counter() - begin) / few
    begin = time.perf_counter()
    for n in range(few):
        model.reverse(n + 1, n)
    reverse = (time.perf_counter() - begin) / few
    begin = time.perf_counter()
    for _ in range(few):
        model.u.copy(), model.before.copy()
    copy = (time.perf_counter() - begin) / few
    state = 2 * model.u.nbytes
    # A segment is a little longer than its arrays, so that one checkpoint fewer fits than there are raw states.
    told = ea.forecast(steps, state + 512, slots * state, step=step, reverse=reverse, decode=copy)
    seconds, forward = told["Budget"]
    print(f"  predicted {seconds:.2f} s and {forward} forward steps, found {found:.2f} s and {report.forward}")
    judge("predicted time over found", max(seconds / found, found / seconds), 1.2, least=False)


class OnH5py:
    """Carries out a schedule of checkpoint_schedules: memory is copies, disk is a raw file of h5py for each state."""

    def __init__(self, model, folder):
        self.model, self.folder, self.kept = model, folder, {}

    def name(self, n):
        return os.path.join(self.folder, f"{n}.h5")

    def keep(self, n, storage):
        if storage == theirs.StorageType.DISK:
            with h5py.File(self.name(n), "w") as file:
                for name, array in self.model.state().items():
                    file[name] = array
        else:
            self.kept[n] = {name: array.copy() for name, array in self.model.state().items()}

    def load(self, n, storage, gives_up):
        state = self.model.state()
        if storage == theirs.StorageType.DISK:
            with h5py.File(self.name(n), "r") as file:
                for name, array in state.items():
                    file[name].read_direct(array)
            if gives_up:
                os.remove(self.name(n))
        else:
            for name, array in state.items():
                array[:] = self.kept[n][name]
            if gives_up:
                del self.kept[n]

    def run(self, schedule):
        for action in schedule:
            kind = type(action).__name__
            if kind == "Forward":
                if action.write_ics:
                    self.keep(action.n0, action.storage)
                self.model.forward(action.n0, min(action.n1, self.model.steps))
            elif kind in ("Copy", "Move"):
                self.load(action.n, action.from_storage, kind == "Move")
            elif kind == "Reverse":
                for n in range(action.n1 - 1, action.n0 - 1, -1):
                    # The step was run: the field before it is in `before`.
                    u = self.model.u.copy()
                    self.model.u[:] = self.model.before
                    self.model.reverse(n + 1, n)
                    self.model.u[:] = u
            elif kind == "EndReverse":
                return


def disk(cells, steps, place):
    steps, memory, on_disk = min(steps, 400), 4, 8
    state = 2 * Wave(cells, steps).u.nbytes
    seconds = {"h5py": [], "ours": [], "sz": []}
    columns = {"ours": None, "sz": "sz,rel=1e-4"}
    for _ in range(2):
        model = Wave(cells, steps)
        with tempfile.TemporaryDirectory(dir=place) as folder:
            begin = time.perf_counter()
            OnH5py(model, folder).run(theirs.HRevolve(steps, memory, on_disk))
            seconds["h5py"].append(time.perf_counter() - begin)
        expected, theirs_forward = model.a.copy(), model.forward_steps
        for name, filters in columns.items():
            model = Wave(cells, steps)
            with tempfile.TemporaryDirectory(dir=place) as folder:
                store = ea.Store(
                    os.path.join(folder, "run.chk"), ram=memory * (state + 512), disk=on_disk * (state + 512), filters=filters
                )
                begin = time.perf_counter()
                ea.run(model, steps, store)
                seconds[name].append(time.perf_counter() - begin)
            error = np.linalg.norm(model.a - expected) / np.linalg.norm(expected)
            assert error == 0 if filters is None else error < 1e-3, error
            print(f"  {name}: {model.forward_steps} forward steps, H-Revolve {theirs_forward}")
    best = {name: min(times) for name, times in seconds.items()}
    print("  " + ", ".join(f"{name} {taken:.2f} s" for name, taken in best.items()))
    judge("wave with disk, times faster than H-Revolve with h5py", best["h5py"] / min(best["ours"], best["sz"]), 1.3)


class Still:
    """A large state that never changes; a step takes so long."""

    def __init__(self, megabytes, seconds=0.0):
        self.x, self.a = np.random.default_rng(1).random(megabytes * 125_000), np.zeros(1)
        self.seconds = seconds

    def state(self):
        return {"x": self.x}

    def adjoint(self):
        return {"a": self.a}

    def forward(self, n0, n1):
        if self.seconds:
            time.sleep(self.seconds * (n1 - n0))

    def reverse(self, n1, n0):
        pass


def stores(place):
    """Raw states, seen by the model: how long it waits for each."""
    megabytes, steps, slots = 16, 40, 8
    state = megabytes * 10**6
    memory, disks, copies, writes, hidden = [], [], [], [], []
    source, target = np.random.default_rng(1).random(megabytes * 125_000), np.empty(megabytes * 125_000)
    for _ in range(5):
        # Steps in which checksums are computed beside the model: what it waits for is the copy.
        report = ea.run(Still(megabytes, 0.02), steps, ea.Store(ram=slots * (state + 512), check_finite=False))
        memory.append(report.bytes[0] / report.storing_seconds)
        begin = time.perf_counter()
        for _ in range(5):
            np.copyto(target, source)
        copies.append(5 * state / (time.perf_counter() - begin))
        taken = {}
        for beside, step in ((True, 0.0), (False, 0.0), (True, 0.1)):
            with tempfile.TemporaryDirectory(dir=place) as folder:
                store = ea.Store(
                    os.path.join(folder, "run.chk"),
                    ram=0,
                    disk=12 * (state + 512),
                    check_finite=False,
                    measure=False,
                    beside=beside,
                    adjoint_every=10**6,
                )
                report = ea.run(Still(megabytes, step), 12, store)
                taken[beside, step] = report.storing_seconds / sum(report.stored)
        disks.append(state / taken[True, 0.0])
        hidden.append(1 - taken[True, 0.1] / taken[False, 0.0])
        with tempfile.TemporaryDirectory(dir=place) as folder:
            begin = time.perf_counter()
            for i in range(11):
                file = os.open(os.path.join(folder, str(i)), os.O_CREAT | os.O_WRONLY)
                os.pwrite(file, memoryview(source).cast("B"), 0)
                os.close(file)
            writes.append(11 * state / (time.perf_counter() - begin))
    middle = statistics.median
    rates = [middle(rate) / 1e9 for rate in (memory, copies, disks, writes)]
    print("  GB/s: raw to memory {:.2f}, memcpy {:.2f}, raw to disk {:.2f}, pwrite {:.2f}".format(*rates))
    judge("raw stores to memory over memcpy", rates[0] / rates[1], 0.8)
    judge("raw stores to disk over pwrite", rates[2] / rates[3], 0.8)
    judge("write time hidden where steps are longer", middle(hidden), 0.8)


def bench(program, place):
    def run(*arguments):
        command = [program, "bench", *arguments, "--dir", place, "--json"]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)

    found = run("adjoint-wave", "adjoint-ice", "--repeat", "3")
    rows = found["rows"]

    def of(**wanted):
        return [row for row in rows if all(row[key] == value for key, value in wanted.items())]

    def storing(column):
        return sum(row["checkpoint_seconds"] for row in of(case="adjoint-wave", disk="slowed", plan="slots", column=column))

    print(f"    zlib over raw: {storing('zlib') / storing('raw'):.3g} (the paper's column; `lossless` is what is offered)")
    for column, target in (("zfp", 0.25), ("lossless", 0.6), ("f32", 0.6)):
        judge(f"bench, slowed wave, checkpoint time of {column} over raw", storing(column) / storing("raw"), target, least=False)
    for key, how in (("seconds", "total"), ("quiet_seconds", "processor's and disk's time")):
        worst = (0.0, None)
        for row in of(plan="bytes", column="auto"):
            alike = of(plan="bytes", case=row["case"], disk=row["disk"], budget=row["budget"])
            others = [other[key] for other in alike if other["column"] != "auto"]
            worst = max(worst, (row[key] / min(others), f"{row['case']}, {row['disk']}, {row['budget']} states"))
        judge(f"bench, auto's {how} over the best column's ({worst[1]})", worst[0], 1.03, least=False)
    judge("bench, gradient's error at 1e-4", max(row["error"] for row in rows), 1e-3, least=False, quiet=False)
    rough = run("adjoint-wave", "adjoint-ice", "--repeat", "1", "--bound", "1e-3", "--states", "1,8")
    judge("bench, gradient's error at 1e-3", max(row["error"] for row in rough["rows"]), 1e-2, least=False, quiet=False)
    return found


PARTS = ("plan", "wave", "disk", "store", "bench")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=300)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--esker", help="the program whose bench is run")
    parser.add_argument("--dir", default=".", help="where files are written")
    parser.add_argument("--only", default=",".join(PARTS), help="some of " + ", ".join(PARTS))
    parser.add_argument("--json")
    arguments = parser.parse_args()
    only = arguments.only.split(",")
    unknown = set(only) - set(PARTS)
    if unknown:
        parser.error(f"the parts are {', '.join(PARTS)}")
    program, found, before = arguments.esker or shutil.which("esker"), None, os.getloadavg()[0]
    for part in only:
        print(f"{part}:", flush=True)
        if part == "plan":
            planning()
        elif part == "wave":
            wave(arguments.cells, arguments.steps)
        elif part == "disk":
            disk(arguments.cells, arguments.steps, arguments.dir)
        elif part == "store":
            stores(arguments.dir)
        elif program:
            found = bench(program, arguments.dir)
        else:
            print("    no program `esker`: --esker names it")
    load = f"load {before:.1f} before and {os.getloadavg()[0]:.1f} behind, on {os.cpu_count()} processors"
    print(f"\n{load}; * needs a machine on which nothing else runs\n{'figure':78} {'value':>9}  target")
    for row in ROWS:
        sign = ">=" if row["at"] == "least" else "<="
        name = row["what"] + (" *" if row["quiet"] else "")
        print(f"{name:78} {row['value']:9.3g}  {sign} {row['target']:g}{'' if row['good'] else '   MISSED'}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"figures": ROWS, "bench": found}, file, indent=2)
    sys.exit(0 if all(row["good"] for row in ROWS) else 1)


if __name__ == "__main__":
    main()
