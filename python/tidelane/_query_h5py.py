"""Columns of h5py's and h5netcdf's datasets."""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import Any, ContextManager, Iterator, Mapping, Optional

from . import _query_calls, _query_sources, _wait

_MOST_OPENED = 1000  # links of a group, to see which are datasets


@functools.lru_cache(maxsize=None)
def library() -> _query_calls.Library:
    import h5py

    address = _wait.address_in_hdf5_of(h5py.h5.__file__)
    if address is None:
        raise OSError(f"the HDF5 that h5py is linked to is not found: {h5py.h5.__file__}")
    return _query_calls.Library(address, lambda: h5py._objects.phil, False)


def lock_of(address: int) -> ContextManager[Any]:
    """Of a library without a lock of its own: h5py's, where that has the same copy of HDF5."""
    if "h5py" in sys.modules:
        with contextlib.suppress(OSError):
            if library().address == address:
                return library().lock()
    return contextlib.nullcontext()


class Dataset(_query_sources.Item):
    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        if not dataset:
            raise ValueError("the dataset is closed, or its file is")
        self.place = f"dataset {dataset.name!r} of {dataset.file.filename!r}"
        self.name = (dataset.name or "value").rsplit("/", 1)[-1]

    def _open(self) -> Any:
        if not self._dataset:
            raise ValueError(f"{self.place} is closed, or its file is")
        return self._dataset

    def shape(self) -> Optional[tuple[int, ...]]:
        return self._open().shape

    def dtype(self) -> Any:
        return self._open().dtype

    def library(self) -> _query_calls.Library:
        return library()

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        yield self._open().id.id

    def read(self, box: tuple[slice, ...]) -> Any:
        return self._open()[box]

    def members(self, field: tuple[str, ...]) -> Optional[Mapping[str, int]]:
        import h5py

        dtype = self.dtype()
        for part in field:
            dtype = dtype[part]
        return h5py.check_enum_dtype(dtype)


class Group(_query_sources.Group):
    """`items`: an h5py group, or one of h5netcdf, whose variables stand for h5py's datasets."""

    def __init__(self, items: Any, group: Any) -> None:
        self._items, self._group = items, group
        if not group:
            raise ValueError("the file is closed")
        self.place = f"group {group.name!r} of {group.file.filename!r}" if group.name != "/" else f"file {group.file.filename!r}"

    def names(self) -> list[str]:
        names = list(self._items)
        return names if len(names) > _MOST_OPENED else [name for name in names if self.child(name) is not None]

    def child(self, path: str) -> Optional[_query_sources.Item]:
        if not self._group:
            raise ValueError(f"{self.place} is closed")
        try:
            item = self._items[path] if path else None
        except KeyError:
            return None
        return of_dataset(item)


def _of_h5netcdf(variable: Any) -> Dataset:
    dataset = variable._h5ds
    if tuple(variable.shape) != tuple(dataset.shape):
        raise ValueError(
            f"variable {dataset.name!r} of {dataset.file.filename!r} has {variable.shape} elements by its dimensions, and {dataset.shape} are stored: queries are about those"
        )
    return Dataset(dataset)


def of_dataset(item: Any) -> Optional[Dataset]:
    import h5py

    if hasattr(item, "_h5ds"):
        return _of_h5netcdf(item)
    return Dataset(item) if isinstance(item, h5py.Dataset) else None


def of(target: Any) -> Any:
    """h5netcdf's objects are looked at through its own tables of them."""
    import h5py

    if isinstance(target, h5py.Group):
        return Group(target, target)
    if type(target).__module__.startswith("h5netcdf"):
        if getattr(target._root, "_closed", False):
            raise ValueError("the file is closed")
        if hasattr(target, "_h5group"):
            return Group(target, target._h5group)
    return of_dataset(target)
