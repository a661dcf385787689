"""Datasets: dimensions, variables and attributes of one file."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _esker
from ._attributes import Attributes
from ._graphs import Graph, Graphs
from ._layout import Filter, chunk_lengths, filters_text
from ._variable import Variable
from ._versions import Version, versions
from .errors import MissingName

__all__ = ["Dataset", "Dimension", "create", "open"]


class Dimension:
    """A named length. ``len(dim)`` is how long it is now."""

    __slots__ = ("is_unlimited", "name", "size")

    def __init__(self, name: str, size: int, is_unlimited: bool) -> None:
        self.name = name
        self.size = size
        self.is_unlimited = is_unlimited

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        unlimited = ", unlimited" if self.is_unlimited else ""
        return f"<esker.Dimension {self.name!r}: {self.size}{unlimited}>"


class Dimensions(Mapping[str, Dimension]):
    """The dimensions of a dataset by name."""

    __slots__ = ("_dataset", "_handle")

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._handle = dataset._handle

    def _all(self) -> dict[str, Dimension]:
        return {name: Dimension(name, size, unlimited) for name, size, unlimited in self._handle.dimensions()}

    def __getitem__(self, name: str) -> Dimension:
        found = self._all()
        if name not in found:
            raise MissingName(f"{self._handle.path}: there is no dimension {name!r}: there are {', '.join(found)}")
        return found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._handle.dimensions())

    def __repr__(self) -> str:
        return "{" + ", ".join(repr(dim) for dim in self.values()) + "}"


class Variables(Mapping[str, Variable]):
    """The variables of a dataset by name."""

    __slots__ = ("_dataset",)

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __getitem__(self, name: str) -> Variable:
        return self._dataset[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._dataset._handle.variable_names())

    def __len__(self) -> int:
        return self._dataset._handle.variable_count()

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._dataset

    def __repr__(self) -> str:
        return f"<esker.Variables: {', '.join(self)}>"


class Dataset:
    """An open dataset: a classic netCDF file, or a container of logs.

    Made by :func:`esker.open` and :func:`esker.create`. A context manager, which closes it::

        with esker.open("run.nc") as ds:
            ds["t"][0, :, 10:20:2]

    Definitions and data may come in any order: define mode is entered and left as needed. Threads may
    share a dataset; reads run at the same time, without the GIL.

    With several ranks (``comm=``) creating, opening, closing, defining and ``sync`` are collective: every
    rank makes the call. So are reads and writes while :attr:`collective` is true, which it is at first;
    a rank that has nothing to move selects nothing (``v[0:0]``).
    """

    def __init__(self, handle: _esker.Handle, *, masked: bool = False, reopen: tuple[Any, ...] | None = None) -> None:
        self._handle = handle
        # Weak, because variables hold their dataset: a dataset that nobody uses is closed at once.
        self._variables: weakref.WeakValueDictionary[str, Variable] = weakref.WeakValueDictionary()
        self._reopen = reopen
        # Queued reads by keys with arrays: the result, how it is made, and of what.
        self._unfinished: list[tuple[np.ndarray, Any, np.ndarray]] = []
        if handle.size == 1:
            weakref.finalize(self, _close_forgotten, handle)
        # The graphs as they were read last, and of which definitions.
        self._graph_set: Any = None
        #: Whether variables give masked arrays.
        self.masked = masked

    # What it is.

    @property
    def path(self) -> str:
        """The file, behind symbolic links."""
        return os.fspath(self._handle.path)

    @property
    def format(self) -> str:
        """``cdf1``, ``cdf2`` or ``cdf5``."""
        return self._handle.format

    @property
    def layout(self) -> str:
        """``classic``, or ``log`` for a container."""
        return self._handle.layout

    @property
    def version(self) -> int | None:
        """The version of a container that is open; None for a classic file."""
        return self._handle.container_version

    @property
    def versions(self) -> list[Version]:
        """The versions of its container, newest first; none of a classic file."""
        return [] if self.version is None else versions(self.path)

    @property
    def dimensions(self) -> Mapping[str, Dimension]:
        """The dimensions by name."""
        return Dimensions(self)

    @property
    def dims(self) -> dict[str, int]:
        """The lengths of the dimensions by name."""
        return {name: size for name, size, _ in self._handle.dimensions()}

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables by name; ``ds["t"]`` is ``ds.variables["t"]``."""
        return Variables(self)

    @property
    def graphs(self) -> Mapping[str, Graph]:
        """The graphs of variables by name."""
        return Graphs(self)

    @property
    def attrs(self) -> Attributes:
        """The global attributes, a mapping."""
        return Attributes(self, None)

    @property
    def unlimited(self) -> str | None:
        """The name of the record dimension, if there is one."""
        for name, _, unlimited in self._handle.dimensions():
            if unlimited:
                return name
        return None

    @property
    def records(self) -> int:
        """How many records there are."""
        return self._handle.records

    @property
    def writable(self) -> bool:
        """Whether it can be changed."""
        return self._handle.writable

    @property
    def rank(self) -> int:
        """This process among those that have the dataset open together."""
        return self._handle.rank

    @property
    def size(self) -> int:
        """How many processes have the dataset open together."""
        return self._handle.size

    @property
    def collective(self) -> bool:
        """Whether reads and writes are made by all ranks together. Settable."""
        return self._handle.collective

    @collective.setter
    def collective(self, collective: bool) -> None:
        self._handle.collective = bool(collective)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._handle.mode == "closed"

    @property
    def hints(self) -> dict[str, str]:
        """The hints in force."""
        return dict(self._handle.hints())

    @property
    def notes(self) -> list[str]:
        """What happened that a program may want to know, in sentences: a burst buffer that was full, or not used."""
        return self._handle.notes()

    def report(self) -> dict[str, Any]:
        """What this rank's writes and collective calls did: strategy, messages, bytes, seconds."""
        return self._handle.report()

    def __getitem__(self, name: str) -> Variable:
        variable = self._variables.get(name)
        if variable is None:
            if not isinstance(name, str):
                raise TypeError(f"variables have names, as in ds['t']; {name!r} is not one")
            variable = Variable(self, self._handle.find_variable(name))
            self._variables[name] = variable
        return variable

    def __getattr__(self, name: str) -> Any:
        # Only called for what is not there.
        hint = ""
        if not name.startswith("_") and not self.closed and name in self:
            hint = f"; the variable of this name is ds[{name!r}]"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        try:
            self._handle.find_variable(name)
        except MissingName:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._handle.variable_names())

    def __len__(self) -> int:
        return self._handle.variable_count()

    # Definitions.

    def create_dimension(self, name: str, size: int | None = None) -> Dimension:
        """Defines a dimension; without a size the unlimited one, of which there is at most one."""
        if size is not None and int(size) <= 0:
            raise ValueError(f"dimension {name!r}: classic files have no dimensions of length {size}; None is unlimited")
        self._handle.define_dimension(name, None if size is None else int(size))
        return self.dimensions[name]

    def create_variable(
        self,
        name: str,
        dtype: Any,
        dims: Sequence[str] | str = (),
        *,
        data: Any = None,
        attrs: Mapping[str, Any] | None = None,
        fill_value: Any = None,
        fill: bool | None = None,
        chunks: int | Sequence[int] | None = None,
        filters: str | Iterable[Filter] | None = None,
    ) -> Variable:
        """Defines a variable over dimensions, slowest first.

        dtype: a NumPy dtype, or ``str`` for chars.
        data: values to write at once.
        fill_value: what elements are that nobody writes; the attribute ``_FillValue``.
        fill: False saves writing fill values, when every element will be written.
        chunks, filters: how it is stored: ``chunks=(1, 90, 90), filters=["shuffle", ("zstd", 3)]``
            (docs/chunked.md, docs/codecs.md). Filters alone choose the shape of chunks; in a
            container they need none.
        """
        if isinstance(dims, str):
            dims = (dims,)
        kind = dtype_name(dtype, name)
        number = self._handle.define_variable(
            name, kind, list(dims), fill=fill, chunks=chunk_lengths(chunks), filters=filters_text(filters)
        )
        variable = Variable(self, number)
        self._variables[name] = variable
        if fill_value is not None:
            own = variable.dtype
            value = fill_value if own.kind == "S" else np.asarray(fill_value).astype(own)
            variable.attrs["_FillValue"] = value
        for key, value in (attrs or {}).items():
            variable.attrs[key] = value
        if data is not None:
            variable[...] = data
        return variable

    def create_graph(self, name: str, *, attrs: Mapping[str, Any] | None = None) -> Graph:
        """Defines a graph of variables (docs/models.md): ``g.create_vertex("fine", ["density"])``, ``g.create_edge``, ``g.connect``."""
        _esker.graph_act(self._handle, "add_graph", [name])
        graph = Graph(self, name)
        for key, value in (attrs or {}).items():
            graph.attrs[key] = value
        return graph

    def create_decomposition(self, dims: Sequence[str] | str, starts: Any, counts: Any) -> int:
        """Defines a decomposition map: what this rank has of dimensions (none unlimited), slowest first.

        starts, counts: the blocks, one in each row, in the order in which :meth:`Variable.put_part` will have them. Collective.
        Gives the map's number, for :meth:`create_decomposed_variable`.
        """
        names = [dims] if isinstance(dims, str) else list(dims)
        table = [np.ascontiguousarray(np.asarray(part, dtype=np.int64).reshape(-1, len(names))) for part in (starts, counts)]
        if any((part < 0).any() for part in table):
            raise ValueError("starts and counts are not negative")
        return self._handle.define_decomposition(names, *table)

    def create_decomposed_variable(
        self, name: str, dtype: Any, dims: Sequence[str] | str, decomposition: int
    ) -> Variable:
        """Defines a variable over dimensions (perhaps none) and those of a map; it is read as an array over both."""
        names = [dims] if isinstance(dims, str) else list(dims)
        number = self._handle.define_decomposed_variable(name, dtype_name(dtype, name), names, decomposition)
        variable = Variable(self, number)
        self._variables[name] = variable
        return variable

    # netCDF4-python's names.
    createDimension = create_dimension

    def rename_dimension(self, old: str, new: str) -> None:
        """Renames a dimension."""
        self._handle.rename_dimension(old, new)

    def rename_variable(self, old: str, new: str) -> None:
        """Renames a variable."""
        self._handle.find_variable(old)
        self._handle.rename_variable(old, new)
        self._variables.pop(old, None)

    def enddef(self) -> None:
        """Ends define mode, which otherwise the first access to data does. Collective."""
        self._handle.enddef()

    def redef(self) -> None:
        """Enters define mode, which otherwise the first definition does. Collective."""
        self._handle.redef()

    # Data.

    def put(self, name: str, key: Any, value: Any, *, copy: bool = False) -> None:
        """Queues a write: nothing moves before :meth:`wait`, and the array is lent until then."""
        self[name].put(key, value, copy=copy)

    def get(self, name: str, key: Any = ..., *, out: np.ndarray | None = None) -> np.ndarray:
        """Queues a read; the array that is returned has its values after :meth:`wait`."""
        return self[name].get(key, out=out)

    def wait(self) -> None:
        """Moves everything that is queued, planned together. Collective while :attr:`collective` is true."""
        unfinished, self._unfinished = self._unfinished, []
        self._handle.wait()
        for result, finish, dense in unfinished:
            result[...] = finish(dense)

    def cancel(self) -> int:
        """Takes all queued requests back; tells how many there were."""
        self._unfinished = []
        return self._handle.cancel()

    @property
    def queued(self) -> int:
        """How many requests are queued."""
        return self._handle.queued()

    def sync(self, *, message: str | None = None) -> None:
        """Waits until everything written is safe from power loss; in a container, makes a version, unless nothing is new. Collective.

        message: one line that :func:`esker.versions` and ``esker log`` tell of the version; rank 0's counts.
        """
        self._handle.sync(message)

    def commit(self, *, message: str | None = None) -> None:
        """In a container, makes a version as :meth:`sync` does, without waiting for the disk. Collective.

        message: as in :meth:`sync`.
        """
        self._handle.commit(message)

    def flush(self) -> None:
        """Moves what is in a burst buffer to the file, and writes what ranks have put alone into chunks. Collective."""
        self._handle.flush()

    def flush_start(self) -> _esker.Token:
        """Begins to flush a burst buffer and returns a token: ``test()`` and ``wait()``. Collective, as the wait is."""
        return self._handle.flush_start()

    def close(self, *, message: str | None = None) -> None:
        """Closes the dataset; in a container that is written, makes a version, unless nothing is new. Collective. Closing twice does nothing.

        message: as in :meth:`sync`.
        """
        self._handle.close(message)

    def abort(self) -> None:
        """Closes the dataset without a commit. Collective. Queued requests are dropped.

        In a container, what was written since its last version is given up for good; ``esker recover`` does not bring it
        back. Other datasets have no such thing: what was written is in the file.
        """
        self._unfinished = []
        self._handle.abort(True)

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and self._handle.size > 1:
            # The others may be anywhere, and closing waits for them.
            return
        if kind is not None and self._handle.mode == "define":
            # A dataset that was never finished leaves no file.
            self._handle.abandon()
            return
        if kind is None and self._handle.queued():
            self.wait()
        self.close()

    # How it looks.

    def __repr__(self) -> str:
        from ._show import dataset_text

        return dataset_text(self)

    def _repr_html_(self) -> str:
        from ._show import dataset_html

        return dataset_html(self)

    def __reduce__(self) -> Any:
        if self._reopen is None:
            raise TypeError("only datasets that are open for reading by one process can be pickled, by their path")
        return _reopened, self._reopen


def _close_forgotten(handle: _esker.Handle) -> None:
    """Closes a dataset that went out of use, or was open when the program ended; with ranks nobody can."""
    try:
        handle.close()
    except Exception as error:
        import warnings

        warnings.warn(f"a dataset that was not closed could not be: {error}", ResourceWarning, stacklevel=2)


def _reopened(path: str, masked: bool, version: int | None) -> Dataset:
    return open(path, masked=masked, version=version)


def dtype_name(dtype: Any, variable: str) -> str:
    """The native side's name of a dtype: ``f4``, ``S1``."""
    if dtype in (str, bytes, "char", "c"):
        return "S1"
    made = np.dtype(dtype)
    if made.kind in "SU":
        if made.itemsize in (0, 1):
            return "S1"
        raise TypeError(
            f"variable {variable!r}: strings are chars along a dimension of their own; use dtype 'S1' and such a dimension"
        )
    if made.kind in "mM":
        raise TypeError(
            f"variable {variable!r}: times are stored as numbers with an attribute such as units='days since 2000-01-01', "
            f"not as {made}; xarray converts them (ds.esker.to_netcdf)"
        )
    if made.kind == "b":
        return "i1"
    return f"{made.kind}{made.itemsize}"


def _hints(hints: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    return [(str(name), str(value)) for name, value in (hints or {}).items()]


def _warn_of_hints(handle: _esker.Handle) -> None:
    for warning in handle.hint_warnings():
        import warnings

        warnings.warn(warning, stacklevel=3)


def create(
    path: str | os.PathLike[str],
    *,
    format: str = "cdf5",
    layout: str = "classic",
    clobber: bool = True,
    fill: bool = True,
    hints: Mapping[str, Any] | None = None,
    comm: Any = None,
    masked: bool = False,
) -> Dataset:
    """Creates a dataset. With ``comm=`` collective.

    format: ``cdf5`` (all eleven types, no limits), ``cdf2`` or ``cdf1``.
    layout: ``classic`` for a netCDF file, ``log`` for a container (docs/log.md).
    clobber: whether a file of this name is replaced; it stays what it is until define mode ends.
    fill: whether elements that nobody writes are fill values, which costs writing them.
    hints: how data are moved, under PnetCDF's names (docs/parallel.md); ``{"esker_chunk_files": "rank"}``
        makes a folder, with the chunks of each rank in a file of their own (docs/chunked.md).
    comm: an mpi4py communicator, whose ranks have the dataset together.

    >>> import esker, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "a.nc")
    >>> with esker.create(path) as ds:
    ...     _ = ds.create_dimension("x", 3)
    ...     _ = ds.create_variable("t", "f4", "x", data=[1, 2, 3], attrs={"units": "K"})
    >>> esker.open(path)["t"][::-1]
    array([3., 2., 1.], dtype=float32)
    """
    handle = _esker.create(
        os.fsdecode(path), format=format, layout=layout, clobber=clobber, fill=fill, hints=_hints(hints), comm=comm
    )
    _warn_of_hints(handle)
    return Dataset(handle, masked=masked)


def begin(
    path: str | os.PathLike[str], *, layout: str, clobber: bool, hints: Mapping[str, Any] | None
) -> _esker.Draft:
    """Begins a dataset that takes its name when it is complete. What is created at its ``path`` is it."""
    return _esker.begin(os.fsdecode(path), layout=layout, clobber=clobber, hints=_hints(hints))


def open(
    path: str | os.PathLike[str],
    mode: str = "r",
    *,
    comm: Any = None,
    hints: Mapping[str, Any] | None = None,
    fill: bool = True,
    version: int | str | None = None,
    masked: bool = False,
    **new: Any,
) -> Dataset:
    """Opens a dataset: a classic netCDF file (CDF-1, 2, 5) or a container. With ``comm=`` collective.

    mode: ``r`` to read, ``r+`` to change, ``a`` to change or create, ``w`` to create, ``x`` to create
        what must not be there.
    version: which version of a container to read, a number or a tag, instead of the newest; ``"run.esk@7"`` is the same.
    masked: whether variables give masked arrays.
    Other keywords are those of :func:`create`, for modes that create.
    """
    path = os.fsdecode(path)
    if isinstance(version, str):
        version = _esker.number_of_version(path, version)
    if mode == "a":
        mode = "r+" if os.path.exists(path) or _esker.is_dataset(path) else "w"
        if mode == "r+":
            new = {}
    if mode in ("w", "x"):
        new.setdefault("clobber", mode == "w")
        return create(path, comm=comm, hints=hints, fill=fill, masked=masked, **new)
    if mode not in ("r", "r+"):
        raise ValueError(f"mode {mode!r} is not one of r, r+, a, w, x")
    if new:
        raise TypeError(f"{', '.join(new)}: only for modes that create a dataset")
    handle = _esker.open(
        path, writable=mode == "r+", fill=fill, hints=_hints(hints), comm=comm, version=version
    )
    _warn_of_hints(handle)
    for note in handle.notes():
        import warnings

        warnings.warn(f"{path}: {note}", stacklevel=2)
    if version is not None and handle.container_version is None:
        handle.close()
        raise ValueError(f"{path}: version={version}: only containers have versions")
    # A pickle is the version that is open now, whatever is committed before it is opened.
    version = handle.container_version
    path = handle.path if version is not None else path
    reopen = (os.path.abspath(path), masked, version) if mode == "r" and comm is None else None
    return Dataset(handle, masked=masked, reopen=reopen)
