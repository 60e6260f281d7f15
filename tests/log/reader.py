"""Who reads: stock HDF5, and recovery, which reads a log by the rules of docs/formats/log.md and applies it.

`without` is everywhere the set of rules that are left out.
"""
from storage import BAD, EMPTY, NEVER_COMMITTED, NEW_FILE, ZEROS, crc, put


class Refused(Exception):
    """Recovery says that it cannot, and changes nothing."""


def stock(file):
    """What stock HDF5 sees: 'refused', 'no HDF5 file', 'broken' (unmarked, and it cannot be opened), or a state."""
    blocks, size, superblock = file
    if superblock is None:
        return 'no HDF5 file'
    value, end, mark, is_open = superblock
    if mark:
        return 'refused'
    if is_open or size < end:
        return 'broken'
    return (blocks[:end], end, value)


def state_of(file):
    return EMPTY if file[2] is None and file[1] == 0 else stock(file)


def is_header(header):
    return header not in (None, BAD)


class SegmentReader:
    """One segment's commits."""

    def __init__(self, segment, without):
        self.header, self.even, self.odd, note, self.items = segment
        self.id, self.without = self.header[0], without
        is_torn = note != 0 and (note == BAD or note[0] != self.id)
        self.next, self.whole = (0, 0) if note == 0 or is_torn else note[1:]

    def record(self, offset, checksum, generation):
        """The record there, or None where it or one of its extents is wrong."""
        items = self.items
        if offset >= len(items) or items[offset] == 0 or items[offset][0] != 'R':
            return None
        found = items[offset]
        if crc(found) != checksum and 'reader: crc of a record' not in self.without:
            return None
        if (found[1], found[2]) != (self.id, generation) and 'reader: id and generation of a record' not in self.without:
            return None
        there = tuple((address, place, self.extent(place)) for address, place, _ in found[6])
        if there != found[6] and 'reader: crc of extents' not in self.without:
            return None
        return found[:6] + (there,) + found[7:]

    def extent(self, place):
        """What the segment has there, whatever an entry says."""
        if place == ZEROS:
            return 0
        item = self.items[place] if place < len(self.items) else 0
        return item[1] if item and item[0] == 'E' else -1

    def slots(self):
        """The right ones, the newest first, and how many are wrong."""
        right, wrong = [], 0
        for parity, slot in enumerate((self.even, self.odd)):
            if slot == 0:
                continue
            if slot == BAD or slot[1] % 2 != parity or (slot[0] != self.id and 'reader: id of a slot' not in self.without):
                wrong += 1
            else:
                right.append(slot)
        return sorted(right, key=lambda slot: -slot[1]), wrong

    def commits(self):
        """(records from the first to the last, offset of the last); the torn tail is cut. Refused: anything else is wrong."""
        slots, wrong = self.slots()
        last = offset = None
        for slot in slots:
            last, offset = self.record(slot[2], slot[3], slot[1]), slot[2]
            if last is not None:
                break
            if 'reader: a torn tail is cut' in self.without:
                raise Refused('a wrong record')
            wrong += 1
        if wrong > 1 and 'reader: two wrong slots are damage' not in self.without:
            raise Refused('both slots are wrong')
        if self.whole > (last[2] if last else 0) and 'reader: the whole commit is no torn tail' not in self.without:
            raise Refused('the commit that the note calls whole is wrong')
        if last is None:
            return [], None
        records = [last]
        while records[0][5] is not None:
            before = self.record(*records[0][5], records[0][2] - 1)
            if before is None:
                if 'reader: an older commit that is wrong is damage' in self.without:
                    break
                raise Refused('an older commit is wrong')
            records.insert(0, before)
        return records, offset


class Plan:
    """What recovery found: the file as it is to be, and what it does for that."""

    def __init__(self):
        self.layers = []  # (name, records), from the oldest segment to the newest
        self.newest = None  # (name, record, offset)
        self.moved = None  # the name of a segment that says nothing more
        self.end, self.superblock = 0, None
        self.header_end = 0  # as the first segment's header has it
        self.final = NEW_FILE

    def records(self):
        return [r for _, records in self.layers for r in records]

    def add(self, name, segment, without):
        reader = SegmentReader(segment, without)
        records, offset = reader.commits()
        for record in records:
            self.end = record[3]
            self.superblock = record[7] or self.superblock
        if records:
            self.newest = (name, records[-1], offset)
        self.layers.append((name, records))
        return reader


def read_log(file, segments, without=frozenset()):
    """None: the file needs no log. segments: {name: image}, by the two names where they are looked for."""
    superblock = file[2]
    if superblock is None or not superblock[2]:
        if superblock is None or 'reader: only a marked file has a log' not in without:
            return None
    mark = superblock[2]
    plan = Plan()
    if mark == NEVER_COMMITTED:
        return plan
    whose = [n for n in sorted(segments) if is_header(segments[n][0])
             and (segments[n][0][0] == mark or 'reader: the id of the mark' in without)]
    if not whose:
        if 'reader: no log is an error' not in without:
            raise Refused('no segment has the id of the mark')
        plan.end, plan.superblock = file[1], (superblock[0], file[1], 0, 0)
        return finish(plan, file, segments, without)
    first = whose[0]
    header = segments[first][0]
    plan.end, plan.superblock = header[2], header[3]
    plan.header_end = header[2]
    reader = plan.add(first, segments[first], without)
    other = next((n for n in sorted(segments) if n != first and is_header(segments[n][0])), None)
    if other and segments[other][0][0] == header[1]:
        plan.moved = other
    goes_on = other is not None and segments[other][0][1] == header[0]
    if reader.next and not (goes_on and segments[other][0][0] == reader.next) and 'writer: a note of the next segment' not in without:
        raise Refused('the next segment is missing')
    if goes_on and 'reader: the later segment, too' not in without:
        unnamed = SegmentReader(segments[other], without).slots()[0] and 'reader: who has a commit goes on, whatever the note says' not in without
        if reader.next or unnamed or 'writer: a note of the next segment' in without:
            plan.add(other, segments[other], without)
        else:
            plan.moved = other
    return finish(plan, file, segments, without)


def finish(plan, file, segments, without):
    if file[1] < plan.end and plan.newest and 'reader: a file that is shorter is refused' not in without:
        raise Refused('the file is shorter than the last commit says')
    final = file
    records = plan.records()
    for record in reversed(records) if 'reader: the order of commits' in without else records:
        for address, _, value in record[6]:
            if address < plan.end:
                final = put(put(final, ('grow', address + 1)), ('block', address, value))
    final = put(put(final, ('grow', plan.end)), ('cut', plan.end))
    value, end, _, is_open = plan.superblock
    kept = is_open if 'recovery: HDF5 flags are cleared' in without else 0
    plan.final = (final[0], final[1], (value, end, 0, kept))
    return plan


def recovery_steps(plan, segments, without):
    """What recovery does, step by step: ('file', write), ('segment', name, write), ('sync file'), ('sync log') or ('unlink', name)."""
    steps = []
    if plan.newest and 'power: recovery writes the newest commit again' not in without:
        name, record, offset = plan.newest
        steps += [('segment', name, ('item', place, ('E', value))) for _, place, value in record[6] if place != ZEROS]
        steps += [('segment', name, ('item', offset, record))]
        steps += [('segment', name, ('slot', record[2] % 2, (record[1], record[2], offset, crc(record))))]
    if 'power: recovery syncs the log before it changes anything' not in without:
        steps += [('sync log',)]
    if 'power: recovery syncs the file before it changes anything' not in without:
        steps += [('sync file',)]
    if plan.newest and 'note: which commit is whole' not in without:
        name, record, _ = plan.newest
        old = SegmentReader(segments[name], without)
        steps += [('segment', name, ('note', (record[1], old.next, record[2])))]
        if 'power: recovery syncs its note' not in without:
            steps += [('sync log',)]
    if plan.final == NEW_FILE:
        return steps + [('file', ('empty',)), ('sync file',)]
    copy = []
    for address in sorted({entry[0] for record in plan.records() for entry in record[6]}):
        if address < plan.end:
            copy += [('file', ('grow', address + 1)), ('file', ('block', address, plan.final[0][address]))]
    copy += [('file', ('grow', plan.end)), ('file', ('cut', plan.end))]
    if 'power: recovery syncs before the superblock' not in without:
        copy += [('sync file',)]
    superblock = [('file', ('superblock', plan.final[2]))]
    if 'power: recovery syncs before it removes the log' not in without:
        superblock += [('sync file',)]
    names = ([plan.moved] if plan.moved else []) + [name for name, _ in plan.layers]
    remove = [('unlink', name) for name in names]
    if 'recovery: the superblock last' in without:
        return steps + superblock + copy + remove
    if 'recovery: removes the log last' in without:
        return steps + copy + remove + superblock
    return steps + copy + superblock + remove


def is_useless(file, segments, name, without):
    """Whether a segment that is left beside a file has nothing for it: the next writer removes it then, and does not set it aside."""
    header = segments[name][0]
    if header is None:
        return True
    if header == BAD or file[2] is None or file[2][2]:
        return False
    try:
        plan = read_log((file[0], file[1], file[2][:2] + (header[0], 0)), segments)
    except Refused:
        return False
    if plan.final[2][:2] != file[2][:2]:
        return False
    if 'left log: the file has all of it before it is removed' in without:
        return True
    last = {address: value for record in plan.records() for address, _, value in record[6] if address < plan.end}
    return all(address < file[1] and file[0][address] == value for address, value in last.items())
