"""From what a program holds (a file, a dataset, a store, a name) to the file's path, and to its library's own flush."""

from __future__ import annotations

import os
from typing import Any, Callable, Optional


def _root(target: Any) -> Any:
    """The object of the library that stands for the whole file."""
    library = type(target).__module__.split(".")[0]
    if library == "h5py":
        return target.file if hasattr(target, "file") else _file_of_id(target)
    if library == "netCDF4" or type(target).__name__ in ("Dataset", "Variable") and hasattr(target, "group"):
        group = target.group() if callable(getattr(target, "group", None)) else target
        while getattr(group, "parent", None) is not None:
            group = group.parent
        return group
    if library == "tables":
        return getattr(target, "_v_file", target)
    if library == "h5netcdf":
        return getattr(target, "_root", target)
    return target


def _file_of_id(target: Any) -> Any:
    """Of h5py's low level."""
    import h5py

    if not isinstance(target, h5py._objects.ObjectID):
        return target
    return h5py.File(h5py.h5i.get_file_id(target))


def path_of(target: Any) -> Optional[bytes]:
    """None for None, which means all files."""
    if target is None:
        return None
    if isinstance(target, (str, bytes, os.PathLike)):
        return os.fsencode(target)
    root = _root(target)
    for name in ("filename", "_path", "filepath"):
        value = getattr(root, name, None)
        value = value() if callable(value) else value
        if isinstance(value, (str, bytes, os.PathLike)):
            return os.fsencode(value)
    source = getattr(target, "encoding", {}).get("source") if hasattr(target, "encoding") else None
    if source:
        return os.fsencode(source)
    raise TypeError(f"which file is this? {type(target).__name__} has none that is known here; give its path")


def flush_of(target: Any) -> Callable[[], Any]:
    root = _root(target)
    if type(root).__module__.split(".")[0] == "h5netcdf":
        return lambda: _flush_h5netcdf(root)
    for name in ("flush", "sync"):
        if callable(getattr(root, name, None)):
            return getattr(root, name)
    raise TypeError(f"{type(target).__name__} cannot be flushed: give the open file, or wait for it instead")


def _flush_h5netcdf(root: Any) -> None:
    """Its own flush writes an attribute, and leaves what HDF5 keeps in its caches."""
    root.flush()
    below = getattr(root, "_h5file", None)
    if callable(getattr(below, "flush", None)):
        below.flush()
