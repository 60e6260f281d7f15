"""What a commit writes, in which order: what ('commit',) becomes."""
from chain import again
from program import LATE_MARKS, failing, give_up, take, write
from storage import FILE, crc


def do_commit(checks, s, operation):
    """All that was captured is stored. Replaced by the steps of a commit."""
    if s.broken:
        return
    if not s.entries and not s.changed:
        if s.syncs:
            s.first(*((again(checks, s) + (('sync', FILE),)) if s.unsynced else ()), ('acknowledge', False))
        return
    alone = not s.entries and s.current is None and s.moving is None
    if alone:
        commit_superblock(checks, s)
        return
    if s.current is None:
        s.first(('begin',), operation)
        return
    if checks.lacks(LATE_MARKS[0]) and not s.marked:
        s.first(('mark now',), operation)
        return
    steps = ()
    if s.syncs and s.unsynced and not checks.lacks('power: the file is synced before COMMIT'):
        steps += (('sync', FILE),)
    steps += (('begin commit',),)
    steps += (('slot',), ('record',)) if checks.lacks('the slot after the record') else (('record',), ('slot',))
    if s.syncs and not checks.lacks('power: the segment is synced after the slot'):
        steps += (('sync', s.current[1]),)
    late = (('mark now',),)
    steps += late if checks.lacks(LATE_MARKS[1]) else ()
    s.first(*steps, ('acknowledge', True), *(late if checks.lacks(LATE_MARKS[2]) else ()))


def commit_superblock(checks, s):
    """The log is empty, and nothing but the superblock waits."""
    steps = ()
    if s.syncs and s.committed is None and not checks.lacks('power: the folder is synced at the first commit of a created file'):
        steps += (('sync folder',),)
    if s.syncs and s.unsynced and not checks.lacks('power: the file is synced before a superblock that is the commit'):
        steps += (('sync', FILE),)
    steps += (('begin commit',), ('put superblock',))
    if s.syncs and not checks.lacks('power: the file is synced after a superblock that is the commit'):
        steps += (('sync', FILE),)
    s.first(*steps, ('superblock is commit',))


def do_begin_commit(checks, s, operation):
    new = (s.data[:s.end], s.end, s.superblock[0])
    s.commits, s.ever = s.commits + (new,), s.ever + (new,)
    if checks.lacks('high water: it never falls'):
        s.high_water = s.end
    elif not checks.lacks('high water: it rises when a commit begins'):
        s.high_water = max(s.high_water, s.end)
    if s.current:
        if is_whole(s) and checks.lacks('reuse: not before the whole COMMIT has happened'):
            s.free = unneeded(s, seen(s))
        s.at = take(s)


def seen(s):
    """The segment's entries, the next commit's with them, but for those that a later one hides."""
    entries = s.said + s.entries
    return tuple(e for i, e in enumerate(entries) if not any(later[0] == e[0] for later in entries[i + 1:]))


def is_whole(s):
    """Whether the next COMMIT says once more all that is seen, so that the rest is not needed any more."""
    return s.reuses and len(seen(s)) < len(s.said + s.entries)


def unneeded(s, entries):
    return tuple(place for place in range(s.place) if place not in [entry[1] for entry in entries])


def do_record(checks, s, operation):
    write(checks, s, s.current[1], ('item', s.at, record_of(checks, s)))


def record_of(checks, s):
    entries, last, has_superblock = s.entries, s.last, s.changed
    if is_whole(s):
        last = None
        entries = entries if checks.lacks('reuse: a whole COMMIT has all that is seen') else seen(s)
        has_superblock = has_superblock or not checks.lacks('reuse: a whole COMMIT has the superblock')
    superblock = s.superblock if has_superblock else None
    return ('R', s.current[2], s.generation + 1, s.end, s.cache[FILE][1], last, entries, superblock)


def do_slot(checks, s, operation):
    record = record_of(checks, s)
    failed, happened = failing(s, 'slot')
    if happened:
        write(checks, s, s.current[1], ('slot', record[2] % 2, (record[1], record[2], s.at, crc(record))))
    if failed:
        give_up(s)


def do_acknowledge(checks, s, operation):
    """operation[1]: it wrote a COMMIT record; else there was nothing new, and what the program found is committed."""
    if not operation[1]:
        s.acked, s.promised = len(s.commits) - 1, s.syncs
        return
    s.generation += 1
    s.last = (s.at, crc(record_of_last(s)))
    if is_whole(s):
        s.said = seen(s)
        s.free = unneeded(s, s.said + ((None, s.at, None),))
    else:
        s.said += s.entries
    s.entries = ()
    committed(s)


def record_of_last(s):
    return s.cache[s.current[1]][4][s.at]


def committed(s):
    s.committed, s.committed_end, s.changed = s.superblock, s.end, False
    s.high_water = max(s.high_water, s.end)
    s.commits = s.commits[:s.acked + 1] + s.commits[-1:]
    s.acked, s.promised = len(s.commits) - 1, s.syncs


def do_put_superblock(checks, s, operation):
    value, end, _, is_open = s.superblock
    is_open = is_open if checks.lacks('commit: HDF5 flags are cleared') else 0
    failed, happened = failing(s, 'superblock')
    if happened:
        write(checks, s, FILE, ('superblock', (value, end, 0, is_open)))
    if failed:
        give_up(s)


def do_superblock_is_commit(checks, s, operation):
    s.marked = False
    committed(s)
