"""How a segment begins, and a chain of segments with it: what ('begin',) becomes."""
import reader
from program import LATE_MARKS, NOTHING, change_names, failing, give_up, log_of, write
from storage import FILE, NEW_SEGMENT


def do_begin(checks, s, operation):
    """Replaced by what it takes to have a current segment, up to ('use', …)."""
    if s.broken or s.committed is None:
        s.todo = s.todo[1:]
        return
    power, steps = s.syncs, ()
    s.lock = 'program'
    if s.spare:
        name, node, number = s.spare
        number, s.spare = number + 2, None
        steps += (('front', name, node),)
        rule = 'power: a header is synced when its segment is used again'
    else:
        number = s.number + 1
        name, node = 'wal.%d' % (1 - number % 2), len(s.nodes)
        if name in dict(s.names):
            if power:
                steps += again(checks, s)
            if power and not checks.lacks('power: the file is synced before a left log goes'):
                steps += (('sync', FILE),)
            steps += (('make room', name),)
        steps += (('make', name),)
        if power and not checks.lacks('power: the folder is synced when a segment is made'):
            steps += (('sync folder',),)
        steps += (('front', name, node),)
        rule = 'power: a header is synced before the mark'
    if power and not checks.lacks(rule):
        steps += (('sync', node),)
    if s.moving and not checks.lacks('writer: a note of the next segment'):
        steps += (('note next', s.moving[1]),)
        if power and not checks.lacks('power: the note is synced before the next segment has a commit'):
            steps += (('sync', s.moving[1]),)
    if not s.marked and not checks.without.intersection(LATE_MARKS):
        steps += (('mark', node),)
    s.first(*steps, ('use', name, node, number))


def again(checks, s):
    """The superblock that another program left may be in memory alone, its sync failed: it is written once more."""
    file = s.cache[FILE]
    rule = 'power: the superblock is written again before a sync of what was found'
    if checks.lacks(rule) or file[2] is None or file[2][2]:
        return ()
    return (('superblock again',),)


def do_superblock_again(checks, s, operation):
    write(checks, s, FILE, ('superblock', s.cache[FILE][2]))


def do_make_room(checks, s, operation):
    name = operation[1]
    segments = log_of(s)
    if checks.lacks('left log: it is set aside') or reader.is_useless(s.cache[FILE], segments, name, checks.without):
        change_names(checks, s, ('unlink', name))
    else:
        change_names(checks, s, ('rename', name, '%s.%s' % (name, dict(s.names)[name])))


def do_make(checks, s, operation):
    s.nodes += ((NEW_SEGMENT, ()),)
    s.cache += (NEW_SEGMENT,)
    change_names(checks, s, ('link', operation[1], len(s.nodes) - 1))


def do_front(checks, s, operation):
    """The segment's first 4096 bytes."""
    node = operation[2]
    s.ids += 1
    new_id = 100 + s.ids
    if checks.lacks('a new id when a segment is used again') and s.cache[node][0]:
        new_id = s.cache[node][0][0]
    superblock, end = s.committed, s.committed_end
    if checks.lacks('header: of the commit before this segment') and s.moving:
        superblock, end = s.cache[s.moving[1]][0][3], s.cache[s.moving[1]][0][2]
    header = (new_id, s.moving[2] if s.moving else 0, end, superblock)
    zeros = (('slot', 0, 0), ('slot', 1, 0), ('note', 0))
    write(checks, s, node, *(() if checks.lacks('slots and note are zeroed') else zeros), ('header', header))


def do_note_next(checks, s, operation):
    node, after = operation[1], next(op for op in s.todo if op[0] == 'use')[2]
    note = s.cache[node][3] or (0, 0, 0)
    whole = note[2] if checks.lacks('note: what is whole is said with the next segment') else s.moving[5]
    write(checks, s, node, ('note', (s.moving[2], s.cache[after][0][0], whole)))


def do_mark(checks, s, operation):
    """The file is marked with the segment's id."""
    segment_id = s.cache[operation[1]][0][0]
    value, end, _, is_open = s.committed
    failed, happened = failing(s, 'mark')
    if happened:
        write(checks, s, FILE, ('superblock', (value, end, segment_id, is_open)))
    if not failed:
        s.marked = True
        return
    use = next(op for op in s.todo if op[0] == 'use')
    give_up(s)
    back = () if checks.lacks('mark: one that failed is taken back') else (('mark back',),) + ((('sync', FILE),) if s.syncs else ())
    s.first(*back, ('unlink', use[1]))


def do_mark_back(checks, s, operation):
    write(checks, s, FILE, ('superblock', s.committed[:3] + (0,)))


def do_use(checks, s, operation):
    _, name, node, number = operation
    s.current, s.number = (name, node, s.cache[node][0][0], number), number
    s.entries, s.pieces, s.place, s.last = (), NOTHING, 0, None
    s.said, s.free = (), ()
    s.lock = None


def do_mark_now(checks, s, operation):
    """Only where a rule is left out: the mark comes later than it should."""
    if not s.marked:
        oldest = s.moving or s.current
        value, end, _, is_open = s.committed
        write(checks, s, FILE, ('superblock', (value, end, oldest[2], is_open)))
        s.marked = True


def do_unlink(checks, s, operation):
    change_names(checks, s, ('unlink', operation[1]))
