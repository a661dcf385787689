# %% [markdown]
# # Many processes, one file
# `mpiexec -n 4 python mpi.py [DIRECTORY]`, with mpi4py from a wheel and any MPICH or OpenMPI.

# %%
import os
import sys

import numpy as np
from mpi4py import MPI

import esker

comm = MPI.COMM_WORLD
if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
    os.chdir(sys.argv[1])

# %% [markdown]
# Every rank has some rows. All create the file together, and each writes what it has: one collective
# call, in which small pieces are gathered to large writes.

# %%
ny, nx = 200, 300
mine = slice(ny * comm.rank // comm.size, ny * (comm.rank + 1) // comm.size)
rows = np.arange(ny)[mine]
with esker.create("field.nc", comm=comm) as ds:
    ds.create_dimension("time")
    ds.create_dimension("y", ny)
    ds.create_dimension("x", nx)
    t = ds.create_variable("t", "f4", ("time", "y", "x"))
    rank = ds.create_variable("rank", "i4", "y")
    for step in range(3):
        t[step, mine] = step + rows[:, None] * np.ones(nx)
    rank[mine] = comm.rank

# %% [markdown]
# Many requests, moved together: nothing moves before `wait`.

# %%
with esker.open("field.nc", "r+", comm=comm) as ds:
    for i in range(5):
        ds.create_variable(f"tracer{i}", "f8", ("y", "x"))
    for i in range(5):
        ds.put(f"tracer{i}", mine, rows[:, None] * (i + np.ones(nx)))
    ds.wait()
    if comm.rank == 0:
        print({name: value for name, value in ds.report().items() if value})

# %% [markdown]
# Reading: together, or (`collective = False`) each for itself.

# %%
with esker.open("field.nc", comm=comm) as ds:
    column = ds["t"][:, :, comm.rank]
    ds.collective = False
    if comm.rank == 0:
        print(ds)
        assert np.array_equal(ds["t"][2, :, 7], 2 + np.arange(ny))
    assert np.array_equal(column[1], 1 + np.arange(ny))
