#!/usr/bin/env python3
"""What is in any HDF5 file: a portrait as content.py's, of all links, types, layouts, attributes and elements, whatever program made it.

    walk.py read FILE [--mode r|r+]     prints {"portrait": ...} or {"refused": why}; with the plugin or without, as the environment says
    walk.py serve                       the same for each line of stdin ("read FILE", "use FILE")

What another file has of an object is not looked at: external links are links, and of a virtual dataset its sources are shown, not their elements. Where no filter can decode
a chunk, its stored bytes are shown. References are not followed, and their bytes (addresses) not compared.
"""

import hashlib
import pathlib
import shutil

import content
import h5py
import numpy as np
from h5py import h5a, h5d, h5l, h5o, h5t


def digest(text):
    return hashlib.blake2b(text.encode(), digest_size=9).hexdigest()


def words(kind):
    """A type, member by member."""
    text = type(kind).__name__.removeprefix("Type").removesuffix("ID")
    if isinstance(kind, h5t.TypeCompoundID):
        members = [(kind.get_member_name(n).decode(errors="replace"), kind.get_member_offset(n), words(kind.get_member_type(n))) for n in range(kind.get_nmembers())]
        return f"{text}{members}"
    if isinstance(kind, h5t.TypeArrayID):
        return f"{text}{kind.get_array_dims()}{words(kind.get_super())}"
    if isinstance(kind, h5t.TypeEnumID):
        return text + str([(kind.get_member_name(n), kind.get_member_value(n)) for n in range(kind.get_nmembers())])
    if isinstance(kind, h5t.TypeVlenID):
        return f"{text}({words(kind.get_super())})"
    if isinstance(kind, (h5t.TypeIntegerID, h5t.TypeFloatID)):
        return f"{text}{kind.dtype.str}"
    return f"{text}{kind.get_size()}"


def fold(value, into):
    """The bytes of a value of any type, in order."""
    if isinstance(value, (h5py.Reference, h5py.RegionReference)):
        into.update(b"reference")
    elif isinstance(value, np.ndarray):
        if value.dtype.names:
            for name in value.dtype.names:
                fold(value[name], into)
        elif value.dtype == object:
            into.update(str(value.shape).encode())
            for element in value.ravel():
                fold(element, into)
        else:
            into.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, str):
        into.update(value.encode(errors="surrogateescape") + b"\0")
    elif isinstance(value, bytes):
        into.update(value + b"\0")
    elif isinstance(value, h5py.Empty) or value is None:
        into.update(b"empty")
    else:
        fold(np.asarray(value), into)


def elements(value):
    into = hashlib.blake2b(digest_size=9)
    fold(value, into)
    return into.hexdigest()


def stored_chunks(dataset):
    into = hashlib.blake2b(digest_size=9)
    for number in range(dataset.id.get_num_chunks()):
        info = dataset.id.get_chunk_info(number)
        into.update(f"{info.chunk_offset} {info.filter_mask}".encode() + dataset.id.read_direct_chunk(info.chunk_offset)[1])
    return f"stored as {into.hexdigest()}"


def dataset_words(dataset):
    lists = dataset.id.get_create_plist()
    layout = lists.get_layout()
    filters = [lists.get_filter(n)[0::2] for n in range(lists.get_nfilters())]
    text = f"{words(dataset.id.get_type())} {dataset.shape} of {dataset.maxshape} layout {layout} {dataset.chunks} {filters} fill {lists.fill_value_defined()} "
    if dataset.is_virtual:
        return text + str([(one.file_name, one.dset_name) for one in dataset.virtual_sources()])
    if dataset.shape is None:
        return text + "empty"
    try:
        return text + elements(dataset[()])
    except OSError:
        if layout != h5d.CHUNKED:
            raise
        return text + stored_chunks(dataset)


def attribute_words(owner):
    found = []
    for number in range(h5a.get_num_attrs(owner.id)):
        one = h5a.open(owner.id, index=number)
        found.append((one.name.decode(errors="replace"), words(one.get_type()), one.shape))
    return sorted((name, kind, shape, elements(owner.attrs[name])) for name, kind, shape in found)


class Walk:
    def __init__(self, file):
        self.portrait, self.seen = {}, {}
        self.object("/", file)
        self.group("", file)

    def object(self, path, one):
        if isinstance(one, h5py.Dataset):
            self.portrait[path] = dataset_words(one)
        else:
            self.portrait[path] = "group" if isinstance(one, h5py.Group) else f"type {words(one.id)}"
        attributes = attribute_words(one)
        if attributes:
            self.portrait[path + "@"] = f"{len(attributes)} {digest(str(attributes))}"

    def group(self, prefix, group):
        names = []
        group.id.links.iterate(names.append)
        for name in sorted(names):
            path = f"{prefix}/{name.decode(errors='replace')}"
            kind = group.id.links.get_info(name).type
            if kind != h5l.TYPE_HARD:
                self.portrait[path] = f"link {kind} -> {group.id.links.get_val(name)}"
                continue
            one = group[name]
            place = h5o.get_info(one.id).addr
            if place in self.seen:
                self.portrait[path] = f"same as {self.seen[place]}"
                continue
            self.seen[place] = path
            self.object(path, one)
            if isinstance(one, h5py.Group):
                self.group(path, one)


def read(path, mode="r"):
    if mode == "r" and (not pathlib.Path(path).exists() or pathlib.Path(path).stat().st_size == 0):
        return {"portrait": content.EMPTY}
    try:
        with h5py.File(path, mode) as file:
            return {"portrait": Walk(file).portrait}
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        return {"refused": str(error)}


def change(file, before):
    """What any program may do; returns the path that is gone."""
    gone = next((name for name in file if before.get(f"/{name}", "group") != "group" and not any(f"same as /{name}" == text for text in before.values())), None)
    if gone is not None:
        del file[gone]
    for number in range(4):
        file.create_dataset(f"used{number}", data=np.full(16384 << number, number + 1.5), chunks=(4096,) if number % 2 else None)
        file.create_group(f"used/{number}").attrs["words"] = "words" * 30
    return gone


def use(path):
    """Works on a copy of the file: what is allocated anew must not lie where something is."""
    copy = f"{path}.used"
    try:
        shutil.copy(path, copy)
        before = read(copy)["portrait"]
        with h5py.File(copy, "r+") as file:
            gone = change(file, before)
        after = read(copy)
        if "refused" in after:
            return after
        kept = {path: text for path, text in before.items() if path not in (f"/{gone}", f"/{gone}@")}
        rest = {path: text for path, text in after["portrait"].items() if not path.startswith("/used")}
        if rest != kept:
            return {"refused": f"after it was changed: {content.difference(rest, kept)}"}
        return {"portrait": before}
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        return {"refused": f"while it was changed: {error}"}
    finally:
        pathlib.Path(copy).unlink(missing_ok=True)


if __name__ == "__main__":
    content.main(__doc__, read, {"read": read, "use": use})
