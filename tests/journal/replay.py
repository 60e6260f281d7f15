"""What a power failure may leave of a folder, from a trace of record.c: the disk as its programs see it, what of it is durable, and states in between.

Durable is what a sync that succeeded was asked for: of a file, all that had ended before it began; of the folder, all names that had come, gone and moved. Of the rest a state has anything:

 - of a file's sectors (512 bytes), each as it was after some of the writes to it, whatever the others have: nothing, all, a prefix, pages of 4096 bytes, a torn write, one write alone, all but one;
 - its size, after any of the changes to it, with zeros where no bytes are;
 - of the changes of names any. A new file may have no name although it is synced itself.

A sync that fails leaves pages that count as stored: some are, the others are lost, and come back with the next write to that page only.

Invariant: Disk.state() changes nothing, and what is durable is in each state unless something later is. One thread.
"""

import dataclasses
import pathlib
import struct

import numpy as np

SECTOR, PAGE = 512, 4096
HEAD = struct.Struct("<IIQQqqII")
MARK, WRITE, SIZE, ROOM, SYNC, SYNC_FOLDER, SYNC_ALL, MAKE, RENAME, UNLINK, STRANGE = range(11)
NAMES = ["mark", "write", "size", "room", "sync", "sync of the folder", "sync of all", "make", "rename", "unlink", "strange"]
WAYS = ["none", "all", "prefix", "torn", "pages", "sectors", "only", "but"]  # what of one file's changes is there; "only:3": which one


class Strange(Exception):
    """Something that a trace does not tell."""


@dataclasses.dataclass(eq=False)
class Call:
    kind: int
    number: int
    inode: int
    at: int
    name: str
    data: bytes
    result: int = None  # None: it has not ended
    upto: dict = None  # of a sync: what it is asked for

    def __str__(self):
        return f"{NAMES[self.kind]} {self.name or self.inode} {self.at} {len(self.data)}"


def read_trace(path, begin=0):
    """The events of one process: (is_end, call)."""
    data, events, calls = pathlib.Path(path).read_bytes(), [], {}
    while begin + HEAD.size <= len(data):
        kind, is_end, number, inode, at, result, name, size = HEAD.unpack_from(data, begin)
        begin += HEAD.size
        words, bytes_ = data[begin : begin + name], data[begin + name : begin + name + size]
        begin += name + size
        if kind == MARK:
            events.append((True, Call(MARK, 0, 0, 0, "", bytes_, 0)))
        elif is_end:
            call = calls.pop(number)
            call.result, call.inode = result, inode
            events.append((True, call))
        else:
            calls[number] = Call(kind, number, inode, at, words.decode(), bytes_)
            events.append((False, calls[number]))
    return events


@dataclasses.dataclass(eq=False)
class Change:
    """Bytes at a place, or (data None) a size."""

    at: int
    data: bytes
    sequence: int = 0


class File:
    def __init__(self, data=b""):
        self.cache, self.durable = bytearray(data), bytearray(data)
        self.pending, self.sequence, self.lost = [], 0, set()

    def add(self, change):
        self.sequence += 1
        change.sequence = self.sequence
        if change.data is None:
            del self.cache[change.at :]
            self.cache.extend(bytes(change.at - len(self.cache)))
            self.lost = {page for page in self.lost if page * PAGE < change.at}
        else:
            end = change.at + len(change.data)
            self.cache.extend(bytes(max(0, end - len(self.cache))))
            self.cache[change.at : end] = change.data
            self.write_whole_pages(change, end)
        self.pending.append(change)

    def write_whole_pages(self, change, end):
        """A page that a failed sync has lost is stored with the next write to it, whole."""
        first, last = change.at // PAGE, (max(end, change.at + 1) - 1) // PAGE
        if first in self.lost:
            change.at = first * PAGE
        if last in self.lost:
            end = min(len(self.cache), (last + 1) * PAGE)
        self.lost -= set(range(first, last + 1))
        change.data = bytes(self.cache[change.at : end])

    def sync(self, upto):
        self.durable = composed(self.durable, [change for change in self.pending if change.sequence <= upto])
        self.pending = [change for change in self.pending if change.sequence > upto]

    def fail(self, upto, rng):
        asked = [change for change in self.pending if change.sequence <= upto]
        self.pending = [change for change in self.pending if change.sequence > upto]
        for change in asked:
            if change.data:
                self.lost |= set(range(change.at // PAGE, (change.at + len(change.data) - 1) // PAGE + 1))
        self.durable = survived(self.durable, asked, rng.choice(["none", "pages", "all"]), rng)
        if len(self.durable) != len(self.cache):
            self.pending.insert(0, Change(len(self.cache), None, upto))

    def change_of(self, call):
        """What a call does here, also before it has ended."""
        if call.kind == WRITE:
            return Change(call.at, call.data if call.result is None else call.data[: call.result])
        if call.kind == ROOM and call.at <= len(self.cache):
            return None
        return Change(call.at, None)


def apply(out, change):
    end = change.at + len(change.data)
    if len(out) < end:
        out.extend(bytes(end - len(out)))
    out[change.at : end] = change.data


def composed(durable, changes):
    """All of them happened."""
    out = bytearray(durable)
    for change in changes:
        if change.data is None:
            del out[change.at :]
            out.extend(bytes(change.at - len(out)))
        else:
            apply(out, change)
    return out


def turn_of(way, count, rng):
    """A way and the number of a change."""
    way, _, turn = way.partition(":")
    return way, int(turn) if turn else rng.randrange(count) if count else 0


def versions(changes, sectors, way, rng):
    """After how many of the changes each sector is what it was; and the size."""
    count = len(changes)
    draws = np.random.default_rng(rng.getrandbits(32))
    way, turn = turn_of(way, count, rng)
    first, last = changes[turn].at // SECTOR, (changes[turn].at + max(1, len(changes[turn].data or b"")) - 1) // SECTOR
    if way in ("none", "all"):
        return np.full(sectors, count if way == "all" else 0), count if way == "all" else 0
    if way in ("prefix", "torn"):
        times = np.full(sectors, turn)
        if way == "torn":
            step = rng.choice([1, PAGE // SECTOR])
            times[first : last + 1] += np.repeat(draws.integers(0, 2, last + 1 - first), step)[: last + 1 - first]
        return times, turn + rng.randint(0, 1)
    if way in ("only", "but"):
        times = np.full(sectors, 0 if way == "only" else count)
        times[first : last + 1] = turn + 1 if way == "only" else turn
        return times, rng.choice([turn, turn + 1, count])
    grain = PAGE // SECTOR if way == "pages" else 1
    many = -(-sectors // grain)
    times = draws.integers(0, count + 1, many) if rng.random() < 0.5 else draws.integers(0, 2, many) * count
    return np.repeat(times, grain)[:sectors], rng.choice([0, count, rng.randint(0, count)])


def survived(durable, changes, way, rng):
    if not changes or way == "none":
        return bytearray(durable)
    if way == "all":
        return composed(durable, changes)
    longest = max(len(durable), *(change.at + len(change.data or b"") for change in changes))
    times, sizes = versions(changes, longest // SECTOR + 1, way, rng)
    out, size = bytearray(durable), len(durable)
    for turn, change in enumerate(changes):
        if change.data is None:
            if turn < sizes:
                size = change.at
                del out[size:]
            continue
        end = change.at + len(change.data)
        if turn < sizes:
            size = max(size, end)
        first = change.at // SECTOR
        there = times[first : (end - 1) // SECTOR + 1] > turn if change.data else np.zeros(0, bool)
        if there.all() and len(there):
            apply(out, change)
            continue
        for sector in np.flatnonzero(there) + first:
            begin, stop = max(change.at, int(sector) * SECTOR), min(end, (int(sector) + 1) * SECTOR)
            apply(out, Change(begin, change.data[begin - change.at : stop - change.at]))
    del out[size:]
    out.extend(bytes(size - len(out)))
    return out


@dataclasses.dataclass(eq=False)
class Renaming:
    """A name that is gone, and one that leads to a file from now on."""

    gone: str
    name: str
    file: File
    sequence: int = 0

    def apply(self, names):
        if self.gone and names.get(self.gone) is self.file:  # another file may have got the name while one call was under way
            del names[self.gone]
        if self.name:
            names[self.name] = self.file


class Disk:
    """One folder. `rng`: what failed syncs have lost."""

    def __init__(self, folder, rng):
        self.rng = rng
        self.inodes, self.names, self.under_way = {}, {}, []
        for path in sorted(pathlib.Path(folder).iterdir()):
            self.names[path.name] = self.inodes[path.stat().st_ino] = File(path.read_bytes())
        self.durable_names, self.renamings, self.sequence = dict(self.names), [], 0

    def take(self, is_end, call):
        """One event of the trace."""
        if call.kind == STRANGE:
            raise Strange(str(call))
        if call.kind == MARK:
            return
        if not is_end:
            self.under_way.append(call)
            if call.kind in (SYNC, SYNC_FOLDER, SYNC_ALL):
                call.upto = {None: self.sequence} | {file: file.sequence for file in self.files()}
            return
        self.under_way.remove(call)
        if call.kind in (SYNC, SYNC_FOLDER, SYNC_ALL):
            self.sync(call)
        elif call.result >= 0:
            self.happened(call)

    def forget(self):
        """The process has ended: what had not ended did not happen (record.c waits for it)."""
        self.under_way = []

    def files(self):
        return {*self.inodes.values(), *self.names.values()}

    def happened(self, call):
        if call.kind in (WRITE, SIZE, ROOM):
            change = self.inodes[call.inode].change_of(call)
            if change is not None:
                self.inodes[call.inode].add(change)
            return
        if call.kind == MAKE and call.at & 4:  # what was there when it began has gone meanwhile
            call.at |= 1
        if call.kind == MAKE and not call.at & 1:
            if call.at & 2 and call.inode in self.inodes:
                self.inodes[call.inode].add(Change(0, None))
            return
        if call.kind == MAKE:
            self.inodes[call.inode] = File()
        renaming = self.renaming(call)
        if renaming is None:
            return
        self.sequence += 1
        renaming.sequence = self.sequence
        renaming.apply(self.names)
        self.renamings.append(renaming)

    def renaming(self, call):
        if call.kind == MAKE:
            return Renaming(None, call.name, self.inodes.get(call.inode) or File()) if call.at & 1 else None
        if call.kind == UNLINK:
            return Renaming(call.name, None, self.inodes.get(call.inode) or self.names.get(call.name))
        file = self.names.get(call.name)
        return Renaming(call.name, call.data.decode(), file) if call.kind == RENAME and file else None

    def sync(self, call):
        if call.kind in (SYNC_FOLDER, SYNC_ALL) and call.result == 0:
            for renaming in self.renamings:
                if renaming.sequence <= call.upto[None]:
                    renaming.apply(self.durable_names)
            self.renamings = [renaming for renaming in self.renamings if renaming.sequence > call.upto[None]]
        for file in [self.inodes[call.inode]] if call.kind == SYNC else self.files() if call.kind == SYNC_ALL else []:
            if call.result == 0:
                file.sync(call.upto.get(file, 0))
            else:
                file.fail(call.upto.get(file, 0), self.rng)

    # States.

    def unsynced(self):
        """What may be there or not: file -> changes; None -> changes of names."""
        loose = {file: list(file.pending) for file in self.files() if file.pending}
        names = list(self.renamings)
        for call in self.under_way:
            if call.kind in (WRITE, SIZE, ROOM):
                file = self.inodes[call.inode]
                change = file.change_of(call)
                if change is not None:
                    loose.setdefault(file, []).append(change)
            elif call.kind in (MAKE, RENAME, UNLINK):
                renaming = self.renaming(call)
                names += [renaming] if renaming else []
        return loose | ({None: names} if names else {})

    def state(self, ways, rng):
        """name -> bytes, after a power failure now. ways: key of unsynced() -> one of WAYS."""
        loose = self.unsynced()
        names = dict(self.durable_names)
        changes = loose.get(None, [])
        way, turn = turn_of(ways.get(None, "none"), len(changes), rng)
        for number, renaming in enumerate(changes):
            chosen = {"none": False, "all": True, "prefix": number <= turn, "only": number == turn, "but": number != turn}.get(way)
            if rng.random() < 0.5 if chosen is None else chosen:
                renaming.apply(names)
        return {name: bytes(survived(file.durable, loose.get(file, []), ways.get(file, "none"), rng)) for name, file in names.items()}

    def cuts(self, rng, randoms):
        """Ways to choose from what is not synced: the extremes, each thing against the others, single changes, and random ones."""
        loose = self.unsynced()
        things = list(loose)
        yield dict.fromkeys(things, "none")
        if not things:
            return
        yield dict.fromkeys(things, "all")
        if len(things) > 1:
            for one in things:
                yield dict.fromkeys(things, "none") | {one: "all"}
                yield dict.fromkeys(things, "all") | {one: "none"}
        for thing in things:  # the newest change, before all others
            if len(loose[thing]) > 1:
                yield dict.fromkeys(things, "none") | {thing: f"only:{len(loose[thing]) - 1}"}
        single = [(thing, turn) for thing in things for turn in range(len(loose[thing])) if len(loose[thing]) > 1]
        for thing, turn in rng.sample(single, min(len(single), randoms)):
            yield dict.fromkeys(things, "none") | {thing: f"only:{turn}"}
            yield dict.fromkeys(things, "all") | {thing: f"but:{turn}"}
        for _ in range(randoms):
            yield {thing: rng.choice(WAYS) for thing in things}
