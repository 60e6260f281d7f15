"""Random programs of netCDF4: one file, dimensions that grow, compressed variables, strings and compounds; h5py looks, too.

In the model a variable has what was written, as long as it was then; netCDF shows it as long as its dimensions are now, with
the fill value where nothing was written.
"""

import netCDF4
import numpy as np

from program import Program, Skip, agree, as_slices, draw_slice, resized, same, seed_of, shape_of, values

TYPES = ["f4", "f8", "i4", "i2", "u1", "i8"]
PAIR = np.dtype([("a", "<i4"), ("b", "<f8")], align=True)
MOST = 200000  # elements of a variable
LEFT_OPEN = []


def in_memory(dtype):
    return {"pair": PAIR}.get(dtype, dtype)


def shown(model, name):
    """A variable's elements as netCDF shows them."""
    made = model["variables"][name]
    shape = [model["dimensions"][d][0] for d in made["dimensions"]]
    return resized(made["array"], shape, made["fill"], in_memory(made["dtype"]))


def opened(path, mode):
    data = netCDF4.Dataset(path, mode)
    data.set_auto_maskandscale(False)
    return data


def verify_open(data, model):
    for name, (length, _) in model["dimensions"].items():
        same(len(data.dimensions[name]), length, f"length of {name}")
    for name, made in model["variables"].items():
        want = shown(model, name)
        if want.size:
            agree(data[name][...], want, f"all of {name}")
    for (name, key), value in model["attributes"].items():
        got = (data[name] if name else data).getncattr(key)
        agree(np.atleast_1d(got), np.atleast_1d(value), f"attribute {key} of {name}")


def draw_variable(rng, dimensions, classic):
    """(type, dimensions, what createVariable is asked for)"""
    names = sorted(dimensions)
    rng.shuffle(names)
    chosen = names[: rng.choice([1, 1, 2, 2, 2, 3])]
    grows = [d for d in chosen if dimensions[d][1]][:1]
    chosen = grows + [d for d in chosen if not dimensions[d][1]]
    dtype = rng.choice(TYPES[:4] if classic else TYPES * 2 + ["text", "pair"])
    lengths = [max(1, dimensions[d][0]) for d in chosen]
    if np.prod(lengths) > (3000 if dtype in ("text", "pair") else MOST):
        return None
    options = {}
    if dtype in TYPES:
        if rng.random() < 0.7:
            options["zlib"] = True
            options["complevel"] = rng.choice([1, 4, 9])
            options["shuffle"] = rng.random() < 0.6
        if rng.random() < 0.3:
            options["fletcher32"] = True
        if rng.random() < 0.6:
            options["chunksizes"] = [rng.choice([1, 10, 50, 50]) if dimensions[d][1] else rng.choice([n, n, -(-n // 2), min(n, 7)])
                                     for d, n in zip(chosen, lengths)]  # fmt: skip
        elif not grows and not options and rng.random() < 0.4:
            options["contiguous"] = True
        if rng.random() < 0.4:
            options["fill_value"] = rng.randint(1, 90)
        if rng.random() < 0.2:
            options["endian"] = rng.choice(["little", "big"])
        if rng.random() < 0.3:
            options["chunk_cache"] = rng.choice([1000, 100000, 10000000])
    return dtype, chosen, options


class Netcdf(Program):
    def __init__(self, folder, mode):
        super().__init__(folder, mode)
        self.path = str(self.folder / "file.nc")
        self.data, self.model, self.writable = None, None, False

    def variable(self, name, write=False):
        if self.data is None or name not in self.model["variables"] or (write and not self.writable):
            raise Skip
        return self.data[name], self.model["variables"][name]

    def changing(self):
        if self.data is None or not self.writable:
            raise Skip
        return self.data, self.model

    # What to do next

    def draw(self, rng):
        if self.model is None:
            return ["create", rng.choice(["NETCDF4", "NETCDF4", "NETCDF4_CLASSIC"])]
        if self.data is None:
            return ["open", rng.choice(["a", "a", "r+", "r"])]
        names = sorted(self.model["variables"])
        if self.writable and (len(self.model["dimensions"]) < 2 or rng.random() < 0.03):
            grows = rng.random() < 0.35
            return ["dimension", f"x{rng.randrange(12)}", 0 if grows else rng.choice([13, 100, 200, 400, 400]), grows]
        if self.writable and (not names or (len(names) < 8 and rng.random() < 0.09)):
            made = draw_variable(rng, self.model["dimensions"], self.model["format"] != "NETCDF4")
            return made and ["variable", f"v{rng.randrange(20)}", *made, seed_of(rng)]
        if not names:
            return ["close"]
        name = getattr(self, "again", None)
        if name not in names or rng.random() < 0.4:
            name = self.again = rng.choice(names)
        return self.draw_use(rng, name)

    def draw_use(self, rng, name):
        made = self.model["variables"][name]
        shape = [self.model["dimensions"][d][0] for d in made["dimensions"]]
        chunks = made["chunks"] or [0] * len(shape)
        box = [draw_slice(rng, n, c) for n, c in zip(shape, chunks)]
        choice = rng.random()
        if choice < 0.22 and self.model["dimensions"][made["dimensions"][0]][1]:
            return ["append", name, rng.choice([1, 1, 2, 7, 50]), rng.choice([0, 0, 0, 3]), seed_of(rng)]
        if choice < 0.45:
            return ["write", name, box, seed_of(rng)]
        if choice < 0.65:
            return ["read", name, box]
        if choice < 0.70:
            return ["attribute", rng.choice([name, ""]), f"a{rng.randrange(6)}", seed_of(rng)]
        if choice < 0.73:
            return ["drop_attribute", rng.choice([name, ""]), f"a{rng.randrange(6)}"]
        table = [(0.80, ["sync"]), (0.88, ["close"]), (0.92, ["second", name]), (0.96, ["verify"])]
        return next((operation for limit, operation in table if choice < limit), ["cache", name, rng.choice([0, 1000, 1 << 22])])

    # The file

    def do_create(self, form):
        if self.model is not None:
            raise Skip
        self.data = netCDF4.Dataset(self.path, "w", format=form)
        self.data.set_auto_maskandscale(False)
        if form == "NETCDF4":
            self.pair = self.data.createCompoundType(PAIR, "pair")
        self.model = {"format": form, "dimensions": {}, "variables": {}, "attributes": {}}
        self.writable = True

    def do_open(self, mode):
        if self.model is None or self.data is not None:
            raise Skip
        self.data = opened(self.path, mode)
        self.pair = self.data.cmptypes.get("pair")
        self.writable = mode != "r"

    def do_close(self):
        if self.data is None:
            raise Skip
        self.data.close()
        self.data = None
        self.copy_as_is(self.path, self.model)

    def do_sync(self):
        data, model = self.changing()
        data.sync()
        if len(model["variables"]) % 2:
            self.copy_as_is(self.path, model)

    def do_second(self, name):
        """Another handle of the file that is open, for reading."""
        _, made = self.variable(name)
        if self.writable:
            raise Skip  # what netCDF knows of lengths is each handle's own
        again = opened(self.path, "r")
        want = shown(self.model, name)
        if want.size:
            agree(again[name][...], want, f"{name} through a second handle")
        again.close()

    def do_verify(self):
        if self.data is None:
            raise Skip
        verify_open(self.data, self.model)

    # What is in it

    def do_dimension(self, name, length, grows):
        data, model = self.changing()
        if name in model["dimensions"] or (model["format"] != "NETCDF4" and grows and any(d[1] for d in model["dimensions"].values())):
            raise Skip
        data.createDimension(name, None if grows else length)
        model["dimensions"][name] = [length, grows]

    def do_variable(self, name, dtype, dimensions, options, seed):
        data, model = self.changing()
        if name in model["variables"] or any(d not in model["dimensions"] for d in dimensions):
            raise Skip
        kind = {"text": str, "pair": getattr(self, "pair", None)}.get(dtype, dtype)
        if kind is None:
            raise Skip
        data.createVariable(name, kind, dimensions, **options).set_auto_maskandscale(False)
        fill = options.get("fill_value")
        if fill is None and dtype in TYPES:
            fill = netCDF4.default_fillvals[dtype]
        lengths = [model["dimensions"][d][0] for d in dimensions]
        model["variables"][name] = {
            "dtype": dtype, "dimensions": dimensions, "fill": fill, "chunks": options.get("chunksizes"),
            "array": resized(np.zeros([0] * len(lengths), object if dtype == "text" else in_memory(dtype)), lengths, fill, in_memory(dtype)),
        }  # fmt: skip
        if dtype == "pair" and 0 not in lengths:  # what netCDF shows where none was written is not fixed
            self.put(name, [[0, n, 1] for n in lengths], seed)

    def put(self, name, box, seed):
        variable, made = self.variable(name, write=True)
        shape = [b[1] if self.model["dimensions"][d][1] else self.model["dimensions"][d][0] for b, d in zip(box, made["dimensions"])]
        old = shown(self.model, name)
        grown = [max(a, b) for a, b in zip(old.shape, shape)]
        if np.prod(grown) > MOST:
            raise Skip
        array = resized(old, grown, made["fill"], in_memory(made["dtype"]))
        key = as_slices(box, array.shape)
        data = values(seed, shape_of(key, array.shape), in_memory(made["dtype"]))
        if data.size == 0:
            raise Skip
        variable[key] = data
        array[key] = data
        made["array"] = array
        for d, length in zip(made["dimensions"], grown):
            self.model["dimensions"][d][0] = max(length, self.model["dimensions"][d][0])

    def do_write(self, name, box, seed):
        self.put(name, box, seed)

    def do_append(self, name, count, gap, seed):
        _, made = self.variable(name, write=True)
        lengths = [self.model["dimensions"][d][0] for d in made["dimensions"]]
        if not self.model["dimensions"][made["dimensions"][0]][1] or made["dtype"] == "pair" and gap:
            raise Skip
        self.put(name, [[lengths[0] + gap, lengths[0] + gap + count, 1], *([0, n, 1] for n in lengths[1:])], seed)

    def do_read(self, name, box):
        variable, _ = self.variable(name)
        want = shown(self.model, name)
        key = as_slices(box, want.shape)
        if want[key].size:
            agree(variable[key], want[key], f"read of {name} {box}")

    def do_cache(self, name, size):
        variable, made = self.variable(name)
        if made["chunks"]:
            variable.set_var_chunk_cache(size=size, nelems=101)

    def do_attribute(self, name, key, seed):
        data, model = self.changing()
        if name and name not in model["variables"]:
            raise Skip
        value = values(seed, (seed % 20 + 2,), ["i4", "f8"][seed % 2]) if seed % 3 else "words " * (seed % 9 + 1)
        (data[name] if name else data).setncattr(key, value)
        model["attributes"][name, key] = value

    def do_drop_attribute(self, name, key):
        data, model = self.changing()
        if (name, key) not in model["attributes"]:
            raise Skip
        (data[name] if name else data).delncattr(key)
        del model["attributes"][name, key]

    # The end

    def finish(self, bits):
        if self.model is None:
            return
        if self.data is not None:
            verify_open(self.data, self.model)
            if bits % 5 == 0:
                LEFT_OPEN.append(self.data)
            else:
                self.data.close()
        if bits % 5:
            self.verify_file(self.path, self.model)
        self.leave(self.path, self.model)

    @staticmethod
    def verify_file(path, model):
        data = opened(path, "r")
        verify_open(data, model)
        data.close()


PROGRAM = Netcdf
