"""h5py.File(name, mode, driver="tidelane", close="deferred", ...): one file through Tidelane, whenever h5py was imported.

The driver is registered with h5py when h5py is imported, or at once if it is already.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import sys
from typing import Any

from . import _enable, _notices, _plugin, _withhold


@functools.lru_cache(maxsize=None)
def _hdf5_of_h5py() -> Any:
    """h5py's own libhdf5: its extension's symbols are looked up among what that is linked to."""
    import h5py

    library = ctypes.CDLL(h5py.h5.__file__)
    hid = ctypes.c_int64
    library.H5VLregister_connector_by_name.argtypes = [ctypes.c_char_p, hid]
    library.H5VLregister_connector_by_name.restype = hid
    library.H5VLconnector_str_to_info.argtypes = [ctypes.c_char_p, hid, ctypes.POINTER(ctypes.c_void_p)]
    library.H5VLfree_connector_info.argtypes = [hid, ctypes.c_void_p]
    library.H5VLclose.argtypes = [hid]
    library.H5Pset_vol.argtypes = [hid, hid, ctypes.c_void_p]
    return library


def _set_connector(plist: Any, info: bytes) -> None:
    import h5py

    library = _hdf5_of_h5py()
    with h5py._objects.phil:
        paths = {h5py.h5pl.get(index) for index in range(h5py.h5pl.size())}
        if bytes(_plugin.FOLDER) not in paths:
            h5py.h5pl.prepend(bytes(_plugin.FOLDER))
        connector = library.H5VLregister_connector_by_name(_enable.NAMES[0].encode(), 0)
        if connector < 0:
            version = ".".join(map(str, h5py.h5.get_libversion()))
            raise OSError(f"this h5py's HDF5 ({version}) cannot load Tidelane; 1.14.1 or newer is needed")
        text = ctypes.c_void_p()
        try:
            if library.H5VLconnector_str_to_info(info, connector, ctypes.byref(text)) < 0:
                raise OSError("Tidelane does not take these settings: " + info.decode())
            if library.H5Pset_vol(plist.id, connector, text) < 0:
                raise OSError("HDF5 refused the connector")
        finally:
            if text:
                library.H5VLfree_connector_info(connector, text)
            library.H5VLclose(connector)


def set_driver(plist: Any, **options: Any) -> None:
    """For h5py: puts Tidelane, with settings for this file, on a file access list."""
    texts = _enable.checked(options)
    process_wide = [name for name in texts if not _enable.settings()[name]["per_file"]]
    if process_wide:
        raise _enable.SettingError(f"{process_wide[0]} is one for the process: give it to tidelane.enable")
    _set_connector(plist, ";".join(f"{name}={text}" for name, text in texts.items()).encode())
    _notices.listen(_plugin.current())


def _register() -> None:
    import h5py

    if "tidelane" not in h5py.registered_drivers():
        h5py.register_driver("tidelane", set_driver)
        _withhold.after_h5py(h5py)


class _AfterImport:
    """Finds h5py as others do, and registers the driver once it has been executed."""

    def __init__(self) -> None:
        self._inner: Any = None

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != "h5py" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None:
            self._inner, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: Any) -> Any:
        return self._inner.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._inner
        self._inner.exec_module(module)
        _register()


def offer() -> None:
    if "h5py" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _AfterImport())
