"""publish="atomic": a file that a program leaves by an error is not published, and the old one stays.

What the plugin cannot see: a `with h5py.File(...)` whose body raises closes the file like any other, and so does an interpreter that ends
after an exception that nobody caught, or by `sys.exit(1)`.

Invariant: where no file is waiting to be published nothing is different.
Thread safety: hooks run in the thread that raises; the plugin's functions may be called from any.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import warnings
from typing import Any

from . import _notices, _plugin

_failed = False
_PATH = "_tidelane_path"  # of a file that a `with` has open


def after_h5py(h5py: Any) -> None:
    """`h5py.File` as a context manager tells of exceptions."""
    enter, leave = h5py.File.__enter__, h5py.File.__exit__

    @functools.wraps(enter)
    def enter_(self: Any) -> Any:
        with contextlib.suppress(Exception):  # the program may go to another folder before it leaves
            setattr(self, _PATH, os.path.abspath(self.filename))
        return enter(self)

    @functools.wraps(leave)
    def exit_(self: Any, *raised: Any) -> Any:
        plugin, path = _plugin.loaded(), getattr(self, _PATH, None)
        if path and plugin is not None and raised and _is_error(raised[1]) and self and _is_only_handle(h5py, self):
            if plugin.withhold(path):
                message = f"{path} is not published: an exception leaves it ({raised[0].__name__}); the file of that name stays as it was"
                warnings.warn(message, _notices.TidelaneWarning, stacklevel=2)
        return leave(self, *raised)

    h5py.File.__enter__, h5py.File.__exit__ = enter_, exit_


def _is_error(raised: Any) -> bool:
    """Not an end that was meant: sys.exit(0), or of a generator that nobody asks any more."""
    if isinstance(raised, SystemExit):
        return raised.code not in (None, 0)
    return raised is not None and not isinstance(raised, GeneratorExit)


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
        _failed = not (sys.flags.interactive or hasattr(sys, "ps1"))  # who types goes on
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
