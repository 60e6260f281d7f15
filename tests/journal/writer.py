#!/usr/bin/env python3
"""A random h5py program that says what it commits, to be killed at any time.

    writer.py --folder DIR --seed N --report FILE [--ops N] [--continue]

It writes one or two files below DIR (a.h5, b.h5) in several sessions, and keeps a model of each (content.py) beside it. FILE gets a line of JSON each, written at once:

    ["begin", file, k, portrait]   before the call that commits: a flush, the last close, the exit. Also before calls that may commit
    ["done", file, k]              after a commit returned successfully: from now on the file must be k, or what begins later
    ["exits", file]                the program returns from main with the file open: if its status is 0, what was begun last is done
    ["found", file, portrait]      with --continue: what an open of the file gave

Exit status: 0; 3: the program read something else than it wrote (said on stderr); 4: a call failed. Everything that is drawn depends on the seed alone.
"""

import argparse
import json
import os
import pathlib
import random
import sys
import threading
import time

import content
import h5py
import numpy as np
from content import Object

COMPOUND = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "S3")])
TYPES = [np.dtype(name) for name in ("<i4", "<f8", "<u2", "i1", ">f4", "S7")] + [COMPOUND]
STRINGS = h5py.string_dtype()


class Mismatch(Exception):
    """The program read something else than it wrote."""


class Report:
    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        self.lock = threading.Lock()

    def say(self, *words):
        line = (json.dumps(words) + "\n").encode()
        with self.lock:
            while line:
                line = line[os.write(self.fd, line) :]


class Story:
    """One file, from its creation on."""

    def __init__(self, path, rng, report):
        self.path, self.name, self.rng, self.report = str(path), path.name, rng, report
        self.handles, self.model, self.number, self.names = [], {}, 0, 0
        self.lists = self.draw_lists()

    def draw_lists(self):
        """How the file is created."""
        rng, lists = self.rng, {"libver": self.rng.choice(["earliest", "latest", ("earliest", "v110"), "v110"])}
        if rng.random() < 0.2:
            lists["userblock_size"] = rng.choice([512, 1024, 4096])
            lists |= {"fs_strategy": "fsm", "fs_persist": True, "fs_threshold": 1} if rng.random() < 0.2 else {}
            return lists
        if rng.random() < 0.25:
            lists |= {"fs_strategy": rng.choice(["page", "fsm", "aggregate", "none"]), "fs_persist": rng.random() < 0.5, "fs_threshold": 1}
            lists |= {"fs_page_size": rng.choice([512, 4096])} if lists["fs_strategy"] == "page" else {}
            lists |= {"fs_persist": False} if lists["fs_strategy"] in ("aggregate", "none") else {}
        if rng.random() < 0.2:
            lists |= {"alignment_threshold": 1024, "alignment_interval": rng.choice([512, 4096])}
        if rng.random() < 0.2:
            lists["track_order"] = True
        return lists

    # Commits.

    def begin(self, portrait=None):
        self.number += 1
        self.report.say("begin", self.name, self.number, content.portrait(self.model) if portrait is None else portrait)

    def done(self):
        self.report.say("done", self.name, self.number)

    def commit(self, call, portrait=None):
        self.begin(portrait)
        call()
        self.done()

    def flush(self):
        self.commit(self.rng.choice(self.handles).flush)

    # Opening and closing.

    def open(self, truncate):
        access = {"libver": self.lists["libver"]}
        if truncate:
            self.model = {"/": Object()}
            self.begin(content.EMPTY)  # nothing is committed by it; but what was there before may be gone from now on
            self.handles.append(h5py.File(self.path, "w", **self.lists))
            return
        access |= {name: size for name, size in self.lists.items() if name.startswith("alignment")}
        self.handles.append(h5py.File(self.path, self.rng.choice(["r+", "r+", "a"]), **access))

    def open_again(self):
        """What a later session finds must be what the earlier one left."""
        self.open(truncate=False)
        found = content.portrait(content.load(self.handles[-1]))
        if not content.fits(found, content.portrait(self.model)):
            raise Mismatch(f"{self.name}, opened again: {content.difference(found, content.portrait(self.model))}")

    def continue_what_is_there(self, seed):
        """The file as a killed program left it. One that cannot be opened is begun anew; whether it may be so is for who reads the report."""
        try:
            self.open(truncate=False)
        except OSError as error:
            print(f"{self.name}: {error}", file=sys.stderr)
            self.report.say("found", self.name, content.EMPTY)
            self.open(truncate=True)
            return
        self.model = content.load(self.handles[-1])
        self.names = seed * 1000  # no names of the programs before
        self.report.say("found", self.name, content.portrait(self.model))

    def close_one(self):
        """Closes one handle: a commit if it is the last; else it may be one, or not."""
        handle = self.handles.pop(self.rng.randrange(len(self.handles)))
        self.begin()
        handle.close()
        self.handles = [other for other in self.handles if other]
        if not self.handles:
            self.done()

    # What is drawn.

    def file(self):
        return self.rng.choice(self.handles)

    def fresh_name(self, prefix):
        self.names += 1
        groups = [path for path, entry in self.model.items() if entry.array is None and entry.target is None]
        return f"{self.rng.choice(groups).rstrip('/')}/{prefix}{self.names}"

    def datasets(self, test=lambda entry: True):
        return [path for path, entry in self.model.items() if entry.array is not None and test(entry)]

    def some(self, shape, dtype):
        """An array; zeros sometimes."""
        draws = np.random.default_rng(self.rng.getrandbits(32))
        if dtype == STRINGS:
            words = [("word" * int(draws.integers(0, 40)) + str(draws.integers(0, 1000))) for _ in range(int(np.prod(shape)))]
            array = np.empty(shape, dtype=object)
            array[...] = np.array(words, dtype=object).reshape(shape)
            return array
        if self.rng.random() < 0.1:
            return np.zeros(shape, dtype)
        array = np.frombuffer(draws.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape).copy()
        if dtype.kind == "S" or dtype.names:  # HDF5 and NumPy agree about strings of letters
            for field in [None] if dtype.kind == "S" else ["c"]:
                part = array if field is None else array[field]
                part[...] = np.char.mod("%d", draws.integers(0, 1000, shape)).astype(part.dtype)
        return array

    def shape(self):
        size = self.rng.choices([self.rng.randint(1, 3000), self.rng.randint(4000, 60000), self.rng.randint(100000, 500000)], [88, 10, 2])[0]
        return (size,) if self.rng.random() < 0.5 else (max(1, size // 50), 50)

    # Operations: each changes the file and the model alike.

    def create_dataset(self, path=None):
        path = path or self.fresh_name("d")
        kind = self.rng.choice(["contiguous", "contiguous", "chunked", "deflated", "compact", "strings", "unwritten"])
        lists, shape, dtype = {}, self.shape(), self.rng.choice(TYPES)
        if kind == "strings":
            shape, dtype = (self.rng.randint(1, 60),), STRINGS
        if kind == "compact":
            shape = (self.rng.randint(1, 500),)
        if kind in ("chunked", "deflated") or (kind == "strings" and self.rng.random() < 0.5):
            unlimited = self.rng.choice([(0,), (0,), (0, 1), ()])
            lists["chunks"] = tuple(max(1, length // self.rng.randint(1, 6)) for length in shape)
            lists["maxshape"] = tuple(None if axis in unlimited else length * 2 for axis, length in enumerate(shape))
        if kind == "deflated":
            lists |= {"compression": self.rng.choice(["gzip", "lzf"]), "shuffle": self.rng.random() < 0.5, "fletcher32": self.rng.random() < 0.3}
        array = self.some(shape, dtype)
        file = self.file()
        if kind == "compact":
            layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            layout.set_layout(h5py.h5d.COMPACT)
            h5py.h5d.create(file.id, path.encode(), h5py.h5t.py_create(dtype, logical=True), h5py.h5s.create_simple(shape), layout)
            file[path][...] = array
        elif kind == "unwritten":
            array = np.zeros(shape, dtype)
            file.create_dataset(path, shape, dtype, fillvalue=array.ravel()[0])  # without a value HDF5 leaves there what was there
        else:
            file.create_dataset(path, data=array, dtype=dtype, **lists)
        self.model[path] = Object(array, file[path].maxshape)

    def overwrite(self):
        paths = self.datasets()
        if not paths:
            return self.create_dataset()
        path = self.rng.choice(paths)
        array, dataset = self.model[path].array, self.file()[path]
        begin = self.rng.randint(0, len(array) - 1) if len(array) else 0
        end = len(array) if self.rng.random() < 0.3 else min(len(array), begin + self.rng.randint(1, 500))
        begin = 0 if self.rng.random() < 0.3 else begin
        values = self.some((end - begin, *array.shape[1:]), STRINGS if array.dtype.kind == "O" else array.dtype)
        dataset[begin:end] = values
        array[begin:end] = values
        if self.rng.random() < 0.3:
            dataset.flush()  # no commit

    def resize(self):
        paths = self.datasets(lambda entry: entry.maxshape and None in entry.maxshape)
        if not paths:
            return self.create_dataset()
        path = self.rng.choice(paths)
        entry, dataset = self.model[path], self.file()[path]
        shape = tuple(
            max(0, length + self.rng.randint(-length // 2, length // 2 + 50)) if limit is None else length
            for length, limit in zip(entry.array.shape, entry.maxshape)
        )
        array = np.full(shape, b"", object) if entry.array.dtype.kind == "O" else np.zeros(shape, entry.array.dtype)
        common = tuple(slice(0, min(pair)) for pair in zip(shape, entry.array.shape))
        array[common] = entry.array[common]
        dataset.resize(shape)
        entry.array = array

    def append(self):
        paths = self.datasets(lambda entry: entry.maxshape and entry.maxshape[0] is None)
        if not paths:
            return self.create_dataset()
        path = self.rng.choice(paths)
        entry, dataset = self.model[path], self.file()[path]
        rows = self.some((self.rng.randint(1, 200), *entry.array.shape[1:]), STRINGS if entry.array.dtype.kind == "O" else entry.array.dtype)
        dataset.resize(len(entry.array) + len(rows), axis=0)
        dataset[len(entry.array) :] = rows
        entry.array = np.concatenate([entry.array, rows]).astype(entry.array.dtype)

    def create_group(self):
        path = self.fresh_name("g")
        self.file().create_group(path)
        self.model[path] = Object()

    def link(self):
        path = self.fresh_name("l")
        target = self.rng.choice(list(self.model))
        self.file()[path] = h5py.SoftLink(target)
        self.model[path] = Object(target=target)

    def delete(self):
        paths = [path for path in self.model if path != "/"]
        if not paths:
            return self.create_group()
        path = self.rng.choice(paths)
        was_data = self.model[path].array is not None
        del self.file()[path]
        for below in [other for other in self.model if other == path or other.startswith(path + "/")]:
            del self.model[below]
        if was_data and self.rng.random() < 0.4:
            self.create_dataset(path)

    def attributes(self):
        path = self.rng.choice([path for path, entry in self.model.items() if entry.target is None])
        entry, owner = self.model[path], self.file()[path]
        for _ in range(self.rng.choice([1, 2, 3, 40])):  # many: dense storage
            name = f"x{self.rng.randint(0, 60)}"
            if name in entry.attributes and self.rng.random() < 0.3:
                del owner.attrs[name], entry.attributes[name]
                continue
            kind = self.rng.choice(["number", "array", "text"])
            word = "t" * self.rng.randint(1, 300)
            data = self.rng.randint(0, 10**9) if kind == "number" else word if kind == "text" else self.some((self.rng.randint(1, 100),), TYPES[0])
            owner.attrs[name] = data
            entry.attributes[name] = np.int64(data) if kind == "number" else data

    def look(self):
        """Reads something: what is in the log must be seen as if it were in the file."""
        paths = self.datasets()
        if not paths:
            return
        path = self.rng.choice(paths)
        found, wanted = content.value(self.file()[path][()]), content.value(self.model[path].array)
        if found != wanted:
            raise Mismatch(f"{self.name}: {path} is {found}, not {wanted}")

    def second_handle(self):
        if len(self.handles) < 3:
            self.open(truncate=False)

    def fewer_handles(self):
        if len(self.handles) > 1:
            self.close_one()

    def quiet(self):
        time.sleep(self.rng.choice([0.001, 0.01, 0.3]))

    def threads(self):
        """Threads overwrite a dataset each, several times, while this one flushes: any of their versions is right then."""
        paths = self.rng.sample(self.datasets(lambda entry: entry.array.dtype.kind in "if"), k=min(3, len(self.datasets(lambda e: e.array.dtype.kind in "if"))))
        if not paths:
            return
        versions = {path: [self.some(self.model[path].array.shape, self.model[path].array.dtype) for _ in range(self.rng.randint(1, 4))] for path in paths}
        wanted = content.portrait(self.model)
        for path in paths:
            writing = [content.portrait({path: Object(array, self.model[path].maxshape)})[path] for array in versions[path]]
            wanted[path] = [wanted[path], *writing]
        opened = {path: self.file()[path] for path in paths}

        def write(path):
            for array in versions[path]:
                opened[path][...] = array

        threads = [threading.Thread(target=write, args=(path,)) for path in paths]
        for thread in threads:
            thread.start()
        for _ in range(self.rng.randint(0, 2)):
            self.commit(self.file().flush, wanted)
        for thread in threads:
            thread.join()
        for path in paths:
            self.model[path].array = versions[path][-1]

    OPERATIONS = {
        "create_dataset": 14, "overwrite": 22, "resize": 6, "append": 8, "create_group": 4, "link": 2, "delete": 8, "attributes": 10, "look": 6, "flush": 10,
        "second_handle": 3, "fewer_handles": 3, "quiet": 1, "threads": 3,
    }  # fmt: skip

    def step(self):
        name = self.rng.choices(list(self.OPERATIONS), list(self.OPERATIONS.values()))[0]
        getattr(self, name)()


def run(args):
    rng = random.Random(args.seed)
    report = Report(args.report)
    folder = pathlib.Path(args.folder).resolve()
    stories = [Story(folder / name, rng, report) for name in (["a.h5"] if rng.random() < 0.75 else ["a.h5", "b.h5"])]
    sessions = rng.randint(1, 3)
    for session in range(sessions):
        for story in stories:
            if args.go_on and session == 0:
                story.continue_what_is_there(args.seed)
            elif session == 0 or rng.random() < 0.08:
                story.open(truncate=True)
            else:
                story.open_again()
        for _ in range(rng.randint(args.ops // 2, args.ops)):
            rng.choice(stories).step()
        if session == sessions - 1 and rng.random() < 0.3:
            break
        for story in stories:
            while story.handles:
                story.close_one()
    leave(stories, rng, args.orderly)


def leave(stories, rng, orderly):
    """The end: what is still open is closed by an exit, which commits, or not closed by _exit."""
    if any(story.handles for story in stories) and rng.random() < 0.4 and not orderly:
        os._exit(0)
    for story in stories:
        if story.handles:
            story.begin()
            story.report.say("exits", story.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--report", required=True)
    parser.add_argument("--ops", type=int, default=30, help="the most operations of a session")
    parser.add_argument("--continue", dest="go_on", action="store_true", help="begin with what a killed program left")
    parser.add_argument("--orderly", action="store_true", help="never end by _exit")
    args = parser.parse_args()
    try:
        run(args)
    except Mismatch as mismatch:
        print(mismatch, file=sys.stderr, flush=True)
        os._exit(3)
    except (OSError, RuntimeError) as error:  # an exit would close, and so commit, the other file unsaid
        print(error, file=sys.stderr, flush=True)
        os._exit(4)


if __name__ == "__main__":
    main()
