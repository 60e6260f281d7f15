"""Where the columns of a query come from: what a program holds, of h5py, h5netcdf, netCDF4, PyTables or xarray.

A name is that of a dataset in a group, by its path ("run/x"), with a field of its compound type behind dots ("events.energy");
of a given dataset of compound type that of a field ("pos.x" of a nested one); another given dataset is called by its own last
name, or "value". Queries are about the values that are stored.
"""

from __future__ import annotations

import abc
import difflib
from typing import Any, Iterator, Mapping, Optional

from . import _query_calls

MOST_NAMED = 12


class Item(abc.ABC):
    """An open dataset."""

    place: str  # for messages: "dataset '/x' of 'a.h5'"
    name: str  # the last of its path

    @abc.abstractmethod
    def shape(self) -> Optional[tuple[int, ...]]:
        """None: it has no elements (a null dataspace)."""

    @abc.abstractmethod
    def dtype(self) -> Any:
        """As the library reads it."""

    @abc.abstractmethod
    def library(self) -> _query_calls.Library: ...

    @abc.abstractmethod
    def opened(self) -> Any:
        """A context with an identifier (hid_t) that is valid inside; ValueError: it is closed."""

    @abc.abstractmethod
    def read(self, box: tuple[slice, ...]) -> Any:
        """What is stored, as the library itself gives it."""

    def members(self, field: tuple[str, ...]) -> Optional[Mapping[str, int]]:
        """Of an enumeration."""
        return None

    def check(self, raw: bool) -> None:
        """ValueError: what the library gives is not what is stored, and the caller did not say that the latter is meant."""


class Column:
    """A dataset or a field of one."""

    def __init__(self, item: Item, field: tuple[str, ...] = ()) -> None:
        self.item, self.field = item, field
        self.dtype = item.dtype()
        for part in field:
            self.dtype = self.dtype[part]

    @property
    def field_text(self) -> str:
        return ".".join(part.replace(".", "\\.") for part in self.field)

    def members(self) -> Optional[Mapping[str, int]]:
        return self.item.members(self.field)

    def elements(self, first: int, count: int) -> Any:
        """Those at the row-major positions from `first` on, one after the other, read by the library."""
        import numpy

        parts = []
        for box in boxes(self.item.shape() or (), first, count):
            values = numpy.asarray(self.item.read(box))
            for part in self.field:
                values = values[part]
            parts.append(values.reshape(-1, *self.dtype.shape))
        return parts[0] if len(parts) == 1 else numpy.concatenate(parts)


def boxes(shape: tuple[int, ...], first: int, count: int) -> Iterator[tuple[slice, ...]]:
    """The few boxes that the row-major positions [first, first + count) are, in their order."""
    if not shape:
        yield ()
        return
    row = 1
    for length in shape[1:]:
        row *= length
    last = first + count
    while first < last:
        index, inside = divmod(first, row)
        if inside == 0 and last - first >= row:
            stop = last // row
            yield (slice(index, stop), *(slice(0, length) for length in shape[1:]))
            first = stop * row
        else:
            part = min(row - inside, last - first)
            yield from ((slice(index, index + 1), *box) for box in boxes(shape[1:], inside, part))
            first += part


class Source(abc.ABC):
    """Where columns are found by their names."""

    place: str

    @abc.abstractmethod
    def names(self) -> list[str]: ...

    @abc.abstractmethod
    def find(self, name: str) -> Optional[Column]: ...

    def column(self, name: str) -> Column:
        """KeyError, with what there is, for a name that is none."""
        found = self.find(name)
        if found is None:
            raise KeyError(unknown(name, self.place, self.names()))
        return found


def unknown(name: str, place: str, names: list[str]) -> str:
    near = [known for known in names if known.lower() == name.lower()] or difflib.get_close_matches(name, names, 1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    there = ", ".join(map(repr, names[:MOST_NAMED])) or "nothing that a query could name"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{place} has no column {name!r}{meant}; there are: {there}{more}"


class Group(Source):
    """Of datasets, by their paths."""

    @abc.abstractmethod
    def child(self, path: str) -> Optional[Item]: ...

    def find(self, name: str) -> Optional[Column]:
        item = self.child(name)
        if item is not None:
            return Column(item)
        for place, char in enumerate(name):
            item = self.child(name[:place]) if char == "." and place > 0 else None
            field = None if item is None else field_of(item.dtype(), name[place + 1 :])
            if item is not None and field is not None:
                return Column(item, field)
        return None


class Single(Source):
    """One dataset: its fields, or itself."""

    def __init__(self, item: Item) -> None:
        self._item, self.place = item, item.place

    def names(self) -> list[str]:
        fields = self._item.dtype().names
        return list(fields) if fields else list(dict.fromkeys([self._item.name, "value"]))

    def find(self, name: str) -> Optional[Column]:
        if not self._item.dtype().names:
            return Column(self._item) if name in self.names() else None
        field = field_of(self._item.dtype(), name)
        return None if field is None else Column(self._item, field)


class Named(Source):
    """Datasets under names that the program has chosen: {"E": file["run/energy"]}."""

    place = "the given dictionary"

    def __init__(self, given: Mapping[str, Item]) -> None:
        self._given = given

    def names(self) -> list[str]:
        return list(self._given)

    def find(self, name: str) -> Optional[Column]:
        return Column(self._given[name]) if name in self._given else None


def field_of(dtype: Any, name: str) -> Optional[tuple[str, ...]]:
    """The names on the way to a field; names may have dots in them."""
    for field in dtype.names or ():
        if name == field:
            return (field,)
        if name.startswith(field + "."):
            inner = field_of(dtype[field], name[len(field) + 1 :])
            if inner is not None:
                return (field, *inner)
    return None


def source(target: Any) -> Source:
    """TypeError: it is nothing that can be queried."""
    if isinstance(target, Source):
        return target
    if type(target) is dict:
        return Named({str(name): _item(value) for name, value in target.items()})
    found = _of_library(target)
    if isinstance(found, Item):
        return Single(found)
    if found is None:
        raise TypeError(
            f"a query needs an open file, group or dataset of h5py, netCDF4, h5netcdf or PyTables, or of xarray, or a dictionary of datasets, not a {type(target).__name__}"
        )
    return found


def _item(value: Any) -> Item:
    found = value if isinstance(value, Item) else _of_library(value)
    if not isinstance(found, Item):
        raise TypeError(f"an open dataset is needed, not a {type(value).__name__}")
    return found


def _of_library(target: Any) -> Any:
    """An Item, a Source, or None."""
    names = {kind.__module__.split(".")[0] for kind in type(target).__mro__}
    if "h5py" in names or "h5netcdf" in names:
        from . import _query_h5py

        return _query_h5py.of(target)
    if "netCDF4" in names:
        from . import _query_netcdf4

        return _query_netcdf4.of(target)
    if "tables" in names:
        from . import _query_pytables

        return _query_pytables.of(target)
    if "xarray" in names and hasattr(target, "dims"):
        from . import _query_xarray

        return _query_xarray.Source(target)
    return None
