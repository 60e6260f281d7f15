"""Reads the log beside a marked file by docs/formats/log.md alone: another implementation of its recovery, to hold the first against.

Nothing here changes a file. Damaged: what the document calls damage. Not checked: locks.
"""

import dataclasses
import pathlib
import struct

TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)


class Damaged(Exception):
    pass


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


@dataclasses.dataclass
class Entry:
    address: int
    size: int
    offset: int  # 0: zeros
    crc: int


@dataclasses.dataclass
class Commit:
    generation: int
    end: int
    high_water: int
    length: int  # of the file itself
    offset: int
    before: tuple  # offset, length, crc
    entries: list  # in their order: where they overlap the later one holds


class Segment:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.data = self.path.read_bytes()
        header = self.data[:512]
        if len(header) < 512 or header[:8] != b"\x89TDL\r\n\x1a\n":
            raise Damaged(f"{self.path.name} has no header")
        self.version, crc = struct.unpack_from("<II", header, 8)
        if self.version != 1 or crc32c(header[:12] + bytes(4) + header[16:]) != crc:
            raise Damaged(f"the header of {self.path.name} is of version {self.version}, or torn")
        self.id, self.number, self.before, self.base, self.end, _, length = struct.unpack_from("<QQQQQII", header, 16)
        if len(self.data) < 4096:
            raise Damaged(f"{self.path.name} has {len(self.data)} bytes: a segment begins with 4096")
        self.superblock = header[64 : 64 + length]
        self.name = header[192:512].split(b"\0")[0].decode(errors="replace")

    def following(self):
        """The id of the segment that goes on here, as the note says; None if it says nothing."""
        note = self.data[1536:1564]
        own, later, self.whole, crc = struct.unpack("<QQQI", note)
        return later if own == self.id and crc32c(note[:24]) == crc else None

    def slots(self):
        """(generation, offset, length, crc) of the slots that are right, the newest first."""
        found = []
        for place in (512, 1024):
            slot = self.data[place : place + 32]
            generation, offset, length, crc, own = struct.unpack("<QQQII", slot.ljust(32, b"\0"))
            if generation and crc32c(struct.pack("<Q", self.id) + slot[:28]) == own:
                found.append((generation, offset, length, crc))
        return sorted(found, reverse=True)

    def commit(self, generation, offset, length, crc, extents=True):
        record = self.data[offset : offset + length]
        if len(record) < length or offset % 8 or crc32c(record) != crc or record[:8] != b"COMMIT\0\1":
            raise Damaged(f"{self.path.name}: the record at {offset}")
        segment_id, found, end, high, own_length, before, before_length, before_crc, count = struct.unpack_from("<QQQQQQQII", record, 8)
        if segment_id != self.id or (generation is not None and found != generation) or 72 + 32 * count != length:
            raise Damaged(f"{self.path.name}: the record at {offset} is not of this segment")
        entries = []
        for n in range(count):
            address, size, at, bytes_crc, other = struct.unpack_from("<QQQII", record, 72 + 32 * n)
            entry = Entry(address, size, at, bytes_crc)
            if other or (extents and at and crc32c(self.bytes_of(entry)) != bytes_crc):
                raise Damaged(f"{self.path.name}: the extent of {address}")
            entries.append(entry)
        return Commit(found, end, high, own_length, offset, (before, before_length, before_crc), entries)

    def bytes_of(self, entry):
        return self.data[entry.offset : entry.offset + entry.size] if entry.offset else bytes(entry.size)

    def commits(self, torn_tail=True):
        """The commits, the oldest first. The newest may be the torn tail of one that was never acknowledged."""
        slots = self.slots()
        for turn, slot in enumerate(slots):
            try:
                chain = [self.commit(*slot)]
                break
            except Damaged:
                if turn or not torn_tail:
                    raise
        else:
            return []
        while chain[0].before[0]:
            chain.insert(0, self.commit(None, *chain[0].before))
        return chain


def beside(path):
    found = []
    for digit in "01":
        place = path.with_name(f"{path.name}-wal.{digit}")
        if place.exists():
            try:
                found.append(Segment(place))
            except Damaged:
                pass
    return found


def chain_of(path, mark):
    """The segments of a marked file, the oldest first."""
    segments = beside(path)
    chain = [segment for segment in segments if segment.id == mark]
    if not chain:
        raise Damaged(f"{path.name}: no segment has the mark's id {mark:x}" if mark else f"{path.name} is not marked")
    while True:
        named = chain[-1].following()
        later = [segment for segment in segments if (segment.id == named if named is not None else segment.before == chain[-1].id)]
        if named and not later:
            raise Damaged(f"{path.name}: the segment {named:x} is missing")
        if not later:
            return chain
        chain += later


def recovered(path, mark):
    """The bytes of the file after its recovery."""
    path = pathlib.Path(path)
    if mark == 1:
        return b""  # created, and nothing is committed
    chain = chain_of(path, mark)
    file = bytearray(path.read_bytes())
    commits = [(segment, commit) for segment in chain for commit in segment.commits()]
    if commits and len(file) < commits[-1][1].length:
        raise Damaged(f"{path.name} has {len(file)} bytes, not {commits[-1][1].length}")
    end = commits[-1][1].end if commits else chain[0].end
    # Where no commit has the superblock it is the header's.
    file[chain[0].base : chain[0].base + len(chain[0].superblock)] = chain[0].superblock
    for segment, commit in commits:
        for entry in commit.entries:
            file = file.ljust(entry.address + entry.size, b"\0")
            file[entry.address : entry.address + entry.size] = segment.bytes_of(entry)
    return clean(file[:end].ljust(end, b"\0"), chain[0].base)


def plain(path):
    """The bytes of a recovered file, to compare with recovered()."""
    data = pathlib.Path(path).read_bytes()
    base = 0
    while base < len(data) and data[base : base + 8] != b"\x89HDF\r\n\x1a\n":
        base = base * 2 or 512
    return clean(bytearray(data), base) if base < len(data) else data


def difference(found, wanted):
    """Where two files differ, for people."""
    places = [place for place, pair in enumerate(zip(found, wanted)) if pair[0] != pair[1]]
    return f"{len(found)} bytes, not {len(wanted)}; {len(places)} others" + (f", at {places[0]} to {places[-1]}" if places else "")


def clean(file, base):
    """Without HDF5's own marks of a file that is open for writing. (Bob Jenkins' lookup3 makes the checksum: left to who compares.)"""
    if file[base + 8] >= 2:
        file[base + 11] = 0
        file[base + 44 : base + 48] = bytes(4)
    else:
        file[base + 20 : base + 24] = bytes(4)
    return bytes(file)
