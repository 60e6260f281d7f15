"""The plugin file, and its functions (src/vol/exports.h) by ctypes.

Invariant: they are those of the image that HDF5 has loaded, if it has loaded one, whoever told it where to find it.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import pathlib
import re
from typing import Any, Optional

FOLDER = pathlib.Path(__file__).resolve().parent / "plugin"
NAME = "libtidelane.so"
_TEXT = 1024


class Plugin:
    """One loaded image."""

    def __init__(self, path: str) -> None:
        self._free = ctypes.CDLL(path)  # calls let go of the interpreter's lock
        self._held = ctypes.PyDLL(path)  # calls keep it
        for name in ("settings", "summary", "take_notices"):
            function = getattr(self._free, f"tidelane_{name}")
            function.restype = ctypes.c_void_p
            function.argtypes = [ctypes.c_int] if name == "summary" else []
        self._free.tidelane_free.argtypes = [ctypes.c_void_p]
        self._free.tidelane_free.restype = None
        self._free.tidelane_wait.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.c_char_p, ctypes.c_size_t]
        self._free.tidelane_withhold.argtypes = [ctypes.c_char_p]
        self._free.tidelane_listen.argtypes = [ctypes.c_void_p, ctypes.c_void_p]

    def image(self, held: bool) -> Any:
        """Its functions, called with the interpreter's lock kept or let go."""
        return self._held if held else self._free

    def _text(self, name: str, *arguments: Any) -> str:
        address = getattr(self._free, f"tidelane_{name}")(*arguments)
        try:
            return ctypes.string_at(address).decode(errors="replace")
        finally:
            self._free.tidelane_free(address)

    def settings(self) -> list[dict[str, Any]]:
        return json.loads(self._text("settings"))

    def check_setting(self, item: str) -> None:
        """Raises ValueError with the plugin's own words."""
        why = ctypes.create_string_buffer(_TEXT)
        if self._free.tidelane_check_setting(item.encode(), why, ctypes.c_size_t(_TEXT)) != 0:
            words = why.value.decode(errors="replace")
            raise ValueError(re.sub(r": [^:]*\(errno \d+\)$", "", words.replace(" (option)", "")))

    def libraries(self) -> int:
        return self._free.tidelane_libraries()

    def summary(self) -> dict[str, Any]:
        return json.loads(self._text("summary", 1))

    def table(self) -> str:
        return self._text("summary", 0)

    def record(self, timeline: bool) -> None:
        self._free.tidelane_record(int(timeline))

    def write_timeline(self, path: str) -> None:
        why = ctypes.create_string_buffer(_TEXT)
        if self._free.tidelane_write_timeline(os.fsencode(path), why, ctypes.c_size_t(_TEXT)) != 0:
            raise error(why.value)

    def settle(self, path: Optional[bytes], kept_out_of: Optional[int]) -> None:
        """`kept_out_of`: an address in the HDF5 that no other thread is in now."""
        why = ctypes.create_string_buffer(_TEXT)
        if self._held.tidelane_settle_chunks(path, ctypes.c_void_p(kept_out_of), why, ctypes.c_size_t(_TEXT)) != 0:
            raise error(why.value)

    def wait(self, path: Optional[bytes], microseconds: int) -> bool:
        why = ctypes.create_string_buffer(_TEXT)
        result = self._free.tidelane_wait(path, microseconds, why, _TEXT)
        if result < 0:
            raise error(why.value)
        return result == 1

    def waits_itself(self, begin: bool) -> None:
        self._held.tidelane_waits_itself(int(begin))

    def commits_now(self, begin: bool) -> None:
        self._held.tidelane_commits_now(int(begin))

    def listen(self, schedule: Any, tell: Any) -> None:
        self._free.tidelane_listen(schedule, tell)

    def withhold(self, path: Optional[str]) -> bool:
        """Whether there is such a file that is not published yet; None: all that are left open at the end."""
        return self._free.tidelane_withhold(None if path is None else os.fsencode(path)) != 0

    def take_notices(self) -> list[dict[str, str]]:
        return json.loads(self._text("take_notices"))


def error(why: bytes) -> OSError:
    words = why.decode(errors="replace")
    number = re.search(r"\(errno (\d+)\)$", words)
    return OSError(int(number[1]) if number else 5, words)


@functools.lru_cache(maxsize=None)
def _at(path: str) -> Plugin:
    if not os.path.exists(path):
        raise ImportError(f"the plugin is not there: {path} (was the package installed, or only its sources found?)")
    return Plugin(path)


def images(pattern: str) -> list[str]:
    """Files mapped into this process whose names match, in the order of their addresses; also those that an upgrade has
    replaced since."""
    try:
        with open("/proc/self/maps") as maps:
            paths = [line.rstrip("\n").split(None, 5)[5].removesuffix(" (deleted)") for line in maps if line.count(" /")]
    except OSError:
        return []
    return list(dict.fromkeys(path for path in paths if re.fullmatch(pattern, os.path.basename(path))))


@functools.lru_cache(maxsize=None)
def _mapped(path: str) -> Optional[Plugin]:
    """By the path that it was loaded by the linker finds the image that it has, whatever lies there by now."""
    try:
        return Plugin(path)
    except OSError:
        return None


def ours() -> Plugin:
    """The one in this package."""
    return _at(str(FOLDER / NAME))


def loaded() -> Optional[Plugin]:
    """The one that HDF5 has loaded; None if it has not."""
    for path in images(re.escape(NAME)):
        plugin = _mapped(path)
        if plugin is not None and plugin.libraries() > 0:
            return plugin
    return None


def current() -> Plugin:
    return loaded() or ours()


def version() -> str:
    try:
        from importlib.metadata import version as of  # dear to import, and seldom asked for

        return of("tidelane")
    except Exception:  # not installed: run from a source tree
        return "0+unknown"
