"""Turning Tidelane on for a process: the variables that HDF5 reads when it is loaded, and being told when that is too late.

Invariant: HDF5_PLUGIN_PATH is extended and never replaced, another connector's HDF5_VOL_CONNECTOR is never touched, and a
TIDELANE_ variable that the caller's environment has set wins over an option of the program.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from typing import Any, Optional

from . import _notices, _plugin

CONNECTOR = "HDF5_VOL_CONNECTOR"
PATH = "HDF5_PLUGIN_PATH"
DEFAULT_PATH = "/usr/local/hdf5/lib/plugin"  # HDF5's own, which a set variable hides
NAMES = ("tidelane", "async")


class SettingError(ValueError):
    """There is no such setting, or it does not take that value; the message names the nearest that there is."""


class TooLateError(RuntimeError):
    """HDF5 was loaded before Tidelane was turned on; the message says whose, and what still works."""


def settings() -> dict[str, dict[str, Any]]:
    """Every setting: its variable, what it accepts, its default, what it means, whether a file may have its own."""
    return {setting.pop("name"): setting for setting in _plugin.ours().settings()}


def text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def checked(options: dict[str, Any]) -> dict[str, str]:
    """The options in the plugin's words; an error for the first that it would refuse."""
    texts = {}
    for name, value in options.items():
        if value is None:
            continue
        text = "1" if name == "summary" and value is True else text_of(value)
        try:
            _plugin.ours().check_setting(f"{name}={text}")
        except ValueError as error:
            raise SettingError(str(error)) from None
        texts[name] = text
    return texts


def loaded_libraries() -> dict[str, str]:
    """The copies of HDF5 in this process: their files, and who brought them (a module's name, or nothing)."""
    found = {}
    for path in _plugin.images(r"libhdf5(_serial|_mpi|_mpich|_openmpi)?[-.].*so.*|libhdf5(_serial)?\.so"):
        bringer = re.search(r"/([^/]+)\.libs/", path)
        modules = [name for name in ("h5py", "netCDF4", "tables") if name in sys.modules]
        found[path] = bringer[1] if bringer else " or ".join(modules)
    return found


def _unset_path() -> str:
    """What HDF5 looks through when nobody set the variable; netCDF4 sets it then, to the filters in its wheel."""
    spec = importlib.util.find_spec("netCDF4")
    filters = [os.path.join(folder, "plugins") for folder in (spec and spec.submodule_search_locations) or []]
    return ":".join([*filter(os.path.isdir, filters), DEFAULT_PATH])


def plugin_path(before: Optional[str]) -> str:
    ours = str(_plugin.FOLDER)
    behind = [folder for folder in (before or _unset_path()).split(":") if folder != ours]
    return ":".join([ours, *behind])


def enabled() -> bool:
    """Whether an HDF5 that this process loads, or has loaded, runs under Tidelane."""
    return _plugin.loaded() is not None or os.environ.get(CONNECTOR, "").split(" ")[0] in NAMES


def _refuse_late(copies: dict[str, str], what: str) -> None:
    who = "; ".join(f"{path} (of {bringer})" if bringer else path for path, bringer in copies.items())
    module = next(iter(copies.values())) or "h5py"
    raise TooLateError(
        f"too late to {what}: HDF5 is already loaded and read its settings then: {who}. Put `import tidelane.auto` before "
        f"`import {module}`, or start the program with `python -m tidelane run script.py`. What works even now, a file at a "
        'time: h5py.File(name, "w", driver="tidelane")'
    )


def environment(options: dict[str, str], environ: Any = os.environ) -> dict[str, str]:
    """The variables to be set."""
    connector = environ.get(CONNECTOR, "").strip()
    if connector and connector.split(" ")[0] not in NAMES:
        raise RuntimeError(f"{CONNECTOR} names another connector ({connector}); Tidelane works on HDF5's own only")
    wanted = {PATH: plugin_path(environ.get(PATH)), CONNECTOR: connector or NAMES[0]}
    for name, text in options.items():
        wanted.setdefault(f"TIDELANE_{name.upper()}", environ.get(f"TIDELANE_{name.upper()}") or text)
    return wanted


def in_notebook() -> bool:
    return "ipykernel" in sys.modules


def enable(*, timeline: Optional[bool] = None, **options: Any) -> None:
    """Turns Tidelane on for every HDF5 file of this process and of processes that it starts.

    Call it before h5py, netCDF4, tables or what uses them is imported. `options` are Tidelane's settings by their names
    (`settings()` lists them): enable(close="deferred", arena="2G"). A variable of the environment (TIDELANE_CLOSE) wins
    over an option, so that a run can be changed from outside. `timeline` records what `report` draws; it is on in
    notebooks unless told otherwise.

    Raises SettingError for an option that there is not, and TooLateError when HDF5 is in the process already.
    """
    texts = checked(options)
    copies = loaded_libraries()
    plugin = _plugin.loaded()
    variables = environment(texts)
    new = {name: text for name, text in variables.items() if os.environ.get(name) != text}
    if copies and plugin is None:
        _refuse_late(copies, "turn Tidelane on")
    if plugin is not None and any(name.startswith("TIDELANE_") for name in new):
        _refuse_late(copies, "change its settings")
    os.environ.update(new)
    plugin = plugin or _plugin.ours()
    plugin.record(in_notebook() if timeline is None else timeline)
    _notices.listen(plugin)
