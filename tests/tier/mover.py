"""The mover: takes what programs hand over, looks through T for what dead ones have left, brings it into the files, tidies up."""
from steps import removal, remove_note
from world import Description, Entry


def is_running(w, me):
    return any(name != me and w.is_mover(name) and p.at not in ('new', 'take mover.lock', 'end', 'dead') for name, p in w.processes.items())


def start(w, me):
    """By hand, or by a program's close."""
    if w.scene.processes[me].mode == 'free':
        yield w.then(me, 'take mover.lock')


def take_lock(w, me):
    yield w.then(me, 'end' if is_running(w, me) and w.has('V: one mover') else 'idle', seen=frozenset())


def idle(w, me):
    p = w.processes[me]
    for message in w.queue:
        is_closed = w.open[message[1]].holders == {me} or not w.has('W5: the mover begins when the program has closed its own descriptors')
        if message[0] == me and is_closed:
            after = w.then(me, 'handed', description=message[1], entry=message[2], inode=w.open[message[1]].inode)
            after.queue = tuple(q for q in w.queue if q != message)
            yield after
            return
    for entry, what in w.tier.items():
        if what.note and not what.path and w.has('N: a note without its entry is collected'):
            yield remove_note(w.then(me, 'idle'), entry)
            return
    for entry, what in w.tier.items():
        if entry not in p.seen and what.path:
            yield w.then(me, 'by the path', entry=entry, description='%s:%s' % (me, entry), seen=p.seen | {entry})


def leave(w, me):
    """Back to the others; whoever holds the file needs no mover."""
    p = w.processes[me]
    after = w.then(me, 'idle', description=None, entry=None, inode=None)
    after.close(me, p.description)
    return after


def tell(w, me):
    """The same, and says why: when nobody waits for the file any more."""
    entry = w.processes[me].entry
    after = leave(w, me)
    after.processes[me] = after.processes[me]._replace(at='note', entry=entry)
    return after


def write_note(w, me):
    """Whoever has the file may have ended the entry meanwhile."""
    after = w.then(me, 'idle', entry=None)
    e = w.processes[me].entry
    after.tier[e] = after.tier.get(e, Entry(None, None))._replace(note=True)
    yield after


def handed(w, me):
    """With its claim; the mover answers, and begins."""
    mine = w.processes[me].description
    if "byte" in w.open[mine].locks:
        yield w.then(me, 'SH')
    elif w.can_lock(mine, 'byte'):
        yield w.then(me, 'SH').lock(mine, 'byte')
    else:
        yield leave(w, me)


def by_path(w, me):
    p = w.processes[me]
    entry = w.tier.get(p.entry)
    number = w.names.get(entry.path) if entry and entry.path else None
    same = number is not None and (number == entry.inode or not w.has('V2: the path must lead to the inode of E.file'))
    if not same:
        if not w.has('V3: an entry without its file is kept') and entry:
            yield w.then(me, 'remove segments', inode=None)
        else:
            yield leave(w, me)
        return
    if not w.may_open(number):
        return
    after = w.then(me, 'byte' if w.has('V2: the claim comes before flock') else 'SH', inode=number, back=read_log(w, p.entry, number))
    after.open[p.description] = Description(number, 'move', frozenset({me}))
    yield after


def read_log(w, entry, number):
    """The segment that counts, and what it says."""
    ids = w.ids(entry)
    mark = w.inodes[number].mark
    if mark not in ids and (w.has('V3: only a log with the id of the mark is applied') or not ids):
        return None
    mark = mark if mark in ids else ids[0]
    return mark, w.log(entry, mark)


def try_for(lock, then, rule=None):
    def step(w, me):
        mine = w.processes[me].description
        following = then(w) if callable(then) else then
        if rule is not None and not w.has(rule):
            yield w.then(me, following)
        elif w.can_lock(mine, lock):
            yield w.then(me, following).lock(mine, lock)
        else:
            yield tell(w, me)

    return step


def lease(w, me):
    """Nobody else has the file open: then open(2) waits while it is changed."""
    p = w.processes[me]
    alone = not w.others(p.description, p.inode) and w.open[p.description].holders == {me}
    after = w.then(me, 'look')
    if alone and w.scene.has_leases and w.has('V2: a lease holds up who opens the file'):
        after.lock(p.description, 'lease')
    yield after


def look(w, me):
    p = w.processes[me]
    inode = w.inodes[p.inode]
    if not w.links(p.inode):
        if 'lease' in w.open[p.description].locks or not w.has('V3: the log of a deleted file is dropped only under a lease'):
            yield w.then(me, 'remove segments')
            return
    if inode.mark == 1 and w.has('V3: a file that is marked with 1 becomes empty'):
        yield w.then(me, 'cut an empty file')
    elif log := read_log(w, p.entry, p.inode):
        mark, says = log if w.has('V2: the log is read under the claim') or p.back is None else p.back
        first = 'move 0' if w.has('V3: the superblock comes last') else 'unmark'
        yield w.then(me, first, mark=mark, back=says)
    else:
        yield w.then(me, 'remove segments')


def cut_empty(w, me):
    yield w.then(me, 'remove segments').put(w.processes[me].inode, mark=None, blocks=(None, None))


def break_lease(w, me):
    """Somebody has waited for so long that the kernel ends the lease: it is given up before, and the file goes on without."""
    p = w.processes[me]
    if w.scene.has_leases == 'break' and 'lease' in w.open[p.description].locks:
        yield w.then(me, p.at).unlock(p.description, 'lease')


def is_asked(w, me):
    """Somebody waits for the lease: the mover lets go, and looks again later."""
    p = w.processes[me]
    waits = any(q.at == 'new' and not w.is_mover(name) for name, q in w.processes.items())
    return waits and 'lease' in w.open[p.description].locks


def move(which):
    def step(w, me):
        yield from break_lease(w, me)
        if is_asked(w, me):
            yield leave(w, me)
        p = w.processes[me]
        if w.scene.is_full:
            yield tell(w, me) if w.has('V3: who finds no room gives the file up') else w.then(me, 'no room')
            return
        last = 'look once more' if w.has('V3: the superblock comes last') else 'remove segments'
        after = w.then(me, last if which == 1 else 'move 1')
        yield after.block(p.inode, which, p.back[which])

    return step


def look_once_more(w, me):
    yield from break_lease(w, me)
    p = w.processes[me]
    same = w.inodes[p.inode].mark == p.mark
    if not same and w.has('V3: the mark is read again before the superblock is written'):
        yield w.then(me, 'remove segments')
    elif not w.has('V3: the log goes after the superblock'):
        after = w.then(me, 'unmark')
        after.tier[p.entry] = after.tier[p.entry]._replace(segments=())
        yield after
    else:
        yield w.then(me, 'unmark')


def unmark(w, me):
    p = w.processes[me]
    following = 'remove segments' if w.has('V3: the superblock comes last') else 'move 0'
    empty = w.inodes[p.inode].blocks == (None, None) and p.back == (None, None)
    yield w.then(me, following).put(p.inode, mark=None if empty else 0)


def done(w, me):
    yield leave(w, me)


STEPS = {'new': start, 'take mover.lock': take_lock, 'idle': idle, 'handed': handed, 'by the path': by_path,
         'byte': try_for('byte', 'claim', "V2: the mover's lock is taken"),
         'claim': try_for('claim', lambda w: 'SH' if w.has('V2: the claim comes before flock') else 'lease', 'V2: the claim is taken'),
         'SH': try_for('SH', lambda w: 'lease' if w.has('V2: the claim comes before flock') else 'byte', 'V2: flock is taken'),
         'lease': lease, 'look': look, 'cut an empty file': cut_empty, 'move 0': move(0), 'move 1': move(1),
         'look once more': look_once_more, 'unmark': unmark, 'done': done, 'note': write_note}
STEPS.update(removal('done'))
