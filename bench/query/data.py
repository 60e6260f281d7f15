"""Data sets for queries, each in the forms that the ways of asking read, and what NumPy finds in them.

    data.py hdf5 FOLDER NAME SCALE       data.h5, and expected.json: needs h5py
    data.py pytables FOLDER NAME SCALE   tables.h5
    data.py parquet FOLDER NAME SCALE    data.parquet: needs pyarrow
    data.py zarr FOLDER NAME SCALE       data.zarr

The same columns each time: they are made from a seed. SCALE divides the number of rows.
"""

import dataclasses
import json
import math
import pathlib
import sys
import zlib

import numpy as np

CHUNK_BYTES = 1 << 20
PART = 1 << 20  # rows that are written at once
FRACTIONS = (0.0001, 0.01, 0.1, 0.5)
LABELS = ("one", "ten", "hundred", "half")  # of FRACTIONS


def clustered(chance, rows):
    """Rises from one end to the other, with noise of a thousandth: as times, or what an index was made of."""
    values = np.linspace(0, 1, rows, endpoint=False, dtype="f4")
    values += chance.random(rows, dtype="f4") * np.float32(0.001)
    return values


def rounded(chance, rows):
    """Three decimals, as instruments give them: compresses to about half."""
    values = chance.random(rows, dtype="f4")
    return np.round(values, 3, out=values)


def texts(chance, rows):
    """Labels of unlike lengths; each of LABELS is a share of FRACTIONS, the rest are others."""
    bounds = np.cumsum(FRACTIONS)
    kind = np.searchsorted(bounds, chance.random(rows, dtype="f4"), side="right")
    others = len(LABELS) + chance.integers(0, 50, rows, dtype="i1")
    kind = np.where(kind == len(LABELS), others, kind)
    return np.array([*LABELS, *(f"other label {n}" for n in range(50))], "S16")[kind]


def uniform(chance, rows):
    return chance.random(rows, dtype="f4")


def integers(chance, rows):
    return chance.integers(-(1 << 62), 1 << 62, rows, dtype="i8")


def above(fraction):
    return [("x", ">", float(np.float32(1 - fraction)))]


def large(fraction):
    return [("x", ">", int((1 << 62) - fraction * (1 << 63)))]


def both(fraction):
    each = float(np.float32(1 - math.sqrt(fraction)))
    return [("x", ">", each), ("y", ">", each)]


def labelled(fraction):
    return [("x", "==", LABELS[FRACTIONS.index(fraction)])]


@dataclasses.dataclass
class DataSet:
    label: str
    rows: int
    columns: dict
    terms: object  # of a fraction: conditions that all hold
    fractions: tuple = FRACTIONS
    gzip: bool = False
    indexed: bool = False  # by PyTables: takes minutes for many rows


DATA = {
    "float32": DataSet("float32, shuffled", 100_000_000, {"x": uniform}, above),
    "clustered": DataSet("float32, clustered", 100_000_000, {"x": clustered}, above, (0.0001, 0.01, 0.5)),
    "indexed": DataSet("float32, shuffled", 10_000_000, {"x": uniform}, above, (0.0001, 0.01), indexed=True),
    "int64": DataSet("int64", 25_000_000, {"x": integers}, large, (0.01, 0.5)),
    "strings": DataSet("strings of 16", 12_500_000, {"x": texts}, labelled, (0.01, 0.5)),
    "and": DataSet("two of float32", 25_000_000, {"x": uniform, "y": uniform}, both, (0.01, 0.5)),
    "gzip": DataSet("float32, gzip", 25_000_000, {"x": rounded}, above, (0.01, 0.5), gzip=True),
}


def columns_of(data, scale):
    rows = data.rows // scale
    return {name: make(np.random.default_rng(11 + number), rows) for number, (name, make) in enumerate(data.columns.items())}


def digest(array):
    """Of a result, whoever gave it: its elements in NumPy's own form of the type."""
    array = np.ascontiguousarray(array)
    return [len(array), zlib.crc32(memoryview(array).cast("B")) if len(array) else 0]


def typed(value, dtype):
    return value.encode() if dtype.kind == "S" else dtype.type(value)


def mask_of(columns, terms):
    mask = None
    for name, comparison, constant in terms:
        column = columns[name]
        wanted = typed(constant, column.dtype)
        one = column > wanted if comparison == ">" else column == wanted
        mask = one if mask is None else mask & one
    return mask


def expected(data, columns):
    """By fraction: what each question's answer is."""
    found = {}
    for fraction in data.fractions:
        mask = mask_of(columns, data.terms(fraction))
        positions = np.flatnonzero(mask).astype("i8")
        found[str(fraction)] = {
            "count": [len(positions), 0],
            "where": digest(positions),
            "read": digest(columns["x"][mask]),
        }
    return found


def write_hdf5(data, columns, folder):
    import h5py

    with h5py.File(folder / "data.h5", "w") as file:
        for name, values in columns.items():
            how = {"chunks": (min(len(values), CHUNK_BYTES // values.itemsize),), "shuffle": True, "compression": "gzip", "compression_opts": 1}
            file.create_dataset(name, data=values, **(how if data.gzip else {}))
    (folder / "expected.json").write_text(json.dumps(expected(data, columns)))


def write_pytables(data, columns, folder):
    import tables

    kinds = np.dtype([(name, values.dtype) for name, values in columns.items()])
    rows = len(columns["x"])
    filters = tables.Filters(complevel=1, complib="zlib", shuffle=True) if data.gzip else None
    with tables.open_file(str(folder / "tables.h5"), "w") as file:
        table = file.create_table("/", "data", kinds, filters=filters, expectedrows=rows, chunkshape=(CHUNK_BYTES // kinds.itemsize,))
        for first in range(0, rows, PART):
            part = np.empty(min(PART, rows - first), kinds)
            for name, values in columns.items():
                part[name] = values[first : first + PART]
            table.append(part)
        if data.indexed:
            table.cols.x.create_csindex()


def write_parquet(data, columns, folder):
    """Numbers as they are (a dictionary of random ones is of no use), strings in a dictionary, which is Parquet's default."""
    import pyarrow
    import pyarrow.parquet

    arrays = {name: values.astype("U") if values.dtype.kind == "S" else values for name, values in columns.items()}
    pyarrow.parquet.write_table(
        pyarrow.table(arrays),
        folder / "data.parquet",
        compression="gzip" if data.gzip else "none",
        compression_level=1 if data.gzip else None,
        use_dictionary=columns["x"].dtype.kind == "S",
    )


def write_zarr(data, columns, folder):
    import numcodecs
    import zarr

    group = zarr.open_group(str(folder / "data.zarr"), mode="w", zarr_format=2)
    for name, values in columns.items():
        filters = [numcodecs.Shuffle(values.itemsize)] if data.gzip else None
        compressors = numcodecs.GZip(1) if data.gzip else None
        array = group.create_array(
            name, shape=values.shape, dtype=values.dtype, chunks=(CHUNK_BYTES // values.itemsize,), filters=filters, compressors=compressors
        )
        array[:] = values


WRITERS = {"hdf5": write_hdf5, "pytables": write_pytables, "parquet": write_parquet, "zarr": write_zarr}


def main():
    form, folder, name, scale = sys.argv[1:]
    data = DATA[name]
    WRITERS[form](data, columns_of(data, int(scale)), pathlib.Path(folder))


if __name__ == "__main__":
    main()
