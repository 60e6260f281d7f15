"""Columns of netCDF4's variables.

netCDF4 tells nobody of the datasets' identifiers in HDF5: they are opened again by their paths in the file that it has open.
It has no lock of its own either; the interpreter's is kept while its HDF5 is in use.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
from typing import Any, Iterator, Mapping, Optional

from . import _query_calls, _query_h5py, _query_sources, _wait

_ALL_FILES, _FILES = 0x1F, 0x01  # H5F_OBJ_ALL, H5F_OBJ_FILE
_CLASHING = "_nc4_non_coord_"  # before names of variables that are also dimensions' of another shape
_hid = ctypes.c_int64


def _extension() -> str:
    return sys.modules["netCDF4._netCDF4"].__file__ or ""


@functools.lru_cache(maxsize=None)
def library() -> _query_calls.Library:
    address = _wait.address_in_hdf5_of(_extension())
    if address is None:
        raise OSError(f"the HDF5 that netCDF4 is linked to is not found: {_extension()}")
    return _query_calls.Library(address, functools.partial(_query_h5py.lock_of, address), True)


@functools.lru_cache(maxsize=None)
def _functions() -> Any:
    """Of netCDF4's HDF5; calls keep the interpreter's lock."""
    image = ctypes.PyDLL(_extension())
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    image.H5Fget_obj_count.argtypes, image.H5Fget_obj_count.restype = [_hid, ctypes.c_uint], ctypes.c_ssize_t
    image.H5Fget_obj_ids.argtypes, image.H5Fget_obj_ids.restype = [_hid, ctypes.c_uint, size, pointer], ctypes.c_ssize_t
    image.H5Fget_name.argtypes, image.H5Fget_name.restype = [_hid, pointer, size], ctypes.c_ssize_t
    image.H5Dopen2.argtypes, image.H5Dopen2.restype = [_hid, text, _hid], _hid
    image.H5Dclose.argtypes = [_hid]
    image.H5Eget_auto2.argtypes = image.H5Eset_auto2.argtypes = [_hid, pointer, pointer]
    return image


@contextlib.contextmanager
def _quiet() -> Iterator[Any]:
    """Errors are not printed meanwhile."""
    functions = _functions()
    show, context = ctypes.c_void_p(), ctypes.c_void_p()
    functions.H5Eget_auto2(0, ctypes.byref(show), ctypes.byref(context))
    functions.H5Eset_auto2(0, None, None)
    try:
        yield functions
    finally:
        functions.H5Eset_auto2(0, show, context)


def _open_files(functions: Any) -> Iterator[tuple[int, str]]:
    """Files that are open in netCDF4's HDF5, by their identifiers and names."""
    count = max(0, functions.H5Fget_obj_count(_ALL_FILES, _FILES))
    found = (_hid * (count + 1))()
    count = functions.H5Fget_obj_ids(_ALL_FILES, _FILES, count, found) if count else 0
    for file in found[: max(0, count)]:
        size = functions.H5Fget_name(file, None, 0)
        if size >= 0:
            name = ctypes.create_string_buffer(size + 1)
            functions.H5Fget_name(file, name, size + 1)
            yield file, os.fsdecode(name.value)


def _dataset(path: str, name: str) -> int:
    """Of the file at `path`; negative: there is none such. The library's lock is held."""
    folder, _, last = name.rpartition("/")
    with _quiet() as functions:
        for file, known in _open_files(functions):
            if known != path and not _same(known, path):
                continue
            for candidate in (name, f"{folder}/{_CLASHING}{last}"):
                dataset = functions.H5Dopen2(file, candidate.encode(), 0)
                if dataset >= 0:
                    return dataset
    return -1


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


class Variable(_query_sources.Item):
    """`lock`: what is held besides while HDF5 is in use, of who shares netCDF4's HDF5 (xarray)."""

    def __init__(self, variable: Any, lock: Any = None) -> None:
        self._variable, self._lock = variable, lock
        self._group = variable.group()
        self._root = root(self._group)
        self._path = self._root.filepath()
        self.name = variable.name
        self._full_name = f"{self._group.path.rstrip('/')}/{variable.name}"
        self.place = f"variable {self._full_name!r} of {self._path!r}"
        if not self._root.data_model.startswith("NETCDF4"):
            raise ValueError(f"{self.place} is not in HDF5: its format is {self._root.data_model}")

    def _open(self) -> Any:
        if not self._root.isopen():
            raise ValueError(f"the file of {self.place} is closed")
        return self._variable

    def shape(self) -> Optional[tuple[int, ...]]:
        return self._open().shape

    def dtype(self) -> Any:
        import numpy

        dtype = self._open().dtype
        return numpy.dtype(object) if dtype is str else numpy.dtype(dtype)

    def library(self) -> _query_calls.Library:
        return library()._replace(lock=self._locked)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock or contextlib.nullcontext(), library().lock():
            yield

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        self._open()
        with self._locked():
            dataset = _dataset(self._path, self._full_name)
            if dataset < 0:
                self._root.sync()  # it has been defined, and not yet made
                dataset = _dataset(self._path, self._full_name)
        if dataset < 0:
            raise ValueError(f"{self.place} is not found in its file: netCDF4 has opened that by something else than HDF5")
        try:
            yield dataset
        finally:
            with self._locked():
                _functions().H5Dclose(dataset)

    def read(self, box: tuple[slice, ...]) -> Any:
        variable = self._open()
        before = variable.mask, variable.scale, variable.chartostring
        with self._locked():
            variable.set_auto_maskandscale(False)
            variable.set_auto_chartostring(False)
            try:
                return variable[box if box else ...]
            finally:
                variable.set_auto_mask(before[0])
                variable.set_auto_scale(before[1])
                variable.set_auto_chartostring(before[2])

    def members(self, field: tuple[str, ...]) -> Optional[Mapping[str, int]]:
        return getattr(self._open().datatype, "enum_dict", None) if not field else None

    def check(self, raw: bool) -> None:
        variable = self._open()
        attributes = set() if raw else set(variable.ncattrs())
        changing = attributes & {"scale_factor", "add_offset", "_Unsigned"} if variable.scale else set()
        if variable.mask:
            changing |= {name for name in attributes & MASKING if not is_nan(variable.getncattr(name))}
        if changing:
            raise ValueError(
                f"{self.place} has {', '.join(sorted(changing))}, which netCDF4 applies, and queries are about what is stored: say raw=True "
                "if the condition is about that, or turn it off by set_auto_maskandscale(False)"
            )


MASKING = {"_FillValue", "missing_value", "valid_min", "valid_max", "valid_range"}


def is_nan(value: Any) -> bool:
    """What is NaN matches nothing anyway."""
    try:
        return bool(value != value)
    except ValueError:  # several
        return False


def root(group: Any) -> Any:
    while getattr(group, "parent", None) is not None:
        group = group.parent
    return group


class Group(_query_sources.Group):
    def __init__(self, group: Any) -> None:
        self._group = group
        if not root(group).isopen():
            raise ValueError("the file is closed")
        path = root(group).filepath()
        self.place = f"file {path!r}" if group.path == "/" else f"group {group.path!r} of {path!r}"

    def names(self) -> list[str]:
        return list(self._group.variables)

    def child(self, path: str) -> Optional[_query_sources.Item]:
        *folders, name = path.split("/")
        group = self._group
        if not root(group).isopen():
            raise ValueError(f"{self.place} is closed")
        if folders[:1] == [""]:
            group, folders = root(group), folders[1:]
        for folder in folders:
            group = group.groups.get(folder)
            if group is None:
                return None
        return Variable(group.variables[name]) if name in group.variables else None


def of(target: Any) -> Any:
    import netCDF4

    if isinstance(target, netCDF4.Dataset):  # groups are such, too
        return Group(target)
    return Variable(target) if isinstance(target, netCDF4.Variable) else None
