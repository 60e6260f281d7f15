"""Who may do what, when: two recoverers, a writer that was there before, one that comes later, a reader; all their interleavings.

HDF5's own lock is off for all but the reader: what keeps the others apart are the claims, on the file and on its segments. Storage is a file of
two blocks with a mark, segments with an id and what they have committed ('new' or 'next', for both blocks), and one name for
them. A process that is killed loses what it holds.

The old writer is alive and moves its log into the file, block by block, uses its segment again, commits more; or it is killed. Its
file may be renamed meanwhile, and another one has the name: one that was closed, or a copy of it with the same mark.
"""
from collections import deque

from images import Violation

COMMITS = {('old', 'old'), ('new', 'new'), ('next', 'next')}
OLD, LATER, READER, RECOVERERS = 'old writer', 'later writer', 'reader', ('recoverer 1', 'recoverer 2')
DONE = 9
AWAY, COPIED = 20, 30  # the old writer, its file renamed; one and two more: it has removed its log, it is gone
SECOND = "lock: the writer of a renamed file makes another segment"  # beyond the document


class World:
    """blocks, mark; file_lock; segments: {number: (id, who holds it, what it has committed)}; name: which segment has the name in its
    place, or None; aside: those that were set aside; at: where each process is; seen: what it has seen."""

    FIELDS = ('blocks', 'mark', 'file_lock', 'segments', 'name', 'aside', 'at', 'seen')

    def __init__(self):
        self.blocks, self.mark, self.file_lock = ('old', 'old'), 1, OLD
        self.segments, self.name, self.aside = {1: (1, OLD, 'new')}, 1, ()
        self.at = {p: 0 for p in (OLD, LATER, READER) + RECOVERERS}
        self.seen = {}

    def key(self):
        return tuple(tuple(sorted(v.items())) if isinstance(v, dict) else v for v in (getattr(self, f) for f in self.FIELDS))

    def copy(self, who, at):
        other = World.__new__(World)
        for field in self.FIELDS:
            value = getattr(self, field)
            setattr(other, field, dict(value) if isinstance(value, dict) else value)
        other.at[who] = at
        return other

    def segment(self, number, **changes):
        old = dict(zip(('id', 'holder', 'value'), self.segments[number]))
        old.update(changes)
        self.segments[number] = (old['id'], old['holder'], old['value'])

    def put(self, block, value):
        self.blocks = tuple(value if i == block else b for i, b in enumerate(self.blocks))

    def release(self, who):
        self.file_lock = None if self.file_lock == who else self.file_lock
        for number, (_, holder, _) in list(self.segments.items()):
            if holder == who:
                self.segment(number, holder=None)

    def is_named(self):
        """Whether the segment in its place is the mark's."""
        return bool(self.mark and self.name and self.segments[self.name][0] == self.mark)

    def remove(self, number, without):
        if 'lock: only the own segment is removed' in without:
            self.name = None
        elif self.name == number:
            self.name = None
        elif number in self.aside and 'lock: the own segment is found aside' not in without:
            self.aside = tuple(n for n in self.aside if n != number)


def check(world, without, path):
    """What the file is, by its mark and log, when nobody rightly is at work there."""
    value = world.blocks
    old = world.at[OLD]
    if old in (AWAY, COPIED) and 1 not in (world.name,) + world.aside:
        raise Violation('a writer whose file was renamed has lost its log: %s' % (path,))
    if world.mark:
        if not world.is_named():
            if old > COPIED and world.name is None:
                return  # a copy without its log is refused
            raise Violation('the file is marked, and its log is gone: %s' % (path,))
        committed = world.segments[world.name][2]
        value = (committed, committed) if committed else value
    elif world.file_lock:
        return
    if value not in COMMITS:
        raise Violation('the file is no commit: %s %s' % (value, path))
    if world.at[LATER] >= 6 and value != ('next', 'next'):
        raise Violation('a later commit was lost: %s' % (path,))
    if old in (AWAY + 2, COPIED + 2) and 1 in world.aside:
        raise Violation('the log of a file that was closed stays aside: %s' % (path,))


def old_writer(world, without):
    at = world.at[OLD]
    steps = {0: lambda w: w.put(0, 'new'), 1: lambda w: w.put(1, 'new'), 2: lambda w: setattr(w, 'mark', 0),
             3: lambda w: w.segment(1, id=7, value=None), 4: lambda w: setattr(w, 'mark', 7), 5: lambda w: w.segment(1, value='next'),
             6: lambda w: w.put(0, 'next'), 7: lambda w: w.put(1, 'next')}
    if at in steps:
        after = world.copy(OLD, at + 1 if at < 7 else 8)
        steps[at](after)
        yield after
    if at <= 8:
        killed = world.copy(OLD, DONE)
        killed.release(OLD)
        yield killed
    others = [p for p in world.at if p != OLD]
    if 1 <= at <= 2 and not any(world.at[p] for p in others):
        copied = world.copy(OLD, COPIED)
        copied.file_lock = None
        yield copied
    if 1 <= at <= 4 and not any(world.at[p] for p in others):
        moved = world.copy(OLD, AWAY)
        moved.blocks, moved.mark, moved.file_lock = ('next', 'next'), 0, None
        yield moved
    if at in (AWAY, COPIED):
        closed = world.copy(OLD, at + 1)
        closed.remove(1, without)
        yield closed
    if at in (AWAY + 1, COPIED + 1):
        gone = world.copy(OLD, at + 1)
        gone.release(OLD)
        yield gone
    if at == AWAY and SECOND in without and world.name == 2:
        second = world.copy(OLD, at)
        second.segments[3] = (3, OLD, None)
        second.name, second.aside = 3, world.aside + (2,)
        yield second


def recoverer(world, who, without):
    at = world.at[who]
    if at == 0 and world.is_named():
        yield opened(world, who)
    elif at == 1 and 'lock: a recoverer claims the file' in without:
        yield world.copy(who, 2)
    elif at == 1:
        after = world.copy(who, 2 if world.file_lock is None else DONE)
        after.file_lock = world.file_lock or who
        yield after
    elif at == 2:
        number, mark = world.seen[who]
        same = world.is_named() and (world.name, world.mark) == (number, mark)
        if 'lock: the mark is looked at again' in without:
            same = True
        after = world.copy(who, 3 if same else DONE)
        if not same:
            after.release(who)
        yield after
    elif at == 3:
        yield claim_segment(world, who, without)
    elif at in (4, 5):
        after = world.copy(who, at + 1)
        after.put(at - 4, world.segments[world.seen[who][0]][2] or world.blocks[at - 4])
        yield after
    elif at == 6:
        after = world.copy(who, 7)
        after.mark = 0
        yield after
    elif at == 7:
        after = world.copy(who, DONE)
        after.remove(world.seen[who][0], without)
        after.release(who)
        yield after
    if 2 <= at <= 7:
        killed = world.copy(who, DONE)
        killed.release(who)
        yield killed


def opened(world, who):
    after = world.copy(who, 1)
    after.seen[who] = (world.name, world.mark)
    return after


def claim_segment(world, who, without):
    number = world.seen[who][0]
    holder = world.segments[number][1]
    if 'lock: a recoverer claims the segments' in without or holder is None:
        after = world.copy(who, 4)
        if holder is None:
            after.segment(number, holder=who)
        return after
    after = world.copy(who, DONE)
    after.release(who)
    return after


def later_writer(world, without):
    """It opens a file without mark, sets aside or removes what has its segment's name, commits, moves, closes."""
    at = world.at[LATER]
    if at == 0 and not world.mark and (world.file_lock is None or 'lock: a writer claims the file' in without):
        after = world.copy(LATER, 1)
        after.file_lock = world.file_lock or LATER
        yield after
    elif at == 1:
        after = world.copy(LATER, 2)
        if world.name:
            held = world.segments[world.name][1] not in (None, LATER)
            if held and 'lock: a segment that is held is not removed' not in without:
                after.aside += (world.name,)
            after.name = None
        yield after
    elif at == 2:
        after = world.copy(LATER, 3 if world.name is None else DONE)
        if world.name is None:
            after.segments[2], after.name = (2, LATER, None), 2
        yield after
    elif at in range(3, 9):
        steps = {3: lambda w: setattr(w, 'mark', 2), 4: lambda w: w.segment(2, value='next'), 5: lambda w: None,
                 6: lambda w: w.put(0, 'next'), 7: lambda w: w.put(1, 'next'), 8: lambda w: setattr(w, 'mark', 0)}
        after = world.copy(LATER, at + 1 if at < 8 else 10)
        steps[at](after)
        yield after
    elif at == 10:
        after = world.copy(LATER, 11)
        after.remove(2, without)
        after.release(LATER)
        yield after


def reader(world, without):
    """It has HDF5's lock, so that nobody who writes or recovers begins; it reads the log, then the blocks."""
    at = world.at[READER]
    if at == 0 and world.is_named() and (world.file_lock is None or "lock: a reader has HDF5's lock" in without):
        after = world.copy(READER, 1)
        after.file_lock = world.file_lock or READER
        after.seen[READER] = (world.segments[world.name][2], None)
        yield after
    elif at == 1:
        after = world.copy(READER, 2)
        committed = world.seen[READER][0]
        after.seen[READER] = (committed, committed or world.blocks[0])
        yield after
    elif at == 2:
        committed, first = world.seen[READER]
        second = committed or world.blocks[1]
        if (first, second) not in COMMITS:
            raise Violation('a reader sees no commit: %s %s' % (first, second))
        after = world.copy(READER, DONE)
        after.release(READER)
        yield after


def explore(without=frozenset()):
    """The number of states; Violation."""
    first = World()
    seen, todo = {first.key()}, deque([(first, ())])
    while todo:
        world, path = todo.popleft()
        check(world, without, path)
        found = [(OLD, old_writer(world, without)), (LATER, later_writer(world, without)), (READER, reader(world, without))]
        found += [(who, recoverer(world, who, without)) for who in RECOVERERS]
        for who, steps in found:
            for after in steps:
                key = after.key()
                if key not in seen:
                    seen.add(key)
                    todo.append((after, path + ('%s: %d' % (who, world.at[who]),)))
    return len(seen)
