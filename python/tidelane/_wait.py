"""Waiting until bytes are stored.

A wait is made of slices that let go of the interpreter's lock, so that other threads run and Ctrl-C is heard within a
tenth of a second. It changes nothing: what was not stored when it is interrupted is stored in the background as before.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
import time
from typing import Any, Iterator, Optional

from . import _files, _plugin

SLICE_SECONDS = 0.1


@functools.cache
def address_in_hdf5_of(extension: str) -> Optional[int]:
    """Of a module's own copy of HDF5: what is looked up in the module is found in the libraries that it needs."""
    try:
        return ctypes.cast(ctypes.CDLL(extension).H5open, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None


@contextlib.contextmanager
def _inside_h5py() -> Iterator[Optional[int]]:
    """Keeps other threads out of h5py's HDF5, which need not be thread-safe, by h5py's own lock; gives an address in it.
    Other libraries have no such lock: what their threads wrote, those have to wait for."""
    h5py = sys.modules.get("h5py")
    lock = getattr(getattr(h5py, "_objects", None), "phil", None)
    if lock is None:
        yield None
        return
    with lock:
        yield address_in_hdf5_of(h5py.h5.__file__)


def _settle(plugin: _plugin.Plugin, path: Optional[bytes]) -> None:
    with _inside_h5py() as kept_out_of:
        plugin.settle(path, kept_out_of)


class _Slices:
    """The slices of one wait, and its end."""

    def __init__(self, path: Optional[bytes], timeout: Optional[float]) -> None:
        self._path = path
        self._end = None if timeout is None else time.monotonic() + timeout

    def next(self, plugin: _plugin.Plugin) -> bool:
        """True when everything is stored."""
        left = SLICE_SECONDS if self._end is None else min(SLICE_SECONDS, self._end - time.monotonic())
        if plugin.wait(self._path, max(0, int(left * 1e6))):
            return True
        if self._end is not None and time.monotonic() >= self._end:
            raise TimeoutError("what was written is not stored yet")
        return False


def wait(target: Any = None, timeout: Optional[float] = None) -> None:
    """Returns when everything written to the file by calls that have returned is stored.

    `target`: an open file, a dataset or group in it, or a path, of h5py, netCDF4, h5netcdf, PyTables or pandas; None: every
    file. It does not flush what HDF5 or the library keeps in caches of its own: `flush` does. The operating system has the
    bytes then; like HDF5, it is not told to force them onto the disk.

    Raises OSError if they cannot be stored (they are kept, and the next wait, flush or close tries again), TimeoutError
    after `timeout` seconds. Compressed chunks that another thread wrote with a library whose HDF5 is not thread-safe (netCDF4)
    that thread has to wait for: here that is an OSError, too.
    """
    plugin = _plugin.loaded()
    path = _files.path_of(target)
    if plugin is None:
        return  # natively everything is stored when the call that wrote it returns
    _settle(plugin, path)
    slices = _Slices(path, timeout)
    while not slices.next(plugin):
        pass


async def wait_async(target: Any = None, timeout: Optional[float] = None) -> None:
    """As `wait`, for coroutines: other tasks run meanwhile. Cancelling it leaves the storing to the background."""
    import asyncio  # which takes as long to import as everything else here

    plugin = _plugin.loaded()
    path = _files.path_of(target)
    if plugin is None:
        return
    _settle(plugin, path)
    slices = _Slices(path, timeout)
    loop = asyncio.get_running_loop()
    while not await loop.run_in_executor(None, slices.next, plugin):
        pass


def commit(target: Any) -> None:
    """Flushes an open file through its own library, and commits it: of a file that is written with `journal="process"` or `"power"` this
    is what is found after any end of the program (of the machine), whatever its `journal_commits` says. Returns when that is so.

    `target`: as for `flush`. Without a journal this is the library's own flush. What fails raises what that raises; what was committed
    before stays committed. Ctrl-C is heard when it returns.
    """
    plugin = _plugin.loaded()
    library_flush = _files.flush_of(target)
    if plugin is None:
        library_flush()
        return
    plugin.commits_now(True)
    try:
        library_flush()
    finally:
        plugin.commits_now(False)


def flush(target: Any, timeout: Optional[float] = None) -> None:
    """Flushes an open file through its own library, and returns when everything is stored; Ctrl-C is heard meanwhile."""
    plugin = _plugin.loaded()
    path = _files.path_of(target)
    library_flush = _files.flush_of(target)
    if plugin is None:
        library_flush()
        return
    plugin.waits_itself(True)
    try:
        library_flush()
    finally:
        plugin.waits_itself(False)
    wait(path, timeout)
