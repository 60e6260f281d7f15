"""Queries: `query(group, "Energy > 1.9 and x < 3")`.

A query reads when it is asked for something, block by block, and begins anew each time: what it finds is what reading the
columns then would give, what is not stored yet included.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, Iterator, Optional, Union

from . import _query_calls, _query_columns, _query_found, _query_sources

_MOST_TOLD = 78


class Block:
    """A part of the columns, in row-major order: `elements` from the position `first` on, of which `hits` match."""

    def __init__(self, shape: tuple[int, ...], place: tuple[int, int, int], bits: bytes, columns: dict[str, Any]) -> None:
        self.first, self.elements, self.hits = place
        self.columns = columns
        self._shape, self._bits = shape, bits

    def mask(self) -> Any:
        """One truth value for each element."""
        import numpy

        return numpy.unpackbits(numpy.frombuffer(self._bits, numpy.uint8), count=self.elements, bitorder="little").view(bool)

    @property
    def positions(self) -> Any:
        """Of the hits, in row-major order."""
        import numpy

        return numpy.flatnonzero(self.mask()) + self.first

    def where(self) -> tuple[Any, ...]:
        """Their coordinates in the whole."""
        return _coordinates(self.positions, self._shape)

    def __getitem__(self, name: str) -> Any:
        """The hits' values of a column that the blocks were asked for."""
        return self.columns[name]

    def __repr__(self) -> str:
        return f"<block of {self.elements} elements from {self.first} on, {self.hits} hits>"


class Explanation(dict):  # type: ignore[type-arg]
    """How a query is answered; a dictionary that prints as text."""

    def __str__(self) -> str:
        scanned = self.get("scanned", {})
        lines = [
            f"query    {self['query']}",
            f"over     {_dims(self['shape'])}, {self['elements']:,} elements in {self['blocks']:,} blocks, by {self['strategy']}",
        ]
        for column in self["columns"]:
            field = f", field {column['field']}" if column.get("field") else ""
            filters = "+".join(column.get("filters") or []) or "no filter"
            why = f": {column['why']}" if column.get("why") else ""
            lines.append(f"column   {column['name']}: {column['dataset']}{field}, {column['type']}, {column['layout']}, {filters}")
            lines.append(f"         read {column['read']}{why}")
        if scanned.get("blocks"):
            lines.append(
                f"scanned  {scanned['blocks']:,} blocks, {scanned['elements']:,} elements, {scanned['bytes']:,} bytes; {scanned['hits']:,} hits"
            )
        return "\n".join(lines)


def _dims(shape: Any) -> str:
    return " x ".join(map(str, shape)) if shape else "a scalar"


def _coordinates(positions: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    import numpy

    if len(shape) <= 1:
        return (positions,)
    return tuple(numpy.ascontiguousarray(axis, numpy.int64) for axis in numpy.unravel_index(positions, shape))


def _own_form(dtype: Any) -> bool:
    """Whether the plugin's values are NumPy's: numbers."""
    return dtype.kind in "biuf" and dtype.subdtype is None


class Query:
    """Elements that fulfil a condition; nothing is read before it is asked for. Made by `tidelane.query`."""

    def __init__(
        self,
        source: _query_sources.Source,
        text: str,
        columns: dict[str, _query_sources.Column],
        flags: int,
        progress: Optional[_query_calls.Progress],
        raw: bool,
    ) -> None:
        self._source, self._scanned_text, self._columns, self._flags = source, text, columns, flags
        self._progress, self._raw = progress, raw
        self._explained: Optional[dict[str, Any]] = None
        with self._scan([]) as scan:
            self._shape = scan.shape
            self._explained = scan.explain()

    @property
    def text(self) -> str:
        return self._scanned_text

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the columns, when the query was made."""
        return self._shape

    @property
    def names(self) -> list[str]:
        """Columns that the condition names."""
        return list(self._columns)

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= _MOST_TOLD else self.text[:_MOST_TOLD] + "…"
        return f"<query {text!r} of {self._source.place}, {_dims(self._shape)}>"

    # What is found -------------------------------------------------------------------------------------------------------

    def count(self) -> int:
        """How many elements match."""
        with self._scan([]) as scan:
            return scan.count()

    def where(self) -> tuple[Any, ...]:
        """Where: the hits' coordinates, as `numpy.nonzero` of the mask gives them."""
        import numpy

        with self._scan([]) as scan:
            shape = scan.shape
            if not shape:
                raise ValueError("a scalar has no coordinates: ask for count() or mask()")
            if len(shape) == 1:
                found = _query_found.Found(numpy.int64, shape[0])
                for _, _, hits in iter(scan.next, None):
                    if hits:
                        scan.positions(found.room(hits))
                return (found.array(),)
            parts: list[tuple[Any, ...]] = []
            for _, _, hits in iter(scan.next, None):
                if hits:
                    positions = numpy.empty(hits, numpy.int64)
                    scan.positions(positions.ctypes.data)
                    parts.append(_coordinates(positions, shape))
        if not parts:
            return tuple(numpy.empty(0, numpy.int64) for _ in shape)
        return tuple(map(_joined, zip(*parts)))

    def mask(self) -> Any:
        """Whether: an array of truth values, of the columns' shape."""
        import numpy

        with self._scan([]) as scan:
            mask = numpy.zeros(scan.shape, bool)
            for first, _, hits in iter(scan.next, None):
                if hits:
                    scan.mask(mask.ctypes.data + first)
        return mask

    def read(self, *names: str) -> dict[str, Any]:
        """The hits' values: an array for each of the columns, in row-major order; no name: those that the condition names.

        Other columns than those of the condition need the same shape. `pandas.DataFrame(q.read("x", "y"))` is a table.
        """
        import numpy

        wanted = list(dict.fromkeys(names or self._columns))
        with self._scan(wanted) as scan:
            numbers = self._given(scan, wanted)
            elements = math.prod(scan.shape)
            found = {name: _query_found.Found(self.dtype(name), elements) for name in numbers}
            parts: dict[str, list[Any]] = {name: [] for name in wanted if name not in numbers}
            for place in iter(scan.next, None):
                if place[2]:
                    for name, number in numbers.items():
                        scan.values(number, found[name].room(place[2]))
                    if parts:
                        block = Block(scan.shape, place, scan.bits(), {})
                        for name, values in parts.items():
                            values.append(self._values(name, block))
        return {name: found[name].array() if name in found else _joined(parts[name] or [numpy.empty(0, self.dtype(name))]) for name in wanted}

    def blocks(self, *names: str) -> Iterator[Block]:
        """Block by block, those without hits left out, with the values of the columns `names` (none: those that the condition names):
        `block["x"]`, `block.where()`. Whatever the datasets' size, no more than a block is in memory.

        The datasets stay open until the last block was given, or the iterator is closed.
        """
        import numpy

        wanted = list(names) or list(self._columns)
        with self._scan(wanted) as scan:
            numbers = self._given(scan, wanted)
            for place in iter(scan.next, None):
                if place[2]:
                    block = Block(scan.shape, place, scan.bits(), {})
                    for name in wanted:
                        if name in numbers:
                            values = block.columns[name] = numpy.empty(block.hits, self.dtype(name))
                            scan.values(numbers[name], values.ctypes.data)
                        else:
                            block.columns[name] = self._values(name, block)
                    yield block

    def __iter__(self) -> Iterator[Block]:
        return self.blocks()

    def to_pandas(self, *names: str) -> Any:
        """A DataFrame of the hits; its index are their positions, or their coordinates where there is more than one dimension."""
        from . import _query_tabular

        return _query_tabular.to_pandas(self, *names)

    def to_arrow(self, *names: str) -> Any:
        """A `pyarrow.RecordBatchReader` of the hits: DuckDB, polars and others take it without a copy, and it is read block by block.
        `.read_all()` is a table."""
        from . import _query_tabular

        return _query_tabular.to_arrow(self, *names)

    def explain(self) -> Explanation:
        """How the query is answered, and what its last scan went through: print it, or take its items."""
        return Explanation(self._explained or {})

    # How -----------------------------------------------------------------------------------------------------------------

    def column(self, name: str) -> _query_sources.Column:
        return self._columns.get(name) or self._source.column(name)

    def dtype(self, name: str) -> Any:
        """Of a column's hits."""
        dtype = self.column(name).dtype
        return dtype.newbyteorder("=") if _own_form(dtype) else dtype

    def _scan_names(self, wanted: list[str]) -> list[str]:
        """The columns that a scan is given: those of the condition, and numbers besides."""
        more = [name for name in wanted if name not in self._columns and _own_form(self.column(name).dtype)]
        return [*self._columns, *dict.fromkeys(more)]

    @contextlib.contextmanager
    def _scan(self, wanted: list[str]) -> Iterator[_query_calls.Scan]:
        for name in wanted:
            self._check_shape(name)
        columns = {name: self.column(name) for name in self._scan_names(wanted)}
        library = next(iter(columns.values())).item.library()
        with contextlib.ExitStack() as open_ones:
            given = []
            for name, column in columns.items():
                if column.item.library().address != library.address:
                    raise ValueError("the columns are open in different copies of HDF5: open them with one library")
                if column.item.shape() is None:
                    raise ValueError(f"{column.item.place} has no elements (a null dataspace)")
                column.item.check(self._raw)
                given.append(_query_calls.ScanColumn(name, open_ones.enter_context(column.item.opened()), column.field_text))
            scan = _query_calls.Scan(library, self._scanned_text, given, self._flags, self._progress)
        with scan:
            for column in columns.values():
                if column.item.shape() != scan.shape:
                    raise ValueError(
                        f"{column.item.place} is of shape {column.item.shape()} by its dimensions, and {scan.shape} are stored: queries are about what is stored"
                    )
            try:
                yield scan
            finally:
                if self._explained is not None:
                    self._explained = scan.explain()

    def _check_shape(self, name: str) -> None:
        item = self.column(name).item
        first = next(iter(self._columns.values())).item
        if item.shape() != first.shape():
            raise ValueError(f"{item.place} is of shape {item.shape()}, and {first.place} of {first.shape()}: their elements do not belong together")

    def _given(self, scan: _query_calls.Scan, wanted: list[str]) -> dict[str, int]:
        """Those whose values the plugin gives as NumPy has them, and their numbers in the scan."""
        given = {}
        for number, name in enumerate(self._scan_names(wanted)):
            dtype = self.column(name).dtype
            if name in wanted and _own_form(dtype) and scan.column_size(number) == dtype.itemsize:
                given[name] = number
        return given

    def _values(self, name: str, block: Block) -> Any:
        """Of what the plugin does not give so: read by the library."""
        return self.column(name).elements(block.first, block.elements)[block.mask()]


def _joined(parts: Any) -> Any:
    import numpy

    return parts[0] if len(parts) == 1 else numpy.concatenate(parts)


def query(
    target: Any, condition: Union[str, _query_columns.Condition], *, progress: Optional[_query_calls.Progress] = None, raw: bool = False
) -> Query:
    """Elements that fulfil a condition, of columns of equal shape.

    `target`: an open group or file, whose datasets the condition names ("Energy > 1.9 and run1/x < 3"); a dataset, whose fields it
    names, or which it calls by its own name or `value`; or a dictionary {name: dataset}. Of h5py, netCDF4, h5netcdf or PyTables.
    `condition`: a text (docs/python.md), or one of Python's operators on `tidelane.columns(target)`.
    `progress(done, total)` is called with numbers of elements while the query reads.
    `raw`: of a variable that netCDF4 scales or masks, what is stored is meant.

    Elements are compared as NumPy 2 does, but exactly: integers beyond 2**53, too. A decimal constant stands for the nearest number
    of the column's own floating type. Members of enumerations may be called by their names: "state == 'ready'".

    Raises KeyError for a name that there is not, ValueError for what is no query of these columns.
    """
    source = _query_sources.source(target)
    plain, weak = _query_columns.as_text(condition, lambda name: source.column(name).dtype)
    columns = {name: source.column(name) for name in _query_calls.names(plain)}
    if not columns:
        raise ValueError(f"the query names no column of {source.place}: {plain}")
    text = _query_columns.with_members(plain, columns)
    return Query(source, text, columns, _query_calls.CONSTANTS_OF_COLUMN if weak else 0, progress, raw)
