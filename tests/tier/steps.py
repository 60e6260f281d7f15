"""Steps that several kinds of process have: taking HDF5's lock and the claim, finding a log, removing an entry.

A step is a function of the world and the process's name; it yields the worlds after it, none while the process waits.
"""
from world import FILE_LOCK, GATE, Violation


def spec_of(w, me):
    return w.scene.processes[me]


def finish(w, me, at='end'):
    after = w.then(me, at)
    after.end(me)
    return after


def refuse(w, me, lock):
    """Somebody else has the lock: natively only another program could."""
    p = w.processes[me]
    kinds = FILE_LOCK if lock in FILE_LOCK else (lock,)
    holders = [h for _, d in w.others(p.description, p.inode) if d.locks & set(kinds) for h in d.holders]
    if holders and all(w.is_mover(h) for h in holders):
        raise Violation('%s is refused, and only a mover is there' % me)
    return finish(w, me)


def take(lock, then):
    """The lock, else the gate: who has it keeps movers away, and so knows that it is no mover when the lock is refused again."""

    def first(w, me):
        p = w.processes[me]
        if w.can_lock(p.description, lock):
            yield w.then(me, then).lock(p.description, lock)
        elif not w.has('O3: who is refused waits for the mover, and tries again'):
            yield refuse(w, me, lock)
        elif not w.has("O3: waits for the mover's lock, not for another's"):
            if w.rivals(p.description, p.inode, ('write', 'read')):
                raise Violation('%s waits for a program that may never end' % me)
        else:
            yield w.then(me, 'gate ' + lock)

    def gate(w, me):
        mine = w.processes[me].description
        if w.can_lock(mine, GATE):
            after = w.then(me, 'again ' + lock)
            yield after.lock(mine, GATE) if w.has('O3: holds the gate while it tries again') else after

    def again(w, me):
        mine = w.processes[me].description
        if w.can_lock(mine, lock):
            yield w.then(me, then).unlock(mine, GATE).lock(mine, lock)
        else:
            yield refuse(w, me, lock)

    return {'try ' + lock: first, 'gate ' + lock: gate, 'again ' + lock: again}


def find(w, me):
    p = w.processes[me]
    entry = w.find_log(p.inode, spec_of(w, me).path)
    yield w.then(me, 'open the log', entry=entry) if entry else w.then(me, 'look at the mark again')


def look_again(w, me):
    """The log is gone: the file may have been drained just now."""
    p = w.processes[me]
    inode = w.inodes[p.inode]
    if w.has('O1: the mark is read again when there is no log') and inode.mark != p.mark:
        yield w.then(me, 'look')
        return
    if not inode.flags and 'disturbed' not in w.open[p.description].locks:
        raise Violation('%s: the file is marked, and its log is missing' % me)
    yield finish(w, me)


def open_log(w, me):
    """What the log says is kept: the descriptors of its segments are."""
    p = w.processes[me]
    is_there = p.entry in w.tier and (p.mark in w.ids(p.entry) or not w.has('O1: the log must have the id of the mark'))
    yield w.then(me, 'restore 0', seen=w.log(p.entry, p.mark)) if is_there else w.then(me, 'look at the mark again')


FIND = {'find the log': find, 'open the log': open_log, 'look at the mark again': look_again}


def removal(then):
    """Segments, marker, E.file, in this order; the marker's name is looked at, then removed."""

    def order(w):
        if not w.has('V3: E.file is removed last'):
            return 'E.file', 'segments', 'look at M', 'M', 'note', then
        return 'segments', 'look at M', 'M', 'E.file', 'note', then

    def after(w, name):
        names = order(w)
        return 'remove ' + names[names.index(name) + 1] if names[names.index(name) + 1] != then else then

    def markers(w, me):
        """Where E.file says, and where the file is now: users rename one with the other, or not."""
        p = w.processes[me]
        path = w.tier[p.entry].path if p.entry in w.tier else None
        if not w.has('V3: M is removed where E.file says'):
            path = None
        if not w.has('V3: M is removed where the file is'):
            return ['%s-tier' % path]
        return ['%s-tier' % path] + [name + '-tier' for name, number in w.names.items() if number == p.inode and not name.endswith('-tier')]

    def segments(w, me):
        e = w.processes[me].entry
        next_world = w.then(me, after(w, 'segments'))
        if e in next_world.tier:
            next_world.tier[e] = next_world.tier[e]._replace(segments=())
            drop_nothing(next_world, e)
        yield next_world

    def look(w, me):
        e = w.processes[me].entry
        for marker in markers(w, me):
            if marker in w.names and (w.names[marker] == e or not w.has('V3: M is removed only if it names E')):
                yield w.then(me, 'remove M', back=marker)
                return
        yield w.then(me, after(w, 'M'))

    def remove_marker(w, me):
        next_world = w.then(me, 'remove look at M')
        next_world.names.pop(w.processes[me].back, None)
        yield next_world

    def remove_file(w, me):
        e = w.processes[me].entry
        next_world = w.then(me, after(w, 'E.file'))
        if e in next_world.tier:
            next_world.tier[e] = next_world.tier[e]._replace(path=None)
            drop_nothing(next_world, e)
        yield next_world

    def note(w, me):
        yield remove_note(w.then(me, after(w, 'note')), w.processes[me].entry, w.has('N: the note goes with its entry'))

    return {'remove segments': segments, 'remove look at M': look, 'remove M': remove_marker, 'remove E.file': remove_file, 'remove note': note}


def remove_note(w, e, does=True):
    if does and e in w.tier:
        w.tier[e] = w.tier[e]._replace(note=False)
        drop_nothing(w, e)
    return w


def drop_nothing(w, e):
    if w.tier[e].path is None and not w.tier[e].segments and not w.tier[e].note:
        del w.tier[e]
