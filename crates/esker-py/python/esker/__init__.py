"""Esker: arrays of simulations in classic netCDF files, as NumPy arrays.

Reading, by any number of threads at the same time::

    import esker
    with esker.open("run.nc") as ds:
        print(ds)                                   # dimensions, variables, attributes
        plane = ds["t"][0, :, 10:20:2]              # NumPy's indexing; only this is read

Writing, in any order of definitions and data::

    with esker.create("new.nc") as ds:              # CDF-5; format="cdf1", "cdf2"
        ds.create_dimension("time")                 # unlimited
        ds.create_dimension("x", 100)
        t = ds.create_variable("t", "f4", ("time", "x"), attrs={"units": "K"})
        t.append(numpy.zeros(100))
        ds.attrs["title"] = "a first run"

With MPI, ``esker.create("run.nc", comm=MPI.COMM_WORLD)``; with xarray, ``xarray.open_dataset("run.nc",
engine="esker")`` and, after ``import esker.xarray``, ``ds.esker.to_netcdf("new.nc", format="cdf5")``.
``ds.create_graph`` says which variables belong together; :mod:`esker.mesh`, :mod:`esker.amr` and :mod:`esker.relation` know what
they mean. The guide is docs/python.md.
"""

from . import amr, mesh, relation
from ._blocks import Block
from ._checksums import crc32c
from ._dataset import Dataset, Dimension, create, open
from ._esker import Token, __version__, is_dataset, mpi_library
from ._graphs import Edge, Graph, Vertex
from ._progress import progress_bar
from ._tools import Check, Finding, References, check, convert, recover, refs, replay
from ._transaction import Outcome, follow, number_state, skip, transaction
from ._variable import Variable
from ._versions import Collected, Version, expire, gc, tag, tags, versions
from .errors import ChecksumError, Conflict, FormatError, GivenUp, MissingName, RangeError, RankError

__all__ = [
    "Block",
    "Check",
    "ChecksumError",
    "Collected",
    "Conflict",
    "Dataset",
    "Dimension",
    "Edge",
    "Finding",
    "FormatError",
    "GivenUp",
    "Graph",
    "MissingName",
    "Outcome",
    "RangeError",
    "RankError",
    "References",
    "Token",
    "Variable",
    "Version",
    "Vertex",
    "__version__",
    "amr",
    "check",
    "convert",
    "crc32c",
    "create",
    "expire",
    "follow",
    "gc",
    "is_dataset",
    "mesh",
    "mpi_library",
    "number_state",
    "open",
    "progress_bar",
    "recover",
    "refs",
    "relation",
    "replay",
    "skip",
    "tag",
    "tags",
    "transaction",
    "versions",
]
