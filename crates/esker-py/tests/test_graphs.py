"""Graphs of variables: defined, merged, walked, kept by other tools."""

import shutil
import subprocess

import netCDF4
import numpy as np
import pytest

import esker


def example(path, **how):
    """The levels of a hierarchy, and a graph that shares a vertex with it."""
    ds = esker.create(path, **how)
    ds.create_dimension("x", 3)
    for name in ("rho", "p", "q"):
        ds.create_variable(name, "f4", "x", data=[1, 2, 3])
    g = ds.create_graph("amr", attrs={"title": "levels", "n": 3})
    g.create_edge("refines", 2.0)
    g.create_edge("beside", 0.5, directed=False)
    g.create_vertex("coarse", ["rho"], attrs={"level": 0, "domain": np.array([0, 0, 7, 7])})
    fine = g.create_vertex("fine", ["p", "rho"])
    fine.connect("refines", "coarse")
    g.create_vertex("finest", "q").connect("refines", fine)
    g.connect("fine", "beside", "finest")
    other = ds.create_graph("other")
    other.create_vertex("fine")
    return ds


@pytest.mark.parametrize("how", [{}, {"format": "cdf1"}, {"format": "cdf2"}, {"layout": "log"}])
def test_a_graph_comes_back_as_it_was_defined(path, how):
    ds = example(path, **how)

    def check(ds):
        g = ds.graphs["amr"]
        assert list(ds.graphs) == ["amr", "other"] and "amr" in ds.graphs and len(ds.graphs) == 2
        assert dict(g.attrs) == {"title": "levels", "n": 3}
        assert list(g.vertices) == ["coarse", "fine", "finest"]
        assert g.vertices["fine"].variables == ["p", "rho"]
        np.testing.assert_array_equal(g.vertices["coarse"].attrs["domain"], [0, 0, 7, 7])
        assert g.edges["refines"] == esker.Edge("refines", 2.0, True, (("fine", "coarse"), ("finest", "fine")))
        assert g.edges["beside"] == esker.Edge("beside", 0.5, False, (("fine", "finest"),))
        assert sorted(g.vertices["finest"].links) == [("beside", "fine"), ("refines", "fine")]
        assert g.vertices["fine"].neighbours() == ["coarse", "finest"]
        assert g.vertices["fine"].neighbours("refines") == ["coarse"]
        assert g.roots() == ["finest"]
        assert g.breadth_first("finest") == [("finest", 0), ("fine", 1), ("coarse", 2)]
        assert list(ds.graphs["other"].vertices) == ["fine"]

    check(ds)
    ds.enddef()
    check(ds)
    ds.close()
    with esker.open(path) as ds:
        check(ds)
        assert "3 vertices" in repr(ds.graphs["amr"])


def test_networkx_sees_the_same_graph(path):
    networkx = pytest.importorskip("networkx")
    with example(path) as ds:
        made = ds.graphs["amr"].to_networkx()
        assert isinstance(made, networkx.MultiDiGraph)
        assert sorted(made.edges(keys=True)) == [
            ("fine", "coarse", "refines"),
            ("fine", "finest", "beside"),
            ("finest", "fine", "beside"),
            ("finest", "fine", "refines"),
        ]
        assert made.nodes["fine"]["variables"] == ["p", "rho"] and made.nodes["coarse"]["level"] == 0
        assert made["finest"]["fine"]["refines"] == {"weight": 2.0, "directed": True}
        assert made.graph == {"title": "levels", "n": 3, "name": "amr"}
        g = ds.create_graph("plain")
        for name in "ab":
            g.create_vertex(name)
        g.connect("a", "beside", "b")
        plain = g.to_networkx()
        assert not plain.is_directed() and list(plain.edges(keys=True)) == [("a", "b", "beside")]


def test_graphs_are_changed_renamed_and_deleted(path):
    example(path).close()
    with esker.open(path, "r+") as ds:
        g = ds.graphs["amr"]
        g.rename("levels")
        g.vertices["fine"].rename("middle")
        g.vertices["middle"].detach("rho")
        g.rename_edge("refines", "finer")
        g.vertices["middle"].disconnect("beside", "finest")
        del g.attrs["n"]
        g.attrs["title"] = "changed"
        g.vertices["finest"].attrs["late"] = 1.5
        ds.rename_variable("p", "pressure")
        ds.graphs["other"].delete()
        assert g.vertices["middle"].variables == ["pressure"]
    with esker.open(path) as ds:
        assert list(ds.graphs) == ["levels"]
        g = ds.graphs["levels"]
        assert dict(g.attrs) == {"title": "changed"} and g.vertices["finest"].attrs["late"] == 1.5
        assert g.vertices["middle"].variables == ["pressure"] and list(g.edges) == ["finer"]
    with esker.open(path, "r+") as ds:
        g = ds.graphs["levels"]
        g.vertices["middle"].delete()
        g.delete_edge("finer")
        assert list(g.vertices) == ["coarse", "finest"] and not g.edges
        g.create_edge("far", -1.0)
        g.connect("finest", "far", "coarse")
    with esker.open(path) as ds:
        assert ds.graphs["levels"].breadth_first("finest") == [("finest", 0), ("coarse", 1)]


def test_what_cannot_be_is_told(path):
    with example(path) as ds:
        g = ds.graphs["amr"]
        with pytest.raises(esker.MissingName, match="no graph 'gone'.*amr, other"):
            ds.graphs["gone"]
        with pytest.raises(esker.MissingName, match="no vertex 'x': it has coarse"):
            g.breadth_first("x")
        with pytest.raises(esker.MissingName, match="no edge 'x'"):
            g.vertices["fine"].neighbours("x")
        with pytest.raises(ValueError, match="amr"):
            ds.create_graph("amr")
        with pytest.raises(ValueError, match="NaN"):
            g.create_edge("n", float("nan"))
        with pytest.raises(esker.MissingName):
            g.connect("fine", "refines", "nowhere")
        with pytest.raises(esker.MissingName):
            g.vertices["fine"].detach("q")
        # Where definitions end: a vertex of no graph, a variable that is not there.
        g.remove("coarse")
        with pytest.raises(ValueError, match='vertex "coarse" is in no graph'):
            ds.enddef()
        g.create_vertex("coarse")
        g.vertices["coarse"].attach("nothing")
        with pytest.raises(ValueError, match='vertex "coarse" has variable "nothing"'):
            ds.enddef()
        g.vertices["coarse"].detach("nothing")
        ds.enddef()
    with pytest.raises(ValueError, match="closed"):
        ds.graphs["amr"]


def test_other_tools_carry_graphs_and_what_they_drop_is_reported(path, tmp_path):
    example(path).close()
    with netCDF4.Dataset(path) as nc:
        assert nc["amr"].graph_format == "GRAPH 1" and nc["amr"][:].tobytes().startswith(b"GRAPH")
    if shutil.which("ncks") is None:
        pytest.skip("ncks is not installed")
    kept = str(tmp_path / "kept.nc")
    subprocess.run(["ncks", "-v", "amr,rho,q", path, kept], check=True)
    with esker.open(kept) as ds:
        g = ds.graphs["amr"]
        assert g.missing == [("fine", "p")]
        assert g.vertices["fine"].variables == ["rho"] and g.roots() == ["finest"]


def test_a_damaged_graph_is_a_format_error(path):
    example(path).close()
    with esker.open(path, "r+") as ds:
        raw = bytearray(ds["amr"][:].tobytes())
        raw[40] ^= 0xFF
        ds["amr"][:] = np.frombuffer(bytes(raw), "S1")
    with esker.open(path) as ds:
        with pytest.raises(esker.FormatError, match='graph "amr"'):
            ds.graphs["amr"]
        np.testing.assert_array_equal(ds["rho"][:], [1, 2, 3])
