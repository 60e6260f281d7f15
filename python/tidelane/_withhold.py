"""publish="atomic": a file that a program leaves by an error is not published, and the old one stays.

What the plugin cannot see: a `with h5py.File(...)` whose body raises closes the file like any other, and so does an interpreter that ends
after an exception that nobody caught, or by `sys.exit(1)`.

Invariant: where no file is waiting to be published nothing is different.
Thread safety: hooks run in the thread that raises; the plugin's functions may be called from any.
"""

from __future__ import annotations

import atexit
import functools
import sys
import warnings
from typing import Any

from . import _notices, _plugin

_failed = False


def after_h5py(h5py: Any) -> None:
    """`h5py.File` as a context manager tells of exceptions."""
    leave = h5py.File.__exit__

    @functools.wraps(leave)
    def exit_(self: Any, *raised: Any) -> Any:
        plugin = _plugin.loaded()
        if raised and raised[0] is not None and plugin is not None and self and _is_only_handle(h5py, self):
            path = self.filename
            if plugin.withhold(path):
                message = f"{path} is not published: an exception leaves it ({raised[0].__name__}); the file of that name stays as it was"
                warnings.warn(message, _notices.TidelaneWarning, stacklevel=2)
        return leave(self, *raised)

    h5py.File.__exit__ = exit_


def _is_only_handle(h5py: Any, file: Any) -> bool:
    """Else whoever has it open, too, goes on with it."""
    with h5py._objects.phil:
        return h5py.h5f.get_obj_count(file.id, h5py.h5f.OBJ_FILE) == 1


def watch_exit() -> None:
    """Files that are open when the interpreter ends after an error are not published."""
    hook, leave = sys.excepthook, sys.exit

    @functools.wraps(hook)
    def uncaught(*raised: Any) -> Any:
        global _failed
        _failed = not hasattr(sys, "ps1")  # who types goes on
        return hook(*raised)

    @functools.wraps(leave)
    def exit_(status: Any = None, /) -> Any:
        global _failed
        _failed = status not in (None, 0)
        return leave(status)

    sys.excepthook, sys.exit = uncaught, exit_
    atexit.register(_at_exit)


def _at_exit() -> None:
    plugin = _plugin.loaded()
    if _failed and plugin is not None:
        plugin.withhold(None)
