"""What pyrevolve's tests import from a file that its archive lacks, by what they do with it: operators that count or add, and
checkpoints of one array or of nothing."""

import numpy as np


class SimpleOperator:
    """Counts steps."""

    counter = 0

    def apply(self, t_start, t_end):
        assert t_end >= t_start
        self.counter += t_end - t_start


class SimpleCheckpoint:
    """Has no data, and counts how often somebody asks for them: to save, and to load."""

    dtype, size, nbytes = np.float32, 1, 4
    save_counter = load_counter = 0

    def get_data(self, timestep):
        self.save_counter += 1
        return []

    def get_data_location(self, timestep):
        self.load_counter += 1
        return []


class IncrementOperator:
    """Adds 1 to a field for each step, or takes it away."""

    def __init__(self, direction, field):
        self.direction, self.field = direction, field

    def apply(self, t_start, t_end):
        self.field += self.direction * (t_end - t_start)


class YoCheckpoint:
    """One field."""

    def __init__(self, field):
        self.field, self.dtype, self.size, self.nbytes = field, field.dtype, field.size, field.nbytes

    def get_data(self, timestep):
        return [self.field]

    get_data_location = get_data
