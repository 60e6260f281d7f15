"""Ranks that write and read one file with h5py and mpi4py: together, alone, in a collective context, compressed.

    h5py_ranks_program.py FOLDER

Every rank checks what it reads; rank 0 prints a line for each step.
"""

import sys

import h5py
import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, ranks = comm.rank, comm.size
ROWS, COLUMNS = 64, 1 << 12  # of each rank: two MiB of numbers of eight bytes


def values(step, of=rank):
    return numpy.arange(ROWS * COLUMNS, dtype="f8").reshape(ROWS, COLUMNS) + 1000 * step + of


def say(*words):
    if rank == 0:
        print(*words, flush=True)


def mine(of=rank):
    return slice(of * ROWS, (of + 1) * ROWS)


def expect(found, wanted, what):
    if not numpy.array_equal(found, wanted):
        raise AssertionError(f"rank {rank}: {what} is not what was written")


def write(file):
    shape = (ranks * ROWS, COLUMNS)
    together = file.create_dataset("together", shape, "f8")
    alone = file.create_dataset("alone", shape, "f8")
    chunked = file.create_dataset("chunked", shape, "f8", chunks=(ROWS, COLUMNS // 4))
    packed = file.create_dataset("packed", shape, "f8", chunks=(ROWS, COLUMNS // 4), compression="gzip", compression_opts=1, shuffle=True)
    with together.collective:
        together[mine()] = values(1)
    alone[mine()] = values(2)
    for step in (3, 4):  # what is written twice is what was written last
        with chunked.collective:
            chunked[mine()] = values(step)
        with packed.collective:
            packed[mine()] = values(step)
    file.attrs["ranks"] = ranks
    for name in ("one", "two"):
        file.create_group(name).attrs["step"] = len(name)
    say("written")
    return {"together": 1, "alone": 2, "chunked": 4, "packed": 4}


def read(file, written, of, what):
    for name, step in written.items():
        dataset = file[name]
        expect(dataset[mine(of)], values(step, of), f"{what}, {name}")
        found = numpy.zeros((ROWS, COLUMNS), "f8")
        with dataset.collective:  # of this object alone; and dataset[...] would be read without it, by a shorter way of h5py's
            dataset.read_direct(found, mine(of))
        expect(found, values(step, of), f"{what}, {name}, collectively")
    say("read", what, sorted(file), dict(file.attrs))


def main():
    path = f"{sys.argv[1]}/ranks.h5"
    neighbour = (rank + 1) % ranks
    with h5py.File(path, "w", driver="mpio", comm=comm) as file:
        written = write(file)
        comm.Barrier()
        for name, step in written.items():
            expect(file[name][mine(neighbour)], values(step, neighbour), f"before a flush, {name}")
        file.flush()
        comm.Barrier()
        read(file, written, neighbour, "after a flush")
    with h5py.File(path, "r+", driver="mpio", comm=comm) as file:
        together, packed, part = file["together"], file["packed"], (mine(), slice(COLUMNS // 4))
        with together.collective:
            together[mine()] = values(5)
        written["together"] = 5
        for step in (6, 4):  # not read in between: HDF5 1.14.6 alone finds older elements
            with packed.collective:
                packed[part] = values(step)[:, : COLUMNS // 4]
        del file["two"]
        file["together"].attrs["again"] = True
    with h5py.File(path, "r", driver="mpio", comm=comm) as file:
        for of in range(ranks):
            read(file, written, of, f"what rank {of} wrote")


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:  # others would wait for this rank for ever
        print(f"rank {rank}: {error!r}", flush=True)
        comm.Abort(1)
