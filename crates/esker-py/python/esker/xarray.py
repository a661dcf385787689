"""xarray: the engine ``"esker"``, and ``ds.esker.to_netcdf(...)``.

``xarray.open_dataset("run.nc", engine="esker")`` works when the package is installed; it opens classic
files (CDF-1, 2, 5), with chunked variables too, and containers. Arrays are lazy; threads read them at the same time, without a
lock. After ``import esker.xarray`` datasets have an accessor that writes, also CDF-5, which xarray
itself cannot.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint, CachingFileManager
from xarray.backends.common import AbstractDataStore
from xarray.backends.store import StoreBackendEntrypoint
from xarray.core import indexing

from . import _dataset, _esker
from ._layout import preferred_chunks
from ._writer import write

__all__ = ["EskerAccessor", "EskerBackendEntrypoint"]


def _open(path: str, mode: str, version: int | str | None) -> _dataset.Dataset:
    return _dataset.open(path, mode, version=version)


class _Store(AbstractDataStore):
    """One dataset, opened again whenever it is needed and was closed to save files."""

    def __init__(self, path: str, version: int | str | None) -> None:
        self._path = path
        self._manager = self._managed(path, version)
        dataset = self._manager.acquire()
        if dataset.version is not None and version != dataset.version:
            # The version that is open now: one that is committed later must not be mixed with it.
            pinned = self._managed(os.fspath(dataset.path), dataset.version)
            self._manager.close()
            self._manager = pinned

    @staticmethod
    def _managed(path: str, version: int | str | None) -> CachingFileManager:
        return CachingFileManager(_open, path, mode="r", kwargs={"version": version}, lock=False)

    @property
    def dataset(self) -> _dataset.Dataset:
        return self._manager.acquire()

    def get_variables(self) -> dict[str, xr.Variable]:
        dataset = self.dataset
        return {name: self._variable(dataset[name]) for name in dataset}

    def _variable(self, variable: Any) -> xr.Variable:
        attrs = variable._handle.attributes(variable._id)
        array = _LazyArray(self._manager, variable.name, variable.shape, variable.dtype)
        data = indexing.LazilyIndexedArray(array)
        encoding: dict[str, Any] = {"source": self._path, "original_shape": variable.shape, "dtype": variable.dtype}
        if chunks := preferred_chunks(variable):
            encoding["preferred_chunks"] = chunks
        chunked, filters = variable.chunks, variable.filters
        if chunked is not None:
            attrs.pop("__chunk_shape", None)
            encoding["chunksizes"] = chunked
        if chunked is not None or filters is not None:
            attrs.pop("__filters", None)
            encoding["filters"] = filters or ""
        for name, value in attrs.items():
            # A fill value is one value to xarray, of text too.
            if name in ("_FillValue", "missing_value") and isinstance(value, str) and variable.dtype.kind == "S":
                attrs[name] = value.encode("latin-1")
        return xr.Variable(variable.dims, data, attrs, encoding)

    def get_attrs(self) -> dict[str, Any]:
        return self.dataset._handle.attributes(None)

    def get_dimensions(self) -> dict[str, int]:
        return self.dataset.dims

    def get_encoding(self) -> dict[str, Any]:
        unlimited = self.dataset.unlimited
        return {"unlimited_dims": {unlimited} if unlimited else set()}

    def close(self, **_: Any) -> None:
        self._manager.close()


class _LazyArray(BackendArray):
    """A variable that is read when it is indexed. Pickles by the dataset's path."""

    __slots__ = ("_manager", "_name", "dtype", "shape")

    def __init__(self, manager: Any, name: str, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self._manager, self._name, self.shape, self.dtype = manager, name, shape, dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        while True:
            dataset = self._manager.acquire()
            try:
                return np.asarray(dataset[self._name].oindex[key])
            except ValueError:
                # The cache of open files may have closed it meanwhile; then it is opened again.
                if not dataset.closed:
                    raise


class EskerBackendEntrypoint(BackendEntrypoint):
    """Opens classic netCDF files (CDF-1, 2, 5) and Esker's containers, for any number of threads."""

    description = "Open classic netCDF files (CDF-1, 2, 5) and containers of logs, without a lock"
    url = "https://docs.xarray.dev/en/stable/internals/how-to-add-new-backend.html"
    open_dataset_parameters = (
        "filename_or_obj",
        "mask_and_scale",
        "decode_times",
        "concat_characters",
        "decode_coords",
        "drop_variables",
        "use_cftime",
        "decode_timedelta",
        "version",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """By content, whatever the name."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        return _esker.is_dataset(os.path.expanduser(os.fspath(filename_or_obj)))

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        version: int | str | None = None,
    ) -> xr.Dataset:
        """version: which version of a container, a number or a tag, instead of the newest; the path ``run.esk@7`` is the same."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            raise ValueError("engine 'esker' opens files by their path")
        path = os.path.abspath(os.path.expanduser(os.fspath(filename_or_obj)))
        store = _Store(path, version)
        try:
            return StoreBackendEntrypoint().open_dataset(
                store,
                mask_and_scale=mask_and_scale,
                decode_times=decode_times,
                concat_characters=concat_characters,
                decode_coords=decode_coords,
                drop_variables=drop_variables,
                use_cftime=use_cftime,
                decode_timedelta=decode_timedelta,
            )
        except BaseException:
            store.close()
            raise


@xr.register_dataset_accessor("esker")
class EskerAccessor:
    """``ds.esker``: writing with Esker."""

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def to_netcdf(
        self,
        path: str | os.PathLike[str],
        mode: str = "w",
        *,
        format: str = "cdf5",
        layout: str = "classic",
        encoding: Mapping[Hashable, Mapping[str, Any]] | None = None,
        unlimited_dims: str | Iterable[str] | None = None,
        append_dim: str | None = None,
        hints: Mapping[str, Any] | None = None,
        sync: bool = False,
        progress: Any = None,
    ) -> None:
        """Writes the dataset.

        mode: ``w`` makes a new file, ``x`` one that must not be there, ``a`` adds variables to a file or,
            with ``append_dim``, records to it.
        format: ``cdf5`` stores every integer type exactly; ``cdf2`` and ``cdf1`` only what fits theirs.
        layout: ``log`` makes a container.
        encoding: for each variable, as in xarray (``dtype``, ``_FillValue``, ``scale_factor``, ``units``, …),
            and how it is stored: ``chunks`` and ``filters`` as in ``create_variable``, or netCDF4's names:
            ``chunksizes``, ``zlib``, ``complevel``, ``shuffle``, ``compression`` (zlib or zstd). Without an
            encoding a variable that engine "esker" opened keeps its chunks and filters.
        unlimited_dims: the dimension that can grow; by default the one that it came with.
        append_dim: writes behind the records that are there, in the encoding that the file has.
        sync: whether it is safe from power loss when the call returns.
        progress: a function that is told (bytes done, bytes in all).

        dask arrays are computed and written chunk by chunk.
        """
        write(
            self._dataset,
            os.path.expanduser(os.fspath(path)),
            mode,
            format=format,
            layout=layout,
            encoding={name: dict(keys) for name, keys in (encoding or {}).items()},
            unlimited_dims=unlimited_dims,
            append_dim=append_dim,
            hints=hints,
            sync=sync,
            progress=progress,
        )
