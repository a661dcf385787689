"""Unstructured meshes: UGRID files, cut into parts with halos::

    m = esker.mesh.open("mesh.nc", comm=comm)
    p = m.part("face", halo=1, by="hilbert")     # or labels, or a file
    p.own, p.halo, p.table("face_node")          # global numbers; rows in p's numbering
    t = p.read("t", time=0)                      # own, then halo, in p's numbering
    esker.mesh.convert("mpas.nc", "ugrid.nc")    # MPAS, ESMF, SCRIP, Exodus, ICON, FESOM

Every rank has its part, and nobody the whole. Calls are collective over the mesh's ranks.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _dataset, _esker
from ._whole import Nothing, is_hdf5, together, whole
from .errors import MissingName
from .relation import Relation, _numbers, dense_rows

__all__ = ["Converted", "Mesh", "Part", "Table", "convert", "meshes", "open"]

_LOCATIONS = ("node", "edge", "face", "volume")


@dataclass(frozen=True)
class Field:
    """A variable on a mesh."""

    name: str
    #: ``node``, ``edge`` or ``face``.
    location: str
    #: Which of its dimensions is the mesh's.
    place: int


class Mesh:
    """One mesh of a dataset. Made by :func:`open` and :func:`meshes`."""

    def __init__(self, dataset: _dataset.Dataset, number: int, found: dict[str, Any], owns: bool = False) -> None:
        #: The dataset that it is in.
        self.dataset = dataset
        self._number = number
        self._owns = owns
        #: The name of the variable that describes it.
        self.name: str = found["name"]
        #: 1 for a network of lines, 2 for areas.
        self.dimension: int = found["dimension"]
        counts = dict(zip(_LOCATIONS, found["counts"]))
        #: How many ``node``, ``edge``, ``face`` and ``volume`` there are; None if the file has none.
        self.counts: dict[str, int | None] = counts
        #: The names of the dimensions of ``node``, ``edge``, ``face`` and ``volume``.
        self.dims: dict[str, str | None] = dict(zip(_LOCATIONS, found["dims"]))
        #: The names of their coordinates, x or longitude first.
        self.coordinates: dict[str, list[str]] = dict(zip(_LOCATIONS, found["coordinates"]))
        #: The tables that are stored: ``face_node``, ``edge_node``, …
        self.tables: list[str] = found["tables"]
        #: The variables on it by name.
        self.fields: dict[str, Field] = {name: Field(name, at, place) for name, at, place in found["fields"]}

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.counts["node"] or 0

    @property
    def edges(self) -> int:
        """How many edges the file has."""
        return self.counts["edge"] or 0

    @property
    def faces(self) -> int:
        """How many faces the file has."""
        return self.counts["face"] or 0

    @property
    def volumes(self) -> int:
        """How many volumes the file has."""
        return self.counts["volume"] or 0

    def relation(self, name: str) -> Relation:
        """A relation by name (``face_node``, ``node_face``, ``face_face``), in shares of rows: as it is stored, or the inverse of
        what is, or for ``face_face`` the faces that share two nodes, for ``volume_volume`` the volumes that share three. Collective."""
        begin, _, end = name.partition("_")
        if begin not in _LOCATIONS or end not in _LOCATIONS:
            raise MissingName(f"{self.dataset.path}: {name!r} is no relation of a mesh: face_node, edge_face and the like are")
        return Relation(_esker.mesh_relation(self.dataset._handle, self._number, begin, end))

    def part(
        self, location: str, *, halo: int = 0, by: Any = "range", over: Relation | None = None
    ) -> Part:
        """Cuts the mesh: this rank's elements of a location, with layers of halo. Collective.

        by: ``range`` (equal ranges of numbers), ``hilbert`` (equal pieces of Hilbert's curve), the name of a variable with a rank for each
            element, a path of such numbers as METIS writes them (one in a line), or an array of them: for all elements, or for this
            rank's share. Numbers are taken modulo the ranks.
        over: the relation whose neighbours are the halo; by default that of elements with a common face (volumes), edge (faces) or node.
        """
        how, name, labels = str(by), None, None
        if not isinstance(by, (str, os.PathLike)):
            how, labels = "given", self._share(_numbers(by), location)
        elif by not in ("range", "hilbert"):
            name = os.fsdecode(by)
            how = "labels" if isinstance(by, str) and by in self.dataset else "file"
        others = (int(halo), None if over is None else over._native)
        try:
            native = _esker.mesh_part(self.dataset._handle, self._number, location, how, name, labels, *others)
        except ValueError:
            # A negative label names no rank, which the other ranks know by now.
            if labels is not None and (labels < 0).any():
                at = int(np.argmax(labels < 0))
                raise ValueError(f"element {at}: label {labels[at]} is no rank") from None
            raise
        return Part(self, native)

    def _share(self, labels: np.ndarray, location: str) -> np.ndarray:
        """This rank's share of labels of all elements; a share stays what it is."""
        count, rank, size = self.counts.get(location) or 0, self.dataset.rank, self.dataset.size
        each, more = divmod(count, size)
        begin = rank * each + min(rank, more)
        end = begin + each + (rank < more)
        share = np.ascontiguousarray(labels[begin:end]) if len(labels) == count else labels
        return np.where(share < 0, share, share % size)

    def close(self) -> None:
        """Closes the dataset, if :func:`open` has opened it. Collective."""
        if self._owns:
            self.dataset.close()

    def __enter__(self) -> Mesh:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._owns:
            self.dataset.__exit__(kind, error, trace)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {name}s" for name, count in self.counts.items() if count is not None)
        return f"<esker.Mesh {self.name!r} of {self.dataset.path!r}: {counts}>"


class Table:
    """Rows of a relation for a part, in local numbers."""

    __slots__ = ("globals", "indices", "offsets")

    def __init__(self, offsets: np.ndarray, indices: np.ndarray, globals: np.ndarray) -> None:
        #: Where each row begins in :attr:`indices`, and where the last one ends.
        self.offsets = offsets
        #: Local numbers of the elements that rows name.
        self.indices = indices
        #: The global number of each local one.
        self.globals = globals

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        if row < 0:
            row += len(self)
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return self.indices[self.offsets[row] : self.offsets[row + 1]]

    def to_array(self, fill: int = -1) -> np.ndarray:
        """The rows as a table of fixed width, which is that of this part's longest row."""
        width = int(np.diff(self.offsets).max(initial=0))
        return dense_rows(self.offsets, self.indices, width, fill)

    def __repr__(self) -> str:
        return f"<esker.mesh.Table of {len(self)} rows to {len(self.globals)} elements>"


class Part:
    """What this rank has of a mesh's elements: own ones, a halo, and who has what.

    Local numbers: own elements first, in rising order of their global numbers, then the halo, layer by layer.
    """

    def __init__(self, mesh: Mesh, native: _esker.Part) -> None:
        #: The mesh.
        self.mesh = mesh
        self._native = native
        #: ``node``, ``edge`` or ``face``.
        self.location: str = native.location
        #: The global numbers of own elements, rising.
        self.own: np.ndarray = native.own()
        #: The global numbers of the halo.
        self.halo: np.ndarray = native.halo()
        #: The rank that owns each element of the halo; -1 where nobody's own elements have it.
        self.halo_owners: np.ndarray = native.halo_owners()
        #: For each neighbour: the local numbers of own elements that it has in its halo.
        self.send: dict[int, np.ndarray] = native.send()
        #: For each neighbour: the local numbers of the halo's elements that it owns, in the order in which it sends them.
        self.receive: dict[int, np.ndarray] = native.receive()

    @property
    def globals(self) -> np.ndarray:
        """The global numbers by local ones: own, then halo."""
        return np.concatenate([self.own, self.halo])

    @property
    def owners(self) -> np.ndarray:
        """The rank that owns each element, by local number."""
        return np.concatenate([np.full(len(self.own), self.mesh.dataset.rank), self.halo_owners])

    def __len__(self) -> int:
        return len(self._native)

    def relation(self, name: str) -> Relation:
        """The mesh's relation of this name, which must be one of these elements. Collective."""
        return self.mesh.relation(name)

    def table(self, name: str | Relation, numbered: Part | None = None) -> Table:
        """The rows of a relation for own elements and halo. Collective.

        Numbers are those of ``numbered``, a part of the elements that rows name (such as :meth:`neighbours` gives); this part's for a relation of
        its elements with themselves. What that part has not, and everything without one, is numbered in the order of appearance;
        ``globals`` of the result has the global numbers.
        """
        relation = self.mesh.relation(name) if isinstance(name, str) else name
        if numbered is None and name == f"{self.location}_{self.location}":
            numbered = self
        made = self._native.table(relation._native, None if numbered is None else numbered._native)
        return Table(*made)

    def neighbours(self, location: str, relation: Relation | None = None) -> Part:
        """The part of the elements of another location that these name, such as the nodes of faces. An element that several
        ranks have is owned by the lowest of them, so that it is written once. Collective."""
        relation = relation or self.mesh.relation(f"{self.location}_{location}")
        return Part(self.mesh, self._native.of_neighbours(relation._native, location))

    def read(self, name: str, **index: int | slice) -> np.ndarray:
        """A field in this part's numbering: own elements, then the halo. One collective call.

        Other dimensions are whole, or what ``index`` says by their names: ``p.read("t", time=0, layer=slice(0, 4))``. An integer
        takes its dimension away. The mesh's dimension keeps its place among the others.
        """
        variable, place, ranges, kept = self._checked(name, index, writing=False)
        flat = self._native.read(variable._handle, variable._id, place, ranges)
        lengths = [stop - start for start, stop in ranges]
        lengths[place] = len(self)
        return flat.reshape([length for dim, length in enumerate(lengths) if kept[dim]])

    def write(self, name: str, values: Any, **index: int | slice) -> None:
        """Writes a field as :meth:`read` gives it, for own elements or for own elements and halo, of which the first are written.
        One collective call; records grow."""
        variable, place, ranges, kept = self._checked(name, index, writing=True)
        kind, given = variable.dtype, np.asarray(values)
        lengths = [stop - start for start, stop in ranges]
        shapes = []
        for count in (len(self), len(self.own)):
            lengths[place] = count
            shapes.append(tuple(length for dim, length in enumerate(lengths) if kept[dim]))
        if given.dtype != kind and not (given.dtype.kind in "iufb" and kind.kind in "iuf"):
            self._refuse()
            raise TypeError(f"variable {name!r} has values of {kind}, not {given.dtype}")
        if given.shape not in shapes:
            self._refuse()
            raise ValueError(f"variable {name!r}: values of shape {given.shape}, expected {shapes[1]}, or {shapes[0]} with the halo")
        if given.dtype.kind == "b":
            given = given.astype(np.int8)
        given = np.ascontiguousarray(given, dtype=given.dtype.newbyteorder("="))
        self._native.write(variable._handle, variable._id, place, ranges, given.reshape(-1))

    def update_halo(self, values: np.ndarray) -> np.ndarray:
        """A copy of values by local number (and perhaps more dimensions), in which the halo has those of its owners. Collective."""
        given = np.ascontiguousarray(values)
        is_wide = given.dtype.itemsize == 8
        if not is_wide and not np.can_cast(given.dtype, np.float64):
            raise TypeError(f"values of {given.dtype} cannot be sent")
        flat = given.reshape(-1)
        sent = flat.view(np.float64) if is_wide else flat.astype(np.float64)
        each = given.size // len(given) if len(given) else 1
        back = self._native.update_halo(sent, each)
        return (back.view(given.dtype) if is_wide else back.astype(given.dtype)).reshape(given.shape)

    def _checked(self, name: str, index: Mapping[str, int | slice], writing: bool) -> Any:
        try:
            return self._selected(name, index, writing)
        except Exception:
            self._refuse()
            raise

    def _refuse(self) -> None:
        """Takes part in a collective read or write with an error, so that the other ranks do not wait."""
        try:
            # Without ranges of its dimensions no field can be read, which all ranks are told.
            self._native.read(self.mesh.dataset._handle, 0, 0, [])
        except Exception:
            # The error that counts is the one that the caller raises.
            pass

    def _selected(
        self, name: str, index: Mapping[str, int | slice], writing: bool
    ) -> tuple[Any, int, list[tuple[int, int]], list[bool]]:
        """A field, the place of the mesh's dimension, the ranges of all, and which dimensions stay."""
        dataset = self.mesh.dataset
        variable = dataset[name]
        own = self.mesh.dims[self.location]
        places = [at for at, dim in enumerate(variable.dims) if dim == own]
        if not places:
            raise ValueError(f"{dataset.path}: variable {name!r} is over {variable.dims}, not over the {self.location}s ({own})")
        place = places[-1]
        unknown = [dim for dim in index if dim not in variable.dims or dim == own]
        if unknown:
            raise ValueError(f"{dataset.path}: variable {name!r} over {variable.dims} has no other dimension {unknown[0]!r}")
        ranges, kept = [], []
        for dim, length in zip(variable.dims, variable.shape):
            part = index.get(dim, slice(None))
            kept.append(isinstance(part, slice))
            if isinstance(part, slice):
                grows = writing and dim == dataset.unlimited and part.stop is not None and part.stop > length
                start, stop, step = part.indices(part.stop if grows else length)
                if step != 1:
                    raise ValueError(f"dimension {dim!r}: parts are read with step 1, not {step}")
                ranges.append((start, max(start, stop)))
            else:
                at = int(part)
                at = at + length if at < 0 else at
                if at < 0 or (at >= length and not (writing and dim == dataset.unlimited)):
                    raise IndexError(f"{dataset.path}: variable {name!r}: index {int(part)} of dimension {dim!r}, which has {length}")
                ranges.append((at, at + 1))
        kept[place] = True
        return variable, place, ranges, kept

    def __repr__(self) -> str:
        return f"<esker.mesh.Part: {len(self.own)} of {self._native.count} {self.location}s, and a halo of {len(self.halo)}>"


def meshes(dataset: _dataset.Dataset) -> dict[str, Mesh]:
    """The meshes of an open dataset by name."""
    found = _esker.mesh_topologies(dataset._handle)
    return {one["name"]: Mesh(dataset, number, one) for number, one in enumerate(found)}


def open(
    path: str | os.PathLike[str], mode: str = "r", *, comm: Any = None, mesh: str | None = None, hints: Any = None
) -> Mesh:
    """Opens a mesh of a UGRID file. With ``comm=`` collective.

    mode: ``r`` to read, ``r+`` to write fields.
    mesh: which one, if the file has several; the first without it.
    """
    dataset = _dataset.open(path, mode, comm=comm, hints=hints)
    try:
        found = meshes(dataset)
        if not found:
            raise MissingName(f"{dataset.path}: no variable has cf_role = 'mesh_topology': esker.mesh.convert makes UGRID of other conventions")
        if mesh is not None and mesh not in found:
            raise MissingName(f"{dataset.path}: there is no mesh {mesh!r}: there are {', '.join(found)}")
    except Exception:
        # All ranks are here, because the header is everyone's.
        dataset.close()
        raise
    chosen = found[mesh] if mesh is not None else next(iter(found.values()))
    chosen._owns = True
    return chosen


@dataclass(frozen=True)
class Converted:
    """What was made of a file."""

    #: What it was: ``MPAS``, ``ESMF``, ``SCRIP``, ``Exodus``, ``ICON``, ``FESOM``.
    convention: str
    nodes: int
    edges: int
    faces: int
    #: Variables that were left out because the mesh has their names.
    left_out: tuple[str, ...]
    volumes: int = 0


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    format: str = "cdf5",
    overwrite: bool = True,
    comm: Any = None,
) -> Converted:
    """Makes a UGRID file of a mesh in another convention, known by its content, with the fields on it. Collective over ``comm``.

    The file is the same on any number of ranks. A netCDF-4 file is first read by xarray (with netCDF4 or h5netcdf) into a classic one, on rank 0.
    """
    source, target = os.fsdecode(source), os.fsdecode(target)
    options: dict[str, Any] = {"format": format, "overwrite": True, "comm": comm}
    if not is_hdf5(source):
        with whole(target, overwrite, comm) as draft:
            made = _esker.mesh_convert(source, draft, **options)
    else:
        with tempfile.TemporaryDirectory() if comm is None or comm.rank == 0 else Nothing() as folder:
            classic = together(comm, lambda: _classic_of(source, os.path.join(folder, "mesh.nc")))
            with whole(target, overwrite, comm) as draft:
                made = _esker.mesh_convert(classic, draft, **options)
    convention, (nodes, edges, faces, volumes), left_out = made
    return Converted(convention, nodes, edges, faces, tuple(left_out), volumes)


def _classic_of(source: str, target: str) -> str:
    """A netCDF-4 file as a classic one, values and attributes as they are stored."""
    import xarray

    from . import xarray as _accessor  # noqa: F401

    with xarray.open_dataset(source, decode_cf=False, mask_and_scale=False) as ds:
        ds.encoding = {}
        for variable in ds.variables.values():
            variable.encoding = {}
        ds.esker.to_netcdf(target, format="cdf5")
    return target
