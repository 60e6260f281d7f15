"""A program with the plugin that writes: it opens or creates, recovers what it finds or goes on with its log, logs, commits, checkpoints, closes."""
from steps import FIND, finish, open_log, removal, spec_of, take
from world import EMPTY, Description, Entry, Inode, Process, Violation


def start(w, me):
    spec = spec_of(w, me)
    number = w.names.get(spec.path)
    if number is not None and not w.may_open(number):
        return
    if number is None and spec.mode == 'r+':
        yield w.then(me, 'end')
        return
    after = w.then(me, 'try EX' if spec.locks else 'look')
    if number is None:
        number = after.create(spec.path, Inode(None, (None, None), frozenset({EMPTY}), frozenset(spec.tag)))
    after.open[me] = Description(number, 'write', frozenset({me}))
    after.processes[me] = after.processes[me]._replace(inode=number, description=me)
    if spec.mode == 'w':
        at = 'try claim' if w.has('O3: who truncates has the claim before') else 'truncate'
        after.processes[me] = after.processes[me]._replace(at=at, back='truncate')
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
        yield w.then(me, 'find the log' if mark != 1 else 'cut an empty file', mark=mark)
    else:
        back = 'cut an empty file' if mark == 1 else 'find the log'
        if w.has('O3: the mark is read again when it has the claim'):
            back = 'look'
        yield w.then(me, 'try claim', mark=mark, back=back)


def have_claim(w, me):
    yield w.then(me, w.processes[me].back)


def cut_empty(w, me):
    """Created, and nothing committed: an empty file, which HDF5 refuses."""
    p = w.processes[me]
    if not w.has('O1: a file that is marked with 1 is empty'):
        raise Violation('%s: the file is marked with 1, and no log has that id' % me)
    after = w.then(me, 'end').touch(me, p.inode).put(p.inode, mark=None, blocks=(None, None))
    yield after.end(me)


def open_its_log(w, me):
    """It goes on with a log that lies as its own would; or brings the file home, as who has no tier does."""
    yield from open_log(w, me)
    p = w.processes[me]
    path = spec_of(w, me).path
    entry = w.tier.get(p.entry)
    if entry and w.ids(p.entry) == [p.mark] and entry[:2] == (path, p.inode) and w.names.get(path + '-tier') == p.entry:
        after = w.then(me, 'commit 1').touch(me, p.inode)
        yield after.put(p.inode, tags=w.inodes[p.inode].tags | {spec_of(w, me).tag})


def restore(which):
    def step(w, me):
        p = w.processes[me]
        yield w.then(me, 'restore %d' % (which + 1)).touch(me, p.inode).block(p.inode, which, p.seen[which])

    return step


def unmark(w, me):
    p = w.processes[me]
    after = w.then(me, 'remove segments').touch(me, p.inode)
    yield after.put(p.inode, mark=0 if w.inodes[p.inode].blocks != (None, None) else None)


def truncate(w, me):
    """What log the file had is of no use now: a mover tidies up."""
    p = w.processes[me]
    spec = spec_of(w, me)
    is_wild = bool(w.rivals(me, p.inode))
    after = w.then(me, 'try EX' if spec.locks else 'first byte').touch(me, p.inode).truncate(p.inode, spec.tag)
    yield after.flag(p.inode, 'wild') if is_wild else after


def have_lock(w, me):
    spec = spec_of(w, me)
    yield w.then(me, 'look' if spec.mode == 'r+' else 'first byte')


def removed(w, me):
    yield w.then(me, 'first byte', entry=None)


def first_byte(w, me):
    p = w.processes[me]
    if spec_of(w, me).mode == 'r+' and w.inodes[p.inode].mark is None:
        yield finish(w, me)  # recovered, and empty
    elif 'claim' in w.open[me].locks or not w.has('W2: the claim comes before E.file'):
        yield w.then(me, order(w, me)[0])
    else:
        yield w.then(me, 'try claim', back='look before E.file')


def look_before_entry(w, me):
    """Somebody may have written since HDF5 read the superblock: without locks."""
    p = w.processes[me]
    same = w.inodes[p.inode].mark == (0 if spec_of(w, me).mode == 'r+' else None)
    yield w.then(me, order(w, me)[0]) if same or not w.has('W2: the mark is read again when it has the claim') else finish(w, me)


def order(w, me):
    """The steps before a byte is stored."""
    steps = ['E.file', 'M', 'mark 1', 'segment', 'mark', 'commit 1']
    if spec_of(w, me).mode == 'r+':
        steps.remove('mark 1')
    for rule, late in (('W2: E.file comes before the segment', 'E.file'), ('W2: M comes before the mark', 'M'),
                       ('W2: the segment is there before the mark', 'segment')):
        if not w.has(rule):
            steps.remove(late)
            steps.insert(-1, late)
    return steps


def after_step(w, me, at):
    steps = order(w, me)
    return w.then(me, steps[steps.index(at) + 1])


def change_entry(w, me, **changes):
    name = 'E' + spec_of(w, me).tag
    w.tier[name] = w.tier.get(name, Entry(None, w.processes[me].inode))._replace(**changes)
    w.processes[me] = w.processes[me]._replace(entry=name)
    return w


def write_entry(w, me):
    after = after_step(w, me, 'E.file')
    yield change_entry(after, me, path=spec_of(w, me).path)


def write_marker(w, me):
    after = after_step(w, me, 'M')
    after.names[spec_of(w, me).path + '-tier'] = 'E' + spec_of(w, me).tag
    yield after


def mark_created(w, me):
    """HDF5's first superblock; it is in the file at once."""
    p = w.processes[me]
    mark = 1 if w.has('W2: the first superblock of a created file is marked') else 0
    yield after_step(w, me, 'mark 1').touch(me, p.inode).put(p.inode, mark=mark)


def make_segment(w, me):
    after = after_step(w, me, 'segment')
    if not w.has('W2: the claim comes before E.file'):
        after.lock(me, 'claim')
    yield change_entry(after, me, segments=((spec_of(w, me).tag + ':1', None, None),))


def mark(w, me):
    p = w.processes[me]
    tags = w.inodes[p.inode].tags | {spec_of(w, me).tag}
    yield after_step(w, me, 'mark').touch(me, p.inode).put(p.inode, mark=spec_of(w, me).tag + ':1', tags=tags)


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
    """Readers may come. The kernel gives the old lock up first: whoever has got his in between recovers the file."""
    if 'EX' in w.open[me].locks and w.has('W5: the program makes its lock a shared one'):
        yield w.then(me, 'close: shared').unlock(me, 'EX')
    else:
        yield w.then(me, "close: mover's lock")


def close_shared(w, me):
    if w.can_lock(me, 'SH'):
        yield w.then(me, "close: mover's lock").lock(me, 'SH')
    elif w.has('W5: a lock that cannot be had is not waited for'):
        yield w.then(me, 'closed')
    elif w.rivals(me, w.processes[me].inode):
        raise Violation('the close of %s waits for a program that may never end' % me)


def close_movers(w, me):
    """So that nobody who comes takes what is on its way for a program's."""
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
        after = w.then(me, 'closed' if early else 'keep them')
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


def keep(w, me):
    """Until the answer comes, or not in time; nothing else depends on the answer but whether another mover is started (life.py)."""
    yield w.then(me, 'closed')


def closed(w, me):
    after = w.then(me, 'end', entry=None)
    if not w.has('W5: descriptors are closed, never unlocked') and me in after.open:
        after.unlock(me, 'SH', 'claim')
    after.close(me, me)
    yield after


STEPS = {'new': start, 'have lock': have_lock, 'look': look, 'have': have_claim, 'cut an empty file': cut_empty,
         'restore 0': restore(0), 'restore 1': restore(1), 'restore 2': unmark, 'removed': removed, 'truncate': truncate,
         'first byte': first_byte, 'look before E.file': look_before_entry, 'E.file': write_entry, 'M': write_marker,
         'mark 1': mark_created, 'segment': make_segment, 'mark': mark, 'commit 1': commit(1), 'commit 2': commit(2),
         'acknowledge 1': acknowledge(1), 'acknowledge 2': acknowledge(2), 'next segment': next_segment, 'move 0': move(0),
         'move 1': move(1), 'move 2': move_mark, 'free': free,
         'close': close, 'close: shared': close_shared, "close: mover's lock": close_movers, 'send': send,
         'keep them': keep, 'closed': closed}
STEPS.update(FIND, **{'open the log': open_its_log})
STEPS.update(take('EX', 'have lock'))
STEPS.update(take('claim', 'have'))
STEPS.update(removal('removed'))
