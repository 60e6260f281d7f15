"""Ways of asking what elements fulfil a condition: each opens the data of a folder, and answers `count`, `where` and `read`.

A condition is a list of terms (column, "> or ==", constant) that all hold. `where` gives positions, `read` the values of
column x at the hits. What a way cannot do, it does not have.
"""

import functools
import os
import pathlib

import numpy as np
from data import mask_of, typed


def text_of(terms):
    """As Tidelane and PyTables read it."""
    return " and ".join(f"{name} {comparison} {constant!r}" for name, comparison, constant in terms)


class Tidelane:
    def __init__(self, folder):
        import h5py
        import tidelane

        self.file = h5py.File(folder / "data.h5", "r")
        self.query = lambda terms: tidelane.query(self.file, text_of(terms))

    def count(self, terms):
        return self.query(terms).count()

    def where(self, terms):
        return self.query(terms).where()[0]

    def read(self, terms):
        return self.query(terms).read("x")["x"]


class Arrays:
    """By NumPy, whoever gives the array: `part(name, first, count)` is the way's own."""

    block = None  # rows that are looked at together; None: all

    def parts(self, terms, *more):
        """The first row of each block, what matches, and columns: each is read once."""
        block = self.block or self.rows
        names = dict.fromkeys([*more, *(term[0] for term in terms)])
        for first in range(0, self.rows, block):
            values = {name: self.part(name, first, min(block, self.rows - first)) for name in names}
            yield first, mask_of(values, terms), values

    def count(self, terms):
        return sum(np.count_nonzero(mask) for _, mask, _ in self.parts(terms))

    def where(self, terms):
        return np.concatenate([np.flatnonzero(mask) + first for first, mask, _ in self.parts(terms)])

    def read(self, terms):
        return np.concatenate([values["x"][mask] for _, mask, values in self.parts(terms, "x")])


class H5pyWhole(Arrays):
    def __init__(self, folder):
        import h5py

        self.file = h5py.File(folder / "data.h5", "r")
        self.rows = len(self.file["x"])

    def part(self, name, first, count):
        return self.file[name][...]


class H5pyBlocks(Arrays):
    """As fast as it gets by hand: a few MiB at a time into arrays that are there already."""

    def __init__(self, folder):
        import h5py

        self.file = h5py.File(folder / "data.h5", "r")
        self.columns = {name: self.file[name] for name in self.file}
        self.rows = len(self.columns["x"])
        self.block = BLOCK_BYTES // self.columns["x"].dtype.itemsize
        self.buffers = {name: np.empty(self.block, column.dtype) for name, column in self.columns.items()}

    def part(self, name, first, count):
        buffer = self.buffers[name][:count]
        self.columns[name].read_direct(buffer, np.s_[first : first + count])
        return buffer


BLOCK_BYTES = 4 << 20


class H5pyPoints:
    """H5Dread of the hits as points; where they are is known already."""

    most = 2_000_000  # points: more take minutes

    def __init__(self, folder):
        import h5py

        self.h5py = h5py
        self.file = h5py.File(folder / "data.h5", "r")
        self.points = functools.lru_cache(1)(lambda key: np.ascontiguousarray(H5pyWhole(folder).where(key)[:, None], "u8"))

    def prepare(self, terms):
        self.points(tuple(map(tuple, terms)))

    def read(self, terms):
        points = self.points(tuple(map(tuple, terms)))
        dataset = self.file["x"].id
        values = np.empty(len(points), dataset.dtype)
        space = dataset.get_space()
        space.select_elements(points)
        dataset.read(self.h5py.h5s.create_simple(values.shape), space, values)
        return values


class Memmap(Arrays):
    """The bytes of the HDF5 file, where they lie in it as an array does in memory."""

    def __init__(self, folder):
        import h5py

        with h5py.File(folder / "data.h5", "r") as file:
            self.columns = {
                name: np.memmap(folder / "data.h5", item.dtype, "r", item.id.get_offset(), item.shape)
                for name, item in file.items()
                if item.chunks is None
            }
        self.rows = len(self.columns["x"])

    def part(self, name, first, count):
        return self.columns[name][first : first + count]


class PyTables:
    """In-kernel: the condition is compiled and runs on blocks of the table."""

    indexed = False

    def __init__(self, folder):
        import tables

        self.file = tables.open_file(str(folder / "tables.h5"), "r")
        self.table = self.file.root.data
        if not self.indexed:
            self.table._disable_indexing_in_queries()

    def ask(self, terms):
        """Constants as variables of the columns' types, or floats would be compared as doubles."""
        text, values = [], {}
        for number, (name, comparison, constant) in enumerate(terms):
            values[f"c{number}"] = typed(constant, self.table.coldtypes[name])
            text.append(f"({name} {comparison} c{number})")
        return {"condition": " & ".join(text), "condvars": values}

    def count(self, terms):
        return len(self.where(terms))

    def where(self, terms):
        return self.table.get_where_list(**self.ask(terms), sort=True).astype("i8", copy=False)

    def read(self, terms):
        return self.table.read_where(**self.ask(terms), field="x")


class PyTablesIndexed(PyTables):
    """By an index of all values, sorted."""

    indexed = True


class DuckDB:
    """Parquet, one thread."""

    def __init__(self, folder):
        import duckdb

        self.connection = duckdb.connect(config={"threads": 1})
        self.file = folder / "data.parquet"

    def ask(self, what, terms, more=""):
        kinds = {float: "FLOAT", int: "BIGINT", str: "VARCHAR"}
        where = " AND ".join(
            f"{name} {'=' if comparison == '==' else comparison} CAST('{constant!s}' AS {kinds[type(constant)]})" for name, comparison, constant in terms
        )
        return self.connection.execute(f"SELECT {what} AS found FROM read_parquet('{self.file}'{more}) WHERE {where}")

    def count(self, terms):
        return self.ask("count(*)", terms).fetchone()[0]

    def where(self, terms):
        return self.ask("file_row_number", terms, ", file_row_number = true").fetchnumpy()["found"]

    def read(self, terms):
        return self.ask("x", terms).fetchnumpy()["found"]


class Zarr(Arrays):
    """A few chunks at a time: zarr reads them at once."""

    def __init__(self, folder):
        import zarr

        self.group = zarr.open_group(str(folder / "data.zarr"), mode="r")
        self.columns = {name: self.group[name] for name in self.group.array_keys()}
        self.rows = self.columns["x"].shape[0]
        self.block = ZARR_BYTES // self.columns["x"].dtype.itemsize

    def part(self, name, first, count):
        return self.columns[name][first : first + count]


ZARR_BYTES = 16 << 20


class Pread:
    """No way of asking: the bytes are copied out of the page cache in pieces of 512 KiB, and not looked at."""

    def __init__(self, folder):
        import h5py

        with h5py.File(folder / "data.h5", "r") as file:
            self.places = {name: (item.id.get_offset(), item.id.get_storage_size()) for name, item in file.items()}
        self.file = open(folder / "data.h5", "rb", buffering=0)
        self.buffer = np.empty(512 << 10, "u1")

    def floor(self, terms):
        for name in {term[0] for term in terms}:
            offset, size = self.places[name]
            for at in range(offset, offset + size, len(self.buffer)):
                os.preadv(self.file.fileno(), [self.buffer[: offset + size - at]], at)


class Decoding:
    """No way of asking: the dataset is read with Tidelane, whole, into memory that is there already."""

    def __init__(self, folder):
        import h5py

        self.file = h5py.File(folder / "data.h5", "r")
        self.buffers = {name: np.zeros(item.shape, item.dtype) for name, item in self.file.items()}

    def floor(self, terms):
        for name in {term[0] for term in terms}:
            self.file[name].read_direct(self.buffers[name])


ALL = (Tidelane, H5pyWhole, H5pyBlocks, H5pyPoints, Memmap, PyTables, PyTablesIndexed, DuckDB, Zarr, Pread, Decoding)
WAYS = {way.__name__: way for way in ALL}


def open_way(name, folder):
    return WAYS[name](pathlib.Path(folder))
