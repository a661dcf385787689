"""A pyadjoint tape over a NumPy wave equation, with its checkpoints in a store."""

import numpy as np
import pytest

pyadjoint = pytest.importorskip("pyadjoint")
numpy_adjoint = pytest.importorskip("numpy_adjoint")

import esker.adjoint as ea  # noqa: E402
import esker.adjoint.pyadjoint as on_tape  # noqa: E402

CELLS, STEPS = 300, 31


def laplace(u):
    return np.roll(u, 1) - 2 * u + np.roll(u, -1)


class Step(pyadjoint.Block):
    """now, before -> next"""

    def __init__(self, now, before):
        super().__init__()
        self.add_dependency(now)
        self.add_dependency(before)

    def recompute_component(self, inputs, block_variable, idx, prepared):
        now, before = (np.asarray(x) for x in inputs)
        new = 2 * now - before + 0.2 * laplace(now) - 0.01 * now**3
        return pyadjoint.create_overloaded_object(new)

    def evaluate_adj_component(self, inputs, adj_inputs, block_variable, idx, prepared=None):
        a, now = np.asarray(adj_inputs[0]), np.asarray(inputs[0])
        return -a if idx == 1 else (2 - 0.03 * now**2) * a + 0.2 * laplace(a)


class Square(pyadjoint.Block):
    """u -> sum of squares"""

    def __init__(self, u):
        super().__init__()
        self.add_dependency(u)

    def recompute_component(self, inputs, block_variable, idx, prepared):
        return pyadjoint.create_overloaded_object(float(np.sum(np.asarray(inputs[0]) ** 2)))

    def evaluate_adj_component(self, inputs, adj_inputs, block_variable, idx, prepared=None):
        return 2 * np.asarray(inputs[0]) * float(adj_inputs[0])


def annotated(block, value):
    out = pyadjoint.create_overloaded_object(value)
    pyadjoint.get_working_tape().add_block(block)
    block.add_output(out.create_block_variable())
    return out


def record(enable):
    """The functional and its control on a new tape."""
    tape = pyadjoint.Tape()
    pyadjoint.set_working_tape(tape)
    pyadjoint.continue_annotation()
    control = pyadjoint.create_overloaded_object(np.sin(np.arange(CELLS) / 15))
    vault = enable(tape)
    now, before = control, control
    steps = tape.timestepper(iter(range(STEPS))) if vault is not None else range(STEPS)
    for _ in steps:
        u, old = np.asarray(now), np.asarray(before)
        new = 2 * u - old + 0.2 * laplace(u) - 0.01 * u**3
        now, before = annotated(Step(now, before), new), now
    value = annotated(Square(now), float(np.sum(np.asarray(now) ** 2)))
    functional = pyadjoint.ReducedFunctional(value, pyadjoint.Control(control))
    pyadjoint.pause_annotation()
    return functional, control, vault


@pytest.mark.parametrize("filters", [None, "shuffle zstd,1"])
@pytest.mark.parametrize("ram", ["1 MB", "12 kB"])
def test_a_tape_gives_the_unscheduled_gradient_bit_by_bit(tmp_path, filters, ram):
    expected = np.asarray(record(lambda tape: None)[0].derivative()).copy()

    def enable(tape):
        store = ea.Store(tmp_path / "tape.chk", ram=ram, disk="1 MB", filters=filters)
        return on_tape.enable(tape, store, ea.MultistageCheckpointSchedule(STEPS, 3, 3))

    functional, control, vault = record(enable)
    assert sum(vault.used) > 0
    assert np.array_equal(np.asarray(functional.derivative()), expected)
    assert sum(vault.used) == 0
    # Again, with another control: the recorded actions are replayed.
    direction, start = np.cos(np.arange(CELLS) / 7), np.asarray(control).copy()
    value = float(functional(pyadjoint.create_overloaded_object(start)))
    slope = float(np.asarray(functional.derivative()) @ direction)
    residuals = []
    for h in (1e-2, 5e-3, 2.5e-3):
        moved = float(functional(pyadjoint.create_overloaded_object(start + h * direction)))
        residuals.append(abs(moved - value - h * slope))
    rates = np.log2(np.array(residuals[:-1]) / np.array(residuals[1:]))
    assert min(rates) > 1.9, rates
    assert vault.used[0] <= 1_000_000 and (ram == "1 MB" or vault.used[0] <= 12_000)


def test_a_store_that_is_too_small_is_an_error_with_the_numbers():
    def enable(tape):
        return on_tape.enable(tape, ea.Store(ram="3 kB"), ea.Revolve(STEPS, 6))

    with pytest.raises(ValueError, match="bytes"):
        record(enable)
    pyadjoint.pause_annotation()
