"""Indexing agrees with NumPy's, for keys that hypothesis makes up."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import esker

SHAPE = (5, 4, 6, 7)
FEW = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def slices(length):
    bound = st.none() | st.integers(-length - 2, length + 2)
    return st.builds(slice, bound, bound, st.none() | st.integers(-4, 4).filter(bool))


@st.composite
def keys(draw, shape=SHAPE, arrays=True):
    """A key that NumPy takes: integers, slices, an ellipsis, arrays that broadcast, masks."""
    rank = len(shape)
    used = draw(st.integers(0, rank))
    common = draw(hnp.array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=3))
    items, dim = [], 0
    while dim < used:
        kind = draw(st.sampled_from(["int", "slice", "slice", "array", "mask"] if arrays else ["int", "slice"]))
        length = shape[dim]
        if kind == "int":
            items.append(draw(st.integers(-length, length - 1)))
        elif kind == "slice":
            items.append(draw(slices(length)))
        elif kind == "array":
            drawn = draw(hnp.arrays(np.int64, common, elements=st.integers(-length, length - 1)))
            items.append(drawn.tolist() if draw(st.booleans()) else drawn)
        else:
            items.append(draw(hnp.arrays(np.bool_, (length,))))
        dim += 1
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
    return tuple(items)


def both(numpy_call, our_call):
    """What NumPy gives, and we; or that both refuse."""
    try:
        expected = numpy_call()
    except IndexError:
        with pytest.raises(IndexError):
            our_call()
        return None
    return expected, our_call()


@FEW
@given(key=keys(arrays=False))
def test_basic_keys_select_what_numpy_selects(cube, key):
    path, values = cube
    with esker.open(path) as ds:
        answer = both(lambda: values[key], lambda: ds["v"][key])
        if answer is not None:
            expected, got = answer
            assert np.shape(got) == np.shape(expected) and type(got) is type(expected)
            np.testing.assert_array_equal(got, expected)


@FEW
@given(key=keys())
def test_keys_with_arrays_select_what_numpy_selects(cube, key):
    path, values = cube
    with esker.open(path) as ds:
        answer = both(lambda: values[key], lambda: ds["v"][key])
        if answer is not None:
            expected, got = answer
            assert np.shape(got) == np.shape(expected)
            np.testing.assert_array_equal(got, expected)


@FEW
@given(data=st.data())
def test_outer_keys_select_along_each_dimension(cube, data):
    path, values = cube
    key, expected = [], values
    for dim, length in enumerate(SHAPE):
        item = data.draw(
            slices(length)
            | st.lists(st.integers(-length, length - 1), max_size=5)
            | hnp.arrays(np.bool_, (length,))
            | st.integers(-length, length - 1)
        )
        key.append(item)
    for dim, item in reversed(list(enumerate(key))):
        item = np.asarray(item, dtype=np.int64) if isinstance(item, list) else item
        expected = expected[(slice(None),) * dim + (item,)]
    with esker.open(path) as ds:
        got = ds["v"].oindex[tuple(key)]
        assert np.shape(got) == np.shape(expected)
        np.testing.assert_array_equal(got, expected)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), layout=st.sampled_from(["classic", "chunked", "log"]))
def test_assignment_changes_what_numpy_changes(tmp_path_factory, data, layout):
    shape = (4, 3, 5)
    path = str(tmp_path_factory.mktemp("assign") / "a.nc")
    model = np.zeros(shape, "i4")
    storage = {"chunks": (2, 2, 3), "filters": "shuffle deflate,1"} if layout == "chunked" else {}
    with esker.create(path, layout="log" if layout == "log" else "classic") as ds:
        for name, size in zip("zyx", shape):
            ds.create_dimension(name, size)
        v = ds.create_variable("v", "i4", tuple("zyx"), data=model, **storage)
        for step in range(1, data.draw(st.integers(2, 4))):
            key = data.draw(keys(shape))
            try:
                selected = model[key]
            except IndexError:
                with pytest.raises(IndexError):
                    v[key] = 1
                continue
            value = np.arange(selected.size, dtype="i4").reshape(selected.shape) + 1000 * step
            if data.draw(st.booleans()) and value.ndim:
                value = value[:1]  # broadcast
            model[key] = value
            v[key] = value
            np.testing.assert_array_equal(v[...], model)
    with esker.open(path) as ds:
        np.testing.assert_array_equal(ds["v"][...], model)


def test_keys_that_mean_nothing_are_refused(cube):
    path, _ = cube
    with esker.open(path) as ds:
        v = ds["v"]
        for key in [5, -6, (0, 0, 0, 0, 0), None, (0, None), "t", 1.5, (..., ...), [7, 0], np.ones(3, bool), True]:
            with pytest.raises(IndexError):
                v[key]
        with pytest.raises(ValueError):
            v[::0]


def test_numpy_integers_are_integers(cube):
    path, values = cube
    with esker.open(path) as ds:
        for one in (np.int64(2), np.uint8(2), np.array(2)):
            np.testing.assert_array_equal(ds["v"][one], values[one])


def test_reads_into_memory_in_any_order(cube):
    path, values = cube
    with esker.open(path) as ds:
        v = ds["v"]
        for out in (
            np.empty((5, 4, 6, 7), "i4"),
            np.empty((5, 4, 6, 7), "i4", order="F"),
            np.empty((5, 4, 6, 14), "i4")[..., ::2],
            np.empty((5, 4, 6, 7), "i4")[:, ::-1, :, ::-1],
            np.empty((5, 4, 6, 7), "f8"),
        ):
            assert v.read(out=out) is out
            np.testing.assert_array_equal(out, values)
        out = np.empty((2, 6), "i2")
        np.testing.assert_array_equal(v.read((slice(4, 2, -1), 3, slice(None), 0), out=out), values[4:2:-1, 3, :, 0])
        np.testing.assert_array_equal(v.read(([1, 3], 2), out=np.empty((2, 6, 7), "i4")), values[[1, 3], 2])
        with pytest.raises(ValueError, match=r"\(3,\)"):
            v.read(0, out=np.empty(3, "i4"))
        frozen = np.empty((5, 4, 6, 7), "i4")
        frozen.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            v.read(out=frozen)


def test_large_reads_and_writes_in_pieces_are_whole(path):
    # Larger than a piece, with pieces along the second dimension.
    values = np.arange(2 * 3000 * 2000, dtype="f8").reshape(2, 3000, 2000)
    told = []
    with esker.create(path, fill=False) as ds:
        for name, size in zip("zyx", values.shape):
            ds.create_dimension(name, size)
        v = ds.create_variable("v", "f8", tuple("zyx"))
        v.write(..., values, progress=lambda done, total: told.append((done, total)))
        assert told[-1] == (values.nbytes, values.nbytes) and len(told) > 2
        turned = values[::-1, ::3, ::-1]
        v.write((slice(None, None, -1), slice(None, None, 3), slice(None, None, -1)), turned)
    with esker.open(path) as ds:
        v = ds["v"]
        assert np.array_equal(v[...], values)
        assert np.array_equal(v[1:, ::2, ::-3], values[1:, ::2, ::-3])
        out = np.empty(values.shape[::-1]).T
        assert np.array_equal(v.read(out=out), values)
