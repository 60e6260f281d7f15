"""A reader with the plugin, stock HDF5 without it, and what users do with names."""
from steps import FIND, finish, refuse, spec_of
from world import EMPTY, Description, Inode, Violation, over

# Reader.


def open_reading(w, me):
    spec = spec_of(w, me)
    number = w.names.get(spec.path)
    if number is None:
        yield w.then(me, 'end')
    elif w.may_open(number):
        after = w.then(me, 'try SH' if spec.locks else 'look', inode=number, description=me, entry=None)
        after.open[me] = Description(number, 'read', frozenset({me}))
        if w.rivals(me, number):
            after.lock(me, 'disturbed')  # without locks; with them it is refused
        yield after


def lock_shared(w, me):
    """Whoever writes was there before, or waits. A mover has no lock that keeps readers away."""
    yield w.then(me, 'look').unlock(me, 'disturbed').lock(me, 'SH') if w.can_lock(me, 'SH') else refuse(w, me, 'SH')


def look(w, me):
    p = w.processes[me]
    mark = w.inodes[p.inode].mark
    if mark in (None, 1):
        yield judged(w, me, EMPTY)
    elif mark == 0:
        yield w.then(me, 'restore 0', mark=0, seen=(None, None))
    else:
        yield w.then(me, 'find the log', mark=mark)


def read(which):
    def step(w, me):
        p = w.processes[me]
        seen = p.seen
        if p.mark and not w.has('O2: a reader holds the segments'):
            seen = w.log(p.entry, p.mark) if p.entry in w.tier else (None, None)
        value = list(p.seen)
        value[which] = over(seen, w.inodes[p.inode].blocks)
        value[which] = value[which][which] if value[which] != EMPTY else None
        after = w.then(me, 'restore 1', seen=tuple(value))
        yield judged(w, me, tuple(value) if value[0] else EMPTY) if which == 1 else after

    return step


def judged(w, me, value):
    p = w.processes[me]
    inode = w.inodes[p.inode]
    if not ('disturbed' in w.open[me].locks or inode.flags):
        if value not in inode.allow:
            raise Violation('%s sees %s, and it may be %s' % (me, value, sorted(map(str, inode.allow))))
    return finish(w, me)


READER = {'new': open_reading, 'try SH': lock_shared, 'look': look, 'restore 0': read(0), 'restore 1': read(1)}
READER.update(FIND)

# Stock HDF5, writing: it truncates before it asks for the lock (H5F_open), and asks once.


def open_stock(w, me):
    spec = spec_of(w, me)
    number = w.names.get(spec.path)
    if number is None and spec.mode == 'r+':
        yield w.then(me, 'end')
        return
    if number is not None and not w.may_open(number):
        return
    after = w.then(me, 'lock' if spec.locks else 'look')
    if number is None:
        number = after.create(spec.path, Inode(None, (None, None), frozenset({EMPTY}), frozenset(spec.tag)))
    after.open[me] = Description(number, 'write', frozenset({me}))
    after.processes[me] = after.processes[me]._replace(inode=number, description=me)
    if spec.mode == 'w':
        wild = after.rivals(me, number)
        after.touch(me, number).truncate(number, spec.tag)
        if wild:
            after.flag(number, 'wild')
        elif spec.locks and not after.can_lock(me, 'EX'):
            after.flag(number, 'destroyed')
    yield after


def lock_stock(w, me):
    yield w.then(me, 'look').lock(me, 'EX') if w.can_lock(me, 'EX') else finish(w, me)


def look_stock(w, me):
    p = w.processes[me]
    if spec_of(w, me).mode == 'w' or w.inodes[p.inode].mark == 0:
        yield w.then(me, 'write 0')
    else:
        yield finish(w, me)


def write_stock(which):
    def step(w, me):
        p = w.processes[me]
        spec = spec_of(w, me)
        after = w.then(me, 'write %d' % (which + 1)).touch(me, p.inode).flag(p.inode, 'torn')
        after.put(p.inode, tags=after.inodes[p.inode].tags | {spec.tag})
        yield after.block(p.inode, which, spec.tag + '1')

    return step


def superblock_stock(w, me):
    p = w.processes[me]
    value = (spec_of(w, me).tag + '1',) * 2
    after = w.then(me, 'close').touch(me, p.inode)
    yield after.put(p.inode, mark=0, allow=frozenset({value}))


def close_stock(w, me):
    p = w.processes[me]
    after = w.then(me, 'end').put(p.inode, flags=w.inodes[p.inode].flags - {'torn', 'destroyed'})
    yield after.end(me)


STOCK = {'new': open_stock, 'lock': lock_stock, 'look': look_stock, 'write 0': write_stock(0), 'write 1': write_stock(1),
         'write 2': superblock_stock, 'close': close_stock}

# Users.


def next_action(w, me):
    spec = spec_of(w, me)
    done = w.processes[me].seen or 0
    verb, *names = spec.actions[done]
    after = w.then(me, 'new' if done + 1 < len(spec.actions) else 'end', seen=done + 1)
    ACTIONS[verb](after, *names)
    yield after


def rename(w, old, new):
    if old in w.names:
        w.names[new] = w.names.pop(old)


def remove(w, name):
    w.names.pop(name, None)


def link(w, old, new):
    if old in w.names:
        w.names[new] = w.names[old]


def copy_file(w, old, new):
    """What it was when it was read: a refusal, or a commit."""
    if old.endswith('-tier'):
        link(w, old, new)
    elif old in w.names:
        inode = w.inodes[w.names[old]]
        w.create(new, inode._replace(flags=inode.flags | {'copy'}))


def replace(w, name):
    """A whole file of another program takes the name."""
    w.create(name, Inode(0, ('u1', 'u1'), frozenset({('u1', 'u1')}), frozenset('u')))


ACTIONS = {'mv': rename, 'rm': remove, 'ln': link, 'cp': copy_file, 'new': replace}
USER = {'new': next_action}
