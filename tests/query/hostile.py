#!/usr/bin/env python3
"""What is done to scans that no program should do: each ends with an error that says why, or as if nothing had been.

    hostile.py --mode native|default|async           all, in one process of that mode (fuzz.py)
    hostile.py --inside [--case NAME]                in this process

Nothing crashes or hangs, and no identifier of HDF5 is left over.
"""

import argparse
import ctypes
import faulthandler
import gc
import os
import pathlib
import resource
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
import client  # noqa: E402

MODES = {"native": None, "default": {}, "async": {"TIDELANE_MODE": "async"}}
LIMIT_S = 100

if "--inside" in sys.argv:
    import h5py
    import numpy as np
    from engine import BLOCK, END, LATER, OF_COLUMN, SMALL_PIECES, Block, Engine, EngineError, Scan, ids_in_use

    ENGINE = Engine()


def require(condition, *words):
    if not condition:
        raise AssertionError(" ".join(str(word) for word in words))


def scan_of(text, flags=0, **columns):
    specs = [(name, *(column if isinstance(column, tuple) else (column.id.id, ""))) for name, column in columns.items()]
    return Scan(ENGINE, text, specs, flags | SMALL_PIECES)


def refusal(function, *arguments, **named):
    """Why it fails."""
    try:
        function(*arguments, **named)
    except EngineError as error:
        require(str(error), "no reason")
        return str(error)
    raise AssertionError(f"{function.__name__} did not fail")


def go_through(scan):
    """(hits, steps) of all that is left."""
    block, hits, steps = Block(), 0, 0
    while (step := scan.next(0, block)) != END:
        hits += block.hits if step == BLOCK else 0
        steps += 1
    return hits, steps


def numbers(file, n=20000, **more):
    return file.create_dataset("x", data=np.arange(n, dtype="i4"), **more)


def closed_file(folder):
    """h5py closes a file by taking away every reference to what is in it, ours too."""
    for more in ({}, {"chunks": (100,), "compression": "gzip"}):
        file = h5py.File(folder / "a.h5", "w")
        scan, block = scan_of("x > 3", x=numbers(file, **more)), Block()
        require(scan.next(10**9, block) == BLOCK)
        file.close()
        for call in (lambda: scan.next(10**9, block), scan.rewind, lambda: go_through(scan), lambda: scan.values(0, 20000)):
            refusal(call)
        require(scan.explain()["elements"] == 20000)
        scan.close()
    file = h5py.File(folder / "a.h5", "w")
    texts = file.create_dataset("t", data=["a", "b"] * 3000, dtype=h5py.string_dtype(), chunks=(100,))
    scan = scan_of("t > 'a'", t=texts)
    require(scan.next(10**9, block) == BLOCK)
    file.close()
    refusal(go_through, scan)
    scan.close()


def closed_dataset(folder):
    """A scan holds the dataset itself."""
    with h5py.File(folder / "a.h5", "w") as file:
        scan = scan_of("x > 3", x=numbers(file, chunks=(100,)))
        gc.collect()
        require(go_through(scan)[0] == 19996)
        scan.close()


def deleted_dataset(folder):
    with h5py.File(folder / "a.h5", "w") as file:
        scan, block = scan_of("x > 3", x=numbers(file, chunks=(100,), compression="gzip")), Block()
        require(scan.next(10**9, block) == BLOCK)
        del file["x"]
        file.flush()
        file.create_dataset("y", data=np.zeros(50000))
        require(go_through(scan)[0] + block.hits == 19996)
        scan.rewind()
        require(go_through(scan)[0] == 19996)
        scan.close()


def resized(folder):
    """Between steps: what is no longer there cannot be read; after Rewind the shape is the new one."""
    for latest in ("earliest", "latest"):
        for most in ((None,), (40000,)):
            for more in ({}, {"compression": "gzip"}):
                with h5py.File(folder / "a.h5", "w", libver=latest) as file:
                    one_resize(numbers(file, maxshape=most, chunks=(100,), **more))


def one_resize(dataset):
    scan, block = scan_of("x >= 0", x=dataset), Block()
    require(scan.next(10**9, block) == BLOCK)
    dataset.resize((50,))
    why = refusal(go_through, scan)
    require("/x" in why, why)
    scan.rewind()
    require(go_through(scan)[0] == 50)
    scan.rewind()
    dataset.resize((30000,))
    require(go_through(scan)[0] == 50)
    scan.rewind()
    require(go_through(scan)[0] == 30000 and scan.shape() == (30000,))
    scan.close()


def shapes_part(folder):
    """Two columns that come to have different shapes."""
    with h5py.File(folder / "a.h5", "w") as file:
        a = file.create_dataset("a", data=np.arange(5000), maxshape=(None,), chunks=(99,))
        b = file.create_dataset("b", data=np.arange(5000), maxshape=(None,), chunks=(70,))
        scan = scan_of("a > 2 and b < 4000", a=a, b=b)
        b.resize((4000,))
        require("different shapes" in refusal(scan.rewind))
        a.resize((4000,))
        scan.rewind()
        require(go_through(scan)[0] == 3997)
        scan.close()


def many_scans(folder):
    """Also such as are refused, or given up in the middle."""
    record = np.dtype([("n", "i4"), ("s", h5py.string_dtype()), ("in", [("v", ">f8"), ("t", "S3")])])
    with h5py.File(folder / "a.h5", "w") as file:
        rows = np.zeros(3000, record)
        rows["n"], rows["s"] = np.arange(3000), [f"text {i % 7}" for i in range(3000)]
        table = file.create_dataset("t", data=rows, chunks=(100,), compression="gzip")
        columns = {"n": (table.id.id, "n"), "s": (table.id.id, "s"), "v": (table.id.id, "in.v"), "t": (table.id.id, "in.t")}
        block, before, memory = Block(), None, 0
        for i in range(400):
            if i == 100:
                before, memory = ids_in_use(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            scan = scan_of("n > 5 and s == 'text 3' or v < 0 or t == 'x'", **columns)
            for _ in range(i % 5):
                scan.next(0, block)
            if i % 3 == 0:
                scan.rewind()
            require(i % 40 != 0 or go_through(scan)[1] > 0)
            scan.close()
            refusal(scan_of, "n > 'a'", **columns)
            refusal(scan_of, "v > 1 and w < 2", **columns)
            refusal(scan_of, "v > 1", v=(table.id.id, "in"))
            refusal(scan_of, "v > 1", v=(table.id.id, "in.v.w"))
        require(ids_in_use() == before, "identifiers are left over", before, ids_in_use())
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
        require(grown < 20000, "memory has grown by", grown, "KiB")


def damaged_file(folder):
    """A block that cannot be read fails, with the names of file and dataset; those before it do not, nor does it after it is whole again."""
    path = folder / "damaged.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("deep/x", data=np.arange(20000, dtype="i4"), chunks=(2000,), compression="gzip", fletcher32=True)
        place = dataset.id.get_chunk_info(7).byte_offset
    whole = path.read_bytes()
    for _ in range(2):
        path.write_bytes(whole[: place + 5] + b"\xff" * 20 + whole[place + 25 :])
        with h5py.File(path) as file:
            scan, block, elements = scan_of("x >= 0", x=file["deep/x"]), Block(), 0
            while elements < 14000:
                require(scan.next(10**9, block) == BLOCK)
                elements += block.elements
            for call in (lambda: scan.next(0, block), lambda: go_through(scan), lambda: scan.count(10**9, ctypes.c_uint64(0))):
                why = refusal(call)
                require("/deep/x" in why and "damaged.h5" in why, why)
            scan.rewind()
            require(scan.next(10**9, block) == BLOCK and block.first == 0)
            scan.close()


def missing_storage(folder):
    """An external file that is gone, a virtual dataset's file that is gone: what H5Dread says is said."""
    with h5py.File(folder / "a.h5", "w") as file:
        raw = folder / "raw"
        external = file.create_dataset("x", (9000,), "i4", external=[(str(raw), 0, 36000)])
        external[...] = np.arange(9000)
        file.flush()
        os.unlink(raw)
        layout = h5py.VirtualLayout((9000,), "i4")
        layout[...] = h5py.VirtualSource("nowhere.h5", "x", shape=(9000,))
        virtual = file.create_virtual_dataset("v", layout, fillvalue=5)
        scan = scan_of("x > 3", x=external)
        why = refusal(go_through, scan)
        require("/x" in why, why)
        scan.close()
        scan = scan_of("v == 5", v=virtual)
        require(go_through(scan)[0] == 9000)
        scan.close()


def huge(folder):
    """Nothing is as large as a dataset: time and memory are bounded."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with h5py.File(folder / "a.h5", "w") as file:
        for shape, chunks in (((2**40,), (2**16,)), ((2**62,), (1000,)), ((3, 2**61), (3, 5000))):
            dataset = file.create_dataset(f"{shape}", shape, "i2", chunks=chunks)
            scan, count, block = Scan(ENGINE, "x == 0", [("x", dataset.id.id, "")], 0), ctypes.c_uint64(0), Block()
            require(scan.count(0, count) == LATER)
            while len(shape) == 1 and scan.next(2000, block) == LATER and scan.progress()[0] < 2**24:
                pass
            require(scan.progress()[1] == int(np.prod(np.array(shape, object))))
            scan.close()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    require(grown < 400000, "memory has grown by", grown, "KiB")


def more_than_can_be_counted(folder):
    """More elements than 64 bits have numbers for."""
    with h5py.File(folder / "a.h5", "w") as file:
        for i, shape in enumerate(((3, 2**63), (2**32, 2**32), (2**40, 2**40), (5, 2**62, 7))):
            space = h5py.h5s.create_simple(shape)
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            creation.set_chunk((1,) * len(shape))
            try:
                dataset = h5py.Dataset(h5py.h5d.create(file.id, f"d{i}".encode(), h5py.h5t.NATIVE_INT8, space, creation))
            except (ValueError, RuntimeError):
                continue  # this HDF5 does not have them
            require("elements" in refusal(scan_of, "x > 3", x=dataset))


def chunks_of_all_directions(folder):
    """Chunks of rows in one column and of columns in the other: a tile is not all of both, nor of a large column that is there for its values."""
    n = 300
    with h5py.File(folder / "a.h5", "w") as file:
        a = file.create_dataset("a", (n, n), "f8", chunks=(1, n), compression="gzip")
        b = file.create_dataset("b", (n, n), "f8", chunks=(n, 1), compression="gzip")
        c = file.create_dataset("c", (n, n), "S500", chunks=(1, 10))
        a[17], b[:, 3], c[17, 3] = 1, 1, b"here"
        for columns, most in (({"a": a, "b": b}, 8192 // 16), ({"b": b, "a": a, "c": c}, 8192 // 516)):
            scan, block, count = scan_of("a == 1 and b == 1", **columns), Block(), ctypes.c_uint64(0)
            require(scan.count(0, count) == LATER)
            require(scan.progress()[0] <= max(most, n), scan.progress())
            require(scan.count(10**9, count) == END and count.value == 1, count.value)
            scan.rewind()
            while scan.next(10**9, block) == BLOCK:
                hits = scan.values(len(columns) - 1, block.hits)[:-1]
                require(not block.hits or len(columns) < 3 or hits[0].tobytes().startswith(b"here\0"), hits)
            scan.close()


def short_of_memory(folder):
    """A chunk that memory does not have: the reason says so, and other scans go on."""
    with h5py.File(folder / "a.h5", "w") as file:
        large = file.create_dataset("large", (2**28 * 3,), "f8", chunks=(2**28,), compression="gzip")
        small = file.create_dataset("x", data=np.arange(5000))
        used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limits = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, limits[1]))
        try:
            scan, block = scan_of("l == 0", l=large), Block()
            why = refusal(scan.next, 10**9, block)
            require("memory" in why and "/large" in why, why)
            scan.close()
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
        scan = scan_of("x > 3", x=small)
        require(go_through(scan)[0] == 4996)
        scan.close()


def no_columns(folder):
    """Identifiers that are none, or of something else."""
    with h5py.File(folder / "a.h5", "w") as file:
        dataset = numbers(file)
        group = file.create_group("g")
        for wrong in (-1, 0, 2**62, file.id.id, group.id.id, dataset.id.get_type().id, dataset.id.get_space().id):
            refusal(scan_of, "x > 3", x=(wrong, ""))
        refusal(scan_of, "x > 3")
        refusal(scan_of, "x > 3", x=(dataset.id.id, "field"))
        null = file.create_dataset("null", data=h5py.Empty("i4"))
        require("null" in refusal(scan_of, "x > 3", x=null))
        for name, kind in (("opaque", "V5"), ("ref", h5py.ref_dtype), ("array", "(3,)i4"), ("sequence", h5py.vlen_dtype("i4"))):
            record = np.dtype([("n", "i4"), ("o", kind)])
            other = file.create_dataset(name, (10,), record)
            refusal(scan_of, "x > 3", x=(other.id.id, "o"))
            scan = scan_of("x == 0", x=(other.id.id, "n"))
            require(go_through(scan)[0] == 10)
            scan.close()


def asked_at_the_wrong_time(folder):
    with h5py.File(folder / "a.h5", "w") as file:
        x = file.create_dataset("x", data=np.arange(300 * 40).reshape(300, 40), chunks=(300, 1))
        scan, block, count = scan_of("x >= 0", x=x), Block(), ctypes.c_uint64(0)
        require((scan.values(0, 50) == 0xA5).all(), "values before there was a block")
        require("column" in refusal(scan.values, 1, 50) and scan.column_size(99) == 0)
        require(scan.next(0, block) == LATER)
        refusal(scan.values, 0, 20000)
        require(scan.count(10**9, count) == END and count.value == 12000, count.value)
        refusal(scan.values, 0, 20000)
        for _ in range(3):
            require(scan.next(0, block) == END and scan.count(0, count) == END)
        scan.rewind()
        require(scan.count(0, count) == LATER)
        require(go_through(scan)[0] == 12000)
        scan.close()
        ENGINE.close(None)


def errors_stay_ours(folder):
    """h5py still tells its own."""
    with h5py.File(folder / "a.h5", "w") as file:
        dataset = numbers(file)
        for _ in range(3):
            refusal(scan_of, "x > 3", x=(file.id.id, ""))
        try:
            file["nothing"]
        except KeyError as error:
            require("nothing" in str(error), error)
        scan = scan_of("x > 3", OF_COLUMN, x=dataset)
        require(go_through(scan)[0] == 19996)
        scan.close()


CASES = (
    closed_file, closed_dataset, deleted_dataset, resized, shapes_part, many_scans, damaged_file, missing_storage, huge,
    more_than_can_be_counted, chunks_of_all_directions, short_of_memory, no_columns, asked_at_the_wrong_time, errors_stay_ours,
)  # fmt: skip


def inside(wanted):
    faulthandler.enable()
    for case in CASES:
        if wanted and case.__name__ != wanted:
            continue
        print("case", case.__name__, flush=True)
        faulthandler.dump_traceback_later(LIMIT_S, exit=True)
        with tempfile.TemporaryDirectory(dir=".", prefix="hostile.") as folder:
            before = ids_in_use()
            case(pathlib.Path(folder))
            gc.collect()
            after = ids_in_use()
            left = {kind: n for kind, n in after.items() if n > before[kind] + 2}
            require(not left, "identifiers are left over", before, after)
        faulthandler.cancel_dump_traceback_later()
    print("end", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="native", choices=sorted(MODES))
    parser.add_argument("--inside", action="store_true")
    parser.add_argument("--case", default="")
    args = parser.parse_args()
    if args.inside:
        return inside(args.case)
    command = [sys.executable, "-B", HERE / "hostile.py", "--inside", "--case", args.case]
    settings = {"TIDELANE_TEST_QUERY_DIR": str(client.plugin_dir())}
    if MODES[args.mode] is None:
        done = client.run(command, {**client.native_environment(), **settings}, ".", 200)
    else:
        done, _ = client.run_plugin(command, ".", settings={**settings, **MODES[args.mode]}, timeout=200)
    print(done.output)
    return client.require(done.rc == 0 and done.output.rstrip().endswith("end"), f"ended with {done.rc}")


if __name__ == "__main__":
    client.main_of(main)
