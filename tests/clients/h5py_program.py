"""Everyday h5py programs, one a run, for h5py_loop.py to run natively and under the plugin.

    h5py_program.py NAME FOLDER     runs one; it writes its files into FOLDER and prints what it read back
    h5py_program.py digest FOLDER   prints what is in FOLDER's files: shapes, filters, attributes, digests of the values

What they print must not depend on when bytes are stored.
"""

import hashlib
import json
import multiprocessing
import os
import pathlib
import sys

import h5py
import numpy

ROUNDS = 12


def noise(number, shape):
    return numpy.random.default_rng(number).normal(size=shape)


def loop(folder):
    """Writes, appends, overwrites, deletes and reads back, in one file and in a file per round."""
    sums = []
    with h5py.File(folder / "loop.h5", "w") as file:
        log = file.create_dataset("log", (0, 256), maxshape=(None, 256), chunks=(32, 256), dtype="f8")
        words = file.create_dataset("words", (ROUNDS,), dtype=h5py.string_dtype())
        ragged = file.create_dataset("ragged", (ROUNDS,), dtype=h5py.vlen_dtype("i4"))
        for number in range(ROUNDS):
            values = noise(number, (64, 256))
            group = file.create_group(f"round{number:02}")
            group.create_dataset("contiguous", data=values)
            group.create_dataset("gzip", data=values, chunks=(16, 64), compression="gzip", shuffle=True)
            group.attrs["number"], group.attrs["title"] = number, f"round {number}"
            group.attrs["corners"] = values[:2, :2]
            log.resize(64 * (number + 1), axis=0)
            log[-64:] = values
            log[number] = number
            words[number], ragged[number] = f"word {number} " * number, numpy.arange(number)
            earlier = file[f"round{number // 2:02}"]
            sums.append([float(earlier["contiguous"][3].sum()), float(earlier["gzip"][:, 5].sum()), float(log[:64].sum())])
            if number % 4 == 3:
                file.flush()
                del file[f"round{number // 2 - 1:02}/contiguous"]
    for number in range(ROUNDS):
        with h5py.File(folder / f"step{number:02}.h5", "w") as file:
            file["values"] = noise(number, (128, 256))
        with h5py.File(folder / f"step{number:02}.h5", "r+") as file:  # perhaps still on its way to storage
            file["values"][7] += 1
            sums.append(float(file["values"][7].sum()))
    return sums


def points(folder):
    """Selections: slices with steps, lists of rows, masks; types converted on the way."""
    with h5py.File(folder / "points.h5", "w") as file:
        grid = file.create_dataset("grid", (200, 300), dtype="f4", chunks=(50, 60), fillvalue=-1)
        flat = file.create_dataset("flat", (200, 300), dtype=">i2")
        grid[::3, 5:100] = numpy.arange(67 * 95).reshape(67, 95)
        grid[[1, 17, 100], 200:] = 3
        grid[:, 150][...]
        mask = numpy.zeros((200, 300), bool)
        mask[::7, ::11] = True
        flat[mask] = numpy.arange(mask.sum())
        flat[20:40:5] = numpy.arange(300, dtype="f8")
        return [float(grid[...].sum()), int(flat[...].astype("i8").sum()), float(grid[99:101, ::17].sum())]


def overwritten(folder):
    """Parts of whole compressed chunks written again while those are on their way. (h5py never uses the default list.)"""
    sums = []
    with h5py.File(folder / "overwritten.h5", "w") as file:
        for number in range(ROUNDS):
            rows = file.create_dataset(f"rows{number}", (400, 128), "f8", chunks=(50, 128), compression="gzip", compression_opts=1)
            rows[:200] = noise(number, (200, 128)).round(1)
            rows[10:20] = number
            rows[150] = -number
            sums.append([float(rows[5:25].sum()), float(rows[140:160].sum()), float(rows[...].sum())])
    with h5py.File(folder / "overwritten.h5", "r") as file:
        return sums + [float(file[f"rows{number}"][...].sum()) for number in range(ROUNDS)]


def text(folder):
    """Variable-length strings with a fill value, written after another handle of the same file was closed."""
    path = folder / "text.h5"
    with h5py.File(path, "w") as file:
        names = file.create_dataset("names", (ROUNDS,), h5py.string_dtype(), fillvalue="nobody")
        file.create_dataset("packed", (ROUNDS,), h5py.string_dtype(), fillvalue="nothing", chunks=(4,), compression="gzip")
        names[2] = "two"
    first = h5py.File(path, "r+")
    second = h5py.File(path, "r+")
    kept, packed = second["names"], second["packed"]
    read = [list(map(bytes.decode, first["names"][:4]))]
    first.close()
    kept[5:7], packed[...] = ["five", "six"], [f"word {number}" for number in range(ROUNDS)]
    packed[3] = "three"
    read += [list(map(bytes.decode, kept[...])), list(map(bytes.decode, packed[...]))]
    second.close()
    return read


def virtual(folder):
    """A virtual dataset over files that were closed a moment ago."""
    layout = h5py.VirtualLayout((4 * 100,), "f8")
    for part in range(4):
        with h5py.File(folder / f"part{part}.h5", "w") as file:
            file["rows"] = noise(part, 100)
        layout[part * 100 : part * 100 + 100] = h5py.VirtualSource(f"part{part}.h5", "rows", (100,))
    with h5py.File(folder / "virtual.h5", "w") as file:
        file.create_virtual_dataset("all", layout)
        file["far"] = h5py.ExternalLink("part2.h5", "/rows")
        return [float(file["all"][...].sum()), float(file["far"][...].sum())]


def swmr(folder):
    """A single writer for many readers: its bytes must be visible, in order, after each flush."""
    seen = []
    with h5py.File(folder / "swmr.h5", "w", libver="latest") as file:
        rows = file.create_dataset("rows", (0, 64), maxshape=(None, 64), chunks=(16, 64), dtype="f8")
        rows.resize(16, axis=0)
        rows[:] = noise(99, (16, 64))
        file.swmr_mode = True
        for number in range(ROUNDS):
            rows.resize(16 * (number + 2), axis=0)
            rows[-16:] = noise(number, (16, 64))
            rows.flush()
            with h5py.File(folder / "swmr.h5", "r", swmr=True) as reader:
                seen.append([reader["rows"].shape[0], float(reader["rows"][-16:].sum())])
    return seen


def core(folder):
    """A file in memory, stored at close: another driver, which runs natively."""
    with h5py.File(folder / "core.h5", "w", driver="core") as file:
        file["values"] = noise(1, (256, 256))
        total = float(file["values"][...].sum())
    with h5py.File(folder / "core.h5", "r") as file:
        return [total, float(file["values"][...].sum())]


def left_open(folder):
    """Nobody closes the file: Python and HDF5 end, and what was written must be there."""
    file = h5py.File(folder / "left_open.h5", "w")
    file["values"] = noise(5, (512, 256))
    file.create_dataset("packed", data=noise(6, (512, 64)), chunks=(64, 64), compression="gzip")
    globals()["kept"] = file
    return [float(file["values"][17].sum())]


def total_of(path):
    with h5py.File(path, "r") as file:
        return float(file["values"][...].sum())


def write_one(path):
    with h5py.File(path, "w") as file:
        file["values"] = noise(50 + int(path.stem[-1]), (200, 200))
    return total_of(path)


def fork(folder):
    """Workers forked while a closed file may still be on its way; parent and children go on writing."""
    paths = [folder / f"parent{number}.h5" for number in range(4)]
    for number, path in enumerate(paths):
        with h5py.File(path, "w") as file:
            file["values"] = noise(number, (300, 300))
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool:
        pending = pool.map_async(total_of, paths)
        with h5py.File(folder / "meanwhile.h5", "w") as file:
            file["values"] = noise(8, (300, 300))
        sums = pending.get(60)
        sums += pool.map(write_one, [folder / f"child{number}.h5" for number in range(4)])
        pool.close()
        pool.join()
    return sums + [total_of(path) for path in sorted(folder.glob("child*.h5"))] + [total_of(folder / "meanwhile.h5")]


PROGRAMS = {body.__name__: body for body in (loop, points, overwritten, text, virtual, swmr, core, left_open, fork)}


def digest_of(item):
    about = {"attributes": {name: str(value) for name, value in sorted(item.attrs.items())}}
    if isinstance(item, h5py.Dataset):
        values = item[...]
        raw = repr(values.tolist()).encode() if values.dtype.hasobject else values.tobytes()
        about |= {
            "shape": [item.shape, item.maxshape, item.chunks], "type": str(item.dtype), "filters": item.compression,
            "fill": str(item.fillvalue), "stored": item.id.get_storage_size(), "sha": hashlib.sha1(raw).hexdigest(),
        }  # fmt: skip
    return about


def digest(folder):
    found = {}
    os.chdir(folder)
    for path in sorted(folder.glob("*.h5")):
        with h5py.File(path, "r") as file:
            file.visititems(lambda name, item: found.__setitem__(f"{path.name}:{name}", digest_of(item)))
            found[f"{path.name}:/"] = digest_of(file)
    return found


def main():
    name, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    body = digest if name == "digest" else PROGRAMS[name]
    print(json.dumps(body(folder), sort_keys=True), flush=True)


if __name__ == "__main__":
    main()
