"""Conditions on xarray's variables that are still in their files: `tidelane.where(dataset, "t > 280 and p < 5e4")`.

What xarray has opened lazily is looked up in the file that it has open: none of the variables becomes an array in memory.
The attributes of xarray's that say so are its own affair; a variable that is not known to be the file's is refused.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional, Union

from . import _query, _query_calls, _query_columns, _query_h5py, _query_netcdf4, _query_sources

_SAME = {"MemoryCachedArray", "CopyOnWriteArray", "LazilyIndexedArray", "BoolTypeArray", "NativeEndiannessArray"}
_DECODED = "_ElementwiseFunctionArray"


class Source(_query_sources.Source):
    """The variables of a Dataset; of a DataArray itself, by its name or as `value`, and its coordinates."""

    def __init__(self, target: Any, raw: bool = False) -> None:
        self._raw = raw
        name = getattr(target, "name", None)
        if hasattr(target, "data_vars"):
            self._variables: Mapping[str, Any] = target.variables
        else:
            own = {name: target.variable} if name is not None else {}
            self._variables = {**own, "value": target.variable, **{key: value.variable for key, value in target.coords.items()}}
        path = target.encoding.get("source") or target.encoding.get("original_source")
        self.place = f"the {type(target).__name__}" + (f" {name!r}" if name is not None else "") + (f" of {path!r}" if path else "")

    def names(self) -> list[str]:
        return [str(name) for name in self._variables]

    def dims(self, name: str) -> tuple[Any, ...]:
        return self._variables[name].dims

    def find(self, name: str) -> Optional[_query_sources.Column]:
        if name not in self._variables:
            return None
        return _query_sources.Column(self._item(name))

    def _item(self, name: str) -> _query_sources.Item:
        data = self._variables[name]._data
        while hasattr(data, "array") and not hasattr(data, "get_array"):
            kind = type(data).__name__
            if kind == _DECODED and not self._raw:
                raise ValueError(
                    f"variable {name!r} of {self.place} is decoded (scaled, masked, a time), and queries are about what is stored: say raw=True if the "
                    "condition is about that, or open the file with decode_cf=False"
                )
            if kind not in _SAME and kind != _DECODED or getattr(data, "_copied", False) or not _whole(data):
                break
            data = data.array
        if not hasattr(data, "get_array"):
            raise ValueError(
                f"variable {name!r} of {self.place} is not as it lies in a file: it was loaded, indexed or computed, or is chunked by dask. Ask "
                "before that of what open_dataset gave, or use xarray's own where"
            )
        variable = data.get_array()
        if type(variable).__module__.startswith("netCDF4"):
            return _query_netcdf4.Variable(variable, data.datastore.lock)
        item = _query_h5py.of_dataset(variable)
        if item is None:
            raise ValueError(f"variable {name!r} of {self.place} is not in HDF5")
        return item


def _whole(data: Any) -> bool:
    key = getattr(getattr(data, "key", None), "tuple", ())
    return all(
        isinstance(part, slice) and part.indices(size) == (0, size, 1) for part, size in zip(key, getattr(data.array, "shape", ()))
    )


def where(
    target: Any,
    condition: Union[str, _query_columns.Condition],
    *,
    dim: str = "points",
    raw: bool = False,
    progress: Optional[_query_calls.Progress] = None,
) -> Any:
    """What of an xarray Dataset or DataArray fulfils a condition, without loading what does not.

    Where the condition is about variables of one dimension, the same as `target.isel({dimension: hits})`: types stay as they are, nothing is
    filled with NaN. Of more dimensions the hits are points along a new dimension `dim`, with their coordinates, in row-major order:
    what vectorised `isel` gives. What has not been loaded stays lazy.

    The variables that the condition names must be as `xarray.open_dataset` (netcdf4 or h5netcdf, without `chunks`) gave them.
    `raw`, `progress`: as for `query`.
    """
    source = Source(target, raw)
    query = _query.query(source, condition, progress=progress, raw=raw)
    dims = {source.dims(name) for name in query.names}
    if len(dims) != 1:
        raise ValueError(f"the variables of the condition have different dimensions: {', '.join(map(str, sorted(dims)))}")
    (names,) = dims
    if len(names) == 1:
        return target.isel({names[0]: query.where()[0]})
    if dim in target.dims:
        raise ValueError(f"{source.place} has a dimension {dim!r} already: name another one by dim=")
    import xarray

    return target.isel({name: xarray.DataArray(hits, dims=dim) for name, hits in zip(names, query.where())})
