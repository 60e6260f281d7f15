"""The plugin's functions for queries (src/query/exports.h) by ctypes.

A scan is gone through in calls of at most BUDGET each, so that Ctrl-C is heard in between, and other threads have their turn.
Thread safety: a scan may be used by one thread at a time.
"""

from __future__ import annotations

import ctypes
import functools
import json
import re
import time
from typing import Any, Callable, ContextManager, NamedTuple, Optional

from . import _plugin

BUDGET_US = 50_000
TURN_SECONDS = 0.02  # after so long others are let in
CONSTANTS_OF_COLUMN = 1
_WORDS = 2048
_EINVAL = 22

Progress = Callable[[int, int], Any]


class Library(NamedTuple):
    """A copy of HDF5 in the process."""

    address: int  # in it
    lock: Callable[[], ContextManager[Any]]  # keeps others out of it
    keeps_interpreter: bool  # there is no such lock but the interpreter's


class ScanColumn(NamedTuple):
    name: str
    dataset: int  # hid_t
    field: str


class _Column(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dataset", ctypes.c_int64), ("field", ctypes.c_char_p)]


class _Block(ctypes.Structure):
    _fields_ = [
        ("first", ctypes.c_uint64),
        ("elements", ctypes.c_uint64),
        ("hits", ctypes.c_uint64),
        ("bits", ctypes.c_void_p),
    ]


class _Handle(ctypes.c_void_p):
    """A scan; it closes itself even where Ctrl-C comes before anyone has it."""

    def close(self) -> None:
        scan, self.value = self.value, None
        if scan:
            _functions(_plugin_of_queries(), True).tidelane_query_close(scan)

    __del__ = close


@functools.lru_cache(maxsize=None)
def _plugin_of_queries() -> _plugin.Plugin:
    """Looked for once: whichever image it is, it reads by the HDF5 that it is given."""
    return _plugin.current()


@functools.lru_cache(maxsize=None)
def _functions(plugin: _plugin.Plugin, held: bool) -> Any:
    image = plugin.image(held)
    scan, pointer, text, size, u64 = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64
    to_u64 = ctypes.POINTER(u64)
    signatures = {
        "names": (pointer, [text, pointer, size]),
        "open": (_Handle, [pointer, text, ctypes.POINTER(_Column), size, ctypes.c_uint, pointer, size]),
        "shape": (ctypes.c_int, [scan, to_u64, ctypes.c_int]),
        "next": (ctypes.c_int, [scan, ctypes.c_int64, ctypes.POINTER(_Block), pointer, size]),
        "count": (ctypes.c_int, [scan, ctypes.c_int64, to_u64, pointer, size]),
        "positions": (None, [scan, pointer]),
        "mask": (None, [scan, pointer]),
        "values": (ctypes.c_int, [scan, size, pointer, pointer, size]),
        "column_size": (u64, [scan, size]),
        "progress": (None, [scan, to_u64, to_u64]),
        "explain": (pointer, [scan]),
        "close": (None, [scan]),
    }
    for name, (result, arguments) in signatures.items():
        try:
            function = getattr(image, f"tidelane_query_{name}")
        except AttributeError:
            raise ImportError("the plugin that HDF5 has loaded knows no queries: it is older than this package") from None
        function.restype, function.argtypes = result, arguments
    return image


def _taken(image: Any, address: int) -> Any:
    """The JSON of a text that is now ours."""
    try:
        return json.loads(ctypes.string_at(address))
    finally:
        image.tidelane_free(ctypes.c_void_p(address))


def _refused(why: Any) -> Exception:
    """What a query cannot be is a ValueError; what HDF5 or storage failed at an OSError."""
    error = _plugin.error(why.value)
    if error.errno != _EINVAL:
        return error
    return ValueError(re.sub(r"(: [^:]*)?\(errno \d+\)$", "", str(error.strerror)))


def encoded(text: str) -> bytes:
    """Bytes that were no UTF-8 are themselves again."""
    if "\0" in text:
        raise ValueError("a query cannot hold a null character: write \\x00")
    return text.encode("utf-8", "surrogateescape")


def names(text: str) -> list[str]:
    """The names of columns in a query; ValueError: it is none."""
    image = _functions(_plugin_of_queries(), False)
    why = ctypes.create_string_buffer(_WORDS)
    address = image.tidelane_query_names(encoded(text), why, _WORDS)
    if not address:
        raise _refused(why)
    return _taken(image, address)


class Scan:
    """One pass over the columns; closed by `with`."""

    def __init__(self, library: Library, text: str, columns: list[ScanColumn], flags: int, progress: Optional[Progress] = None) -> None:
        self._library = library
        self._image = _functions(_plugin_of_queries(), library.keeps_interpreter)
        self._why = ctypes.create_string_buffer(_WORDS)
        self._block = _Block()
        self._progress = progress
        self._turn = time.monotonic()
        self._scan = _Handle()
        given = (_Column * max(1, len(columns)))(*[_Column(encoded(name), dataset, encoded(field)) for name, dataset, field in columns])
        with library.lock():
            self._scan = self._image.tidelane_query_open(library.address, encoded(text), given, len(columns), flags, self._why, _WORDS)
        if not self._scan:
            raise _refused(self._why)
        self.shape = self._shape()

    def __enter__(self) -> Scan:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        with self._library.lock():
            self._scan.close()

    def _shape(self) -> tuple[int, ...]:
        dims = (ctypes.c_uint64 * 64)()
        rank = self._image.tidelane_query_shape(self._scan, dims, 64)
        return tuple(dims[:rank])

    def _called(self, name: str, *arguments: Any) -> int:
        """A call that enters HDF5."""
        if time.monotonic() - self._turn > TURN_SECONDS:
            time.sleep(1e-5)  # who takes a lock again as soon as it is released leaves it to others seldom
            self._turn = time.monotonic()
        with self._library.lock():
            result = getattr(self._image, f"tidelane_query_{name}")(self._scan, *arguments, self._why, _WORDS)
        if result < 0:
            raise _refused(self._why)
        return result

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(*self.done())

    def done(self) -> tuple[int, int]:
        done, total = ctypes.c_uint64(), ctypes.c_uint64()
        self._image.tidelane_query_progress(self._scan, ctypes.byref(done), ctypes.byref(total))
        return done.value, total.value

    def next(self) -> Optional[tuple[int, int, int]]:
        """Of the next block: its first position, its elements, its hits; None: there is none any more."""
        while True:
            result = self._called("next", BUDGET_US, ctypes.byref(self._block))
            self._tell()
            if result != 2:
                return (self._block.first, self._block.elements, self._block.hits) if result == 1 else None

    def count(self) -> int:
        found = ctypes.c_uint64()
        while self._called("count", BUDGET_US, ctypes.byref(found)) == 2:
            self._tell()
        self._tell()
        return found.value

    def bits(self) -> bytes:
        """Of the block: one for each element, the first in the lowest bit of the first byte."""
        return ctypes.string_at(self._block.bits, (self._block.elements + 7) // 8) if self._block.elements else b""

    def positions(self, to: int) -> None:
        self._image.tidelane_query_positions(self._scan, to)

    def mask(self, to: int) -> None:
        self._image.tidelane_query_mask(self._scan, to)

    def values(self, column: int, to: int) -> None:
        self._called("values", column, to)

    def column_size(self, column: int) -> int:
        return self._image.tidelane_query_column_size(self._scan, column)

    def explain(self) -> dict[str, Any]:
        with self._library.lock():
            address = self._image.tidelane_query_explain(self._scan)
        return _taken(self._image, address)
