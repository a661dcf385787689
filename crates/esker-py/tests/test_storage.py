"""Decomposed variables, flush and tokens, recover and replay: values are those of NumPy arrays."""

import os

import numpy as np
import pytest

import esker


def decomposed(path, **options):
    """``v(t, y, x)`` in two blocks that come in another order than the array's."""
    expected = np.arange(2 * 3 * 4, dtype="f8").reshape(2, 3, 4)
    with esker.create(path, **options) as ds:
        ds.create_dimension("t")
        ds.create_dimension("y", 3)
        ds.create_dimension("x", 4)
        number = ds.create_decomposition(("y", "x"), [[1, 0], [0, 0]], [[2, 4], [1, 4]])
        v = ds.create_decomposed_variable("v", "f8", ("t",), number)
        w = ds.create_decomposed_variable("w", "i4", (), number)
        for t in range(2):
            v.put_part(np.concatenate([expected[t, 1:].ravel(), expected[t, 0]]), start=[t])
        w.put_part(np.arange(12))
        assert v.shape == (2, 3, 4)
        np.testing.assert_array_equal(v[...], expected)
    return expected


def test_a_decomposed_variable_is_the_array_that_it_stands_for(tmp_path):
    expected = decomposed(tmp_path / "run.nc")
    with esker.open(tmp_path / "run.nc") as ds:
        v, w = ds["v"], ds["w"]
        np.testing.assert_array_equal(v[1, ::-1, 1:3], expected[1, ::-1, 1:3])
        parts = v.get_part(start=[0], count=[2])
        np.testing.assert_array_equal(parts[1], np.concatenate([expected[1, 1:].ravel(), expected[1, 0]]))
        np.testing.assert_array_equal(w.get_part(), np.arange(12))
        np.testing.assert_array_equal(w[...].ravel(), [8, 9, 10, 11, 0, 1, 2, 3, 4, 5, 6, 7])
    assert esker.check(tmp_path / "run.nc", read_data=True)


def test_what_a_map_cannot_be_is_an_error(tmp_path):
    with esker.create(tmp_path / "run.nc") as ds:
        ds.create_dimension("t")
        ds.create_dimension("x", 4)
        with pytest.raises(ValueError, match="unlimited"):
            ds.create_decomposition("t", [[0]], [[1]])
        with pytest.raises(IndexError, match="goes beyond"):
            ds.create_decomposition("x", [[3]], [[2]])
        with pytest.raises(ValueError, match="negative"):
            ds.create_decomposition("x", [[-1]], [[2]])
        with pytest.raises(KeyError):
            ds.create_decomposition("z", [[0]], [[2]])
        with pytest.raises(ValueError):
            ds.create_decomposed_variable("v", "f4", (), 7)
        t = ds.create_variable("t", "f4", "x")
        with pytest.raises(ValueError, match="decomposed"):
            t.put_part(np.zeros(4))


def test_a_flush_and_reads_go_on_in_the_background(tmp_path):
    hints = {"nc_burst_buf": "enable", "nc_burst_buf_dirname": str(tmp_path)}
    expected = np.arange(24, dtype="f4").reshape(4, 6)
    with esker.create(tmp_path / "run.nc", hints=hints) as ds:
        ds.create_dimension("t")
        ds.create_dimension("x", 6)
        v = ds.create_variable("v", "f4", ("t", "x"))
        v[:] = expected
        token = ds.flush_start()
        assert token.test() in (True, False)
        assert token.wait() is None
        assert token.test()
        with pytest.raises(ValueError, match="waited"):
            token.wait()
        with esker.open(tmp_path / "run.nc") as other:
            np.testing.assert_array_equal(other["v"][:], expected)
        v[2] = -1.0
        expected[2] = -1.0
        token, row = v.read_start(), v.read_start((2, slice(1, 5, 2)))
        np.testing.assert_array_equal(token.wait(), expected)
        np.testing.assert_array_equal(row.wait(), expected[2, 1:5:2])
        with pytest.raises(ValueError):
            v.read_start(([0, 1], 0))
        ds.flush()
        with esker.open(tmp_path / "run.nc") as other:
            np.testing.assert_array_equal(other["v"][:], expected)


def test_a_container_is_replayed_and_recovered(tmp_path):
    expected = np.arange(10)
    with esker.create(tmp_path / "run.esk", layout="log") as ds:
        ds.create_dimension("x", 10)
        ds.create_variable("v", "i4", "x", data=expected)
    told = esker.recover(tmp_path / "run.esk", dry_run=True)
    assert told["complete"] and told["made_version"] is None and told["damages"] == []
    made = esker.replay(tmp_path / "run.esk", tmp_path / "run.nc")
    assert made["variables"] == 1
    with esker.open(tmp_path / "run.nc") as ds:
        assert ds.layout == "classic"
        np.testing.assert_array_equal(ds["v"][:], expected)
    with pytest.raises(FileExistsError):
        esker.replay(tmp_path / "run.esk", tmp_path / "run.nc", overwrite=False)
    with pytest.raises(ValueError, match="classic"):
        esker.replay(tmp_path / "run.nc", tmp_path / "again.nc")


def test_the_logs_of_a_program_that_died_are_recovered(tmp_path):
    import subprocess
    import sys

    program = f"""
import os, esker, numpy as np
hints = {{"nc_burst_buf": "enable", "nc_burst_buf_dirname": {str(tmp_path)!r}}}
ds = esker.create({str(tmp_path / "run.nc")!r}, hints=hints)
ds.create_dimension("x", 5)
v = ds.create_variable("v", "i4", "x", fill=False)
ds.enddef()
v[:] = np.arange(5) + 3
# What was written out is what a kill leaves.
v.read()
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    told = esker.recover(tmp_path / "run.nc", dirs=[tmp_path])
    assert told["complete"] and told["logs"] == 1 and told["writes"] == 1, told
    with esker.open(tmp_path / "run.nc") as ds:
        np.testing.assert_array_equal(ds["v"][:], np.arange(5) + 3)


def test_hints_store_variables_by_name(tmp_path):
    hints = {"esker_chunk": "x/3|u*:none", "esker_filter": "v:shuffle+zstd,3"}
    with esker.create(tmp_path / "run.nc", hints=hints) as ds:
        ds.create_dimension("x", 7)
        v = ds.create_variable("v", "f8", "x", data=np.arange(7.0))
        u = ds.create_variable("u1", "f8", "x", data=np.arange(7.0))
        assert (v.chunks, v.filters) == ((3,), "shuffle zstd,3")
        assert (u.chunks, u.filters) == (None, None)
        np.testing.assert_array_equal(v[:], np.arange(7.0))


FORKED = {
    "chunked": ({}, {}),
    "folder": ({"hints": {"esker_chunk_files": "rank"}}, {}),
    "burst": ({"hints": {"nc_burst_buf": "enable"}}, None),
    "container": ({"layout": "log"}, None),
}


def in_a_fork(work):
    """Runs ``work`` in a forked process, and says what it gave or raised."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = str(work())
        except BaseException as error:  # noqa: BLE001
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("form", FORKED)
def test_a_forked_process_does_not_write_what_its_parent_has_open(tmp_path, form):
    options, chunks = FORKED[form]
    if form == "burst":
        options["hints"]["nc_burst_buf_dirname"] = str(tmp_path / "buffer")
    path = tmp_path / "run.nc"
    values = np.arange(4 * 5000, dtype="f8").reshape(4, 5000)
    with esker.create(path, **options) as ds:
        ds.create_dimension("t")
        ds.create_dimension("x", 5000)
        how = {} if chunks is None else {"chunks": (1, 2000), "filters": "zstd,1"}
        v = ds.create_variable("v", "f8", ("t", "x"), **how)
        v[0:2] = values[:2]

        def write():
            v[1:3] = -values[:2]

        assert "forked" in in_a_fork(write)
        assert "forked" in in_a_fork(ds.sync)
        assert "forked" in in_a_fork(ds.close)
        v[2] = values[2]
        ds.sync()
        assert in_a_fork(lambda: float(v[2, 7])) == str(values[2, 7])
        assert "forked" in in_a_fork(write)
        v[3] = values[3]
    with esker.open(path) as ds:
        np.testing.assert_array_equal(ds["v"][:], values)
    assert esker.check(path, read_data=True)
