"""Files that run natively are told of by a warning, with the reason, once each.

The plugin notices it inside HDF5, perhaps under HDF5's lock, where no Python may run. It calls Py_AddPendingCall, which
only takes a note; the interpreter calls `_tell` a moment later, in the main thread, between two bytecodes.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import sys
import warnings
from typing import Any, Optional

from . import _plugin

WORDS = {
    "driver": "another driver than HDF5's default opens it (core, a Python file object, family, mpio, …)",
    "swmr_write": "it is written for readers that follow (SWMR), which needs strict order",
    "handle_handed_out": "the program asked for its file descriptor",
    "unstable_inode": "its file system does not keep inode numbers, or it is no regular file",
}
OURS = os.path.dirname(os.path.abspath(__file__))

_listening: Optional[_plugin.Plugin] = None
_callback: Any = None  # must outlive the process's last notice


class TidelaneWarning(UserWarning):
    """A file runs natively: its bytes are stored before its calls return."""


def _caller() -> tuple[str, int]:
    """The line of the program that is running, outside of the libraries."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and _is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


@functools.lru_cache(maxsize=None)
def _libraries() -> tuple[str, ...]:
    import sysconfig  # reads how Python was built: only where there is something to tell

    return tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def _is_library(path: str) -> bool:
    return path.startswith((*_libraries(), OURS, "<frozen"))


def tell(plugin: _plugin.Plugin) -> None:
    for notice in plugin.take_notices():
        why = WORDS.get(notice["reason"], notice["text"]).removeprefix("not journalled: ")
        name, line = _caller()
        kind = notice["reason"].split("_")[0]
        what = {"publish": "is not published atomically", "journal": "is not journalled"}.get(kind, "runs natively, not through Tidelane")
        message = f"{os.fspath(notice['path'])} {what}: {why} ({notice['reason']})"
        warnings.warn_explicit(message, TidelaneWarning, name, line)


def _tell(_: Any) -> int:
    if _listening is not None:
        tell(_listening)
    return 0


def listen(plugin: _plugin.Plugin) -> None:
    global _listening, _callback
    if _listening is not None or not hasattr(ctypes, "pythonapi"):
        return
    schedule = ctypes.cast(ctypes.pythonapi.Py_AddPendingCall, ctypes.c_void_p)
    _callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_tell)
    plugin.listen(schedule, ctypes.cast(_callback, ctypes.c_void_p))
    _listening = plugin
    atexit.register(plugin.listen, None, None)
