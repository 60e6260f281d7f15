"""Random datasets and queries in this process, each query compared with what the model says (stored.py, conditions.py).

    worker.py --seeds A-B --queries N --folder F

For each seed lines `begin SEED` and `ok SEED pairs`, or `wrong SEED what`: after a crash the last `begin` says whose it was. Whether
the plugin serves HDF5 meanwhile is the environment's matter. The pairs of a seed share files: much of what goes wrong needs a
scan after another one.
"""

import argparse
import ctypes
import faulthandler
import gc
import math
import pathlib
import random
import shutil
import time
import traceback

import conditions
import h5py
import numpy as np
from engine import BLOCK, END, LATER, OF_COLUMN, SMALL_PIECES, Block, Engine, EngineError, H5Dread, Scan, ids_in_use
from h5py import h5s
from stored import Maker

LIMIT_S = 120  # for one seed
NAMES = ["x", "Energy", "a b", "and", "x.y", "/g/d", "Ünï", "q`q", "_1", "in", "9lives", "e5", "L"]


class Wrong(Exception):
    """What was found is not what is there."""


def require(condition, *words):
    if not condition:
        raise Wrong(" ".join(str(word) for word in words))


def draw_shape(rng, large):
    rank = rng.choice((1, 1, 2, 3)) if large else rng.choice((0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5))
    elements = rng.randint(60000, 300000) if large else int(math.exp(rng.uniform(0, 8)))
    shape = []
    for left in range(rank, 0, -1):
        longest = max(1, round(elements ** (1 / left) * rng.uniform(0.5, 2)))
        shape.append(longest if left == 1 else rng.randint(1, longest))
        elements = max(1, elements // shape[-1])
    rng.shuffle(shape)
    if shape and rng.random() < 0.05:
        shape[rng.randrange(rank)] = 0
    return tuple(shape)


class Scene:
    """Files and the columns in them, all of one shape."""

    def __init__(self, rng, folder):
        self.rng, self.folder = rng, folder
        self.large = rng.random() < 0.1  # enough for lanes to decode chunks
        self.files = [self.open_file(i) for i in range(rng.choice((1, 1, 2)))]
        self.resizable = rng.random() < 0.2
        shape = draw_shape(rng, self.large)
        self.resizable = self.resizable and shape != ()
        makers = [Maker(rng, file, folder, shape, self.large) for file in self.files]
        self.stored, wanted = [], rng.randint(1, 2 if self.large else 4)
        while wanted > 0:
            columns = rng.randint(1, wanted)
            self.stored.append(rng.choice(makers).make(columns, self.resizable))
            wanted -= columns
        names = rng.sample(NAMES, sum(len(stored.places) for stored in self.stored))
        self.columns = [conditions.Column(names.pop(), stored, place) for stored in self.stored for place in stored.places]
        rng.shuffle(self.columns)
        self.settle()

    def open_file(self, i):
        rng = self.rng
        latest = rng.choice(("earliest", "latest"))
        if rng.random() < 0.1:
            return h5py.File(self.folder / f"{i}.h5", "w", libver=latest, driver="core", backing_store=False)
        return h5py.File(self.folder / f"{i}.h5", "w", libver=latest, rdcc_nbytes=rng.choice((0, 2**16, 2**20)))

    def settle(self):
        """What was written is on its way, or flushed, or read back from a file that was closed."""
        draw = self.rng.random()
        if draw < 0.5:
            return
        if draw < 0.75 or any(file.driver == "core" for file in self.files):
            for file in self.files:
                file.flush()
            return
        self.reopen(self.rng.choice(("r", "r+")) if draw < 0.95 else "r+")

    def reopen(self, mode):
        paths = [file.filename for file in self.files]
        everything = list(self.all_stored())
        kept = [(stored, paths.index(stored.dataset.file.filename), stored.dataset.name) for stored in everything]
        for file in self.files:
            file.close()
        self.files = [h5py.File(path, mode, rdcc_nbytes=2**16) for path in paths]
        for stored, file, name in kept:
            stored.dataset = self.files[file][name]

    def all_stored(self):
        for stored in self.stored:
            yield stored
            for _, part in stored.parts:
                yield part

    @property
    def writable(self):
        return all(file.mode == "r+" for file in self.files)

    def shape(self):
        return self.stored[0].shape

    def change(self):
        """Something is written, or all columns get another shape. Virtual datasets see what changed in their parts."""
        rng = self.rng
        if self.resizable and rng.random() < 0.5:
            shape = tuple(max(0, n + rng.randint(-n, 6)) if rng.random() < 0.5 else n for n in self.shape())
            for stored in self.stored:
                stored.resize(shape)
        for stored in self.stored:
            if rng.random() < 0.7:
                stored.write_some(rng)

    def close(self):
        for file in self.files:
            file.close()


def read_again(stored):
    """What H5Dread gives, in the file's own type."""
    count = math.prod(stored.shape)
    found = np.zeros((count, stored.size), np.uint8)
    if count and H5Dread(stored.dataset.id.id, stored.type.id, 0, 0, 0, found.ctypes.data) < 0:
        raise OSError("H5Dread")
    return found


def check_by_hdf5(stored):
    """The model against HDF5 itself, of what is not of variable length."""
    if stored.beside or any(place.kind.variable for place in stored.places):
        return
    found = read_again(stored)
    for place in stored.places:
        raw = place.kind.raw
        width = place.kind.compared or raw.shape[1]
        expected = raw[place.codes.reshape(-1)][:, :width]
        there = found[:, place.offset : place.offset + width]
        require(np.array_equal(there, expected), "HDF5 itself has something else in", stored.dataset.name, stored.layout, place.kind.name)


class Pair:
    """A query of some columns, and the ways to go through its scan. Each way is a generator that yields now and then."""

    def __init__(self, rng, scene, engine):
        self.rng, self.scene = random.Random(rng.getrandbits(64)), scene
        self.pace = random.Random(rng.getrandbits(64))  # how often it is drawn from is the clock's matter
        self.columns = rng.sample(scene.columns, rng.randint(1, len(scene.columns)))
        flags = (SMALL_PIECES if rng.random() < (0.3 if scene.large else 0.85) else 0) | (OF_COLUMN if rng.random() < 0.5 else 0)
        specs = [(column.name, column.stored.dataset.id.id, column.place.path) for column in self.columns]
        for column in self.columns:
            column.rounds = conditions.rounding_of(column.place.kind, self.converted_size(engine, column))
        self.query = conditions.Queries(rng, self.columns, bool(flags & OF_COLUMN)).draw()
        self.what = f"{self.query.text!r} flags {flags} of " + "; ".join(
            f"{column.name} = {column.place.kind.name} in {column.stored.layout} {column.place.path!r}" for column in self.columns
        )
        self.scan = Scan(engine, self.query.text, specs, flags)
        self.block = Block()

    @staticmethod
    def converted_size(engine, column):
        if column.place.kind.float_format != "converted":
            return None
        scan = Scan(engine, "c > 0", [("c", column.stored.dataset.id.id, column.place.path)], 0)
        size = scan.column_size(0)
        scan.close()
        return size

    def expected(self):
        shape = self.scene.shape()
        return np.broadcast_to(self.query.find(), shape).reshape(-1)

    def budget(self):
        return self.pace.choice((0, 0, 1, 50, 10**6, 2**62, -5))

    def check_block(self, expected, at):
        block = self.block
        require(block.first == at and block.elements > 0, "block at", block.first, "of", block.elements, "where", at, "was to come")
        here = expected[at : at + block.elements]
        hits = int(np.count_nonzero(here))
        require(len(here) == block.elements, "block beyond the end:", at, block.elements)
        mask = self.scan.mask(block.elements)
        require(mask[-1] == 0xA5, "mask is longer than its block")
        wrong = np.flatnonzero(mask[:-1] != here)
        require(wrong.size == 0, "mask differs at", (at + wrong[:5]).tolist(), "of", self.scene.shape())
        require(block.hits == hits, "hits", block.hits, "instead of", hits)
        words = np.ctypeslib.as_array(block.bits, ((block.elements + 63) // 64,))
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        require(np.array_equal(bits[: block.elements], here) and not bits[block.elements :].any(), "bits")
        positions = self.scan.positions(hits)
        require(positions[-1] == 0xA5A5A5A5, "more positions than hits")
        require(np.array_equal(positions[:-1], at + np.flatnonzero(here)), "positions")
        for i in range(len(self.columns)):
            if self.rng.random() < 0.5:
                self.check_values(i, at + np.flatnonzero(here))

    def check_values(self, i, positions):
        column = self.columns[i]
        kind = column.place.kind
        if kind.variable:
            try:
                self.scan.values(i, len(positions))
            except EngineError as error:
                require("variable length" in str(error), error)
                return
            raise Wrong("strings of variable length were given")
        found = self.scan.values(i, len(positions))
        require((found[-1] == 0xA5).all(), "more values than hits of", column.name)
        form = kind.native.get(found.shape[1])
        require(form is not None, "values of", found.shape[1], "bytes of", kind.name)
        width = kind.compared or found.shape[1]
        expected, there = form[column.place.codes.reshape(-1)[positions]][:, :width], found[:-1, :width]
        differ = (there != expected).any(axis=1)
        if kind.float_format == "converted":  # any NaN is as good as another
            numbers = np.dtype(f"f{width}")
            differ &= ~np.isnan(there.copy().view(numbers)[:, 0]) | ~np.isnan(expected.copy().view(numbers)[:, 0])
        wrong = np.flatnonzero(differ)
        require(wrong.size == 0, "values of", column.name, there[wrong[:5]].tolist(), expected[wrong[:5]].tolist(), "at", positions[wrong[:5]].tolist(), "of", self.scene.shape())

    def next_block(self):
        while True:
            step = self.scan.next(self.budget(), self.block)
            if step != LATER:
                return step == BLOCK

    def blocks(self, expected, most=None):
        at = 0
        while most is None or most > 0:
            if not self.next_block():
                require(at == len(expected), "ends at", at, "of", len(expected))
                return
            self.check_block(expected, at)
            at += self.block.elements
            most = most and most - 1
            yield
        return

    def count_rest(self):
        """Hits of what is left."""
        count = ctypes.c_uint64(7)
        while self.scan.count(self.budget(), count) != END:
            yield 0
        yield count.value - 7

    def count(self):
        expected = int(np.count_nonzero(self.expected()))
        found = 0
        for part in self.count_rest():
            found += part
            yield
        require(found == expected, "count", found, "instead of", expected)
        done, total = self.scan.progress()
        require(done == total == math.prod(self.scene.shape()), "progress", done, total)

    def go_through(self):
        require(self.scan.shape() == self.scene.shape(), "shape", self.scan.shape())
        yield from self.blocks(self.expected())

    def rewound(self):
        yield from self.blocks(self.expected(), self.rng.randint(1, 4))
        self.scan.rewind()
        yield from self.rng.choice((self.go_through, self.count))()

    def steps(self, expected):
        """Blocks and counts in turn, each with too little time."""
        at, count, counted = 0, ctypes.c_uint64(0), 0
        while True:
            if self.pace.random() < 0.5:
                step = self.scan.next(self.pace.choice((0, 0, 0, 10**7)), self.block)  # a block that count has begun, it begins again
                if step == END:
                    break
                if step == BLOCK:
                    hits = int(np.count_nonzero(expected[at : self.block.first]))
                    require(count.value - counted == hits, "counted", count.value - counted, "instead of", hits, "before", self.block.first)
                    counted, at = count.value, self.block.first
                    self.check_block(expected, at)
                    at += self.block.elements
            elif self.scan.count(0, count) == END:
                break
            yield
        hits = int(np.count_nonzero(expected[at:]))
        require(count.value - counted == hits, "counted", count.value - counted, "instead of", hits, "at the end")

    def mixed(self):
        yield from self.steps(self.expected())

    def changed(self):
        """What is there after a change is seen after Rewind; what a scan says meanwhile is not judged."""
        yield from self.blocks(self.expected(), self.rng.randint(1, 3))
        self.scene.change()
        for _ in range(self.rng.randint(0, 2)):
            try:
                self.next_block()
            except EngineError:
                require(self.scene.resizable, "a read failed after a write")
        self.scan.rewind()
        yield from self.rng.choice((self.go_through, self.count))()

    def ways(self, alone):
        ways = [self.count, self.go_through, self.go_through, self.rewound, self.mixed]
        if alone and self.scene.writable:
            ways.append(self.changed)
        return self.rng.choice(ways)()


def refused(rng, scene, engine):
    """What has to be refused is."""
    column = rng.choice(scene.columns)
    spec = (column.name, column.stored.dataset.id.id, column.place.path)
    name = conditions.quoted(column.name)
    if column.place.kind.is_text:
        texts = (f"{name} > 3", f"isnan({name})", f"{name} between 1 and 2 or {name} == 'a'")
    else:
        texts = (f"{name} == 'a'", f"{name} in ('a', 'b')", f"{name} > 0 and {name} < ''")
    text = rng.choice((*texts, f"{name} ==", "nowhere > 3", f"{name} > 3)", ""))
    try:
        Scan(engine, text, [spec], 0)
    except EngineError as error:
        require(str(error), "no reason")
        return
    raise Wrong(f"{text!r} of {column.place.kind.name} was not refused")


def run_pairs(rng, scene, engine, queries):
    done = 0
    while done < queries:
        together = rng.choice((1, 1, 1, 2, 3))
        pairs = [Pair(rng, scene, engine) for _ in range(together)]
        done += together
        ways = [(pair, pair.ways(together == 1)) for pair in pairs]
        while ways:
            pair, way = ways.pop(0)
            try:
                next(way)
                ways.append((pair, way))
            except StopIteration:
                if rng.random() < 0.05:
                    require(pair.scan.explain()["elements"] == math.prod(scene.shape()), "explain")
                pair.scan.close()
            except (Wrong, EngineError, OSError, AssertionError) as error:
                raise Wrong(f"{type(error).__name__}: {error}; {pair.what}") from error
        if rng.random() < 0.1:
            refused(rng, scene, engine)
    return done


def run(seed, folder, engine, queries):
    rng = random.Random(seed)
    folder.mkdir(parents=True)
    scene = Scene(rng, folder)
    before = ids_in_use()
    done = run_pairs(rng, scene, engine, max(1, queries // 4) if scene.large else queries)
    for stored in scene.stored:
        check_by_hdf5(stored)
    gc.collect()
    scene_ids = ids_in_use()
    require(all(scene_ids[kind] <= before[kind] + 2 for kind in before), "identifiers are left over:", before, scene_ids)
    scene.close()
    return done


def seeds_of(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", required=True, type=seeds_of)
    parser.add_argument("--queries", type=int, default=25)
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=math.inf)
    args = parser.parse_args()
    engine, begin = Engine(), time.monotonic()
    for seed in args.seeds:
        if time.monotonic() - begin > args.seconds:
            break
        print("begin", seed, flush=True)
        faulthandler.dump_traceback_later(LIMIT_S, exit=True)
        folder = args.folder / str(seed)
        try:
            done = run(seed, folder, engine, args.queries)
            print("ok", seed, done, flush=True)
        except Exception as error:  # whatever it is, it is told and judged elsewhere
            place = traceback.extract_tb(error.__traceback__)[-1]
            print("wrong", seed, f"{error} [{pathlib.Path(place.filename).name}:{place.lineno}]".replace("\n", " "), flush=True)
            if not isinstance(error, Wrong):
                traceback.print_exc()
        faulthandler.cancel_dump_traceback_later()
        shutil.rmtree(folder, ignore_errors=True)
    print("end", flush=True)


if __name__ == "__main__":
    main()
