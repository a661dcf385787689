"""AMR hierarchies: covering grids, planes and boxes, plotfiles and Chombo files in and out."""

import json

import numpy as np
import pytest
from conftest import shared_data
from model_files import LEVELS, covering, plotfile, values

import esker


@pytest.fixture
def plane(tmp_path):
    """A plotfile of a plane hierarchy, and the file made of it."""
    plotfile(tmp_path / "plt00010", ["density", "x velocity"], LEVELS)
    esker.amr.convert(tmp_path / "plt00010", tmp_path / "plt.nc")
    return tmp_path


def real_boxes():
    """The box lists of real runs that have few cells."""
    folder = shared_data()
    lists = sorted((folder / "amr").glob("*.json")) if folder else []
    for path in lists:
        levels = [[(tuple(lo), tuple(hi)) for lo, hi in level] for level in json.loads(path.read_text())["levels"]]
        cells = sum(np.prod(np.array(hi) - lo + 1) for level in levels for lo, hi in level)
        if cells < 400_000:
            yield pytest.param(levels, id=path.stem)


def test_what_a_plotfile_says_is_there(plane):
    with esker.amr.open(plane / "plt.nc") as a:
        assert (a.dimensions, a.components, a.time) == (2, ("density", "x velocity"), 0.1 + 0.2)
        assert a.lo == (-1 / 3,) * 2 and a.hi == (np.pi,) * 2 and a.dtype == np.float64
        assert [len(level) for level in a.levels] == [3, 2, 2, 0]
        for level, boxes in zip(a.levels, LEVELS):
            np.testing.assert_array_equal(level.boxes, np.array(boxes, dtype=int).reshape(-1, 2, 2))
        assert a.levels[1].ratio == (2, 2) and a.levels[2].step == 17
        assert a.levels[1].cell_size == (0.1 / 2 / 3, 1.1 / 2 / 3)
        np.testing.assert_array_equal(a.levels[1].domain, [[0, 0], [31, 31]])
        for level, boxes in enumerate(LEVELS):
            for number, box in enumerate(boxes):
                np.testing.assert_array_equal(a.box(level, number), values(level, 2, box, "f8"))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_covering_grid_is_what_a_search_of_all_boxes_says(plane, level):
    lo, hi = (3 << level, 2 << level), (min(11 << level, (3 << level) + 30), min(12 << level, (2 << level) + 30))
    with esker.amr.open(plane / "plt.nc") as a:
        for number, name in enumerate(a.components):
            found = a.read(name, level=level, lo=lo, hi=hi)
            np.testing.assert_array_equal(found, covering(LEVELS, 2, level, number, lo, hi))
        whole = a.read("density", level=level)
        assert whole.shape == (16 << level,) * 2
        inside = tuple(slice(x, y + 1) for x, y in zip(lo, hi))
        np.testing.assert_array_equal(whole[inside], a.read("density", level=level, lo=lo, hi=hi))
        np.testing.assert_array_equal(a.plane("density", "y", 5, level=level), whole[:, 5])
        np.testing.assert_array_equal(a.plane("density", 0, level=level), whole[(16 << level) // 2 - 1])


def test_what_is_not_there_is_told(plane):
    with esker.amr.open(plane / "plt.nc") as a:
        with pytest.raises(ValueError, match="no component \"gas\": density, x velocity"):
            a.read("gas")
        with pytest.raises(IndexError, match="no level 4"):
            a.read("density", level=4)
        with pytest.raises(ValueError, match="not inside level 1's domain"):
            a.read("density", level=1, lo=(0, 0), hi=(32, 3))
        with pytest.raises(ValueError, match=r"no cells from \[3, 0\] to \[2, 3\]"):
            a.read("density", level=1, lo=(3, 0), hi=(2, 3))
        with pytest.raises(ValueError, match="2 dimensions"):
            a.read("density", level=1, lo=(3, 0, 0), hi=(2, 3, 0))
        with pytest.raises(IndexError, match="no box 2"):
            a.box(1, 2)
    with pytest.raises(ValueError, match="closed"):
        a.read("density")
    with esker.create(plane / "other.nc"):
        pass
    with pytest.raises(esker.FormatError, match='no graph "amr"'):
        esker.amr.open(plane / "other.nc")
    with pytest.raises(OSError):
        esker.amr.open(plane / "nothing.nc")
    with pytest.raises(ValueError, match="esker, amrex, chombo"):
        esker.amr.convert(plane / "plt.nc", plane / "x", to="vtk")


def bits(folder):
    """Everything that a plotfile has, by file."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_plotfiles_come_back_bit_for_bit(tmp_path, dtype):
    plotfile(tmp_path / "plt", ["a", "b c"], LEVELS, dtype=dtype)
    esker.amr.convert(tmp_path / "plt", tmp_path / "plt.nc")
    esker.amr.convert(tmp_path / "plt.nc", tmp_path / "back")
    old, new = bits(tmp_path / "plt"), bits(tmp_path / "back")
    data = [name for name in old if "Cell_D" in name and old[name]]
    assert len(data) == 3 and all(old[name] == new[name] for name in data)
    described = [esker._esker.amr_plotfile(str(tmp_path / name)) for name in ("plt", "back")]
    for one in described:
        for level in one["levels"]:
            level["boxes"] = level["boxes"].tolist()
    assert described[0] == described[1]
    with pytest.raises(OSError):
        esker.amr.convert(tmp_path / "plt.nc", tmp_path / "back")


h5py = None


@pytest.fixture
def chombo():
    global h5py
    h5py = pytest.importorskip("h5py")


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_chombo_files_say_what_a_hierarchy_says(tmp_path, chombo, dtype):
    plotfile(tmp_path / "plt", ["density", "x velocity"], LEVELS, dtype=dtype)
    esker.amr.convert(tmp_path / "plt", tmp_path / "plt.nc")
    esker.amr.convert(tmp_path / "plt.nc", tmp_path / "out.hdf5", to="chombo")
    with h5py.File(tmp_path / "out.hdf5") as file:
        # By Chombo's own description of its files.
        assert file["Chombo_global"].attrs["SpaceDim"] == 2 and file.attrs["num_levels"] == 4
        assert file.attrs["filetype"] == b"VanillaAMRFileType" and file.attrs["time"] == 0.1 + 0.2
        assert [file.attrs[f"component_{n}"] for n in range(file.attrs["num_components"])] == [b"density", b"x velocity"]
        for number, boxes in enumerate(LEVELS):
            group = file[f"level_{number}"]
            assert group.attrs["ref_ratio"] == 2 and group.attrs["dx"] == 0.1 / 2**number / 3
            assert tuple(group.attrs["prob_domain"]) == (0, 0, (16 << number) - 1, (16 << number) - 1)
            assert [tuple(box) for box in group["boxes"][:]] == [(*lo, *hi) for lo, hi in boxes]
            offsets, data = group["data:offsets=0"][:], group["data:datatype=0"]
            assert data.dtype == np.dtype(dtype) and len(offsets) == len(boxes) + 1
            for at, box in enumerate(boxes):
                flat = np.concatenate([c.ravel(order="F") for c in values(number, 2, box, dtype)])
                np.testing.assert_array_equal(data[offsets[at] : offsets[at + 1]], flat)


def same_files(one, other):
    """Whether two files of ours have the same values, boxes, times and names."""
    with esker.open(one) as a, esker.open(other) as b:
        assert list(a) == list(b)
        for name in a:
            assert a[name].dtype == b[name].dtype and a[name][:].tobytes() == b[name][:].tobytes(), name


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_chombo_and_back_is_the_same_file(tmp_path, chombo, dtype):
    plotfile(tmp_path / "plt", ["density", "x velocity"], LEVELS, dtype=dtype)
    # Straight from AMReX to Chombo, and back in both ways.
    esker.amr.convert(tmp_path / "plt", tmp_path / "out.hdf5", to="chombo")
    esker.amr.convert(tmp_path / "plt", tmp_path / "direct.nc")
    esker.amr.convert(tmp_path / "out.hdf5", tmp_path / "back.nc")
    same_files(tmp_path / "direct.nc", tmp_path / "back.nc")
    assert (tmp_path / "direct.nc").read_bytes() == (tmp_path / "back.nc").read_bytes()
    esker.amr.convert(tmp_path / "out.hdf5", tmp_path / "plt_back", to="amrex")
    old, new = bits(tmp_path / "plt"), bits(tmp_path / "plt_back")
    assert all(old[name] == new[name] for name in old if "Cell_D" in name and old[name])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["back.nc", "direct.nc", "out.hdf5", "plt", "plt_back"]


@pytest.mark.parametrize("levels", list(real_boxes()))
def test_boxes_of_real_runs_go_to_chombo_and_back(tmp_path, chombo, levels):
    plotfile(tmp_path / "plt", ["a"], levels)
    esker.amr.convert(tmp_path / "plt", tmp_path / "plt.nc")
    esker.amr.convert(tmp_path / "plt.nc", tmp_path / "out.hdf5")
    esker.amr.convert(tmp_path / "out.hdf5", tmp_path / "back.nc")
    assert (tmp_path / "plt.nc").read_bytes() == (tmp_path / "back.nc").read_bytes()


def chombo_file(path, ghost, *, said="outputGhost", damage=None):
    """A Chombo file as Chombo writes it, without anything of ours: one level of two boxes, and one finer box."""
    box = np.dtype([(n, "<i4") for n in ("lo_i", "lo_j", "hi_i", "hi_j")])
    vector = np.dtype([("intvecti", "<i4"), ("intvectj", "<i4")])
    levels = [[((0, 0), (3, 3)), ((4, 0), (7, 3))], [((2, 2), (5, 5))]]
    with h5py.File(path, "w") as file:
        file.attrs.update(
            {"filetype": np.bytes_("VanillaAMRFileType"), "num_levels": 2, "num_components": 1, "iteration": 7, "time": 1.5}
        )
        file.attrs["component_0"] = np.bytes_("phi")
        file.create_group("Chombo_global").attrs["SpaceDim"] = 2
        for number, boxes in enumerate(levels):
            group = file.create_group(f"level_{number}")
            group.attrs.update({"dx": 0.25 / 2**number, "dt": 0.1, "time": 1.5, "ref_ratio": 2})
            high = (8 << number) - 1
            group.attrs["prob_domain"] = np.array((0, 0, high, (4 << number) - 1), dtype=box)
            attrs = group.create_group("data_attributes").attrs
            attrs["comps"], attrs["objectType"] = 1, np.bytes_("FArrayBox")
            attrs[said] = np.array((ghost, ghost), dtype=vector)
            group["boxes"] = np.array([(*lo, *hi) for lo, hi in boxes], dtype=box)
            parts = []
            for one in boxes:
                inner = values(number, 1, one, "f8")[0]
                parts.append(np.pad(inner, ghost, constant_values=-99).ravel(order="F"))
            group["data:datatype=0"] = np.concatenate(parts)
            group["data:offsets=0"] = np.cumsum([0, *map(len, parts)])
        if damage:
            damage(file)
    return levels


@pytest.mark.parametrize("ghost, said", [(0, "outputGhost"), (2, "outputGhost"), (1, "ghost")])
def test_ghost_cells_of_chombos_files_are_left_out(tmp_path, chombo, ghost, said):
    levels = chombo_file(tmp_path / "c.hdf5", ghost, said=said)
    esker.amr.convert(tmp_path / "c.hdf5", tmp_path / "c.nc")
    with esker.amr.open(tmp_path / "c.nc") as a:
        assert (a.components, a.time, a.levels[1].ratio) == (("phi",), 1.5, (2, 2))
        assert a.lo == (0.0, 0.0) and a.hi == (2.0, 1.0) and a.levels[0].step == 7
        for level, boxes in enumerate(levels):
            for number, box in enumerate(boxes):
                np.testing.assert_array_equal(a.box(level, number), values(level, 1, box, "f8"))


def test_a_conversion_that_fails_leaves_what_was_there(tmp_path, chombo):
    plotfile(tmp_path / "plt", ["a"], LEVELS)
    (tmp_path / "plt.nc").write_bytes(b"before")
    data = tmp_path / "plt" / "Level_1" / "Cell_D_00000"
    data.write_bytes(data.read_bytes()[:-9])
    with pytest.raises(esker.FormatError, match="level 1, box 1"):
        esker.amr.convert(tmp_path / "plt", tmp_path / "plt.nc")
    chombo_file(tmp_path / "c.hdf5", 0)
    with pytest.raises(FileExistsError):
        esker.amr.convert(tmp_path / "c.hdf5", tmp_path / "plt.nc", overwrite=False)
    assert (tmp_path / "plt.nc").read_bytes() == b"before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.hdf5", "plt", "plt.nc"]


def test_chombo_files_that_lie_are_errors_with_level_and_number(tmp_path, chombo):
    def offsets(file):
        file["level_0/data:offsets=0"][1] = 17

    def outside(file):
        boxes = file["level_1/boxes"][:]
        boxes["hi_i"], boxes["lo_i"] = 17, 14
        file["level_1/boxes"][:] = boxes

    def overlap(file):
        boxes = file["level_0/boxes"][:]
        boxes["lo_i"][1], boxes["hi_i"][1] = 3, 6
        file["level_0/boxes"][:] = boxes

    def no_level(file):
        file.attrs["num_levels"] = 3

    for damage, told in (
        (offsets, "level 0: box 0 has 17 values for 16"),
        (outside, "level 1, box 0.*not inside the domain"),
        (overlap, "level 0, box 0.*overlaps box 1"),
        (no_level, "level_2"),
        (lambda file: file.attrs.__setitem__("num_levels", 10**6), "num_levels is 1000000"),
        (lambda file: file.__delitem__("Chombo_global"), "no Chombo file"),
    ):
        chombo_file(tmp_path / "c.hdf5", 0, damage=damage)
        with pytest.raises(esker.FormatError, match=told):
            esker.amr.convert(tmp_path / "c.hdf5", tmp_path / "c.nc")
        assert not (tmp_path / "c.nc").exists()


def test_what_a_conversion_replaces_keeps_who_may_read_it_and_its_link(plane, chombo):
    for name, source in (("own.nc", "plt00010"), ("own.hdf5", "plt.nc")):
        (plane / name).write_bytes(b"before")
        (plane / name).chmod(0o600)
        (plane / f"link-{name}").symlink_to(name)
        esker.amr.convert(plane / source, plane / f"link-{name}")
        assert (plane / f"link-{name}").is_symlink()
        assert (plane / name).stat().st_mode & 0o777 == 0o600 and (plane / name).read_bytes() != b"before"
    assert not [path.name for path in plane.iterdir() if path.name.startswith(".")]
