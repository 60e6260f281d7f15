"""Small transfers of contiguous datasets, for which HDF5 natively has its sieve buffer.

    rows.py make FILE ROWS BYTES DATASETS      datasets of so many rows of so many bytes
    rows.py WORKLOAD FILE ROWS BYTES DATASETS  one of WORKLOADS on such a file
"""

import sys

import h5py
import numpy

COLUMN = 8  # bytes


def make(path, rows, size, datasets):
    with h5py.File(path, "w") as file:
        for number in range(datasets):
            file[f"d{number}"] = numpy.arange(rows * size, dtype="u4").astype("u1").reshape(rows, size) + numpy.uint8(number % 256)


def open_datasets(path, mode, datasets):
    file = h5py.File(path, mode)
    return file, [file[f"d{number}"] for number in range(datasets)]


def rows_in_turn(path, rows, size, datasets):
    file, all_of_them = open_datasets(path, "r", datasets)
    for row in range(rows):
        for number, dataset in enumerate(all_of_them):
            assert dataset[row, 1] == (row * size + 1 + number) % 256, (row, number)
            assert len(dataset[row]) == size
    file.close()


def column(path, rows, size, datasets):
    file, all_of_them = open_datasets(path, "r", datasets)
    for dataset in all_of_them:
        assert dataset[:, :COLUMN].shape == (rows, COLUMN)
    file.close()


def write_column(path, rows, _size, datasets):
    file, all_of_them = open_datasets(path, "r+", datasets)
    for number, dataset in enumerate(all_of_them):
        dataset[:, :COLUMN] = numpy.full((rows, COLUMN), number + 7, "u1")
    file.close()


def write_rows_in_turn(path, rows, size, datasets):
    file, all_of_them = open_datasets(path, "r+", datasets)
    values = numpy.arange(size, dtype="u4").astype("u1")
    for row in range(rows):
        for dataset in all_of_them:
            dataset[row] = values
    file.close()


def walk(path, _rows, size, datasets):
    """Opens the datasets, in an order that is not the file's, and reads no element."""
    with h5py.File(path, "r") as file:
        for number in numpy.random.default_rng(1).permutation(datasets):
            assert file[f"d{number}"].shape[1] == size


WORKLOADS = {"rows": rows_in_turn, "column": column, "write-column": write_column, "write-rows": write_rows_in_turn, "walk": walk}


if __name__ == "__main__":
    {"make": make, **WORKLOADS}[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:6]))
