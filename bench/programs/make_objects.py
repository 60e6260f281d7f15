"""Makes an HDF5 file of many objects of many kinds, for h5repack and h5copy to work on.

    make_objects.py FILE [GROUPS]

Each group holds contiguous, compressed, extendible, compact and scalar datasets, compound, enumerated and
variable-length types, attributes, and hard, soft and object links. The content depends on GROUPS alone.
"""

import sys

import h5py
import numpy

PARTICLE = numpy.dtype([("position", "f4", 3), ("charge", "i2"), ("weight", "f8")])
PHASE = h5py.enum_dtype({"solid": 0, "liquid": 1, "gas": 2}, basetype="u1")


def fill(group, number):
    random = numpy.random.default_rng(number)
    group.attrs["number"] = number
    group.attrs["title"] = f"group {number}"
    group.attrs["corners"] = numpy.arange(8, dtype="f8").reshape(4, 2) + number
    wave = group.create_dataset("wave", data=random.normal(size=32768).astype("f4"))
    wave.attrs["unit"] = "V/m"
    image = numpy.cumsum(random.integers(0, 3, size=(96, 128)), axis=1).astype("i4")
    group.create_dataset("image", data=image, chunks=(32, 32), compression="gzip", shuffle=True, fletcher32=True)
    series = group.create_dataset("series", shape=(0, 16), maxshape=(None, 16), chunks=(64, 16), dtype="f8")
    for length in (100, 160, 130):
        series.resize(length, axis=0)
        series[-20:] = random.normal(size=(20, 16))
    particles = numpy.zeros(200, PARTICLE)
    particles["position"], particles["weight"] = random.normal(size=(200, 3)), random.random(200)
    group.create_dataset("particles", data=particles)
    group.create_dataset("words", data=["word " * (i % 5) for i in range(20)], dtype=h5py.string_dtype())
    group.create_dataset("phase", data=random.integers(0, 3, 50).astype("u1"), dtype=PHASE)
    ragged = group.create_dataset("ragged", (10,), dtype=h5py.vlen_dtype("i4"))
    for i in range(10):
        ragged[i] = numpy.arange(i * 3)
    group.create_dataset("scalar", data=float(number))
    group.create_dataset("empty", shape=(5, 5), dtype="f4", fillvalue=-1.0)
    group["alias"] = wave
    group["soft"] = h5py.SoftLink("wave")
    pointers = group.create_dataset("pointers", (2,), dtype=h5py.ref_dtype)
    pointers[0], pointers[1] = wave.ref, group.ref


def main():
    path, groups = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
    with h5py.File(path, "w") as file:
        file["types/particle"] = PARTICLE
        for number in range(groups):
            fill(file.create_group(f"groups/g{number:04}"), number)


if __name__ == "__main__":
    main()
