"""A program with the plugin that writes: it opens or creates, recovers what it finds, logs, commits, checkpoints, closes."""
from steps import FIND, finish, removal, spec_of, take
from world import EMPTY, Description, Entry, Inode, Process, Violation


def start(w, me):
    spec = spec_of(w, me)
    number = w.names.get(spec.path)
    if number is not None and not w.may_open(number):
        return
    if number is None and spec.mode == 'r+':
        yield w.then(me, 'end')
        return
    after = w.then(me, 'look before truncating' if spec.mode == 'w' else 'try EX' if spec.locks else 'look')
    if number is None:
        number = after.create(spec.path, Inode(None, (None, None), frozenset({EMPTY}), frozenset(spec.tag)))
    after.open[me] = Description(number, 'write', frozenset({me}))
    after.processes[me] = after.processes[me]._replace(inode=number, description=me)
    if spec.mode == 'w':
        after.processes[me] = after.processes[me]._replace(at='try claim', back='look before truncating')
        if not w.has('O3: who truncates has the claim before'):
            after.processes[me] = after.processes[me]._replace(at='truncate', mark=w.inodes[number].mark if number in w.inodes else None)
    yield after


def look(w, me):
    """HDF5 has its lock. What it reads goes through the plugin."""
    p = w.processes[me]
    mark = w.inodes[p.inode].mark
    if mark is None:
        yield finish(w, me)
    elif mark == 0:
        yield w.then(me, 'first byte', mark=0)
    elif 'claim' in w.open[me].locks or not w.has('O3: who recovers has the claim'):
        yield w.then(me, 'find the log' if mark != 1 else 'cut an empty file', mark=mark, back='claim the log')
    else:
        yield w.then(me, 'try claim', mark=mark, back='look' if w.has('O3: the mark is read again when it has the claim') else 'find the log')


def have_claim(w, me):
    p = w.processes[me]
    if p.back == 'find the log':
        yield w.then(me, 'find the log', back='claim the log')
    else:
        yield w.then(me, p.back)


def cut_empty(w, me):
    """Created, and nothing committed: an empty file, which HDF5 refuses."""
    p = w.processes[me]
    if not w.has('O1: a file that is marked with 1 is empty'):
        raise Violation('%s: the file is marked with 1, and no log has that id' % me)
    after = w.then(me, 'end').touch(me, p.inode).put(p.inode, mark=None, blocks=(None, None))
    yield after.end(me)


def claim_log(w, me):
    """The log of a copy may be another file's, whose program or mover has it."""
    p = w.processes[me]
    if p.entry not in w.tier:
        yield w.then(me, 'look at the mark again')
    elif w.is_log_held(p.entry, me) and w.has('O3: who recovers claims the log'):
        yield finish(w, me)
    else:
        is_there = p.mark in w.ids(p.entry) or not w.has('O3: the log is looked at again when it is claimed')
        after = w.then(me, 'restore 0' if is_there else 'look at the mark again', seen=w.log(p.entry, p.mark))
        yield after.lock(me, ('log', p.entry)) if is_there else after


def restore(which):
    def step(w, me):
        p = w.processes[me]
        yield w.then(me, 'restore %d' % (which + 1)).touch(me, p.inode).block(p.inode, which, p.seen[which])

    return step


def unmark(w, me):
    p = w.processes[me]
    own = w.tier[p.entry].inode == p.inode if p.entry in w.tier else False
    own = own or not w.has('O3: only the entry of this file is removed')
    after = w.then(me, 'remove segments' if own else 'first byte').touch(me, p.inode)
    yield after.put(p.inode, mark=0 if w.inodes[p.inode].blocks != (None, None) else None)


def look_before_truncating(w, me):
    """Whose log goes: only one that has the file's mark."""
    p = w.processes[me]
    mark = w.inodes[p.inode].mark
    entry = None
    if mark not in (None, 0, 1):
        entry = w.by_mark(mark)
    if not w.has('O3: who truncates removes only a log with the mark of the file'):
        entry = w.names.get(spec_of(w, me).path + '-tier')
    if entry in w.tier and w.tier[entry].inode != p.inode and w.has('O3: only the entry of this file is removed'):
        entry = None
    if entry in w.tier and w.is_log_held(entry, me):
        entry = None
    first = 'truncate' if w.has('O3: the truncation comes before the removal of the log') or entry is None else 'remove segments'
    yield w.then(me, first, entry=entry, mark=mark)


def truncate(w, me):
    p = w.processes[me]
    spec = spec_of(w, me)
    following = 'remove segments' if p.entry and w.has('O3: the truncation comes before the removal of the log') else 'after truncation'
    was_wild = bool(w.rivals(me, p.inode))
    after = w.then(me, following, back=None, entry=p.entry)
    after.touch(me, p.inode)
    after.truncate(p.inode, spec.tag)
    yield after.flag(p.inode, 'wild') if was_wild else after


def after_truncation(w, me):
    spec = spec_of(w, me)
    if spec.locks:
        yield w.then(me, 'try EX')
    else:
        yield w.then(me, 'first byte')


def have_lock(w, me):
    spec = spec_of(w, me)
    yield w.then(me, 'look' if spec.mode == 'r+' else 'first byte')


def removed(w, me):
    """The old log is gone; on with what it was done for."""
    p = w.processes[me]
    if spec_of(w, me).mode == 'w':
        following = 'after truncation' if w.has('O3: the truncation comes before the removal of the log') else 'truncate'
        yield w.then(me, following, entry=None)
    else:
        yield w.then(me, 'first byte', entry=None)


def first_byte(w, me):
    p = w.processes[me]
    if spec_of(w, me).mode == 'r+' and w.inodes[p.inode].mark is None:
        yield finish(w, me)  # recovered, and empty
    elif 'claim' in w.open[me].locks:
        yield w.then(me, 'E.file')
    elif not w.has('W2: the claim comes before E.file'):
        yield w.then(me, 'E.file')
    else:
        yield w.then(me, 'try claim', back='look before E.file')


def look_before_entry(w, me):
    """Somebody may have written since HDF5 read the superblock: without locks."""
    p = w.processes[me]
    same = w.inodes[p.inode].mark == (0 if spec_of(w, me).mode == 'r+' else None)
    yield w.then(me, 'E.file') if same or not w.has('W2: the mark is read again when it has the claim') else finish(w, me)


def entry_of(w, me):
    return 'E' + spec_of(w, me).tag


def write_entry(w, me):
    order = ('M', 'mark 1', 'segment') if w.has('W2: M comes before the mark') else ('mark 1', 'segment')
    if not w.has('W2: E.file comes before the segment') and not w.tier.get(entry_of(w, me)):
        after = w.then(me, 'E.file')
        after.tier[entry_of(w, me)] = Entry(None, w.processes[me].inode, ((spec_of(w, me).tag + ':1', None, None),))
        yield after.lock(me, ('log', entry_of(w, me)))
        return
    p = w.processes[me]
    at = order[0] if order[0] != 'mark 1' or spec_of(w, me).mode == 'w' else 'segment'
    after = w.then(me, at, entry=entry_of(w, me))
    old = after.tier.get(entry_of(w, me))
    after.tier[entry_of(w, me)] = Entry(spec_of(w, me).path, p.inode, old.segments if old else ())
    yield after


def write_marker(w, me):
    p = w.processes[me]
    following = 'mark 1' if spec_of(w, me).mode == 'w' else 'segment'
    if w.inodes[p.inode].mark not in (None, 0, 1):
        following = 'commit 1'
    after = w.then(me, following)
    after.names[spec_of(w, me).path + '-tier'] = p.entry
    yield after


def mark_created(w, me):
    """HDF5's first superblock; it is in the file at once."""
    p = w.processes[me]
    mark = 1 if w.has('W2: the first superblock of a created file is marked') else 0
    yield w.then(me, 'segment').touch(me, p.inode).put(p.inode, mark=mark)


def make_segment(w, me):
    p = w.processes[me]
    if not w.has('W2: the segment is there before the mark') and w.inodes[p.inode].mark in (0, 1):
        yield w.then(me, 'mark')
        return
    after = w.then(me, 'mark' if w.inodes[p.inode].mark in (0, 1, None) else 'commit 1')
    after.tier[p.entry] = after.tier[p.entry]._replace(segments=((spec_of(w, me).tag + ':1', None, None),))
    if not w.has('W2: the claim comes before E.file'):
        after.lock(me, 'claim')
    yield after.lock(me, ('log', p.entry)) if w.has('W2: the segment is claimed') else after


def mark(w, me):
    p = w.processes[me]
    tags = w.inodes[p.inode].tags | {spec_of(w, me).tag}
    following = 'commit 1' if w.ids(p.entry) else 'segment'
    if not w.has('W2: M comes before the mark'):
        following = 'M'
    yield w.then(me, following).touch(me, p.inode).put(p.inode, mark=spec_of(w, me).tag + ':1', tags=tags)


def commit(number):
    def step(w, me):
        p = w.processes[me]
        spec = spec_of(w, me)
        after = w.then(me, 'acknowledge %d' % number)
        value = '%s%d' % (spec.tag, number)
        segments = after.tier[p.entry].segments if p.entry in after.tier else ()
        if not segments:
            yield finish(w, me)  # somebody has taken its log: the descriptors write into nothing
            return
        number_of, zero, _ = segments[-1]
        last = (number_of, value if len(segments) == 1 and not zero_is_moved(spec, number) else zero, value)
        after.tier[p.entry] = after.tier[p.entry]._replace(segments=segments[:-1] + (last,))
        inode = after.inodes[p.inode]
        after.put(p.inode, allow=inode.allow | {committed(spec, number)})
        yield after

    return step


def zero_is_moved(spec, number):
    """What a segment that goes on does not have: only the second block is written again."""
    return spec.checkpoint and number == 2


def committed(spec, number):
    tag = spec.tag
    return (tag + '1', tag + '2') if zero_is_moved(spec, number) else (tag + str(number),) * 2


def acknowledge(number):
    def step(w, me):
        spec = spec_of(w, me)
        following = 'close' if number == spec.commits else 'next segment' if spec.checkpoint else 'commit %d' % (number + 1)
        yield w.then(me, following).put(w.processes[me].inode, allow=frozenset({committed(spec, number)}))

    return step


def next_segment(w, me):
    p = w.processes[me]
    after = w.then(me, 'move 0')
    if p.entry not in after.tier:
        yield finish(w, me)
        return
    after.tier[p.entry] = after.tier[p.entry]._replace(segments=after.tier[p.entry].segments + ((spec_of(w, me).tag + ':2', None, None),))
    yield after


def move(which):
    def step(w, me):
        p = w.processes[me]
        value = w.tier[p.entry].segments[0][1 + which] if w.ids(p.entry) else None
        yield w.then(me, 'move %d' % (which + 1)).touch(me, p.inode).block(p.inode, which, value)

    return step


def move_mark(w, me):
    p = w.processes[me]
    yield w.then(me, 'free').touch(me, p.inode).put(p.inode, mark=spec_of(w, me).tag + ':2')


def free(w, me):
    p = w.processes[me]
    after = w.then(me, 'commit 2')
    after.tier[p.entry] = after.tier[p.entry]._replace(segments=after.tier[p.entry].segments[1:])
    yield after


def close(w, me):
    """The mover's lock, so that nobody who comes takes what is on its way for a program's; then a mover, if one can be had."""
    if not w.has("W5: the mover's lock is taken before the descriptors are sent"):
        yield w.then(me, 'send')
    elif w.can_lock(me, 'byte'):
        yield w.then(me, 'send').lock(me, 'byte')
    else:
        yield w.then(me, 'closed')  # somebody waits for the file just now, and recovers it


def send(w, me):
    """A mover that listens is sent the descriptors; one that nobody has started is started; or there is none to be had."""
    p = w.processes[me]
    movers = [m for m in w.processes if w.is_mover(m)]
    listening = [m for m in movers if w.processes[m].at not in ('new', 'take mover.lock', 'end', 'dead')]
    for mover in listening:
        early = w.has('W5: the mover begins when the program has closed its own descriptors')
        after = w.then(me, 'closed' if early else 'wait for the answer')
        old = after.open[me]
        after.open[me] = old._replace(holders=old.holders | {mover})
        after.queue += ((mover, me, p.entry),)
        yield after
    starting = any(w.processes[m].at == 'take mover.lock' for m in movers)
    new = [m for m in movers if w.processes[m].at == 'new']
    if new and not listening and not starting:
        after = w.then(me, 'send')
        after.processes[new[0]] = Process('take mover.lock')
        yield after
    if not listening:
        yield w.then(me, 'closed', entry=None)


def await_answer(w, me):
    """It comes, or not in time: nothing depends on it but whether another mover is started."""
    yield w.then(me, 'closed')


def closed(w, me):
    after = w.then(me, 'end')
    if not w.has('W5: descriptors are closed, never unlocked') and me in after.open:
        after.unlock(me, 'EX', 'claim')
    after.close(me, me)
    yield after


STEPS = {'new': start, 'look': look, 'have': have_claim, 'have lock': have_lock, 'cut an empty file': cut_empty, 'claim the log': claim_log,
         'restore 0': restore(0), 'restore 1': restore(1), 'restore 2': unmark, 'look before truncating': look_before_truncating,
         'truncate': truncate, 'after truncation': after_truncation, 'removed': removed, 'first byte': first_byte,
         'look before E.file': look_before_entry, 'E.file': write_entry, 'M': write_marker, 'mark 1': mark_created, 'segment': make_segment,
         'mark': mark, 'next segment': next_segment, 'move 0': move(0), 'move 1': move(1), 'move 2': move_mark, 'free': free,
         'close': close, 'send': send, 'wait for the answer': await_answer, 'closed': closed}
STEPS.update({'commit %d' % n: commit(n) for n in (1, 2)})
STEPS.update({'acknowledge %d' % n: acknowledge(n) for n in (1, 2)})
STEPS.update(FIND)
STEPS.update(take('EX', 'have lock'))
STEPS.update(take('claim', 'have'))
STEPS.update(removal('removed', None))
