"""The C functions of src/query/exports.h, and those of HDF5 that h5py has no face for, through ctypes.

A scan's methods say what the C functions say; a failure is an EngineError with the reason.
"""

import ctypes
import json
import os
import pathlib

import h5py
import numpy as np

OF_COLUMN, SMALL_PIECES = 1, 2
END, BLOCK, LATER = 0, 1, 2
WHY = 2048

HDF5 = ctypes.CDLL(h5py.h5.__file__)  # its functions are found through what h5py is linked to


class EngineError(Exception):
    """A C function failed, and said why."""


class _Column(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dataset", ctypes.c_int64), ("field", ctypes.c_char_p)]


class Block(ctypes.Structure):
    _fields_ = [
        ("first", ctypes.c_uint64),
        ("elements", ctypes.c_uint64),
        ("hits", ctypes.c_uint64),
        ("bits", ctypes.POINTER(ctypes.c_uint64)),
    ]


def _hdf5(name, result, *arguments):
    function = getattr(HDF5, name)
    function.restype, function.argtypes = result, arguments
    return function


_ID, _TEXT, _AT, _SIZE = ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
_U64 = ctypes.POINTER(ctypes.c_uint64)
H5Dwrite = _hdf5("H5Dwrite", ctypes.c_int, _ID, _ID, _ID, _ID, _ID, _AT)
H5Dread = _hdf5("H5Dread", ctypes.c_int, _ID, _ID, _ID, _ID, _ID, _AT)
H5Pset_fill_value = _hdf5("H5Pset_fill_value", ctypes.c_int, _ID, _ID, _AT)
H5Pset_nbit = _hdf5("H5Pset_nbit", ctypes.c_int, _ID)
H5Fget_obj_count = _hdf5("H5Fget_obj_count", ctypes.c_ssize_t, _ID, ctypes.c_uint)
H5Inmembers = _hdf5("H5Inmembers", ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_uint64))


def ids_in_use():
    """How many identifiers of each kind HDF5 has."""
    found, count = {}, ctypes.c_uint64(0)
    for kind in range(1, 16):
        found[kind] = count.value if H5Inmembers(kind, count) >= 0 else 0
    return found


class Engine:
    """The plugin's file."""

    def __init__(self, path=None):
        path = path or pathlib.Path(os.environ["TIDELANE_TEST_QUERY_DIR"]) / "libtidelane.so"
        self.library = ctypes.CDLL(str(path))
        self.hdf5 = ctypes.cast(HDF5.H5open, _AT).value
        why = (_TEXT, _SIZE)
        for name, result, *arguments in (
            ("open", _AT, _AT, _TEXT, ctypes.POINTER(_Column), _SIZE, ctypes.c_uint, *why),
            ("names", _AT, _TEXT, *why),
            ("shape", ctypes.c_int, _AT, _U64, ctypes.c_int),
            ("next", ctypes.c_int, _AT, ctypes.c_int64, ctypes.POINTER(Block), *why),
            ("count", ctypes.c_int, _AT, ctypes.c_int64, _U64, *why),
            ("positions", None, _AT, _AT),
            ("mask", None, _AT, _AT),
            ("values", ctypes.c_int, _AT, _SIZE, _AT, *why),
            ("column_size", ctypes.c_uint64, _AT, _SIZE),
            ("progress", None, _AT, _U64, _U64),
            ("explain", _AT, _AT),
            ("rewind", ctypes.c_int, _AT, *why),
            ("close", None, _AT),
        ):
            function = getattr(self.library, f"tidelane_query_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        self.free = self.library.tidelane_free
        self.free.restype, self.free.argtypes = None, [_AT]

    def taken(self, address):
        """A text that is the caller's now."""
        text = ctypes.string_at(address).decode(errors="replace")
        self.free(address)
        return text


class Scan:
    """One scan; `columns`: (name, dataset, field) each."""

    def __init__(self, engine, text, columns, flags):
        self.engine, self.why = engine, ctypes.create_string_buffer(WHY)
        listed = (_Column * len(columns))(*((name.encode(), dataset, field.encode()) for name, dataset, field in columns))
        self.scan = engine.open(engine.hdf5, text.encode("utf-8", "surrogateescape"), listed, len(columns), flags, self.why, WHY)
        if not self.scan:
            raise EngineError(self.why.value.decode(errors="replace"))

    def _checked(self, result):
        if result < 0:
            raise EngineError(self.why.value.decode(errors="replace"))
        return result

    def shape(self):
        dims = (ctypes.c_uint64 * 32)()
        rank = self.engine.shape(self.scan, dims, 32)
        return tuple(dims[:rank])

    def next(self, budget, block):
        return self._checked(self.engine.next(self.scan, budget, block, self.why, WHY))

    def count(self, budget, count):
        return self._checked(self.engine.count(self.scan, budget, count, self.why, WHY))

    def positions(self, hits):
        found = np.full(hits + 1, 0xA5A5A5A5, np.uint64)  # one more, which has to stay as it is
        self.engine.positions(self.scan, found.ctypes.data)
        return found

    def mask(self, elements):
        found = np.full(elements + 1, 0xA5, np.uint8)
        self.engine.mask(self.scan, found.ctypes.data)
        return found

    def values(self, column, hits):
        found = np.full((hits + 1, self.column_size(column)), 0xA5, np.uint8)
        self._checked(self.engine.values(self.scan, column, found.ctypes.data, self.why, WHY))
        return found

    def column_size(self, column):
        return self.engine.column_size(self.scan, column)

    def progress(self):
        done, total = ctypes.c_uint64(0), ctypes.c_uint64(0)
        self.engine.progress(self.scan, done, total)
        return done.value, total.value

    def explain(self):
        return json.loads(self.engine.taken(self.engine.explain(self.scan)))

    def rewind(self):
        self._checked(self.engine.rewind(self.scan, self.why, WHY))

    def close(self):
        if self.scan:
            self.engine.close(self.scan)
        self.scan = None
