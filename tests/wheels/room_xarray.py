"""Random programs of xarray: data sets stored by both engines, variables added and replaced, opened lazily by several readers.

The model is a dictionary of variables: the names of their dimensions and an array. Dimensions have fixed lengths.
"""

import numpy as np
import xarray

from program import Program, Skip, agree, as_slices, draw_box, seed_of, values

LENGTHS = {"t": 60, "y": 150, "x": 200, "s": 400}
TYPES = ["f4", "f8", "i4", "i2", "text"]


def verify_open(data, model):
    for name, made in model.items():
        agree(data[name].values, made["array"], f"all of {name}")


class Xarray(Program):
    LENGTH = (5, 30)

    def __init__(self, folder, mode):
        super().__init__(folder, mode)
        self.path = str(self.folder / "file.nc")
        self.model, self.readers = {}, {}

    def draw(self, rng):
        if not self.readers and (not self.model or rng.random() < 0.35):
            names = rng.sample("abcdef", rng.choice([1, 2, 3]))
            made = [[name, *self.draw_variable(rng), seed_of(rng)] for name in names]
            return ["store", rng.choice("waa") if self.model else "w", rng.choice(["netcdf4", "netcdf4", "h5netcdf"]), made, rng.random() < 0.4]
        choice = rng.random()
        if not self.readers or (choice < 0.12 and len(self.readers) < 3):
            return ["open", rng.randrange(3), rng.choice(["netcdf4", "h5netcdf"]), rng.random() < 0.5]
        reader = rng.choice(sorted(self.readers))
        if choice < 0.35:
            return ["close", reader]
        name = rng.choice(sorted(self.model))
        if choice < 0.42:
            return ["load", reader]
        return ["read", reader, name, draw_box(rng, self.model[name]["array"].shape)]

    @staticmethod
    def draw_variable(rng):
        """(dimensions, type, encoding)"""
        dtype = rng.choice(TYPES)
        if dtype == "text":
            return ["s"], dtype, {}
        dimensions = rng.choice([["t", "y"], ["y", "x"], ["x"], ["t", "s"], ["s", "x"]])
        encoding = {}
        if rng.random() < 0.7:
            encoding.update(zlib=True, complevel=rng.choice([1, 4, 9]), shuffle=rng.random() < 0.6)
        if rng.random() < 0.2:
            encoding["fletcher32"] = True
        if rng.random() < 0.6:
            encoding["chunksizes"] = [rng.choice([LENGTHS[d], -(-LENGTHS[d] // 2), 7]) for d in dimensions]
        return dimensions, dtype, encoding

    def do_store(self, mode, engine, made, grows):
        if self.readers or (mode == "a" and not self.model):
            raise Skip
        kept = dict(self.model) if mode == "a" else {}
        arrays, encodings = {}, {}
        for name, dimensions, dtype, encoding, seed in made:
            if name in kept and (kept[name]["dimensions"] != dimensions or kept[name]["dtype"] != dtype):
                raise Skip  # it may be replaced by its like
            array = values(seed, [LENGTHS[d] for d in dimensions], dtype)
            arrays[name] = (dimensions, array)
            if name not in kept:
                encodings[name] = {k: tuple(v) if isinstance(v, list) else v for k, v in encoding.items()}
            kept[name] = {"dimensions": dimensions, "dtype": dtype, "array": array}
        used = {d for dimensions, _ in arrays.values() for d in dimensions}
        asked = {"unlimited_dims": ["t"]} if grows and mode == "w" and "t" in used else {}
        xarray.Dataset(arrays).to_netcdf(self.path, mode=mode, engine=engine, encoding=encodings, **asked)
        self.model = kept
        self.copy_as_is(self.path, self.model)

    def do_open(self, reader, engine, cache):
        if reader in self.readers or not self.model:
            raise Skip
        self.readers[reader] = xarray.open_dataset(self.path, engine=engine, cache=cache)

    def reader(self, reader):
        if reader not in self.readers:
            raise Skip
        return self.readers[reader]

    def do_close(self, reader):
        self.reader(reader).close()
        del self.readers[reader]

    def do_load(self, reader):
        verify_open(self.reader(reader), self.model)

    def do_read(self, reader, name, box):
        data = self.reader(reader)
        if name not in self.model:
            raise Skip
        made = self.model[name]
        key = as_slices(box, made["array"].shape)
        agree(data[name].isel(dict(zip(made["dimensions"], key))).values, made["array"][key], f"read of {name} {box}")

    def finish(self, bits):
        for data in self.readers.values():
            verify_open(data, self.model)
            data.close()
        if self.model:
            self.verify_file(self.path, self.model)
            self.leave(self.path, self.model)

    @staticmethod
    def verify_file(path, model):
        with xarray.open_dataset(path, engine="netcdf4") as data:
            verify_open(data, model)


PROGRAM = Xarray
