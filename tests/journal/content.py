#!/usr/bin/env python3
"""What is in an HDF5 file: its portrait, a dict of path -> a short text that any change of that object changes.

    content.py read FILE [--mode r|r+]     prints {"portrait": ...} or {"refused": why}; with the plugin or without, as the environment says
    content.py serve                       the same for each line of stdin ("read FILE", "open FILE": to write, "use FILE"), for thousands of files by one process

The same portrait is made of a file and of a model, the dict of path -> Object that writer.py keeps beside the file. In a portrait of a model a value may be
a list: any of them is right (written by threads while the commit was made). EMPTY is the portrait of a file that has nothing committed: it has 0 bytes.
"""

import argparse
import dataclasses
import hashlib
import json
import pathlib
import shutil
import sys

import h5py
import numpy as np

EMPTY = {"": "empty"}
BARE = {"/": "group"}  # what HDF5 makes of such a file when it is opened for writing


@dataclasses.dataclass
class Object:
    """A group (array None), a dataset, or a soft link (target)."""

    array: np.ndarray = None
    maxshape: tuple = None
    target: str = None
    attributes: dict = dataclasses.field(default_factory=dict)


def value(array):
    """A value in words: type, shape, and a digest of the bytes."""
    array = np.asarray(array)
    digest = hashlib.blake2b(digest_size=9)
    kind = " ".join(f"{name}:{array.dtype[name].str}" for name in array.dtype.names) if array.dtype.names else array.dtype.str
    if array.dtype.kind in "OU":  # strings and sequences of variable length
        kind = "|O"
        for element in array.ravel():
            element = element.encode() if isinstance(element, str) else element if isinstance(element, bytes) else np.asarray(element).tobytes()
            digest.update(len(element).to_bytes(8, "little") + element)
    else:
        digest.update(np.ascontiguousarray(array).tobytes())
    return f"{kind} {list(array.shape)} {digest.hexdigest()}"


def object_portrait(path, entry):
    if entry.target is not None:
        yield path, f"-> {entry.target}"
        return
    yield path, "group" if entry.array is None else f"{value(entry.array)} of {entry.maxshape}"
    if entry.attributes:
        words = "\n".join(f"{name} {value(entry.attributes[name])}" for name in sorted(entry.attributes))
        yield path + "@", f"{len(entry.attributes)} {hashlib.blake2b(words.encode(), digest_size=9).hexdigest()}"


def portrait(model):
    return dict(item for path, entry in model.items() for item in object_portrait(path, entry))


def load(file):
    """The model of an open file. A soft link that leads nowhere is a link all the same."""
    model = {"/": Object(attributes=dict(file.attrs))}

    def walk(group, prefix):
        for name in group:
            path = f"{prefix}/{name}"
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.SoftLink):
                model[path] = Object(target=link.path)
                continue
            child = group[name]
            attributes = dict(child.attrs)
            if isinstance(child, h5py.Group):
                model[path] = Object(attributes=attributes)
                walk(child, path)
            else:
                model[path] = Object(np.asarray(child[()]), child.maxshape, attributes=attributes)

    walk(file, "")
    return model


def fits(found, wanted):
    """Whether a portrait is the wanted one."""
    return found.keys() == wanted.keys() and all(
        found[path] in words if isinstance(words, list) else found[path] == words for path, words in wanted.items()
    )


def difference(found, wanted):
    """The first paths in which two portraits differ, for people."""
    paths = [path for path in sorted(found.keys() | wanted.keys()) if not fits({path: found.get(path)}, {path: wanted.get(path)})]
    return "; ".join(f"{path}: {found.get(path, 'missing')}, not {wanted.get(path, 'missing')}" for path in paths[:3]) + (
        f"; and {len(paths) - 3} more" if len(paths) > 3 else ""
    )


def read(path, mode="r"):
    if mode == "r" and (not pathlib.Path(path).exists() or pathlib.Path(path).stat().st_size == 0):
        return {"portrait": EMPTY}
    try:
        with h5py.File(path, mode) as file:
            return {"portrait": portrait(load(file))}
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        return {"refused": str(error)}


def use(path):
    """Works on a copy of the file as any program may: what is allocated anew must not lie where something is."""
    copy = f"{path}.used"
    try:
        shutil.copy(path, copy)
        before = read(copy)["portrait"]
        with h5py.File(copy, "r+") as file:
            gone = next((name for name in file if f"/{name}@" not in before and before[f"/{name}"] != "group"), None)
            if gone is not None:
                del file[gone]
            for number in range(4):
                file.create_dataset(f"used{number}", data=np.full(16384 << number, number + 1.5), chunks=(4096,) if number % 2 else None)
                file.create_group(f"used/{number}").attrs["words"] = "words" * 30
        after = read(copy)
        if "refused" in after:
            return after
        kept = {path: words for path, words in before.items() if path != f"/{gone}"}
        mine = {path: words for path, words in after["portrait"].items() if path.startswith("/used")}
        rest = {path: words for path, words in after["portrait"].items() if path not in mine}
        if len(mine) != 4 + 1 + 8 or not fits(rest, kept):
            return {"refused": f"after it was changed: {difference(rest, kept)}"}
        return {"portrait": before}
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        return {"refused": f"while it was changed: {error}"}
    finally:
        pathlib.Path(copy).unlink(missing_ok=True)


COMMANDS = {"read": read, "open": lambda path: read(path, "r+"), "use": use}


def main(description, read, commands):
    """A program that reads one file, or answers what it is asked by lines: a command and a path."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["read", "serve"])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--mode", choices=["r", "r+"], default="r")
    args = parser.parse_args()
    if args.command == "read":
        print(json.dumps(read(args.file, args.mode)))
        return
    for line in sys.stdin:
        command, _, path = line.rstrip("\n").partition(" ")
        print(json.dumps(commands[command](path)), flush=True)


if __name__ == "__main__":
    main(__doc__, read, COMMANDS)
