"""What ranks do together, started by test_mpi.py under mpiexec: ``python ranks.py DIRECTORY``."""

import sys

import numpy as np
from mpi4py import MPI

import esker

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
folder = sys.argv[1]


def rows(n):
    """This rank's part of n rows."""
    return slice(n * rank // size, n * (rank + 1) // size)


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"rank {rank}: no {kind.__name__}")


def each_rank_writes_its_part(layout):
    path = f"{folder}/part.{layout}"
    expected = np.arange(13 * 6 * 5, dtype="f4").reshape(13, 6, 5)
    with esker.create(path, comm=comm, layout=layout) as ds:
        assert (ds.rank, ds.size, ds.collective) == (rank, size, size > 1)
        ds.create_dimension("time")
        ds.create_dimension("y", 6)
        ds.create_dimension("x", 5)
        t = ds.create_variable("t", "f4", ("time", "y", "x"), attrs={"units": "K"})
        mine = rows(13)
        t[mine] = expected[mine]
        # Other shapes of memory, and keys with arrays: one collective call each.
        columns = np.arange(5)[rank::size]
        t[:, :, columns] = expected[:, :, columns]
        t[mine, ::2] = np.asfortranarray(expected[mine, ::2])
        # Definitions in between.
        n = ds.create_variable("n", "i8", "y")
        n[rows(6)] = np.arange(6)[rows(6)] + 2**40
    with esker.open(path, comm=comm) as ds:
        np.testing.assert_array_equal(ds["t"][:], expected)
        np.testing.assert_array_equal(ds["t"][rank % 13, ::-1], expected[rank % 13, ::-1])
        np.testing.assert_array_equal(ds["t"][[0, 12, 3], 1:3], expected[[0, 12, 3], 1:3])
        np.testing.assert_array_equal(ds["n"][:], np.arange(6) + 2**40)
        ds.collective = False
        if rank == 0:
            np.testing.assert_array_equal(ds["t"][5], expected[5])


def queued_requests_are_aggregated():
    path = f"{folder}/queued.nc"
    with esker.create(path, comm=comm) as ds:
        ds.create_dimension("x", 40 * size)
        for i in range(10):
            ds.create_variable(f"v{i}", "i4", "x")
        for i in range(10):
            ds.put(f"v{i}", slice(rank, None, size), np.full(40, 100 * i + rank), copy=True)
        ds.wait()
        got = [ds.get(f"v{i}") for i in range(10)]
        ds.wait()
        for i, array in enumerate(got):
            np.testing.assert_array_equal(array, np.tile(100 * i + np.arange(size), 40))


def chunks_are_written_together():
    expected = np.arange(13 * 6 * 5, dtype="f4").reshape(13, 6, 5)
    for name, hints in (("chunked.nc", {}), ("chunked", {"esker_chunk_files": "rank"})):
        path = f"{folder}/{name}"
        with esker.create(path, comm=comm, hints=hints) as ds:
            ds.create_dimension("time")
            ds.create_dimension("y", 6)
            ds.create_dimension("x", 5)
            t = ds.create_variable("t", "f4", ("time", "y", "x"), chunks=(2, 3, 5), filters=["shuffle", ("zstd", 3)])
            n = ds.create_variable("n", "i8", "y", filters="deflate,1")
            # Ranks have parts of the same chunks.
            mine = slice(rank, None, size)
            t[rows(13)] = expected[rows(13)]
            t[:, :, mine] = expected[:, :, mine]
            assert t.chunks == (2, 3, 5)
            ds.put("n", rows(6), np.arange(6)[rows(6)] + 2**40, copy=True)
            ds.put("t", (slice(None), mine), expected[:, mine], copy=True)
            ds.wait()
            if size > 1:
                ds.collective = False
                # Its own part waits for the next collective call, and the rank sees it.
                t[rank % 13] = -expected[rank % 13]
                np.testing.assert_array_equal(t[rank % 13], -expected[rank % 13])
                t[rank % 13] = expected[rank % 13]
                np.testing.assert_array_equal(t[rank % 13], expected[rank % 13])
                ds.collective = True
        with esker.open(path, comm=comm) as ds:
            np.testing.assert_array_equal(ds["t"][:], expected)
            np.testing.assert_array_equal(ds["n"][::-1], np.arange(6)[::-1] + 2**40)
            ds.collective = False
            np.testing.assert_array_equal(ds["t"][rank % 13, 1:4], expected[rank % 13, 1:4])
        assert esker.check(path, read_data=True)


def parts_of_ranks_are_one_array():
    n = 2 * size + 1
    mine = np.arange(rank, n, size)
    with esker.create(f"{folder}/parts.nc", comm=comm) as ds:
        ds.create_dimension("t")
        ds.create_dimension("y", n)
        number = ds.create_decomposition("y", mine[:, None], np.ones((len(mine), 1)))
        v = ds.create_decomposed_variable("v", "f8", "t", number)
        for t in range(2):
            v.put_part(mine + 100 * t, start=[t])
        np.testing.assert_array_equal(v[1], np.arange(n) + 100)
        np.testing.assert_array_equal(v.get_part([0], [2]), [mine, mine + 100])
        ds.collective = False
        v.put_part(-mine, start=[1])
        np.testing.assert_array_equal(v.get_part([1]), [-mine])
        ds.collective = True
        ds.flush()
        np.testing.assert_array_equal(v[1], -np.arange(n))
        raises(ValueError, lambda: v.put_part(np.zeros(len(mine) + 1), start=[0]))
    with esker.open(f"{folder}/parts.nc") as ds:
        np.testing.assert_array_equal(ds["v"][:], [np.arange(n), -np.arange(n)])


def chunks_that_cannot_be_are_told_to_all():
    with esker.create(f"{folder}/wrong.nc", comm=comm) as ds:
        ds.create_dimension("x", 10)
        raises(ValueError, lambda: ds.create_variable("v", "i4", "x", chunks=(2, 3)))
        raises(ValueError, lambda: ds.create_variable("v", "i4", "x", filters="zfp"))
        ds.create_variable("v", "i4", "x", filters="zstd,1")[rows(10)] = rank


def an_error_of_one_rank_is_everyones():
    path = f"{folder}/error.nc"
    with esker.create(path, comm=comm) as ds:
        ds.create_dimension("x", 10)
        v = ds.create_variable("v", "i4", "x", data=0)
        bad = size - 1
        if rank == bad:
            raises((ValueError, IndexError), lambda: v.write(([20],), 1))
        else:
            raises(esker.RankError, lambda: v.write(([0],), 1))
        # And the dataset goes on.
        v[rank % 10 : rank % 10 + 1] = 5
        assert (v[: min(size, 10)] == 5).all()


def a_missing_file_is_told_to_all():
    error = raises((OSError, esker.RankError), lambda: esker.open(f"{folder}/nothing.nc", comm=comm))
    assert "nothing.nc" in str(error)


def pending_definitions_are_told():
    if size == 1:
        return
    with esker.create(f"{folder}/pending.nc", comm=comm) as ds:
        ds.create_dimension("x", 3)
        v = ds.create_variable("v", "i4", "x")
        ds.collective = False
        assert "enddef" in str(raises(ValueError, lambda: v[:]))
        ds.enddef()
        if rank == 0:
            v[:] = 7
        ds.sync()
        ds.collective = True
        assert v[:].tolist() == [7, 7, 7]


def other_communicators_are_taken():
    half = comm.Split(rank % 2, rank)
    path = f"{folder}/half{rank % 2}.nc"
    with esker.create(path, comm=half) as ds:
        ds.create_dimension("x", half.size)
        ds.create_variable("v", "i4", "x")[half.rank] = rank
    half.Free()
    with esker.create(f"{folder}/self{rank}.nc", comm=MPI.COMM_SELF) as ds:
        assert ds.size == 1
    comm.Barrier()
    with esker.open(path) as ds:  # every rank for itself
        assert ds["v"][:].tolist() == [r for r in range(size) if r % 2 == rank % 2]
    raises((RuntimeError, ValueError), lambda: esker.open(path, comm=MPI.COMM_NULL))
    raises(TypeError, lambda: esker.open(path, comm=3))


library = esker.mpi_library()
assert library is not None and library[0]
for layout in ("classic", "log"):
    each_rank_writes_its_part(layout)
queued_requests_are_aggregated()
chunks_are_written_together()
parts_of_ranks_are_one_array()
chunks_that_cannot_be_are_told_to_all()
an_error_of_one_rank_is_everyones()
a_missing_file_is_told_to_all()
pending_definitions_are_told()
other_communicators_are_taken()
comm.Barrier()
if rank == 0:
    print("done", size, library[2], flush=True)
