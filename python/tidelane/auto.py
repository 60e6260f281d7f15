"""`import tidelane.auto`, before h5py, netCDF4 or tables, turns Tidelane on for every HDF5 file of this process and its children."""

from . import enable

enable()
