"""Random programs of PyTables: arrays that grow, compressed arrays, rows of a table, sequences; indexes and undo left out.

The model of a node is an array, or for sequences a list of arrays.
"""

import numpy as np
import tables

from program import Program, Skip, agree, as_slices, draw_box, resized, same, seed_of, shape_of, values

ROW = np.dtype([("n", "<i4"), ("x", "<f8"), ("s", "S7"), ("v", "<i2", (4,))])
TYPES = ["f4", "f8", "i4", "i2", "u1"]
LIBRARIES = ["zlib", "zlib", "zlib", "blosc"]
MOST = 150000


def filters_of(asked):
    return tables.Filters(**asked) if asked else None


def verify_open(file, model):
    for name, made in model["nodes"].items():
        node = file.get_node("/" + name)
        if made["kind"] == "sequences":
            same(node.nrows, len(made["rows"]), f"rows of {name}")
            for i, (got, want) in enumerate(zip(node.read(), made["rows"])):
                agree(got, want, f"row {i} of {name}")
        else:
            agree(node.read(), made["array"], f"all of {name}")
    for (name, key), value in model["attributes"].items():
        agree(np.asarray(file.get_node_attr("/" + name, key)), value, f"attribute {key} of {name}")


class Tables(Program):
    def __init__(self, folder, mode):
        super().__init__(folder, mode)
        self.path = str(self.folder / "file.h5")
        self.file, self.model, self.writable = None, None, False

    def node(self, name, kinds, write=False):
        if self.file is None or (write and not self.writable) or name not in self.model["nodes"]:
            raise Skip
        made = self.model["nodes"][name]
        if made["kind"] not in kinds:
            raise Skip
        return self.file.get_node("/" + name), made

    # What to do next

    def draw(self, rng):
        if self.model is None:
            return ["create"]
        if self.file is None:
            return ["open", rng.choice(["a", "a", "r+", "r"])]
        names = sorted(self.model["nodes"])
        if self.writable and (len(names) < 3 or (len(names) < 8 and rng.random() < 0.05)):
            return self.draw_node(rng)
        if not names:
            return ["close"]
        name = getattr(self, "again", None)
        if name not in names or rng.random() < 0.4:
            name = self.again = rng.choice(names)
        made = self.model["nodes"][name]
        choice = rng.random()
        if choice < 0.75:
            return getattr(self, "draw_" + made["kind"])(rng, name, made)
        table = [
            (0.80, ["flush"]), (0.85, ["close"]), (0.88, ["attribute", name, f"a{rng.randrange(5)}", seed_of(rng)]), (0.90, ["remove", name]),
            (0.93, ["rename", name, f"n{rng.randrange(12)}"]), (0.96, ["copy", name, f"n{rng.randrange(12)}", self.draw_filters(rng)]),
        ]  # fmt: skip
        return next((operation for limit, operation in table if choice < limit), ["verify"])

    @staticmethod
    def draw_filters(rng):
        if rng.random() < 0.3:
            return None
        return {"complib": rng.choice(LIBRARIES), "complevel": rng.choice([1, 5, 9]), "shuffle": rng.random() < 0.6,
                "fletcher32": rng.random() < 0.3}  # fmt: skip

    def draw_node(self, rng):
        kind = rng.choice(["grown", "grown", "compressed", "compressed", "table", "table", "plain", "sequences"])
        shape = rng.choice([[300, 170], [60000], [30, 40, 50]])
        chunks = [max(1, rng.choice([n, -(-n // 2), -(-n // 4)])) for n in shape] if rng.random() < 0.6 else None
        return ["node", f"n{rng.randrange(12)}", kind, rng.choice(TYPES), shape, chunks, self.draw_filters(rng), seed_of(rng)]

    def draw_plain(self, rng, name, made):
        return self.draw_compressed(rng, name, made)

    @staticmethod
    def draw_compressed(rng, name, made):
        box = draw_box(rng, made["array"].shape, made["chunks"])
        return ["write", name, box, seed_of(rng)] if rng.random() < 0.55 else ["read", name, box]

    def draw_grown(self, rng, name, made):
        if rng.random() < 0.35 or not len(made["array"]):
            return ["append", name, rng.choice([1, 3, 50, len(made["array"]) or 100]), seed_of(rng)]
        return ["truncate", name, rng.randint(1, len(made["array"]))] if rng.random() < 0.08 else self.draw_compressed(rng, name, made)

    @staticmethod
    def draw_table(rng, name, made):
        rows = len(made["array"])
        choice = rng.random()
        if choice < 0.35 or rows < 10:
            return ["append", name, rng.choice([1, 20, 1000, 4000]), seed_of(rng)]
        first, step = rng.randrange(rows), rng.choice([1, 1, 2, 5])
        stop = rng.randint(first + 1, rows)
        if choice < 0.55:
            return ["modify", name, first, stop, step, seed_of(rng)]
        if choice < 0.65:
            return ["column", name, rng.choice(["n", "x", "v"]), first, stop, seed_of(rng)]
        if choice < 0.72:
            return ["remove_rows", name, first, min(stop, first + 200)]
        return ["where", name, rng.randrange(120)] if choice < 0.85 else ["rows", name, first, stop, step]

    @staticmethod
    def draw_sequences(rng, name, made):
        return ["sequence", name, rng.choice([0, 1, 100, 5000]), seed_of(rng)]

    # The file

    def do_create(self):
        if self.model is not None:
            raise Skip
        self.file = tables.open_file(self.path, "w")
        self.model, self.writable = {"nodes": {}, "attributes": {}}, True

    def do_open(self, mode):
        if self.model is None or self.file is not None:
            raise Skip
        self.file, self.writable = tables.open_file(self.path, mode), mode != "r"

    def do_close(self):
        if self.file is None:
            raise Skip
        self.file.close()
        self.file = None
        self.copy_as_is(self.path, self.model)

    def do_flush(self):
        if self.file is None or not self.writable:
            raise Skip
        self.file.flush()
        if len(self.model["nodes"]) % 2:
            self.copy_as_is(self.path, self.model)

    def do_verify(self):
        if self.file is None:
            raise Skip
        verify_open(self.file, self.model)

    # Nodes

    def do_node(self, name, kind, dtype, shape, chunks, filters, seed):
        if self.file is None or not self.writable or name in self.model["nodes"]:
            raise Skip
        if filters and kind == "sequences":
            filters = {**filters, "fletcher32": False}  # HDF5 has no checksums of them
        atom, asked = tables.Atom.from_dtype(np.dtype(dtype)), {"filters": filters_of(filters)}
        made = {"kind": kind, "chunks": chunks or [0] * len(shape), "array": np.zeros(shape, dtype)}
        if chunks and kind in ("grown", "compressed"):
            asked["chunkshape"] = tuple(chunks)
        if kind == "grown":
            shape = [0, *shape[1:]]
            self.file.create_earray("/", name, atom, tuple(shape), **asked)
            made["array"] = np.zeros(shape, dtype)
        elif kind == "compressed":
            self.file.create_carray("/", name, atom, tuple(shape), **asked)
        elif kind == "plain":
            made["array"] = values(seed, shape, dtype)
            self.file.create_array("/", name, made["array"])
        elif kind == "table":
            self.file.create_table("/", name, ROW, **asked)
            made["array"] = np.zeros(0, ROW)
        else:
            self.file.create_vlarray("/", name, atom, **asked)
            made.update(rows=[], dtype=dtype)
        self.model["nodes"][name] = made

    def do_write(self, name, box, seed):
        node, made = self.node(name, ("grown", "compressed", "plain"), write=True)
        key = as_slices(box, made["array"].shape)
        data = values(seed, shape_of(key, made["array"].shape), made["array"].dtype)
        if data.size == 0:
            raise Skip
        node[key] = data
        made["array"][key] = data

    def do_read(self, name, box):
        node, made = self.node(name, ("grown", "compressed", "plain"))
        key = as_slices(box, made["array"].shape)
        if made["array"][key].size:
            agree(node[key], made["array"][key], f"read of {name} {box}")

    def do_append(self, name, count, seed):
        node, made = self.node(name, ("grown", "table"), write=True)
        old = made["array"]
        data = values(seed, (count, *old.shape[1:]), old.dtype)
        if old.size + data.size > MOST:
            raise Skip
        node.append(data)
        made["array"] = np.concatenate([old, data])
        if made["kind"] == "table":
            node.flush()

    def do_truncate(self, name, rows):
        node, made = self.node(name, ("grown",), write=True)
        if rows > len(made["array"]):
            raise Skip
        node.truncate(rows)
        made["array"] = resized(made["array"], (rows, *made["array"].shape[1:]), None, made["array"].dtype)

    # Tables

    def table(self, name, stop, write=False):
        node, made = self.node(name, ("table",), write)
        if stop > len(made["array"]):
            raise Skip
        return node, made["array"], made

    def do_modify(self, name, first, stop, step, seed):
        node, array, _ = self.table(name, stop, write=True)
        rows = values(seed, (len(range(first, stop, step)),), ROW)
        node.modify_rows(first, stop, step, rows)
        node.flush()
        array[first:stop:step] = rows

    def do_column(self, name, column, first, stop, seed):
        node, array, _ = self.table(name, stop, write=True)
        data = values(seed, array[column][first:stop].shape, array.dtype[column].base)
        node.modify_column(first, stop, 1, data, column)
        node.flush()
        array[column][first:stop] = data

    def do_remove_rows(self, name, first, stop):
        node, array, made = self.table(name, stop, write=True)
        if stop - first >= len(array):
            raise Skip
        node.remove_rows(first, stop)
        made["array"] = np.concatenate([array[:first], array[stop:]])

    def do_where(self, name, limit):
        node, array, _ = self.table(name, 0)
        agree(node.read_where(f"n < {limit}"), array[array["n"] < limit], f"rows of {name} below {limit}")

    def do_rows(self, name, first, stop, step):
        node, array, _ = self.table(name, stop)
        agree(node.read(first, stop, step), array[first:stop:step], f"rows {first} to {stop} of {name}")
        agree(node.read(first, stop, step, field="x"), array["x"][first:stop:step], f"x {first} to {stop} of {name}")

    def do_sequence(self, name, length, seed):
        node, made = self.node(name, ("sequences",), write=True)
        row = values(seed, (length,), made["dtype"])
        node.append(row)
        made["rows"].append(row)

    # Names and attributes

    def do_attribute(self, name, key, seed):
        node, _ = self.node(name, ("grown", "compressed", "plain", "table", "sequences"), write=True)
        value = values(seed, (seed % 60 + 1,), "i4")
        node.attrs[key] = value
        self.model["attributes"][name, key] = value

    def forget(self, name, other=None):
        """What hung on a name that is gone, or is another now."""
        kept = self.model["attributes"].items()
        self.model["attributes"] = {(other if n == name else n, key): value for (n, key), value in kept if n != name or other}

    def do_remove(self, name):
        node, _ = self.node(name, ("grown", "compressed", "plain", "table", "sequences"), write=True)
        node.remove()
        del self.model["nodes"][name]
        self.forget(name)

    def do_rename(self, name, other):
        node, made = self.node(name, ("grown", "compressed", "plain", "table", "sequences"), write=True)
        if other in self.model["nodes"]:
            raise Skip
        node.rename(other)
        self.model["nodes"][other] = self.model["nodes"].pop(name)
        self.forget(name, other)

    def do_copy(self, name, other, filters):
        node, made = self.node(name, ("grown", "compressed", "table"), write=True)
        if other in self.model["nodes"]:
            raise Skip
        node.copy("/", other, filters=filters_of(filters), copyuserattrs=False)
        self.model["nodes"][other] = {**made, "array": made["array"].copy()}

    # The end

    def finish(self, bits):
        if self.model is None:
            return
        if self.file is not None:
            verify_open(self.file, self.model)
            self.file.close()
        self.verify_file(self.path, self.model)
        self.leave(self.path, self.model)

    @staticmethod
    def verify_file(path, model):
        with tables.open_file(path, "r") as file:
            verify_open(file, model)


PROGRAM = Tables
