"""Adjoint runs of NumPy models: gradients are those of a run that keeps everything."""

import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import esker.adjoint as ea


class Wave:
    """A nonlinear wave on a ring; J is the sum of squares at the end."""

    def __init__(self, steps, cells=200):
        x = np.linspace(0, 1, cells, endpoint=False)
        self.steps, self.ran = steps, 0
        self.u = np.sin(12 * x)
        self.before = self.u.copy()
        self.a, self.a_before = np.zeros(cells), np.zeros(cells)

    def state(self):
        return {"u": self.u, "before": self.before}

    def adjoint(self):
        return {"a": self.a, "a_before": self.a_before}

    def _step(self):
        u = self.u
        new = 2 * u - self.before + 0.2 * (np.roll(u, 1) - 2 * u + np.roll(u, -1)) - 0.01 * u**3
        self.before[:], self.u[:] = u, new

    def forward(self, n0, n1):
        for _ in range(n0, n1):
            self._step()
            self.ran += 1
        if n1 == self.steps:
            self.a[:], self.a_before[:] = 2 * self.u, 0

    def reverse(self, n1, n0):
        assert n1 == n0 + 1
        a = self.a.copy()
        new = self.a_before + (2 - 0.4 - 0.03 * self.u**2) * a + 0.2 * (np.roll(a, 1) + np.roll(a, -1))
        self.a[:], self.a_before[:] = new, -a

    def plain(self):
        """The gradient by keeping everything."""
        states = []
        for n in range(self.steps):
            states.append((self.u.copy(), self.before.copy()))
            self.forward(n, n + 1)
        for n in reversed(range(self.steps)):
            self.u[:], self.before[:] = states[n]
            self.reverse(n + 1, n)
        return self.a.copy()


@pytest.mark.parametrize("filters", [None, "shuffle zstd,1"])
@pytest.mark.parametrize(
    "schedule",
    [
        lambda n, store: ea.Budget(n, store),
        lambda n, store: ea.Revolve(n, 4),
        lambda n, store: ea.MultistageCheckpointSchedule(n, 2, 2),
        lambda n, store: ea.MixedCheckpointSchedule(n, 5),
        lambda n, store: ea.HRevolve(n, 2, 3),
        lambda n, store: ea.DiskRevolve(n, 2),
        lambda n, store: ea.PeriodicDiskRevolve(n, 2),
        lambda n, store: n,
    ],
)
def test_gradients_are_those_of_a_run_that_keeps_everything(tmp_path, schedule, filters):
    expected = Wave(41).plain()
    store = ea.Store(tmp_path / "run.chk", ram="16 kB", disk="60 kB", filters=filters)
    model = Wave(41)
    report = ea.run(model, schedule(41, store), store)
    assert np.array_equal(model.a, expected)
    assert report.forward == model.ran and report.steps == 41
    assert report.peak[0] <= 16_000


def test_a_killed_process_is_resumed_to_the_same_gradient(tmp_path):
    program = textwrap.dedent(
        """
        import os, signal, sys
        sys.path.insert(0, os.path.dirname(sys.argv[1]))
        import esker.adjoint as ea
        from test_adjoint import Wave
        class Dies(Wave):
            def reverse(self, n1, n0):
                if n0 == int(sys.argv[3]):
                    os.kill(os.getpid(), signal.SIGKILL)
                super().reverse(n1, n0)
        store = ea.Store(sys.argv[2], ram="10 kB", disk="60 kB", adjoint_every=5)
        ea.run(Dies(41), 41, store)
        """
    )
    for step in (40, 33, 17, 2):
        folder = tmp_path / f"{step}.chk"
        command = [sys.executable, "-c", program, __file__, str(folder), str(step)]
        died = subprocess.run(command, capture_output=True, text=True)
        assert died.returncode == -9, died.stderr
        model = Wave(41)
        ea.resume(folder, model)
        assert np.array_equal(model.a, Wave(41).plain()), step


def test_lossy_checkpoints_save_steps_and_keep_the_gradient():
    raw, lossy = Wave(200, 2000), Wave(200, 2000)
    expected = Wave(200, 2000).plain()
    exact = ea.run(raw, 200, ea.Store(ram="200 kB"))
    fewer = ea.run(lossy, 200, ea.Store(ram="200 kB", filters="sz,rel=1e-4"))
    assert np.array_equal(raw.a, expected)
    assert fewer.forward < 0.75 * exact.forward
    assert np.linalg.norm(lossy.a - expected) < 1e-3 * np.linalg.norm(expected)


def test_complex_arrays_and_an_end_that_only_the_model_knows():
    class Spin:
        def __init__(self):
            self.z, self.a = np.exp(1j * np.arange(300)), np.zeros(300, complex)

        def state(self):
            return {"z": self.z}

        def adjoint(self):
            return {"a": self.a}

        def finished(self, n):
            return n == 23

        def forward(self, n0, n1):
            for _ in range(n0, n1):
                self.z *= np.exp(0.1j) * (1 - 0.01 * abs(self.z) ** 2)

        def reverse(self, n1, n0):
            self.a = self.a * 0.9 + self.z

    model = Spin()
    report = ea.run(model, ea.Online(4))
    states = [Spin()]
    expected = np.zeros(300, complex)
    history = []
    for _ in range(23):
        history.append(states[0].z.copy())
        states[0].forward(0, 1)
    for z in reversed(history):
        expected = expected * 0.9 + z
    assert report.steps == 23 and np.array_equal(model.a, expected)


def test_exceptions_of_a_model_come_through():
    class Fails(Wave):
        def forward(self, n0, n1):
            if n0 <= 7 < n1:
                raise ArithmeticError("the solver diverged")
            super().forward(n0, n1)

    with pytest.raises(ArithmeticError, match="diverged"):
        ea.run(Fails(20), 20)

    class Wrong(Wave):
        def state(self):
            return {"u": [1, 2, 3]}

    with pytest.raises(ValueError, match=r"state\(\)\['u'\]|state\(\)\[\"u\"\]"):
        ea.run(Wrong(20), 20)
    with pytest.raises(TypeError, match="reverse"):
        ea.run(object(), 20)
    with pytest.raises(ValueError, match="step 0 needs"):
        ea.run(Wave(20), 20, ea.Store(ram=100))
    with pytest.raises(ValueError, match="no number of bytes"):
        ea.Store(ram="much")
    with pytest.raises(ValueError, match="0 checkpoints"):
        ea.Revolve(5, 0)


def test_revolver_takes_what_pyrevolve_takes():
    class Checkpoint:
        """Two time levels in a buffer of three, as Devito has them."""

        dtype = np.float64

        def __init__(self, buffer):
            self.buffer = buffer
            self.size = 2 * buffer[0].size

        def get_data(self, timestep):
            return [self.buffer[timestep % 3], self.buffer[(timestep + 1) % 3]]

    cells, steps = 300, 47
    buffer, seen, ran = np.zeros((3, cells)), {}, []
    buffer[0] = buffer[1] = np.sin(np.arange(cells) / 9)

    class Forward:
        def apply(self, t_start, t_end):
            ran.append(t_end - t_start)
            for t in range(t_start, t_end):
                old, now = buffer[t % 3], buffer[(t + 1) % 3]
                buffer[(t + 2) % 3] = 1.9 * now - old + 0.05 * np.roll(now, 1) + 0.05 * np.roll(now, -1)

    class Reverse:
        def apply(self, t_start, t_end):
            assert t_end == t_start + 1
            seen[t_start] = buffer[(t_start + 1) % 3].copy()

    levels = [buffer[0].copy(), buffer[1].copy()]
    for _ in range(steps):
        old, now = levels[-2:]
        levels.append(1.9 * now - old + 0.05 * np.roll(now, 1) + 0.05 * np.roll(now, -1))
    revolver = ea.Revolver(Checkpoint(buffer), Forward(), Reverse(), 5, steps, store=ea.Store(filters="shuffle zstd,1"))
    revolver.apply_forward()
    assert not seen
    revolver.apply_reverse()
    assert sorted(seen) == list(range(steps))
    assert all(np.array_equal(seen[t], levels[t + 1]) for t in seen)
    # Griewank and Walther: r n - β(s + 1, r - 1) + n with r = 3, β(6, 2) = 28.
    assert sum(ran) == 3 * steps - 28 + steps


def test_a_revolver_fills_what_a_checkpoint_says_is_to_be_filled():
    """pyrevolve's checkpoints say apart what is stored, which may be a copy, and what is filled."""
    field, seen = np.zeros(30), {}

    class Checkpoint:
        dtype, size = field.dtype, field.size

        def get_data(self, timestep):
            return [field.copy()]

        def get_data_location(self, timestep):
            return [field]

    class Forward:
        def apply(self, t_start, t_end):
            field[:] += t_end - t_start

    class Reverse:
        def apply(self, t_start, t_end):
            seen[t_start] = field.copy()

    revolver = ea.Revolver(Checkpoint(), Forward(), Reverse(), 3, 20)
    revolver.apply_forward()
    revolver.apply_reverse()
    # pyrevolve has run a step before it is reversed.
    assert sorted(seen) == list(range(20))
    assert all(np.array_equal(seen[t], np.full(30, t + 1.0)) for t in seen)


def test_schedules_derive_from_checkpoint_schedules_and_yield_its_actions():
    peer = pytest.importorskip("checkpoint_schedules")
    plan = ea.MixedCheckpointSchedule(10, 3)
    assert isinstance(plan, peer.CheckpointSchedule)
    actions = list(plan)
    assert all(isinstance(action, peer.CheckpointAction) for action in actions)
    assert sum(a.n1 - a.n0 for a in actions if isinstance(a, peer.Forward)) == 19
    assert isinstance(ea.SingleMemoryStorageSchedule(), peer.SingleMemoryStorageSchedule)


def test_the_tests_of_checkpoint_schedules_pass_on_our_classes(tmp_path):
    """Its tests are in its source archive: ESKER_CHECKPOINT_SCHEDULES_TESTS names the folder."""
    pytest.importorskip("checkpoint_schedules")
    folder = os.environ.get("ESKER_CHECKPOINT_SCHEDULES_TESTS")
    if not folder:
        pytest.skip("ESKER_CHECKPOINT_SCHEDULES_TESTS is not set")
    (tmp_path / "conftest.py").write_text(
        textwrap.dedent(
            """
            import checkpoint_schedules, esker.adjoint
            for name in esker.adjoint.__all__:
                if hasattr(checkpoint_schedules, name):
                    setattr(checkpoint_schedules, name, getattr(esker.adjoint, name))
            """
        )
    )
    for name in os.listdir(folder):
        if name.startswith("test_") and name.endswith(".py"):
            shutil.copy(os.path.join(folder, name), tmp_path)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert " passed" in ran.stdout and "failed" not in ran.stdout


def test_a_model_that_waits_has_the_same_gradient_and_auto_tells_what_it_chose(tmp_path):
    expected = Wave(60, 3000).plain()
    for beside in (True, False):
        model = Wave(60, 3000)
        store = ea.Store(
            tmp_path / f"{beside}.chk", ram="100 kB", disk="400 kB", filters="auto", beside=beside
        )
        report = ea.run(model, 60, store)
        assert np.array_equal(model.a, expected)
        assert report.chosen and report.chosen[0][0] == 0
        assert 0 <= report.storing_seconds <= report.waited_seconds


def test_a_forecast_counts_the_steps_that_a_run_has():
    told = ea.forecast(41, "1 kB", "5 kB", step=0.5, reverse=1.0)
    seconds, forward = told["Budget"]
    # Without transfers all time is that of steps.
    assert seconds == pytest.approx(0.5 * forward + 41)
    state = 2 * 100 * 8
    model = Wave(41, 100)
    report = ea.run(model, 41, ea.Store(ram=5 * (state + 200)))
    again, _ = ea.forecast(41, state + 200, 5 * (state + 200))["Budget"]
    assert ea.forecast(41, state + 200, 5 * (state + 200))["Budget"][1] == report.forward and again > 0
    assert "all on disk" not in told
    with pytest.raises(ValueError, match="forward step"):
        ea.forecast(41, 1000, 5000, step=float("nan"))
