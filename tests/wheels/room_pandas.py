"""Random programs of pandas: frames in HDF5 stores, in both formats, appended to, selected from, partly removed.

The model is a dictionary of numpy structured arrays; a frame is made of one, and read back into one.
"""

import numpy as np
import pandas

from program import Program, Skip, agree, same, seed_of, values

ROW = np.dtype([("n", "<i8"), ("x", "<f8"), ("y", "<f4"), ("s", object)])
MOST = 6000  # rows


def made_rows(seed, count, first):
    rows = np.zeros(count, ROW)
    rows["n"] = values(seed, (count,), "<i8")
    rows["x"] = np.random.default_rng(seed).random(count)
    rows["y"] = values(seed + 1, (count,), "<f4")
    rows["s"] = values(seed, (count,), "text")
    rows["s"][rows["s"] == ""] = "none"  # pandas stores an empty text as one that is missing
    return rows, np.arange(first, first + count)


def frame_of(rows, index):
    return pandas.DataFrame({name: rows[name] for name in ROW.names}, index=index)


def compare(frame, rows, index, what):
    same(list(frame.columns), list(ROW.names), f"columns of {what}")
    agree(frame.index.to_numpy(), index, f"index of {what}")
    for name in ROW.names:
        agree(frame[name].to_numpy(dtype=ROW[name]), rows[name], f"{name} of {what}")


class Pandas(Program):
    LENGTH = (5, 25)

    def __init__(self, folder, mode):
        super().__init__(folder, mode)
        self.path = str(self.folder / "file.h5")
        self.store, self.model = None, {}

    def opened(self, key=None, form=None):
        if self.store is None or (key is not None and key not in self.model):
            raise Skip
        if form is not None and self.model[key]["format"] != form:
            raise Skip
        return self.store

    def draw(self, rng):
        compression = {"complevel": rng.choice([1, 5, 9]), "complib": rng.choice(["zlib", "zlib", "blosc"])} if rng.random() < 0.6 else {}
        if self.store is None:
            if rng.random() < 0.3 and self.model:
                key = rng.choice(sorted(self.model))
                return rng.choice([["read_hdf", key], ["to_hdf", f"k{rng.randrange(4)}", rng.randint(1, 1000), compression, seed_of(rng)]])
            return ["open", compression]
        key = f"k{rng.randrange(4)}"
        count = rng.choice([1, 50, 400, 1500])
        if key not in self.model or rng.random() < 0.12:
            return ["put", key, rng.choice(["fixed", "table", "table"]), count, seed_of(rng)]
        rows = len(self.model[key]["rows"])
        first = rng.randrange(rows) if rows else 0
        table = [(0.3, ["append", key, count, seed_of(rng)]), (0.45, ["select", key, first, rng.randint(first, rows)]),
                 (0.55, ["where", key, rng.randrange(120)]), (0.63, ["remove_rows", key, first, rng.randint(first, rows)]),
                 (0.68, ["remove", key]), (0.78, ["flush"]), (0.90, ["close"])]  # fmt: skip
        choice = rng.random()
        return next((operation for limit, operation in table if choice < limit), ["read", key])

    def do_open(self, compression):
        if self.store is not None:
            raise Skip
        self.store = pandas.HDFStore(self.path, "a", **compression)

    def do_close(self):
        self.opened().close()
        self.store = None
        self.copy_as_is(self.path, self.model)

    def do_flush(self):
        self.opened().flush()
        self.copy_as_is(self.path, self.model)

    def keep(self, key, form, rows, index):
        self.model[key] = {"format": form, "rows": rows, "index": index}

    def do_put(self, key, form, count, seed):
        rows, index = made_rows(seed, count, 0)
        self.opened().put(key, frame_of(rows, index), format=form, data_columns=["n"] if form == "table" else None,
                          min_itemsize={"s": 300} if form == "table" else None)  # fmt: skip
        self.keep(key, form, rows, index)

    def do_append(self, key, count, seed):
        store, made = self.opened(key, "table"), self.model[key]
        if len(made["rows"]) + count > MOST:
            raise Skip
        rows, index = made_rows(seed, count, int(made["index"].max(initial=-1)) + 1)
        store.append(key, frame_of(rows, index))
        self.keep(key, "table", np.concatenate([made["rows"], rows]), np.concatenate([made["index"], index]))

    def do_read(self, key):
        compare(self.opened(key)[key], self.model[key]["rows"], self.model[key]["index"], key)

    def do_select(self, key, start, stop):
        store, made = self.opened(key, "table"), self.model[key]
        if stop > len(made["rows"]):
            raise Skip
        compare(store.select(key, start=start, stop=stop), made["rows"][start:stop], made["index"][start:stop], f"rows of {key}")

    def do_where(self, key, limit):
        store, made = self.opened(key, "table"), self.model[key]
        chosen = made["rows"]["n"] < limit
        compare(store.select(key, where=f"n < {limit}"), made["rows"][chosen], made["index"][chosen], f"{key} below {limit}")

    def do_remove_rows(self, key, start, stop):
        store, made = self.opened(key, "table"), self.model[key]
        if stop >= len(made["rows"]) or start == stop:
            raise Skip
        store.remove(key, start=start, stop=stop)
        gone = np.zeros(len(made["rows"]), bool)
        gone[start:stop] = True
        self.keep(key, "table", made["rows"][~gone], made["index"][~gone])

    def do_remove(self, key):
        self.opened(key).remove(key)
        del self.model[key]

    def do_to_hdf(self, key, count, compression, seed):
        if self.store is not None:
            raise Skip
        rows, index = made_rows(seed, count, 0)
        frame_of(rows, index).to_hdf(self.path, key=key, mode="a", format="fixed", **compression)
        self.keep(key, "fixed", rows, index)

    def do_read_hdf(self, key):
        if self.store is not None or key not in self.model:
            raise Skip
        compare(pandas.read_hdf(self.path, key), self.model[key]["rows"], self.model[key]["index"], key)

    def finish(self, bits):
        if self.store is not None:
            self.store.close()
        if self.model:
            self.verify_file(self.path, self.model)
            self.leave(self.path, self.model)

    @staticmethod
    def verify_file(path, model):
        with pandas.HDFStore(path, "r") as store:
            for key, made in model.items():
                compare(store[key], made["rows"], made["index"], key)


PROGRAM = Pandas
