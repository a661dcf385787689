"""Block-structured AMR: levels of boxes in one file::

    a = esker.amr.open("plt.nc")
    u = a.read("density", level=2, lo=(0, 0, 0), hi=(63, 63, 63))    # the finest data there is, coarser injected
    esker.amr.convert("plt00010", "plt.nc")                          # an AMReX plotfile
    esker.amr.convert("plt.nc", "out.hdf5", to="chombo")             # and back; Chombo needs h5py
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _esker
from ._whole import Nothing, is_hdf5, together, whole

__all__ = ["Amr", "Level", "convert", "open"]


@dataclass(frozen=True)
class Level:
    """One level of a hierarchy."""

    #: The lowest and the highest cell that it could have, a table of two rows, x first; both are inclusive.
    domain: np.ndarray
    #: How many of its cells are in one of the next coarser level, in each dimension.
    ratio: tuple[int, ...]
    #: The size of a cell.
    cell_size: tuple[float, ...]
    #: The number of the time step.
    step: int
    #: Its time.
    time: float
    #: The boxes: number, lowest or highest cell, dimension.
    boxes: np.ndarray

    def __len__(self) -> int:
        """How many boxes it has."""
        return len(self.boxes)


class Amr:
    """An open hierarchy. Made by :func:`open`; a context manager."""

    def __init__(self, native: _esker.Amr, path: str) -> None:
        self._native = native
        self.path = path
        found = native.hierarchy()
        #: 1, 2 or 3.
        self.dimensions: int = found["dimensions"]
        #: The names of the components.
        self.components: tuple[str, ...] = tuple(found["components"])
        #: The time.
        self.time: float = found["time"]
        #: The corners of the problem.
        self.lo: tuple[float, ...] = tuple(found["lo"])
        self.hi: tuple[float, ...] = tuple(found["hi"])
        #: AMReX's number of the coordinate system.
        self.coordinates: int = found["coordinates"]
        #: What values are: float64, or float32.
        self.dtype = np.dtype(np.float32 if found["single"] else np.float64)
        #: The levels, coarsest first.
        self.levels: tuple[Level, ...] = tuple(_level(one, self.dimensions) for one in found["levels"])

    def read(
        self, component: str, *, level: int = -1, lo: Sequence[int] | None = None, hi: Sequence[int] | None = None
    ) -> np.ndarray:
        """A covering grid: the values of a component in all cells of a level from ``lo`` to ``hi``, both inclusive; of the level itself where it
        has boxes, of the next coarser one that has some elsewhere, injected. Cells that no level has are NaN.

        ``u[i, j, k]`` is the cell ``(lo[0] + i, lo[1] + j, lo[2] + k)``. Without ``lo`` and ``hi`` the whole domain. Only boxes that intersect the region
        are read. Collective; every rank asks for a region of its own (:meth:`read_nothing` for none).
        """
        number, of = self._checked(level)
        begin = of.domain[0] if lo is None else lo
        end = of.domain[1] if hi is None else hi
        begin, end = ([int(cell) for cell in corner] for corner in (begin, end))
        shape = [last - first + 1 for first, last in zip(begin, end)]
        wrong = None
        if len(begin) != self.dimensions or len(end) != self.dimensions:
            wrong = f"{self.path}: corners {begin} and {end} in a hierarchy of {self.dimensions} dimensions"
        elif min(shape) < 1:
            wrong = f"{self.path}: there are no cells from {begin} to {end}; both corners are inclusive"
        try:
            flat = self._native.read(component, number, (begin, end))
        except ValueError:
            # The other ranks know by now.
            if wrong is not None:
                raise ValueError(wrong) from None
            raise
        return flat.astype(self.dtype, copy=False).reshape(shape, order="F")

    def read_nothing(self, component: str, *, level: int = -1) -> None:
        """Takes part in a collective :meth:`read` without a region."""
        self._native.read(component, self._checked(level)[0], None)

    def plane(self, component: str, axis: int | str, at: int | None = None, *, level: int = -1) -> np.ndarray:
        """The plane of a covering grid in which a coordinate is one cell (the middle without ``at``); ``axis`` is a number, or x, y or z. Collective."""
        _, of = self._checked(level)
        number = "xyz".find(axis) if isinstance(axis, str) else int(axis)
        if not 0 <= number < self.dimensions:
            self._refuse()
            raise ValueError(f"{self.path}: axis {axis!r} of {self.dimensions} dimensions")
        lo, hi = of.domain[0].copy(), of.domain[1].copy()
        cell = (lo[number] + hi[number]) // 2 if at is None else int(at)
        lo[number] = hi[number] = cell
        return np.squeeze(self.read(component, level=level, lo=lo, hi=hi), axis=number)

    def box(self, level: int, number: int) -> np.ndarray:
        """The values of one box: ``values[component, i, j, k]``. Independent."""
        at, of = self._level(level)
        if not 0 <= number < len(of):
            raise IndexError(f"{self.path}: level {level} has no box {number}: it has {len(of)}")
        shape = of.boxes[number, 1] - of.boxes[number, 0] + 1
        flat = self._native.read_box(at, number).astype(self.dtype, copy=False)
        # x is fastest and the component slowest.
        return flat.reshape([len(self.components), *shape[::-1]]).transpose(0, *range(self.dimensions, 0, -1))

    def _level(self, level: int) -> tuple[int, Level]:
        count = len(self.levels)
        if not -count <= level < count:
            raise IndexError(f"{self.path}: there is no level {level}: {count} are there")
        return level % count, self.levels[level]

    def _checked(self, level: int) -> tuple[int, Level]:
        try:
            return self._level(level)
        except IndexError:
            self._refuse()
            raise

    def _refuse(self) -> None:
        """Takes part in a collective read with an error, so that the other ranks do not wait."""
        try:
            # No component has this name, which all ranks are told.
            self._native.read("\n", 0, None)
        except Exception:
            # The error that counts is the one that the caller raises.
            pass

    def close(self) -> None:
        """Closes it. Collective."""
        self._native.close()

    def __enter__(self) -> Amr:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        boxes = "; ".join(f"level {n}: {len(level)} boxes" for n, level in enumerate(self.levels))
        return f"<esker.Amr {self.path!r}: {', '.join(self.components)}; {boxes}>"


def _level(found: dict[str, Any], dims: int) -> Level:
    return Level(
        domain=np.array(found["domain"], dtype=np.int64).reshape(2, dims),
        ratio=tuple(found["ratio"]),
        cell_size=tuple(found["cell_size"]),
        step=found["step"],
        time=found["time"],
        boxes=found["boxes"],
    )


def open(path: str | os.PathLike[str], *, comm: Any = None) -> Amr:
    """Opens a hierarchy that :func:`convert`, ``esker amr convert`` or the library has stored. With ``comm=`` collective."""
    path = os.fsdecode(path)
    return Amr(_esker.amr_open(path, comm), path)


def _kind(path: str) -> str:
    """What a hierarchy is stored as: ``amrex``, ``chombo`` or ``esker``."""
    if os.path.isfile(os.path.join(path, "Header")):
        return "amrex"
    return "chombo" if is_hdf5(path) else "esker"


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    to: str | None = None,
    overwrite: bool = True,
    comm: Any = None,
) -> None:
    """Brings a hierarchy from one form into another: values, boxes, times and names stay as they are, bit for bit. Collective over ``comm``.

    The source is an AMReX plotfile (a directory), a Chombo file (HDF5, read with h5py) or one of ours, known by its content.

    to: ``esker``, ``amrex`` or ``chombo``. Without it one of ours, and of one of ours a Chombo file if the name ends in .hdf5 or .h5, else a plotfile.
    overwrite: whether a file of the target's name is replaced. A plotfile must not be there.
    """
    source, target = os.fsdecode(source), os.fsdecode(target)
    kind = _kind(source)
    if to is None:
        is_chombo = target.lower().endswith((".hdf5", ".h5", ".hdf"))
        to = "esker" if kind != "esker" else ("chombo" if is_chombo else "amrex")
    if to not in ("esker", "amrex", "chombo"):
        raise ValueError(f"to={to!r} is not one of esker, amrex, chombo")
    if kind == to:
        raise ValueError(f"{source}: it is {to} already: copy it")
    if "esker" not in (kind, to):
        # Between two others there is one of ours.
        is_first = comm is None or comm.rank == 0
        with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(target))) if is_first else Nothing() as folder:
            between = together(comm, lambda: os.path.join(folder, "between.nc"))
            convert(source, between, to="esker", comm=comm)
            convert(between, target, to=to, overwrite=overwrite, comm=comm)
            together(comm, lambda: None)
        return
    if kind == "amrex":
        with whole(target, overwrite, comm) as draft:
            _esker.amr_from_plotfile(source, draft, overwrite=True, comm=comm)
    elif kind == "chombo":
        from ._chombo import ChomboFile

        with ChomboFile(source, comm) as found, whole(target, overwrite, comm) as draft:
            _esker.amr_store(source, found.hierarchy, found.read_box, draft, overwrite=True, comm=comm)
    elif to == "amrex":
        _esker.amr_to_plotfile(source, target, comm=comm)
    else:
        from ._chombo import write

        with whole(target, overwrite, comm) as draft:
            together(comm, lambda: write(source, draft))
