"""Columns of PyTables' tables and arrays. Its HDF5 has no lock but the interpreter's, which is kept meanwhile."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Iterator, Mapping, Optional

from . import _query_calls, _query_h5py, _query_sources, _wait


@functools.lru_cache(maxsize=None)
def library() -> _query_calls.Library:
    import tables

    extension = tables.hdf5extension.__file__
    address = _wait.address_in_hdf5_of(extension)
    if address is None:
        raise OSError(f"the HDF5 that PyTables is linked to is not found: {extension}")
    return _query_calls.Library(address, functools.partial(_query_h5py.lock_of, address), True)


class Leaf(_query_sources.Item):
    """A table or an array."""

    def __init__(self, leaf: Any) -> None:
        self._leaf = leaf
        if not leaf._v_isopen:
            raise ValueError("the node is closed, or its file is")
        self.name = leaf._v_name
        self.place = f"node {leaf._v_pathname!r} of {leaf._v_file.filename!r}"

    def _open(self) -> Any:
        if not self._leaf._v_isopen:
            raise ValueError(f"{self.place} is closed, or its file is")
        return self._leaf

    def shape(self) -> Optional[tuple[int, ...]]:
        return tuple(map(int, self._open().shape))

    def dtype(self) -> Any:
        import numpy

        leaf = self._open()
        atom = getattr(leaf, "atom", None)
        return numpy.dtype(leaf.dtype) if atom is None or leaf.dtype is not None else numpy.dtype(object)

    def library(self) -> _query_calls.Library:
        return library()

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        leaf = self._open()
        if leaf._v_file.mode != "r":
            leaf.flush()  # rows that are in PyTables' buffers
        yield leaf._v_objectid

    def read(self, box: tuple[slice, ...]) -> Any:
        return self._open()[box if len(box) != 1 else box[0]]

    def members(self, field: tuple[str, ...]) -> Optional[Mapping[str, int]]:
        leaf = self._open()
        if field:
            enum = getattr(leaf, "_colenums", {}).get("/".join(field))
        else:
            enum = getattr(getattr(leaf, "atom", None), "enum", None)
        return None if enum is None else {name: value for name, value in enum}


class Group(_query_sources.Group):
    def __init__(self, group: Any) -> None:
        self._group = group
        if not group._v_isopen:
            raise ValueError("the file is closed")
        file, path = group._v_file, group._v_pathname
        self.place = f"file {file.filename!r}" if path == "/" else f"group {path!r} of {file.filename!r}"

    def names(self) -> list[str]:
        return list(self._group._v_leaves)

    def child(self, path: str) -> Optional[_query_sources.Item]:
        import tables

        if not path.strip("/"):
            return None
        start = "/" if path.startswith("/") else self._group
        try:
            node = self._group._v_file.get_node(start, path.strip("/")) if start != "/" else self._group._v_file.get_node(path)
        except (tables.NoSuchNodeError, ValueError):
            return None
        return Leaf(node) if isinstance(node, tables.Leaf) else None


def of(target: Any) -> Any:
    import tables

    if isinstance(target, tables.File):
        if not target.isopen:
            raise ValueError("the file is closed")
        return Group(target.root)
    if isinstance(target, tables.Group):
        return Group(target)
    return Leaf(target) if isinstance(target, tables.Leaf) else None
