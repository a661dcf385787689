"""Adjoint runs: schedules, compressed checkpoints in memory and on disk, restart.

A gradient over n time steps runs backwards and needs the states of the forward run, last first. What is not
kept is computed again::

    import esker.adjoint as ea
    store = ea.Store("run.chk", ram="2 GiB", disk="50 GiB", filters={"u": "sz,rel=1e-4"})
    ea.run(model, ea.Budget(1000, store), store)
    ea.resume("run.chk", model)                      # after the job was killed

``model`` has ``state()`` and ``adjoint()``, dicts of arrays that are filled in place, ``forward(n0, n1)`` and
``reverse(n + 1, n)``, which finds the state of step n in place. The guide is docs/adjoint.md.
"""

from ._revolver import Revolver
from ._run import Report, Store, forecast, resume, run
from ._schedules import (
    Budget,
    DiskRevolve,
    HRevolve,
    MixedCheckpointSchedule,
    MultistageCheckpointSchedule,
    NoneCheckpointSchedule,
    Online,
    PeriodicDiskRevolve,
    Revolve,
    SingleDiskStorageSchedule,
    SingleMemoryStorageSchedule,
    TwoLevelCheckpointSchedule,
)

__all__ = [
    "Budget",
    "DiskRevolve",
    "HRevolve",
    "MixedCheckpointSchedule",
    "MultistageCheckpointSchedule",
    "NoneCheckpointSchedule",
    "Online",
    "PeriodicDiskRevolve",
    "Report",
    "Revolve",
    "Revolver",
    "SingleDiskStorageSchedule",
    "SingleMemoryStorageSchedule",
    "Store",
    "TwoLevelCheckpointSchedule",
    "forecast",
    "resume",
    "run",
]
