"""Makes the files that the tools work on, without the plugin: many objects of many kinds, links, a user block, VDS.

    make_files.py FOLDER

    objects.h5   groups of contiguous, chunked, compressed, variable-length data, attributes, hard, soft and object links
    changed.h5   the same with one value changed: what h5diff has to find
    links.h5     external links into objects.h5, a dangling one, a soft link over two hops
    block.h5     a file behind a user block of 512 bytes
    virtual.h5   a virtual dataset over part0.h5, part1.h5, part2.h5
"""

import pathlib
import shutil
import sys

import h5py
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "programs"))
import make_objects  # noqa: E402

GROUPS = 8
ROWS, PARTS = 64, 3


def objects(folder):
    with h5py.File(folder / "objects.h5", "w") as file:
        file["types/particle"] = make_objects.PARTICLE
        for number in range(GROUPS):
            make_objects.fill(file.create_group(f"groups/g{number:04}"), number)
        big = numpy.arange(128 * 1024, dtype="i4").reshape(128, 1024)
        file.create_dataset("big/contiguous", data=big)
        file.create_dataset("big/compressed", data=big, chunks=(64, 256), compression="gzip", compression_opts=1)
    shutil.copy(folder / "objects.h5", folder / "changed.h5")
    with h5py.File(folder / "changed.h5", "r+") as file:
        file["groups/g0003/image"][17, 40] += 1
        file["groups/g0005/wave"].attrs["unit"] = "mV"


def links(folder):
    with h5py.File(folder / "links.h5", "w") as file:
        for number in range(GROUPS):
            file[f"far/g{number}"] = h5py.ExternalLink("objects.h5", f"/groups/g{number:04}")
        file["far/lost"] = h5py.ExternalLink("no_such_file.h5", "/")
        file["near"] = h5py.SoftLink("/far/g1/wave")
        file["own"] = numpy.arange(100)


def user_block(folder):
    with h5py.File(folder / "block.h5", "w", userblock_size=512) as file:
        file["values"] = numpy.linspace(0, 1, 20000)
        file.create_dataset("packed", data=numpy.arange(40000) % 7, chunks=(1000,), compression="gzip")
    with open(folder / "block.h5", "r+b") as raw:
        raw.write(b"a user block belongs to the user\n")


def virtual(folder):
    layout = h5py.VirtualLayout(shape=(PARTS * ROWS, 32), dtype="f8")
    for part in range(PARTS):
        name = f"part{part}.h5"
        with h5py.File(folder / name, "w") as file:
            file["rows"] = numpy.arange(ROWS * 32, dtype="f8").reshape(ROWS, 32) + part * 1000
        layout[part * ROWS : (part + 1) * ROWS] = h5py.VirtualSource(name, "rows", shape=(ROWS, 32))
    with h5py.File(folder / "virtual.h5", "w") as file:
        file.create_virtual_dataset("all", layout, fillvalue=-1)


def main():
    folder = pathlib.Path(sys.argv[1])
    for make in (objects, links, user_block, virtual):
        make(folder)


if __name__ == "__main__":
    main()
