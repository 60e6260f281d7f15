"""Datasets of random layout, and what is in them.

A Stored is one dataset, and for each of its columns which element of the column's pool (kinds.py) is at each place. Whatever is
written is drawn here and written as the file has it, by H5Dwrite itself: nothing is converted on the way.
"""

import dataclasses
import math
import pathlib

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z

import kinds
from engine import H5Dwrite, H5Pset_fill_value, H5Pset_nbit

try:
    import hdf5plugin
except ImportError:
    hdf5plugin = None

DEFAULT = 0
MOST_COMPACT = 30000


@dataclasses.dataclass
class Place:
    """A column in the records of a dataset."""

    path: str  # "" of what is no compound
    kind: kinds.Kind
    offset: int
    codes: np.ndarray = None


class Stored:
    """`parts`: of a virtual dataset, (first row, Stored) each."""

    def __init__(self, dataset, kind, size, places, beside=()):
        self.dataset, self.type, self.size = dataset, kind, size
        self.places, self.beside = places, beside
        self.layout, self.parts, self.resizable = "", [], False
        for place in places:
            place.codes = np.zeros(dataset.shape, np.intp)

    @property
    def shape(self):
        return self.places[0].codes.shape

    def records(self, rng, codes):
        """As the file has them; what belongs to no column is anything."""
        count = codes[0].size
        records = np.frombuffer(rng.randbytes(count * self.size), np.uint8).reshape(count, self.size).copy()
        for place, chosen in zip(self.places, codes):
            records[:, place.offset : place.offset + place.kind.raw.shape[1]] = place.kind.raw[chosen.reshape(-1)]
        for offset, beside in self.beside:
            chosen = [rng.randrange(len(beside.raw)) for _ in range(count)]
            records[:, offset : offset + beside.raw.shape[1]] = beside.raw[chosen]
        return records

    def write(self, rng, start, size):
        """A box, anew. What is virtual is written through to where it is."""
        numbers = np.random.default_rng(rng.getrandbits(32))
        codes = []
        for place in self.places:
            codes.append(numbers.integers(0, len(place.kind.raw), size))
            if rng.random() < 0.3:  # long runs
                codes[-1][...] = np.sort(codes[-1].reshape(-1)).reshape(size)
        if self.parts:
            return self.write_parts(rng, start, size)
        records = self.records(rng, codes)
        if self.shape == ():
            file_space = memory = DEFAULT
        else:
            file_space = self.dataset.id.get_space()
            file_space.select_hyperslab(start, size)
            memory = h5s.create_simple((max(1, math.prod(size)),))
            if math.prod(size) == 0:
                return None
        ids = [space if space == DEFAULT else space.id for space in (memory, file_space)]
        if H5Dwrite(self.dataset.id.id, self.type.id, *ids, DEFAULT, records.ctypes.data) < 0:
            raise OSError(f"H5Dwrite of {self.dataset.name} ({self.layout})")
        box = tuple(slice(a, a + n) for a, n in zip(start, size))
        for place, chosen in zip(self.places, codes):
            place.codes[box] = chosen
        return None

    def write_parts(self, rng, start, size):
        for row, part in self.parts:
            first, last = max(start[0], row), min(start[0] + size[0], row + part.shape[0])
            if first < last:
                part.write(rng, (first - row, *start[1:]), (last - first, *size[1:]))
        self.look_at_parts()

    def look_at_parts(self):
        for row, part in self.parts:
            for place, other in zip(self.places, part.places):
                place.codes[row : row + part.shape[0]] = other.codes

    def write_some(self, rng):
        """A random box."""
        shape = self.shape
        size = tuple(rng.randint(1, n) if n else 0 for n in shape)
        self.write(rng, tuple(rng.randint(0, n - k) for n, k in zip(shape, size)), size)

    def resize(self, shape):
        self.dataset.resize(shape)
        common = tuple(slice(0, min(a, b)) for a, b in zip(self.shape, shape))
        for place in self.places:
            codes = np.zeros(shape, np.intp)
            codes[common] = place.codes[common]
            place.codes = codes


def record_of(rng, columns, fixed):
    """A compound of random columns: (its type, its size, places, what is beside them)."""
    found = [kinds.draw_kind(rng, fixed) for _ in range(columns)]
    members = [(f"m{i}", kind) for i, kind in enumerate(found)]
    if not fixed and rng.random() < 0.25:
        members.insert(rng.randint(0, columns), ("beside", kinds.Sequences(rng)))
    inner = []
    if rng.random() < 0.4:  # some of them in a compound of their own
        inner, members = members[: rng.randint(1, len(members))], members
        members = [member for member in members if member not in inner]
    places, beside = [], []
    outer, offset = [], rng.randint(0, 3)
    if inner:
        inside, at = [], rng.randint(0, 2)
        for name, kind in inner:
            note(places, beside, f"inside.{name}", kind, offset + at)
            inside.append((name, at, kind.type))
            at += kind.raw.shape[1] + rng.randint(0, 3)
        outer.append(("inside", offset, compound(inside, at)))
        offset += at + rng.randint(0, 3)
    for name, kind in members:
        name = rng.choice((name, f"{name}.dot", f"{name} b"))
        note(places, beside, name.replace(".", "\\."), kind, offset)
        outer.append((name, offset, kind.type))
        offset += kind.raw.shape[1] + rng.choice((0, 0, 1, 5))
    return compound(outer, offset), offset, places, beside


def note(places, beside, path, kind, offset):
    if isinstance(kind, kinds.Sequences):
        beside.append((offset, kind))
    else:
        places.append(Place(path, kind, offset))


def compound(members, size):
    made = h5t.create(h5t.COMPOUND, size)
    for name, offset, kind in members:
        made.insert(name.encode(), offset, kind)
    return made


def filters_for(rng, creation, places, beside, large):
    """Adds some; returns their names. What is `large` has mostly those that the plugin's lanes know."""
    own = [] if places[0].path or (large and rng.random() < 0.8) else places[0].kind.filters
    variable = bool(beside) or any(place.kind.variable for place in places)
    names = []
    if "scaleoffset" in own and rng.random() < 0.15:
        creation.set_scaleoffset(h5z.SO_INT, 0)
        names.append("scaleoffset")
    elif "nbit" in own and rng.random() < 0.25:
        H5Pset_nbit(creation.id)
        names.append("nbit")
    packed = bool(names)  # no whole elements any more, which h5py's and hdf5plugin's want
    if rng.random() < 0.4:
        creation.set_shuffle()
        names.append("shuffle")
    draw = rng.random() * (0.7 if large else 1)
    if draw < 0.45:
        creation.set_deflate(rng.randint(1, 3))
        names.append("gzip")
    elif draw < 0.6 and not packed:
        creation.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL)
        names.append("lzf")
    elif draw < 0.8 and hdf5plugin is not None and not variable and not packed:
        chosen = rng.choice((hdf5plugin.Blosc(), hdf5plugin.Bitshuffle(), hdf5plugin.LZ4(), hdf5plugin.Zstd()))
        creation.set_filter(chosen["compression"], h5z.FLAG_OPTIONAL, chosen["compression_opts"])
        names.append(type(chosen).__name__)
    if rng.random() < 0.2 and not variable:
        creation.set_fletcher32()
        names.append("fletcher32")
    return names


class Maker:
    """Makes datasets of one shape in a file."""

    def __init__(self, rng, file, folder, shape, large):
        self.rng, self.file, self.folder, self.shape, self.large = rng, file, folder, shape, large
        self.made = 0

    def make(self, columns, resizable):
        """One dataset with so many columns."""
        rng = self.rng
        kind_of_layout = self.draw_layout(resizable)
        fixed = kind_of_layout in ("virtual", "external")
        if columns == 1 and rng.random() < 0.7:
            only = kinds.draw_kind(rng, fixed)
            content = (only.type, only.raw.shape[1], [Place("", only, 0)], [])
        else:
            content = record_of(rng, columns, fixed)
        if kind_of_layout == "compact" and content[1] * math.prod(self.shape) > MOST_COMPACT:
            kind_of_layout = "contiguous"
        return self.create(kind_of_layout, content, self.shape, resizable)

    def draw_layout(self, resizable):
        rng, shape = self.rng, self.shape
        if resizable:
            return "chunked"
        if shape == ():
            return rng.choice(("contiguous", "compact"))
        layouts = ["contiguous", "compact", "chunked", "chunked", "chunked", "chunked"]
        if math.prod(shape):
            layouts += ["external", "virtual"] if not self.large else ["chunked"] * 6
        return rng.choice(layouts)

    def name(self):
        self.made += 1
        return f"d{self.made}"

    def create(self, layout, content, shape, resizable=False):
        rng = self.rng
        kind, size, places, beside = content
        creation = h5p.create(h5p.DATASET_CREATE)
        about = layout
        most = None
        if layout == "compact":
            creation.set_layout(h5d.COMPACT)
        elif layout == "external":
            path = self.folder / f"{pathlib.Path(self.file.filename).stem}.external{self.made}"
            creation.set_external(str(path).encode(), rng.choice((0, 7)), size * math.prod(shape))
        elif layout == "chunked":
            most, names = self.chunks(creation, places, beside, shape, resizable)
            about += f" {creation.get_chunk()} {'+'.join(names)}"
        self.fill(creation, kind, size, places)
        parts = self.map_parts(creation, content, shape) if layout == "virtual" else []
        space = h5s.create(h5s.SCALAR) if shape == () else h5s.create_simple(shape, most)
        dataset = h5py.Dataset(h5d.create(self.file.id, self.name().encode(), kind, space, creation))
        stored = Stored(dataset, kind, size, places, beside)
        stored.layout, stored.parts, stored.resizable = about, parts, resizable
        if parts:
            stored.look_at_parts()
        self.first_writes(stored)
        return stored

    def chunks(self, creation, places, beside, shape, resizable):
        rng = self.rng
        most, chunk = [], []
        for n in shape:
            unlimited = resizable or n == 0 or rng.random() < 0.3
            most.append(h5s.UNLIMITED if unlimited else n)
            longest = n + 5 if unlimited else n
            if self.large:
                chunk.append(max(1, min(longest, int(25000 ** (1 / len(shape)) * rng.uniform(0.5, 2)))))
            else:
                chunk.append(rng.choice((rng.randint(1, longest), rng.randint(1, max(1, min(longest, 9))))))
        creation.set_chunk(tuple(chunk))
        names = filters_for(rng, creation, places, beside, self.large) if self.large or rng.random() < 0.6 else []
        if rng.random() < 0.2:
            creation.set_alloc_time(rng.choice((h5d.ALLOC_TIME_EARLY, h5d.ALLOC_TIME_INCR)))
        return tuple(most), names

    def fill(self, creation, kind, size, places):
        first = np.zeros((1, size), np.uint8)
        for place in places:
            first[0, place.offset : place.offset + place.kind.raw.shape[1]] = place.kind.raw[0]
        if not first.any():
            creation.set_fill_time(h5d.FILL_TIME_ALLOC)  # else zeros that nobody asked for are whatever was in the file there
            return
        if H5Pset_fill_value(creation.id, kind.id, first.ctypes.data) < 0:
            raise OSError("H5Pset_fill_value")

    def map_parts(self, creation, content, shape):
        """Rows of a virtual dataset: some of them are other datasets, some nothing."""
        rng = self.rng
        kind, size, places, beside = content
        parts, row = [], 0
        whole = h5s.create_simple(shape)
        while row < shape[0]:
            rows = rng.randint(1, shape[0] - row)
            if rng.random() < 0.8:
                part_shape = (rows, *shape[1:])
                inner = [dataclasses.replace(place) for place in places]
                part = self.create(rng.choice(("contiguous", "chunked")), (kind, size, inner, beside), part_shape)
                whole.select_hyperslab((row, *(0 for _ in shape[1:])), part_shape)
                source = h5s.create_simple(part_shape)
                creation.set_virtual(whole, b".", part.dataset.name.encode(), source)
                parts.append((row, part))
            row += rows
        if not parts:
            return self.map_parts(creation, content, shape)
        return parts

    def first_writes(self, stored):
        rng, shape = self.rng, stored.shape
        draw = rng.random()
        if draw < (0.9 if self.large else 0.55) or (stored.layout == "external" and not stored.parts):
            stored.write(rng, tuple(0 for _ in shape), shape)
        elif draw < 0.95:
            for _ in range(rng.randint(1, 4)):
                stored.write_some(rng)
