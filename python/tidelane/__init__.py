"""Tidelane: HDF5 programs compute while their data is written.

    import tidelane.auto            # before h5py, netCDF4, tables; or tidelane.enable(close="deferred")
    import h5py

Nothing else changes. For programs that want more say: `wait` and `flush` until bytes are stored, `phase` round the part that
writes, `stats` and `report` for what happened; `write` and `read` for tensors in the memory of GPUs;
`query` for the elements that fulfil a condition (`where` of xarray's datasets, `read_where` of PyTables' tables). docs/python.md has examples.

Thread safety: every function may be called from any thread in which the program could call HDF5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._enable import SettingError, TooLateError, enable, enabled, settings
from ._notices import TidelaneWarning
from ._phase import Phase, phase
from ._plugin import FOLDER as plugin_folder
from ._report import Report, report, stats
from ._tensors import read, write
from ._wait import commit, flush, wait, wait_async

if TYPE_CHECKING:
    from ._query import Block, Query, query
    from ._query_columns import columns
    from ._query_tables import get_where_list, read_where
    from ._query_xarray import where

__all__ = [
    "Block",
    "Phase",
    "Query",
    "Report",
    "SettingError",
    "TidelaneWarning",
    "TooLateError",
    "columns",
    "commit",
    "enable",
    "enabled",
    "flush",
    "get_where_list",
    "phase",
    "plugin_folder",
    "query",
    "read",
    "read_where",
    "report",
    "settings",
    "stats",
    "wait",
    "wait_async",
    "where",
    "write",
]

from . import _h5py_driver, _plugin, _withhold

_h5py_driver.offer()
_withhold.watch_exit()


# Imported when they are used: who writes only has nothing of them.
_LATER = {
    "Block": "_query",
    "Query": "_query",
    "query": "_query",
    "columns": "_query_columns",
    "get_where_list": "_query_tables",
    "read_where": "_query_tables",
    "where": "_query_xarray",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _plugin.version()
    if name in _LATER:
        import importlib

        globals()[name] = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_LATER]
