#!/usr/bin/env python3
"""What filters.py runs: datasets through each filter of h5py and of the hdf5plugin wheel, written, read, damaged.

    filters_program.py write|read|read_plain|damage|read_damaged FILE

`read_plain` does not import hdf5plugin: HDF5 finds the filters by HDF5_PLUGIN_PATH, those that it can. What is printed is
the digest of each dataset, or the error of reading it. `read_damaged` prints no digests: what is read of a damaged chunk can
be memory that nobody has written (the wheel's zstd takes zstd's error for a length).
"""

import hashlib
import sys

import h5py
import numpy

ROWS, COLUMNS, CHUNK = 700, 1003, (100, 128)  # edge chunks are partial
SMALL_CACHE = 1 << 20  # HDF5's of every dataset: a whole read touches more


def settings():
    import hdf5plugin as wheel

    return {
        "lzf": {"compression": "lzf"},
        "lzf_shuffle_fletcher32": {"compression": "lzf", "shuffle": True, "fletcher32": True},
        "blosc_blosclz": wheel.Blosc(cname="blosclz"),
        "blosc_lz4": wheel.Blosc(cname="lz4", clevel=9, shuffle=wheel.Blosc.BITSHUFFLE),
        "blosc_lz4hc": wheel.Blosc(cname="lz4hc", shuffle=wheel.Blosc.NOSHUFFLE),
        "blosc_zlib": wheel.Blosc(cname="zlib", clevel=3),
        "blosc_zstd": wheel.Blosc(cname="zstd", clevel=3),
        "blosc2_blosclz": wheel.Blosc2(),
        "blosc2_zstd": wheel.Blosc2(cname="zstd", filters=wheel.Blosc2.BITSHUFFLE),
        "bitshuffle": wheel.Bitshuffle(cname="none"),
        "bitshuffle_lz4": wheel.Bitshuffle(cname="lz4"),
        "bitshuffle_zstd": wheel.Bitshuffle(nelems=4096, cname="zstd"),
        "lz4": wheel.LZ4(),
        "lz4_blocks": wheel.LZ4(nbytes=10000),
        "zstd": wheel.Zstd(),
        "zstd_9": wheel.Zstd(clevel=9),
    }


def numbers():
    """Smooth, with chunks of noise among them: filters that may fail do so for these."""
    values = (numpy.arange(ROWS * COLUMNS) % 997 * 31 // 7).astype("<i4").reshape(ROWS, COLUMNS)
    noise = numpy.random.default_rng(1)
    values[200:300, 128:384] = noise.integers(-(1 << 31), 1 << 31, size=(100, 256), dtype="i4")
    return values


def write(path):
    values = numbers()
    with h5py.File(path, "w") as file:
        for name, setting in settings().items():
            file.create_dataset(name, data=values, chunks=CHUNK, **setting)
            file.create_dataset(name + "_line", data=values.reshape(-1), chunks=(20000,), **setting)


def read(path, digest=lambda values: hashlib.sha256(values.tobytes()).hexdigest()):
    with h5py.File(path, rdcc_nbytes=SMALL_CACHE) as file:
        for name in sorted(file):
            try:
                print(name, digest(file[name][()]))
            except OSError as error:
                print(name, error)


def read_damaged(path):
    read(path, lambda values: "is read")


def damage(path):
    """Some bytes of each dataset's third chunk. (Some more, and the wheel's bitshuffle crashes, natively, too.)"""
    places = []
    with h5py.File(path) as file:
        for name in sorted(file):
            chunk = file[name].id.get_chunk_info(2)
            places.append((chunk.byte_offset + chunk.size * 3 // 4, min(16, chunk.size // 4)))
    with open(path, "r+b") as file:
        for offset, size in places:
            file.seek(offset)
            file.write(b"\xa5" * size)


def main():
    what, path = sys.argv[1:3]
    if what != "read_plain":
        import hdf5plugin  # noqa: F401
    {"write": write, "read": read, "read_plain": read, "damage": damage, "read_damaged": read_damaged}[what](path)


if __name__ == "__main__":
    main()
