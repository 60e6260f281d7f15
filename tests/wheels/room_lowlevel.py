"""Random programs of h5py's low-level interface: every transfer, access and creation list with properties drawn at random.

What is asked of a list is a dictionary in the operation, so that it is seen what a failing program needs of it. Selections
are unions and differences of hyperslabs, or points; memory is laid out as the file is, flat, or with gaps.
"""

import ctypes
import pathlib

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t, h5z

from program import Program, Skip, agree, filled, resized, seed_of, values

TYPES = ["<f4", "<f8", "<i4", ">i2", "|u1"]
OTHER = {"f": "<f8", "i": "<i8", "u": "<u2"}
JOIN = {"set": h5s.SELECT_SET, "or": h5s.SELECT_OR, "xor": h5s.SELECT_XOR, "not": h5s.SELECT_NOTB, "and": h5s.SELECT_AND}


def library():
    """The wheel's own copy of HDF5: what h5py has no function for is asked of it."""
    (found,) = (pathlib.Path(h5py.__file__).parents[1] / "h5py.libs").glob("libhdf5-*.so*")
    return ctypes.CDLL(str(found))


HDF5 = library()


def transfer_list(asked):
    if asked is None:
        return None
    made = h5p.create(h5p.DATASET_XFER)
    number = ctypes.c_int64(made.id)
    if "check" in asked:
        HDF5.H5Pset_edc_check(number, ctypes.c_int(asked["check"]))
    if "buffer" in asked:  # of the conversion
        HDF5.H5Pset_buffer(number, ctypes.c_size_t(asked["buffer"]), None, None)
    if "vector" in asked:
        HDF5.H5Pset_hyper_vector_size(number, ctypes.c_size_t(asked["vector"]))
    return made


def access_list(asked):
    if asked is None:
        return None
    made = h5p.create(h5p.DATASET_ACCESS)
    made.set_chunk_cache(asked["slots"], asked["bytes"], asked["preemption"])
    return made


def file_list(asked):
    made = h5p.create(h5p.FILE_ACCESS)
    made.set_fclose_degree(h5f.CLOSE_STRONG)
    if "libver" in asked:
        made.set_libver_bounds(asked["libver"], h5f.LIBVER_LATEST)
    if "sieve" in asked:
        made.set_sieve_buf_size(asked["sieve"])
    if "align" in asked:
        made.set_alignment(*asked["align"])
    if "meta" in asked:
        made.set_meta_block_size(asked["meta"])
    if "cache" in asked:
        made.set_cache(0, 521, asked["cache"], 0.75)
    return made


def creation_list(asked, dtype):
    made = h5p.create(h5p.DATASET_CREATE)
    if "fill" in asked:
        made.set_fill_value(np.array(asked["fill"], dtype))
    if "alloc" in asked:
        made.set_alloc_time({"early": h5d.ALLOC_TIME_EARLY, "late": h5d.ALLOC_TIME_LATE, "steps": h5d.ALLOC_TIME_INCR}[asked["alloc"]])
    if asked.get("fill_always"):
        made.set_fill_time(h5d.FILL_TIME_ALLOC)
    if asked["layout"] == "chunked":
        made.set_chunk(tuple(asked["chunks"]))
    else:
        made.set_layout(h5d.COMPACT if asked["layout"] == "compact" else h5d.CONTIGUOUS)
    for name in asked.get("filters", []):
        if name == "shuffle":
            made.set_shuffle()
        elif name == "fletcher32":
            made.set_fletcher32()
        elif name == "lzf":
            made.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL)
        else:
            made.set_deflate(name)
    return made


def draw_creation(rng):
    """(type, shape, largest shape or None, what is asked)"""
    dtype = rng.choice(TYPES)
    shape = rng.choice([[50000], [300, 170], [30, 40, 50], [90, 500]])
    asked = {"layout": "chunked" if rng.random() < 0.8 else "contiguous"}
    if rng.random() < 0.4:
        asked["fill"] = rng.randint(1, 90)
    if rng.random() < 0.08:
        shape, asked["layout"] = [10, 20], "compact"
    largest = None
    if asked["layout"] == "chunked":
        asked["chunks"] = [rng.choice([n, n, -(-n // 2), -(-n // 3), 13]) for n in shape]
        asked["alloc"] = rng.choice(["early", "late", "steps", "steps"])
        choices = [[], [], [4], [1], ["shuffle", 4], ["shuffle", 9, "fletcher32"], ["fletcher32"], ["lzf"], ["shuffle", "lzf"], [4, 1]]
        asked["filters"] = rng.choice(choices)
        if rng.random() < 0.6:
            largest = [None if rng.random() < 0.6 else n + 40 for n in shape]
    else:
        asked["fill_always"] = True
    return dtype, shape, largest, asked


def draw_selection(rng, shape, chunks):
    choice = rng.random()
    if choice < 0.2:
        return "all"
    if choice < 0.28:
        return {"points": [rng.randrange(int(np.prod(shape))) for _ in range(rng.choice([1, 20, 500]))]}
    slabs = []
    for join in ["set"] + [rng.choice(["or", "or", "xor", "not", "and"]) for _ in range(rng.choice([0, 0, 0, 1, 2]))]:
        slab = [join]
        for n, c in zip(shape, chunks or shape):
            if rng.random() < 0.5:  # whole chunks
                first = rng.randrange(-(-n // c)) * c
                slab.append([first, 1, 1, min(n - first, c * rng.choice([1, 1, 2, 99]))])
            else:
                start, stride = rng.randrange(n), rng.choice([1, 2, 5])
                count = rng.randint(1, max(1, (n - start) // stride))
                slab.append([start, stride, count, 1] if stride > 1 else [start, 1, 1, min(count, n - start)])
        slabs.append(slab)
    return {"slabs": slabs}


def select(space, selection, shape):
    """Selects, and returns the flat numbers of the elements in HDF5's order."""
    if selection == "all":
        space.select_all()
        return np.arange(int(np.prod(shape)))
    if "points" in selection:
        points = np.array(selection["points"])
        if points.max() >= np.prod(shape):
            raise Skip
        points = np.unique(points)  # twice the same one has no order when it is written
        space.select_elements(np.stack(np.unravel_index(points, shape), 1))
        return points
    chosen = np.zeros(shape, bool)
    for join, *slab in selection["slabs"]:
        if len(slab) != len(shape) or any(a + (k - 1) * s + b > n for (a, s, k, b), n in zip(slab, shape)):
            raise Skip
        one = np.zeros(shape, bool)
        one[np.ix_(*[(a + np.arange(k)[:, None] * s + np.arange(b)).ravel() for a, s, k, b in slab])] = True
        start, stride, count, block = zip(*slab)
        space.select_hyperslab(start, count, stride, block, JOIN[join])
        chosen = {"set": one, "or": chosen | one, "xor": chosen ^ one, "not": chosen & ~one, "and": chosen & one}[join]
    if not chosen.any():
        raise Skip
    return np.flatnonzero(chosen)


def memory(layout, selection, space, shape, count, dtype):
    """(buffer, its dataspace, which elements of the flat buffer are meant)"""
    if layout == "as file":
        return np.full(shape, 77, dtype), space.copy(), None
    if layout == "flat":
        return np.full(count, 77, dtype), h5s.create_simple((count,)), np.arange(count)
    buffer = np.full(3 + 2 * count, 77, dtype)
    gaps = h5s.create_simple(buffer.shape)
    gaps.select_hyperslab((3,), (count,), (2,))
    return buffer, gaps, 3 + 2 * np.arange(count)


class LowLevel(Program):
    def __init__(self, folder, mode):
        super().__init__(folder, mode)
        self.path = self.folder / "file.h5"
        self.file, self.model, self.handles, self.libver = None, None, {}, {}

    def dataset(self, name, handle=(0, None)):
        """One of three handles of a dataset; the second and third have chunk caches of their own."""
        if self.file is None or name not in self.model:
            raise Skip
        which, access = handle
        if (name, which) not in self.handles:
            self.handles[name, which] = h5d.open(self.file, name.encode(), access_list(access))
        return self.handles[name, which], self.model[name]

    @staticmethod
    def draw_cache(rng):
        return rng.choice([None, {"slots": rng.choice([1, 101, 521]), "bytes": rng.choice([0, 1000, 1 << 17, 1 << 24]),
                                  "preemption": rng.choice([0.0, 0.75, 1.0])}])  # fmt: skip

    @staticmethod
    def draw_file(rng):
        asked = {}
        for name, choices in [("sieve", [0, 512, 1 << 20]), ("align", [[1, 1], [4096, 512]]), ("meta", [0, 2048, 1 << 20]),
                              ("cache", [0, 1 << 16, 1 << 22])]:  # fmt: skip
            if rng.random() < 0.3:
                asked[name] = rng.choice(choices)
        return asked

    def draw(self, rng):
        if self.model is None:
            version = rng.choice([None, h5f.LIBVER_EARLIEST, h5f.LIBVER_V110, h5f.LIBVER_LATEST])
            return ["create", {**self.draw_file(rng), **({} if version is None else {"libver": version})}]
        if self.file is None:
            return ["open", self.draw_file(rng)]
        if len(self.model) < 2 or (rng.random() < 0.05 and len(self.model) < 7):
            return ["make", f"d{rng.randrange(9)}", *draw_creation(rng), self.draw_cache(rng)]
        name = getattr(self, "again", None)
        if name not in self.model or rng.random() < 0.4:
            name = self.again = rng.choice(sorted(self.model))
        made = self.model[name]
        shape = list(made["array"].shape)
        choice = rng.random()
        if choice < 0.72 and made["array"].size:
            handle = rng.choice([[0, None]] * 4 + [[1, self.draw_cache(rng)], [2, self.draw_cache(rng)]])
            transfer = rng.choice([None, None, {}, {"check": rng.choice([0, 1])}, {"buffer": rng.choice([64, 4096, 1 << 22])},
                                   {"vector": rng.choice([2, 16, 4096])}])  # fmt: skip
            layout = rng.choice(["as file", "flat", "flat", "gaps"])
            common = [name, handle, draw_selection(rng, shape, made["chunks"]), layout, rng.random() < 0.15, transfer]
            return ["write", *common, seed_of(rng)] if choice < 0.45 else ["read", *common]
        if choice < 0.82 and made["largest"]:
            grown = [n if rng.random() < 0.4 else max(1, min(n + rng.choice([-30, -1, 1, 40]), m if m is not None else n + 40))
                     for n, m in zip(shape, made["largest"])]  # fmt: skip
            return ["extent", name, grown] if np.prod(grown) < 120000 else None
        table = [(0.86, ["flush", name, rng.choice(["file", "dataset"])]), (0.90, ["drop", name, rng.randrange(3)]), (0.94, ["close"]),
                 (0.96, ["delete", name]), (0.98, ["rename", name, f"d{rng.randrange(9)}"])]  # fmt: skip
        return next((operation for limit, operation in table if choice < limit), ["verify"])

    def do_create(self, asked):
        if self.model is not None:
            raise Skip
        self.file, self.model = h5f.create(str(self.path).encode(), h5f.ACC_TRUNC, None, file_list(asked)), {}
        self.libver = {name: asked[name] for name in asked if name == "libver"}

    def do_open(self, asked):
        if self.model is None or self.file is not None:
            raise Skip
        self.file = h5f.open(str(self.path).encode(), h5f.ACC_RDWR, file_list({**asked, **self.libver}))

    def do_close(self):
        if self.file is None:
            raise Skip
        self.handles.clear()
        self.file.close()
        self.file = None
        self.copy_as_is(self.path, self.model)

    def do_make(self, name, dtype, shape, largest, asked, cache):
        if self.file is None or name in self.model:
            raise Skip
        limits = None if largest is None else tuple(h5s.UNLIMITED if n is None else n for n in largest)
        if asked.get("alloc") == "early" and largest and not asked.get("fill"):
            asked = {**asked, "fill_always": True}
        made = h5d.create(self.file, name.encode(), h5t.py_create(np.dtype(dtype)), h5s.create_simple(tuple(shape), limits),
                          creation_list(asked, dtype), None, access_list(cache))  # fmt: skip
        self.handles[name, 0] = made
        self.model[name] = {"array": filled(asked.get("fill"), shape, dtype), "fill": asked.get("fill"),
                            "chunks": asked.get("chunks"), "largest": largest}  # fmt: skip

    def transfer(self, name, handle, selection, layout, converts):
        dataset, made = self.dataset(name, handle)
        array = made["array"]
        space = dataset.get_space()
        chosen = select(space, selection, array.shape)
        dtype = np.dtype(OTHER[array.dtype.kind]) if converts else array.dtype
        buffer, where, meant = memory(layout, selection, space, array.shape, len(chosen), dtype)
        meant = chosen if meant is None else meant
        return dataset, array, space, chosen, buffer, where, meant

    def do_write(self, name, handle, selection, layout, converts, transfer, seed):
        dataset, array, space, chosen, buffer, where, meant = self.transfer(name, handle, selection, layout, converts)
        data = values(seed, (len(chosen),), buffer.dtype)
        buffer.reshape(-1)[meant] = data
        dataset.write(where, space, buffer, h5t.py_create(buffer.dtype), transfer_list(transfer))
        array.reshape(-1)[chosen] = data.astype(array.dtype)

    def do_read(self, name, handle, selection, layout, converts, transfer):
        dataset, array, space, chosen, buffer, where, meant = self.transfer(name, handle, selection, layout, converts)
        want = buffer.copy()
        want.reshape(-1)[meant] = array.reshape(-1)[chosen].astype(buffer.dtype)
        dataset.read(where, space, buffer, h5t.py_create(buffer.dtype), transfer_list(transfer))
        agree(buffer, want, f"read of {name} {str(selection)[:90]} {layout}")

    def do_extent(self, name, shape):
        dataset, made = self.dataset(name)
        if not made["largest"] or len(shape) != made["array"].ndim or any(m is not None and n > m for n, m in zip(shape, made["largest"])):
            raise Skip
        dataset.set_extent(tuple(shape))
        made["array"] = resized(made["array"], shape, made["fill"], made["array"].dtype)

    def do_flush(self, name, what):
        dataset, _ = self.dataset(name)
        if what == "dataset":
            dataset.flush()
        else:
            h5f.flush(self.file)

    def do_drop(self, name, which):
        self.handles.pop((name, which), None)

    def forget(self, name):
        self.dataset(name)
        for key in [key for key in self.handles if key[0] == name]:
            del self.handles[key]

    def do_delete(self, name):
        self.forget(name)
        self.file.unlink(name.encode())
        del self.model[name]

    def do_rename(self, name, other):
        if self.file is None or other in self.model:
            raise Skip
        self.forget(name)
        self.file.links.move(name.encode(), self.file, other.encode())
        self.model[other] = self.model.pop(name)

    def do_verify(self):
        for name in self.model if self.file is not None else []:
            dataset, made = self.dataset(name)
            got = np.empty_like(made["array"])
            dataset.read(h5s.ALL, h5s.ALL, got)
            agree(got, made["array"], f"all of {name}")

    def finish(self, bits):
        if self.model is None:
            return
        if self.file is not None:
            self.do_verify()
            self.handles.clear()
            self.file.close()
        self.verify_file(self.path, self.model)
        self.leave(self.path, self.model)

    @staticmethod
    def verify_file(path, model):
        with h5py.File(path, "r") as file:
            for name, made in model.items():
                agree(file[name][()], made["array"], f"all of {name}")


PROGRAM = LowLevel
