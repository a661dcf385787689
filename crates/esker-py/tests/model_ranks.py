"""Graphs, meshes and hierarchies of several ranks, started by test_models_mpi.py: ``python model_ranks.py DIRECTORY``."""

import sys
from pathlib import Path

import netCDF4
import numpy as np
import scipy.sparse
from conftest import shared_data
from model_files import LEVELS, covering, esmf, neighbours, plotfile, squares
from mpi4py import MPI

import esker

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
folder = Path(sys.argv[1])


def raises(kind, call):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"rank {rank}: nothing was raised")


def made_by_one(make):
    """What rank 0 makes, on all."""
    return comm.bcast(make() if rank == 0 else None)


def ranks_define_what_they_know_and_it_is_one_graph():
    path = str(folder / "graph.nc")
    with esker.create(path, comm=comm) as ds:
        ds.create_dimension("x", 4)
        ds.create_variable(f"v{rank}", "i4", "x")
        g = ds.create_graph("g")
        g.create_edge("next")
        for at in (rank, (rank + 1) % size):
            g.create_vertex(f"r{at}")
        if size > 1:
            g.connect(f"r{rank}", "next", f"r{(rank + 1) % size}")
        g.vertices[f"r{rank}"].attach(f"v{rank}")
        ds.enddef()
        for seen in (g, ds.graphs["g"]):
            assert sorted(seen.vertices) == sorted(f"r{r}" for r in range(size))
            assert all(seen.vertices[f"r{r}"].variables == [f"v{r}"] for r in range(size))
            assert len(seen.breadth_first("r0")) == size
        # What two ranks define differently is told to all.
        g.create_edge("far", float(rank))
        if size > 1:
            told = raises(ValueError, ds.enddef)
            assert '"far"' in told and "weight 0" in told and "weight 1" in told, told
        g.delete_edge("far")
    with esker.open(path) as ds:
        assert set(ds.graphs["g"].vertices) == {f"r{r}" for r in range(size)}


def parts_are_the_whole(path, table, fields, plain=None):
    """``plain`` is a file that netCDF4 reads, if it cannot read the mesh's own."""
    beside = neighbours(table)
    with netCDF4.Dataset(plain or path) as nc:
        nc.set_auto_mask(False)
        whole = {name: nc[name][:] for name in fields}
    with esker.mesh.open(path, comm=comm) as m:
        labels = np.arange(m.faces) * 7 % size
        for by in ("hilbert", "range", labels):
            for halo in (0, 1, 2):
                p = m.part("face", halo=halo, by=by)
                everyone = comm.allgather(p.own.tolist())
                assert sorted(sum(everyone, [])) == list(range(m.faces)), "every face has one owner"
                if by is labels:
                    assert all(labels[face] == r for r, own in enumerate(everyone) for face in own)
                owner = {face: r for r, own in enumerate(everyone) for face in own}
                seen = set(p.own.tolist())
                for _ in range(halo):
                    seen |= {near for face in seen for near in beside[face]}
                assert set(p.halo.tolist()) == seen - set(p.own.tolist())
                assert p.halo_owners.tolist() == [owner[face] for face in p.halo.tolist()]
                np.testing.assert_array_equal(p.owners, [owner[face] for face in p.globals.tolist()])
                # What one sends is what the other receives.
                sent = comm.alltoall([p.globals[p.send.get(r, [])].tolist() if r in p.send else [] for r in range(size)])
                for r in range(size):
                    got = p.globals[p.receive[r]].tolist() if r in p.receive else []
                    assert sent[r] == got
                rows = p.table("face_node")
                for at, face in enumerate(p.globals):
                    assert rows.globals[rows[at]].tolist() == [n for n in table[face] if n >= 0]
                near = p.table("face_face")
                np.testing.assert_array_equal(near.globals[: len(p)], p.globals)
                for name, values in whole.items():
                    place = m.fields[name].place
                    np.testing.assert_array_equal(p.read(name), np.take(values, p.globals, axis=place))
                mine = np.full(len(p), -1, dtype="i4")
                mine[: len(p.own)] = p.own
                np.testing.assert_array_equal(p.update_halo(mine), p.globals)
        # An error of one rank is everyone's.
        p = m.part("face", by="hilbert")
        name = fields[0]
        if rank == size - 1:
            raises(ValueError, lambda: p.read(name, nothing=0))
        else:
            assert "failed" in raises(esker.RankError, lambda: p.read(name))
        np.testing.assert_array_equal(p.read(name), np.take(whole[name], p.own, axis=m.fields[name].place))


def fields_are_written_and_shared_nodes_once(path):
    with esker.mesh.open(path, "r+", comm=comm) as m:
        p = m.part("face", halo=1, by="hilbert")
        # The halo's values are not written, whatever they are.
        values = np.where(np.arange(len(p)) < len(p.own), p.globals, -77).astype("f4")
        p.write("u", np.stack([values, 2 * values, 3 * values]), time=4)
        p.write("t", p.own / 8, time=0)
        nodes = p.neighbours("node")
        nodes.write("h", nodes.own / 2)
        counts = comm.allgather(len(nodes.own))
        assert sum(counts) == m.nodes, "every node has one writer"
        if rank == 0:
            raises(ValueError, lambda: p.write("t", np.zeros(len(p.own) + 1000), time=0))
        else:
            raises(esker.RankError, lambda: p.write("t", p.own, time=0))
    with netCDF4.Dataset(path) as nc:
        nc.set_auto_mask(False)
        faces = np.arange(len(nc.dimensions["cell"]))
        np.testing.assert_array_equal(nc["u"][4], np.stack([faces, 2 * faces, 3 * faces]))
        np.testing.assert_array_equal(nc["t"][0], faces / 8)
        np.testing.assert_array_equal(nc["h"][:], np.arange(len(nc.dimensions["node"])) / 2)


def relations_are_shared():
    matrix = scipy.sparse.random(17, 11, 0.3, "csr", random_state=np.random.default_rng(1))
    # The last rank gives nothing, the others unequal parts.
    ends = [0, *sorted(np.random.default_rng(2).integers(0, 18, max(size - 2, 0)).tolist())]
    ends = [*ends, 17, 17][: size + 1] if size > 1 else [0, 17]
    r = esker.relation.from_scipy(matrix[ends[rank] : ends[rank + 1]], comm=comm)
    assert r.shape == (17, 11)
    whole = scipy.sparse.vstack(comm.allgather(r.to_scipy()))
    assert (whole != matrix).nnz == 0
    back = scipy.sparse.vstack(comm.allgather(r.invert().to_scipy()))
    assert (back != matrix.T.tocsr()).nnz == 0
    square = scipy.sparse.vstack(comm.allgather((r @ r.invert()).to_scipy()))
    assert abs(square - matrix @ matrix.T).max() < 1e-15


def conversions_are_the_same_file_on_any_number_of_ranks():
    data = shared_data()
    layered = str(folder / "esmf.nc")
    made_by_one(lambda: esmf(layered))
    made_by_one(lambda: esker.mesh.convert(layered, folder / "esmf_alone.nc"))
    esker.mesh.convert(layered, folder / "esmf_all.nc", comm=comm)
    assert (folder / "esmf_alone.nc").read_bytes() == (folder / "esmf_all.nc").read_bytes()
    for name in ("mpas_QU_mesh.QU.1920km.151026.nc", "scrip_outCSne8_outCSne8.nc"):
        source = data / "mesh" / name if data else None
        if source is None or not source.exists():
            continue
        alone, all_ = folder / f"alone_{name}", folder / f"all_{name}"
        made_by_one(lambda: esker.mesh.convert(source, alone))
        esker.mesh.convert(source, all_, comm=comm)
        assert alone.read_bytes() == all_.read_bytes(), name
        if name.startswith("mpas"):
            with netCDF4.Dataset(all_) as nc:
                table = nc["mesh2d_face_nodes"][:].filled(-1)
            parts_are_the_whole(str(all_), table, ["areaCell"])


def hierarchies_are_read_and_converted_together():
    import h5py  # noqa: F401

    made_by_one(lambda: plotfile(folder / "plt", ["a", "b"], LEVELS))
    esker.amr.convert(folder / "plt", folder / "plt.nc", comm=comm)
    made_by_one(lambda: esker.amr.convert(folder / "plt", folder / "alone.nc"))
    assert (folder / "plt.nc").read_bytes() == (folder / "alone.nc").read_bytes()
    esker.amr.convert(folder / "plt.nc", folder / "out.hdf5", to="chombo", comm=comm)
    esker.amr.convert(folder / "out.hdf5", folder / "back.nc", comm=comm)
    assert (folder / "plt.nc").read_bytes() == (folder / "back.nc").read_bytes()
    esker.amr.convert(folder / "plt", folder / "straight.hdf5", comm=comm, to="chombo")
    esker.amr.convert(folder / "straight.hdf5", folder / "again", comm=comm, to="amrex")
    with esker.amr.open(folder / "plt.nc", comm=comm) as a:
        # Every rank has a region of its own, the last one none.
        lo, hi = (4 + rank, 3), (20 + rank, 19)
        if size > 1 and rank == size - 1:
            a.read_nothing("b", level=1)
        else:
            np.testing.assert_array_equal(a.read("b", level=1, lo=lo, hi=hi), covering(LEVELS, 2, 1, 1, lo, hi))
        if rank == 0:
            raises(ValueError, lambda: a.read("a", level=0, lo=(3, 3), hi=(2, 2)))
        else:
            raises(esker.RankError, lambda: a.read("a", level=0, lo=(3, 3), hi=(4, 4)))
        if rank == size - 1:
            raises(IndexError, lambda: a.read("a", level=9))
            raises(ValueError, lambda: a.plane("a", "z"))
        else:
            raises(esker.RankError, lambda: a.read("a", level=0, lo=(3, 3), hi=(4, 4)))
            raises(esker.RankError, lambda: a.plane("a", "y"))
    told = raises((OSError, ValueError, esker.RankError), lambda: esker.amr.convert(folder / "plt.nc", folder / "again", comm=comm))
    assert "again" in told
    comm.Barrier()
    if rank == 0:
        (folder / "bad.hdf5").write_bytes(b"\x89HDF\r\n\x1a\nnothing")
    comm.Barrier()
    raises((OSError, ValueError, esker.RankError), lambda: esker.amr.convert(folder / "bad.hdf5", folder / "bad.nc", comm=comm))


ranks_define_what_they_know_and_it_is_one_graph()
table = made_by_one(lambda: squares(str(folder / "mesh.nc"), 6))
parts_are_the_whole(str(folder / "mesh.nc"), table, ["t", "u", "w"])
chunks = {"u": {"time": 1, "cell": 10}, "faces": {"cell": 10}, "w": {"cell": 7}}
filters = {name: "shuffle zstd,1" for name in chunks}
made_by_one(lambda: esker.convert(folder / "mesh.nc", folder / "chunked.nc", chunks=chunks, filters=filters))
parts_are_the_whole(str(folder / "chunked.nc"), table, ["t", "u", "w"], plain=str(folder / "mesh.nc"))
comm.Barrier()
fields_are_written_and_shared_nodes_once(str(folder / "mesh.nc"))
relations_are_shared()
conversions_are_the_same_file_on_any_number_of_ranks()
hierarchies_are_read_and_converted_together()
comm.Barrier()
if rank == 0:
    print("done", size, flush=True)
