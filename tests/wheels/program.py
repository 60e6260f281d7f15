"""What the random programs of all libraries share: what a program is, how its data is made, how an answer is compared.

A program is a list of operations, each a JSON list: a name and plain arguments. The class of a library draws them (what is
drawn depends on the seed and the model alone, never on what the library answered) and does them, to the library and to a
model in numpy or plain Python. So a list can be kept, repeated, and made shorter: an operation whose object is not there
any more raises Skip.

Invariant: everything that a program reads is compared with the model, at once; what it leaves behind is compared once more
by another process, without the plugin.
"""

import os
import pathlib
import pickle
import shutil

import numpy as np


class Wrong(Exception):
    """The library says something else than the model."""


class Skip(Exception):
    """The operation does not apply: others that it needs were left out."""


def values(seed, shape, dtype):
    """Data that compress a little, now and then a constant; for text and sequences an array of objects."""
    rng = np.random.default_rng(seed)
    if dtype == "text":
        return objects([["", "x", "\u00e4hm", "word" * int(n)][int(n) % 4] for n in rng.integers(0, 60, _count(shape))], shape)
    if dtype == "bytes":
        return objects([[b"", b"x", b"word" * int(n)][int(n) % 3] for n in rng.integers(0, 60, _count(shape))], shape)
    if dtype == "ragged":
        return objects([np.arange(n, dtype="i4") * 3 + n for n in rng.integers(0, 40, _count(shape))], shape)
    dtype = np.dtype(dtype)
    if dtype.fields:
        made = np.zeros(shape, dtype)
        for at, name in enumerate(dtype.names):
            made[name] = rng.integers(0, 99, made[name].shape) + at
        return made
    if dtype.kind == "S":
        return rng.integers(0, 9999, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if seed % 4 == 0:
        return np.full(shape, seed % 97, dtype)
    return rng.integers(0, 120, shape).astype(dtype)


def _count(shape):
    return int(np.prod(shape, dtype=np.int64))


def objects(items, shape):
    made = np.empty(_count(shape), object)
    made[:] = items if len(items) != 1 else [None]
    if len(items) == 1:
        made[0] = items[0]
    return made.reshape(shape)


def filled(fill, shape, dtype):
    """An array as the library shows it where nothing was written."""
    if dtype in ("text", "bytes"):
        nothing = b"" if dtype == "bytes" else ""
        return objects([nothing if fill is None else fill] * _count(shape), shape)
    if dtype == "ragged":
        return objects([np.zeros(0, "i4")] * _count(shape), shape)
    made = np.zeros(shape, dtype)
    if fill is not None:
        made[...] = fill
    return made


def resized(old, shape, fill, dtype):
    made = filled(fill, shape, dtype)
    kept = tuple(slice(0, min(a, b)) for a, b in zip(old.shape, shape))
    made[kept] = old[kept]
    return made


def _same_object(a, b):
    return np.array_equal(a, b) if isinstance(b, np.ndarray) else a == b


def agree(got, want, what):
    """Raises Wrong where an answer is not the model's."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        raise Wrong(f"{what}: shape {got.shape}, not {want.shape}")
    if want.dtype == object:
        bad = [i for i, (a, b) in enumerate(zip(got.reshape(-1), want.reshape(-1))) if not _same_object(a, b)]
        if bad:
            raise Wrong(f"{what}: {len(bad)} of {want.size} objects, first {bad[0]}: {got.flat[bad[0]]!r:.80}, not {want.flat[bad[0]]!r:.80}")
        return
    if want.dtype.kind == "f":
        unequal = (got != want) & ~(np.isnan(got.astype("f8")) & np.isnan(want))
    else:
        unequal = got != want
    if np.any(unequal):
        where = np.argwhere(unequal)
        first = tuple(where[0])
        raise Wrong(f"{what}: {len(where)} of {want.size} elements, from {list(map(int, first))} to "
                    f"{list(map(int, where[-1]))}, first {got[first]}, not {want[first]}")  # fmt: skip


def same(got, want, what):
    if got != want:
        raise Wrong(f"{what}: {got!r:.200}, not {want!r:.200}")


def draw_slice(rng, length, chunk=0):
    """[start, stop, step] within a dimension: whole, whole chunks of it, a part, strided."""
    if length == 0:
        return [0, 0, 1]
    choice = rng.random()
    if choice < 0.3:
        return [0, length, 1]
    if chunk and choice < 0.65:
        chunks = -(-length // chunk)
        first = rng.randrange(chunks)
        return [first * chunk, min(length, rng.randint(first + 1, chunks) * chunk), 1]
    first = rng.randrange(length)
    return [first, rng.randint(first + 1, length), rng.choice([1, 1, 1, 2, 3, 7])]


def draw_box(rng, shape, chunks=None):
    return [draw_slice(rng, n, c) for n, c in zip(shape, chunks or [0] * len(shape))]


def as_slices(box, shape):
    """A box as a key; Skip where it does not fit into the shape (any more)."""
    if len(box) != len(shape) or any(stop > n for (_, stop, _), n in zip(box, shape)):
        raise Skip
    return tuple(slice(*one) for one in box)


def shape_of(key, shape):
    return tuple(len(range(*one.indices(n))) for one, n in zip(key, shape))


def seed_of(rng):
    return rng.getrandbits(30)


class Program:
    """One program. A library's class has `do_<name>(*arguments)` for each operation, `draw`, and `verify_file`."""

    LENGTH = (10, 90)
    COPIES = 4  # so many files are looked at later as they were at some moment

    def __init__(self, folder, mode):
        self.folder = pathlib.Path(folder)
        self.mode = mode
        self.closes_wait = mode not in ("deferred", "slow")
        self.left = []  # (path, model): for the other process
        self.copies = 0

    def do(self, operation):
        name, *arguments = operation
        getattr(self, "do_" + name)(*arguments)

    def draw(self, rng):
        """The next operation, or None: draw again."""
        raise NotImplementedError

    def finish(self, rng_bits):
        """Verifies what is open, closes it (or leaves it to the end of the process), opens it again, and verifies that."""
        raise NotImplementedError

    @staticmethod
    def verify_file(path, model):
        """Opens a file, compares all of it, closes it. Also called in the process that has no plugin."""
        raise NotImplementedError

    def leave(self, path, model):
        self.left.append((str(path), pickle.dumps(model)))

    def copy_as_is(self, path, model):
        """Call it where other programs must see the whole file: after a close or a flush that waits."""
        if not self.closes_wait or self.copies >= self.COPIES or not os.path.exists(path):
            raise Skip
        kept = self.folder / f"copy{self.copies}{pathlib.Path(path).suffix}"
        shutil.copyfile(path, kept)
        self.copies += 1
        self.leave(kept, model)
