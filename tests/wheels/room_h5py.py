"""Random programs of h5py's high-level interface: up to three files, each with datasets of many layouts and filters.

The model of a file is a dictionary: `data` (name: what was asked for, and the elements), `attrs`. Files are closed, opened
in every mode, opened a second time, linked to from outside, copied, and left open at the end.
"""

import os
import sys

import h5py
import numpy as np

from h5py_shapes import draw_dataset, draw_selection, has_objects, in_memory, key_of, type_of
from program import Program, Skip, Wrong, agree, as_slices, draw_box, filled, resized, same, seed_of, shape_of, values

FILES = 3
LEFT_OPEN = []  # files that a program leaves to the end of the process


def check(dataset, made, what, mine=(), theirs=()):
    """Compares some elements, or all."""
    try:
        got = (dataset.asstr() if made["dtype"] == "text" else dataset)[mine]
    except OSError as error:
        if "no write intent" in str(error) and (has_objects(made["dtype"]) or not made["chunks"]):
            return  # HDF5 allocates where nothing was written when that is first read, and may not here
        raise OSError(f"{what}: {error}") from error
    agree(got, made["array"][theirs], what)


def verify_open(file, model):
    for name, made in model["data"].items():
        check(file[name], made, f"all of {name}")
        same(file[name].chunks, made["chunks"] and tuple(made["chunks"]), f"chunks of {name}")
    for (name, key), value in model["attrs"].items():
        agree(file[name].attrs[key], value, f"attribute {key} of {name}")


class H5py(Program):
    def __init__(self, folder, mode):
        super().__init__(folder, mode)
        self.files = {}  # slot: open file
        self.writable = set()
        self.models = {}
        self.libver = {}

    def path(self, slot):
        return self.folder / f"file{slot}.h5"

    def file(self, slot, write=False):
        if slot not in self.files or (write and slot not in self.writable):
            raise Skip
        return self.files[slot], self.models[slot]

    def dataset(self, slot, name, write=False):
        file, model = self.file(slot, write)
        if name not in model["data"]:
            raise Skip
        return file[name], model["data"][name]

    # What to do next

    def draw(self, rng):
        if not self.files:
            return self.draw_opening(rng)
        slot = rng.choice(sorted(self.files))
        model = self.models[slot]
        if slot in self.writable and (len(model["data"]) < 2 or (rng.random() < 0.06 and len(model["data"]) < 9)):
            return ["dataset", slot, self.draw_name(rng), *draw_dataset(rng)]
        names = sorted(model["data"])
        if not names:
            return ["close", slot]
        name = getattr(self, "again", None)
        if name not in names or rng.random() < 0.4:
            name = self.again = rng.choice(names)
        made = model["data"][name]
        if rng.random() < 0.7:
            return self.draw_transfer(rng, slot, name, made)
        return self.draw_other(rng, slot, name, made)

    @staticmethod
    def draw_name(rng):
        return rng.choice(["", "", "g/", "g/h/"]) + f"d{rng.randrange(12)}"

    def draw_opening(self, rng):
        options = {}
        if rng.random() < 0.6:
            options["rdcc_nbytes"] = rng.choice([0, 1000, 1 << 16, 1 << 20, 1 << 26])
        slot = rng.randrange(FILES)
        if slot not in self.models or rng.random() < 0.15:
            if rng.random() < 0.4:
                options["libver"] = rng.choice(["earliest", "latest", "v110"])
            if rng.random() < 0.2:
                options["track_order"] = True
            if slot not in self.models and rng.random() < 0.3:
                return ["create", slot, "a", options]
            choice = rng.random()
            if choice < 0.1:
                options["userblock_size"] = 512
            elif choice < 0.2:
                options["fs_strategy"] = rng.choice(["fsm", "page", "aggregate"])
            return ["create", slot, "w", options]
        return ["open", slot, rng.choice(["r", "r+", "r+", "a", "a"]), options]

    def draw_transfer(self, rng, slot, name, made):
        shape = list(made["array"].shape)
        selection = draw_selection(rng, shape, made["chunks"])
        choice = rng.random()
        if choice < 0.55:
            return ["write", slot, name, selection, seed_of(rng)]
        if choice < 0.62:
            return ["write_direct", slot, name, draw_box(rng, shape, made["chunks"]), seed_of(rng)]
        if choice < 0.68:
            return ["read_direct", slot, name, draw_box(rng, shape, made["chunks"])]
        if choice < 0.73:
            return ["read_as", slot, name, selection, rng.choice(["f8", "i4", "f4"])]
        if choice < 0.76 and made["dtype"] == "pair":
            return ["field", slot, name, rng.choice("abc"), seed_of(rng), rng.random() < 0.5]
        return ["read", slot, name, selection]

    def draw_other(self, rng, slot, name, made):
        choice = rng.random()
        other = self.draw_name(rng)
        if choice < 0.22 and made["maxshape"]:
            shape = [n if rng.random() < 0.3 else max(0, min(n + rng.choice([-60, -9, -1, 1, 20, 50]), m if m is not None else n + 90))
                     for n, m in zip(made["array"].shape, made["maxshape"])]  # fmt: skip
            return ["resize", slot, name, shape] if np.prod(shape) < 150000 else None
        table = [
            (0.28, ["close", slot]), (0.34, ["flush", slot]), (0.40, ["attribute", slot, name, f"a{rng.randrange(5)}", seed_of(rng)]),
            (0.43, ["drop_attribute", slot, name, f"a{rng.randrange(5)}"]), (0.48, ["rename", slot, name, other]),
            (0.52, ["delete", slot, name]), (0.58, ["copy", slot, name, rng.choice(sorted(self.files)), other]),
            (0.64, ["second", slot, name]), (0.69, ["external", slot, name, rng.choice(sorted(self.files))]),
            (0.75, ["virtual", slot, rng.choice(sorted(self.models[slot]["data"])), name]), (0.80, ["chunks", slot, name]),
            (0.84, ["iterate", slot, name]), (0.90, ["verify", slot]), (0.92, ["fork", slot, name]),
        ]  # fmt: skip
        for limit, operation in table:
            if choice < limit:
                return operation
        return self.draw_opening(rng)

    # Files

    def do_create(self, slot, mode, options):
        if slot in self.files or (mode == "a" and slot in self.models):
            raise Skip
        if self.path(slot).exists() and slot not in self.models:
            self.path(slot).unlink()
        self.files[slot] = h5py.File(self.path(slot), mode, **options)
        self.models[slot] = {"data": {}, "attrs": {}}
        self.libver[slot] = options.get("libver")
        self.writable.add(slot)

    def do_open(self, slot, mode, options):
        if slot in self.files or slot not in self.models:
            raise Skip
        options = {**options, "libver": self.libver[slot]}
        self.files[slot] = h5py.File(self.path(slot), mode, **options)
        (self.writable.discard if mode == "r" else self.writable.add)(slot)

    def do_close(self, slot):
        self.file(slot)
        self.files.pop(slot).close()
        if len(self.models[slot]["data"]) % 2:
            self.copy_as_is(self.path(slot), self.models[slot])

    def do_flush(self, slot):
        file, model = self.file(slot, write=True)
        file.flush()
        if self.libver[slot] in (None, "earliest") and len(model["data"]) % 2:  # others are marked as open
            self.copy_as_is(self.path(slot), model)

    def do_second(self, slot, name):
        _, made = self.dataset(slot, name)
        with h5py.File(self.path(slot), "r+" if slot in self.writable else "r", libver=self.libver[slot]) as again:
            check(again[name], made, f"{name} through a second file")

    def do_fork(self, slot, name):
        dataset, made = self.dataset(slot, name)
        child = os.fork()
        if child == 0:
            try:
                check(dataset, made, name)
                os._exit(0)
            except BaseException as error:
                print(f"child: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        if os.waitpid(child, 0)[1] != 0:
            raise Wrong(f"{name} in a forked process")

    # Datasets

    def do_dataset(self, slot, name, dtype, shape, options):
        file, model = self.file(slot, write=True)
        if name in model["data"]:
            raise Skip
        asked = {**options, "chunks": tuple(options["chunks"]) if "chunks" in options else None}
        if "maxshape" in options:
            asked["maxshape"] = tuple(options["maxshape"])
        file.create_dataset(name, tuple(shape), type_of(dtype), **asked)
        fill = options.get("fillvalue")
        if dtype == "bytes" and fill is not None:
            fill = fill.encode()
        model["data"][name] = {
            "dtype": dtype, "fill": fill, "chunks": options.get("chunks"), "maxshape": options.get("maxshape"),
            "array": filled(fill, shape, in_memory(dtype)),
        }  # fmt: skip

    def do_write(self, slot, name, selection, seed):
        dataset, made = self.dataset(slot, name, write=True)
        mine, theirs = key_of(selection, made["array"].shape)
        old = made["array"][theirs]
        if np.size(old) == 0 or (made["dtype"] == "ragged" and (old.dtype != object or old.size == 1)):  # h5py takes it for its elements
            raise Skip
        data = values(seed, np.shape(old), in_memory(made["dtype"]))
        dataset[mine] = data if data.ndim else data[()]
        made["array"][theirs] = data if data.ndim else data[()]

    def do_read(self, slot, name, selection):
        dataset, made = self.dataset(slot, name)
        mine, theirs = key_of(selection, made["array"].shape)
        check(dataset, made, f"read of {name} {selection}", mine, theirs)

    def do_read_as(self, slot, name, selection, dtype):
        dataset, made = self.dataset(slot, name)
        if has_objects(made["dtype"]) or made["dtype"] in ("pair", "|S7", "|b1"):
            raise Skip
        mine, theirs = key_of(selection, made["array"].shape)
        agree(dataset.astype(dtype)[mine], made["array"][theirs].astype(dtype), f"read of {name} {selection} as {dtype}")

    def do_write_direct(self, slot, name, box, seed):
        dataset, made = self.dataset(slot, name, write=True)
        if has_objects(made["dtype"]) or not box:
            raise Skip
        key = as_slices(box, made["array"].shape)
        source = values(seed, made["array"].shape, in_memory(made["dtype"]))
        if source[key].size == 0:
            raise Skip
        dataset.write_direct(source, key, key)
        made["array"][key] = source[key]

    def do_read_direct(self, slot, name, box):
        dataset, made = self.dataset(slot, name)
        if has_objects(made["dtype"]) or not box:
            raise Skip
        key = as_slices(box, made["array"].shape)
        got = np.zeros(shape_of(key, made["array"].shape), made["array"].dtype)
        if got.size == 0:
            raise Skip
        dataset.read_direct(got, key)
        agree(got, made["array"][key], f"direct read of {name} {box}")

    def do_field(self, slot, name, field, seed, write):
        dataset, made = self.dataset(slot, name, write)
        if made["dtype"] != "pair":
            raise Skip
        if write and made["array"].ndim and made["array"].size:
            data = values(seed, made["array"].shape, "<i2") if field != "c" else values(seed, (*made["array"].shape, 3), "<i2")
            dataset[..., field] = data.astype(made["array"][field].dtype) if field != "c" else data
            made["array"][field] = data
        agree(dataset[field], made["array"][field], f"field {field} of {name}")

    def do_resize(self, slot, name, shape):
        dataset, made = self.dataset(slot, name, write=True)
        if not made["maxshape"] or len(shape) != len(made["maxshape"]):
            raise Skip
        dataset.resize(tuple(shape))
        made["array"] = resized(made["array"], shape, made["fill"], in_memory(made["dtype"]))

    def do_chunks(self, slot, name):
        dataset, made = self.dataset(slot, name)
        if not made["chunks"] or has_objects(made["dtype"]):
            raise Skip
        chunks, size = dataset.id.get_num_chunks(), dataset.id.get_storage_size()
        stored = [dataset.id.get_chunk_info(i) for i in range(min(chunks, 40))]
        if chunks <= 40:
            same(sum(one.size for one in stored), size, f"storage of {name}")
        if dataset.compression is None and not dataset.shuffle and not dataset.fletcher32 and dataset.scaleoffset is None:
            for one in stored[:3]:
                _, raw = dataset.id.read_direct_chunk(one.chunk_offset)
                chunk = np.frombuffer(raw, made["array"].dtype).reshape(made["chunks"])
                want = made["array"][tuple(slice(a, a + c) for a, c in zip(one.chunk_offset, made["chunks"]))]
                agree(chunk[tuple(slice(0, n) for n in want.shape)], want, f"chunk {one.chunk_offset} of {name}")

    def do_iterate(self, slot, name):
        dataset, made = self.dataset(slot, name)
        if not made["chunks"] or has_objects(made["dtype"]) or 0 in made["array"].shape:
            raise Skip
        for number, key in enumerate(dataset.iter_chunks()):
            if number > 40:
                break
            agree(dataset[key], made["array"][key], f"{key} of {name}")

    # Names and what hangs on them

    def do_rename(self, slot, name, other):
        file, model = self.file(slot, write=True)
        if name not in model["data"] or other in model["data"]:
            raise Skip
        file.move(name, other)
        model["data"][other] = model["data"].pop(name)
        model["attrs"] = {(other if n == name else n, key): value for (n, key), value in model["attrs"].items()}

    def do_delete(self, slot, name):
        file, model = self.file(slot, write=True)
        if name not in model["data"]:
            raise Skip
        del file[name]
        del model["data"][name]
        model["attrs"] = {k: value for k, value in model["attrs"].items() if k[0] != name}

    def do_copy(self, slot, name, target, other):
        file, model = self.file(slot)
        onto, its_model = self.file(target, write=True)
        if name not in model["data"] or other in its_model["data"]:
            raise Skip
        # Natively, and through pass_through, HDF5 2.0 copies no extensible array whose unlimited dimension is not the first ("chunk
        # index must be less than 2^32"; or it reads past its memory, and goes on).
        maxshape = list(model["data"][name]["maxshape"] or [])
        if maxshape.count(None) == 1 and maxshape[0] is not None:
            raise Skip
        file.flush() if slot in self.writable else None  # HDF5 copies past its sieve buffer
        file.copy(name, onto, other)
        its_model["data"][other] = {**model["data"][name], "array": model["data"][name]["array"].copy()}
        its_model["attrs"].update({(other, key): value for (n, key), value in model["attrs"].items() if n == name})

    def do_attribute(self, slot, name, key, seed):
        file, model = self.file(slot, write=True)
        if name not in model["data"]:
            raise Skip
        value = values(seed, (seed % 50 + 1,), ["<i4", "<f8", "|S7"][seed % 3])
        file[name].attrs[key] = value
        model["attrs"][name, key] = value

    def do_drop_attribute(self, slot, name, key):
        file, model = self.file(slot, write=True)
        if (name, key) not in model["attrs"]:
            raise Skip
        del file[name].attrs[key]
        del model["attrs"][name, key]

    def do_external(self, slot, name, through):
        """Another file's link to it: HDF5 opens the target by itself, once more."""
        _, made = self.dataset(slot, name)
        file, _ = self.file(through, write=True)
        if slot == through or slot not in self.writable:
            raise Skip
        file["link"] = h5py.ExternalLink(self.path(slot).name, name)
        check(file["link"], made, f"{name} through a link")
        del file["link"]

    def do_virtual(self, slot, first, second):
        file, model = self.file(slot, write=True)
        parts = [model["data"].get(name) for name in (first, second)]
        if any(part is None or part["array"].ndim != 1 or part["array"].dtype != parts[0]["array"].dtype
               or part["array"].dtype.kind not in "iuf" for part in parts):  # fmt: skip
            raise Skip
        layout = h5py.VirtualLayout((2, 5000), parts[0]["array"].dtype)
        want = np.full((2, 5000), 5, parts[0]["array"].dtype)
        for row, (name, part) in enumerate(zip((first, second), parts)):
            n = min(5000, len(part["array"]))
            if n:
                layout[row, :n] = h5py.VirtualSource(".", name, part["array"].shape)[:n]
                want[row, :n] = part["array"][:n]
        file.create_virtual_dataset("virtual", layout, fillvalue=5)
        agree(file["virtual"][:], want, f"virtual dataset of {first} and {second}")
        del file["virtual"]

    def do_verify(self, slot):
        verify_open(*self.file(slot))

    # The end

    def finish(self, bits):
        for slot in sorted(self.files):
            verify_open(self.files[slot], self.models[slot])
        if bits % 4 == 0:
            LEFT_OPEN.extend(self.files.values())  # HDF5's own end closes them
        else:
            for slot in sorted(self.files):
                self.files.pop(slot).close()
            for slot, model in sorted(self.models.items()):
                self.verify_file(self.path(slot), model)
        for slot, model in sorted(self.models.items()):
            self.leave(self.path(slot), model)

    @staticmethod
    def verify_file(path, model):
        with h5py.File(path, "r") as file:
            verify_open(file, model)


PROGRAM = H5py
