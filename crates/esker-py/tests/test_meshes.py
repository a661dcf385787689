"""Meshes: parts are the whole, fields come and go through them, other conventions become UGRID."""

from pathlib import Path

import netCDF4
import numpy as np
import pytest
import scipy.sparse
from conftest import shared_data
from model_files import esmf, neighbours, squares

import esker
from esker.mesh import _classic_of


def real(name):
    folder = shared_data()
    if folder is None or not (folder / "mesh" / name).exists():
        pytest.skip(f"no shared/data/mesh/{name}")
    return str(folder / "mesh" / name)


MPAS = "mpas_QU_mesh.QU.1920km.151026.nc"


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("format", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
def test_a_part_of_everything_is_the_mesh(path, start, format):
    table = squares(path, 6, start=start, format=format)
    with esker.mesh.open(path) as m, netCDF4.Dataset(path) as nc:
        nc.set_auto_mask(False)
        assert (m.name, m.dimension, m.nodes, m.edges, m.faces) == ("mesh", 2, 49, 0, 37)
        assert m.fields["u"] == esker.mesh.Field("u", "face", 2) and m.tables == ["face_node"]
        p = m.part("face", halo=1, by="hilbert")
        assert len(p) == 37 and len(p.halo) == 0 and not p.send and not p.receive
        np.testing.assert_array_equal(p.own, np.arange(37))
        np.testing.assert_array_equal(p.owners, np.zeros(37))
        faces = p.table("face_node")
        assert [faces.globals[row].tolist() for row in map(faces.__getitem__, range(len(faces)))] == [
            [n for n in row if n >= 0] for row in table.tolist()
        ]
        np.testing.assert_array_equal(p.table("face_node", p.neighbours("node")).to_array(), table)
        beside = p.table("face_face")
        assert [sorted(beside[at]) for at in range(37)] == neighbours(table)
        # Fields: whole, one index, a range; the mesh's dimension before, behind and between others.
        np.testing.assert_array_equal(p.read("t", time=0), nc["t"][0])
        np.testing.assert_array_equal(p.read("u"), nc["u"][:])
        np.testing.assert_array_equal(p.read("u", time=-1, layer=slice(1, 3)), nc["u"][1, 1:3])
        np.testing.assert_array_equal(p.read("w", layer=2), nc["w"][:, :, 2])
        assert p.read("w").dtype == np.int16 and p.read("u", layer=slice(0, 0)).shape == (2, 0, 37)


def test_fields_are_written_through_parts(path):
    squares(path, 4)
    with esker.mesh.open(path, "r+") as m:
        p = m.part("face")
        new = np.arange(3 * 17, dtype="f4").reshape(3, 17)
        p.write("u", new, time=2)
        p.write("u", new[1:2] * -1, time=0, layer=slice(2, 3))
        p.write("w", np.arange(17 * 3).reshape(1, 17, 3), time=slice(1, 2))
        p.neighbours("node").write("h", np.arange(25) / 2)
        with pytest.raises(ValueError, match=r"shape \(16,\), expected \(17,\)"):
            p.write("t", np.zeros(16), time=0)
        with pytest.raises(TypeError, match="not <U1|not"):
            p.write("t", np.array(["a"] * 17), time=0)
        with pytest.raises(IndexError, match="index 3 of dimension 'layer', which has 3"):
            p.read("u", layer=3)
        with pytest.raises(ValueError, match="is over .'node',., not over the faces"):
            p.read("h")
        with pytest.raises(ValueError, match="no other dimension 'depth'"):
            p.read("t", depth=0)
    with netCDF4.Dataset(path) as nc:
        nc.set_auto_mask(False)
        np.testing.assert_array_equal(nc["u"][2], new)
        np.testing.assert_array_equal(nc["u"][0, 2], -new[1])
        np.testing.assert_array_equal(nc["u"][0, 1], (np.arange(17, 34) * 7 % 101))
        np.testing.assert_array_equal(nc["w"][1], np.arange(51).reshape(17, 3))
        np.testing.assert_array_equal(nc["h"][:], np.arange(25) / 2)


def test_meshes_in_chunked_files_are_read_and_written(path, tmp_path):
    table = squares(path, 6)
    chunked = str(tmp_path / "chunked.nc")
    shapes = {"u": {"time": 1, "cell": 10}, "faces": {"cell": 10}, "label": {"cell": 5}}
    esker.convert(path, chunked, chunks=shapes, filters={name: "shuffle zstd,1" for name in shapes})
    with esker.mesh.open(chunked, "r+") as m, netCDF4.Dataset(path) as nc:
        assert m.dataset["u"].chunks is not None and m.dataset["faces"].chunks is not None
        p = m.part("face", halo=1, by="label")
        np.testing.assert_array_equal(p.table("face_node", p.neighbours("node")).to_array(), table)
        np.testing.assert_array_equal(p.read("u", time=1), nc["u"][1])
        p.write("u", -p.read("u", time=1), time=0)
        np.testing.assert_array_equal(m.dataset["u"][0], -nc["u"][1])


def test_labels_of_a_file_a_variable_and_an_array_are_alike(path, tmp_path):
    squares(path, 4)
    with esker.mesh.open(path) as m:
        labels = m.dataset["label"][:]
        text = tmp_path / "labels"
        text.write_text("".join(f"{label}\n" for label in labels))
        for by in ("label", str(text), text, labels, "range"):
            assert m.part("face", by=by).own.tolist() == list(range(17))
        with pytest.raises(OSError):
            m.part("face", by="no such thing")
        with pytest.raises(ValueError, match="16 labels for a share of 17"):
            m.part("face", by=labels[1:])
        with pytest.raises(ValueError, match="element 3: label -2"):
            m.part("face", by=np.where(np.arange(17) == 3, -2, labels))
        with pytest.raises(ValueError, match="node, edge, face, volume"):
            m.part("cell")
        # What the file does not have has no elements.
        assert m.part("volume").own.tolist() == []


def test_what_is_no_mesh_is_told(path):
    with esker.create(path) as ds:
        ds.create_dimension("x", 2)
    with pytest.raises(esker.MissingName, match="mesh_topology"):
        esker.mesh.open(path)
    squares(path, 2)
    with pytest.raises(esker.MissingName, match="no mesh 'other': there are mesh"):
        esker.mesh.open(path, mesh="other")
    with netCDF4.Dataset(path, "r+") as nc:
        nc["faces"][1, 2] = 77
    with esker.mesh.open(path) as m, pytest.raises(esker.FormatError, match='"faces": row 1, place 2: element 77'):
        m.relation("face_node")


def test_an_mpas_mesh_becomes_what_its_own_tables_say(path):
    made = esker.mesh.convert(real(MPAS), path)
    assert made.convention == "MPAS"
    with netCDF4.Dataset(real(MPAS)) as old, netCDF4.Dataset(path) as new:
        assert (made.nodes, made.edges, made.faces) == tuple(len(old.dimensions[d]) for d in ("nVertices", "nEdges", "nCells"))
        count, rows = old["nEdgesOnCell"][:], old["verticesOnCell"][:] - 1
        rows[np.arange(rows.shape[1]) >= count[:, None]] = -1
        np.testing.assert_array_equal(new["mesh2d_face_nodes"][:].filled(-1), rows)
        np.testing.assert_array_equal(new["areaCell"][:], old["areaCell"][:])
    with esker.mesh.open(path) as m:
        p = m.part("face", halo=1, by="hilbert")
        beside = p.table("face_face")
        assert [sorted(beside[at]) for at in range(len(p))] == neighbours(rows)


@pytest.mark.parametrize(
    "name, convention, field",
    [
        ("scrip_outCSne8_outCSne8.nc", "SCRIP", "grid_area"),
        ("fesom_soufflet-netcdf_grid.nc", "FESOM", None),
        ("exodus_mixed_mixed.exo", "Exodus", None),
    ],
)
def test_netcdf4_and_classic_inputs_are_converted(path, name, convention, field):
    made = esker.mesh.convert(real(name), path)
    assert made.convention == convention
    with esker.mesh.open(path) as m:
        assert (m.nodes, m.faces) == (made.nodes, made.faces) and m.faces > 0
        if field:
            with netCDF4.Dataset(real(name)) as old:
                np.testing.assert_array_equal(m.part("face").read(field), old[field][:])


def test_a_layered_mesh_keeps_its_layers_times_and_what_they_name(path, tmp_path):
    source = str(tmp_path / "esmf.nc")
    esmf(source)
    assert esker.mesh.convert(source, path) == esker.mesh.Converted("ESMF", 6, 0, 3, ())
    with netCDF4.Dataset(source) as old, netCDF4.Dataset(path) as new, esker.mesh.open(path) as m:
        for nc in (old, new):
            nc.set_auto_mask(False)
        assert set(m.fields) == {"temp", "eta", "depth"}
        for name in ("time", "time_bnds", "stamp", "layer", "zref", "temp", "eta", "depth"):
            np.testing.assert_array_equal(new[name][...], old[name][...], err_msg=name)
        assert new["layer"].formula_terms == old["layer"].formula_terms and "alone" not in new.variables
        assert new["temp"].dimensions == ("time", "layer", "mesh2d_nFaces") and new.dimensions["time"].isunlimited()
        p = m.part("face", by="hilbert")
        np.testing.assert_array_equal(p.read("temp", time=1, layer=slice(1, 3)), old["temp"][1, 1:3])
        np.testing.assert_array_equal(p.read("temp", layer=0), old["temp"][:, 0])


def test_a_real_ugrid_file_is_read_as_netcdf4_reads_it(path):
    source = real("ugrid_geoflow-small_grid.nc")
    with pytest.raises(esker.FormatError, match="UGRID already"):
        esker.mesh.convert(source, path)
    assert not Path(path).exists()
    _classic_of(source, path)
    with esker.mesh.open(path) as m, netCDF4.Dataset(source) as nc:
        nc.set_auto_mask(False)
        assert (m.nodes, m.faces) == (6000, 3840)
        np.testing.assert_array_equal(m.relation("face_node").to_array(), nc["mesh_face_nodes"][:])
        p = m.part("node", by="hilbert")
        np.testing.assert_array_equal(p.read("mesh_depth"), nc["mesh_depth"][:])


def test_relations_are_scipys_sparse_matrices(path, tmp_path):
    random = np.random.default_rng(3)
    a = scipy.sparse.random(30, 20, 0.2, "csr", random_state=random)
    b = scipy.sparse.random(20, 25, 0.2, "csr", random_state=random)
    r, s = esker.relation.from_scipy(a), esker.relation.from_scipy(b)
    assert isinstance(r.to_scipy(), scipy.sparse.csr_matrix) and r.shape == (30, 20)
    assert (r.to_scipy() != a).nnz == 0
    assert (r.invert().to_scipy() != a.T.tocsr()).nnz == 0
    assert abs((r @ s).to_scipy() - a @ b).max() < 1e-15
    assert (r.fetch([7, 7, 0]).to_scipy() != a[[7, 7, 0]]).nnz == 0
    assert r.total() == a.nnz and len(r.rows()) == 30
    # Without weights every entry counts 1.
    counts = esker.relation.from_scipy(a, weights=False)
    ways = counts @ counts.invert()
    ones = (a != 0).astype(float)
    assert abs(ways.to_scipy() - ones @ ones.T).max() == 0
    several = ways.at_least(2).without_itself()
    expected = (ones @ ones.T).toarray() >= 2
    np.fill_diagonal(expected, False)
    np.testing.assert_array_equal(several.to_scipy().toarray() > 0, expected)
    # METIS: the file's own rules, vertices from 1 on.
    metis = tmp_path / "graph"
    several.to_metis(metis)
    lines = metis.read_text().splitlines()
    assert lines[0].split() == ["30", str(expected.sum() // 2)]
    assert [[int(n) - 1 for n in line.split()] for line in lines[1:]] == [np.flatnonzero(row).tolist() for row in expected]
    assert (esker.relation.from_metis(metis).to_scipy() != several.to_scipy()).nnz == 0
    # In files: fixed width and ragged.
    with esker.create(path) as ds:
        for name, size in (("row", 30), ("end", 31), ("wide", 20), ("all", max(r.total(), 1))):
            ds.create_dimension(name, size)
        table = ds.create_variable("table", "i4", ("row", "wide"), attrs={"start_index": 1}, fill_value=-5)
        ragged = [ds.create_variable(n, k, d) for n, k, d in (("o", "i8", "end"), ("i", "i4", "all"), ("w", "f8", "all"))]
        r.to_table(table, start=1, fill=-5)
        r.to_ragged(*ragged)
        read = esker.relation.from_table(table, columns=20)
        np.testing.assert_array_equal(read.indices, a.indices)
        assert (esker.relation.from_ragged(*ragged, columns=20).to_scipy() != a).nnz == 0
        with pytest.raises(esker.FormatError, match="element"):
            esker.relation.from_table(table, columns=3)
    with pytest.raises(ValueError, match="row 0: element 9 of 5"):
        esker.relation.from_rows([[1, 9]], 5)
    with pytest.raises(ValueError):
        r.compose(r)
    with pytest.raises(OSError):
        esker.relation.from_metis(tmp_path / "nothing")
