"""What programs, movers and users share: inodes and names, the tier's folder, open file descriptions with their locks, who is where.

A file is two blocks and a mark (None: no superblock, so size 0; 0: plain; 1: created; else a segment's id). A block's value is a
writer's tag and the number of its commit, 'a1'. A log is what its segments' commits say of the two blocks. One system call is one step.
"""
from typing import NamedTuple

EMPTY = 'empty'  # what a file of 0 bytes is, and one that is marked with 1
NO_LOG = 'the log is missing'
FILE_LOCK, GATE = ('EX', 'SH'), 'gate'
# What nobody promises anything of: two programs write it, natively; stock HDF5 writes it, or was killed there; stock HDF5 was refused its
# lock after it had truncated it. (A copy is a commit or refused.)
UNSURE = {'wild', 'torn', 'destroyed'}


class Violation(Exception):
    pass


class Inode(NamedTuple):
    mark: object
    blocks: tuple
    allow: frozenset  # what it may be: the last acknowledged commit, or one that was begun later
    tags: frozenset  # whose bytes may be in it
    flags: frozenset = frozenset()  # 'wild', 'torn', 'copy', 'destroyed': world.UNSURE


class Entry(NamedTuple):
    path: object  # as E.file says; None: there is no E.file
    inode: object
    segments: tuple = ()  # (id, block 0 or None, block 1 or None), the oldest first
    note: bool = False  # E.why: what keeps a mover from bringing the file home


class Description(NamedTuple):
    """An open file description: its locks end with its last holder."""
    inode: object
    mode: str  # 'write', 'read', 'move', 'lock'
    holders: frozenset
    locks: frozenset = frozenset()


class Process(NamedTuple):
    at: str
    inode: object = None
    entry: object = None
    mark: object = None
    seen: object = None  # what it has read, or the entries that a mover leaves alone
    description: object = None
    back: object = None  # where it goes on


class World:
    def __init__(self, scene, without):
        self.scene, self.without = scene, without
        base = Inode(0, ('o0', 'o0'), frozenset({('o0', 'o0')}), frozenset('o'))
        self.names = {name: number for number, name in enumerate(scene.files, 1)}
        self.inodes = {number: base for number in self.names.values()}
        self.tier, self.open = {}, {}
        self.processes = {name: Process('new') for name in scene.processes}
        self.queue, self.kills = (), 0

    def key(self):
        return (self.image(), tuple(sorted(self.open.items())), tuple(self.processes.values()), self.queue, self.kills)

    def image(self):
        """What is left when all have ended."""
        return tuple(self.inodes.items()), tuple(sorted(self.names.items())), tuple(sorted(self.tier.items()))

    def copy(self):
        other = World.__new__(World)
        other.scene, other.without, other.queue, other.kills = self.scene, self.without, self.queue, self.kills
        other.inodes, other.names, other.tier = self.inodes.copy(), self.names.copy(), self.tier.copy()
        other.open, other.processes = self.open.copy(), self.processes.copy()
        return other

    def then(self, who, at, **changes):
        """A copy in which `who` is at `at`."""
        other = self.copy()
        old = other.processes[who]
        other.processes[who] = old._replace(at=at, **changes) if changes else Process(at, *old[1:])
        return other

    def has(self, rule):
        return rule not in self.without

    # Files and names.

    def put(self, number, **changes):
        self.inodes[number] = self.inodes[number]._replace(**changes)
        return self

    def block(self, number, which, value):
        """A value of None changes nothing: the log has no such bytes."""
        if value is not None:
            blocks = list(self.inodes[number].blocks)
            blocks[which] = value
            self.put(number, blocks=tuple(blocks))
        return self

    def flag(self, number, *flags):
        return self.put(number, flags=self.inodes[number].flags | set(flags))

    def links(self, number):
        return sum(1 for name, node in self.names.items() if node == number and not name.endswith('-tier'))

    def create(self, name, inode):
        """File systems give the number of a deleted file away at once."""
        used = set(self.names.values()) | {d.inode for d in self.open.values()}
        number = next(n for n in range(1, len(self.inodes) + 2) if n not in used)
        self.inodes[number] = inode
        self.names[name] = number
        return number

    def truncate(self, number, tag):
        return self.put(number, mark=None, blocks=(None, None), allow=frozenset({EMPTY}), tags=frozenset(tag), flags=frozenset())

    # Locks.

    def others(self, mine, number):
        return [(name, d) for name, d in self.open.items() if name != mine and d.inode == number]

    def can_lock(self, mine, lock):
        """Whether a lock of the description can be had."""
        for _, other in self.others(mine, self.open[mine].inode):
            if lock == 'EX' and (other.locks & {'EX', 'SH'}) or lock == 'SH' and 'EX' in other.locks:
                return False
            if lock == 'claim' and 'claim' in other.locks or lock == 'byte' and (other.locks & {'byte', GATE}):
                return False
            if lock == GATE and 'byte' in other.locks:
                return False
        return True

    def lock(self, mine, *locks):
        old = self.open[mine]
        self.open[mine] = Description(*old[:3], old.locks.union(locks))
        return self

    def unlock(self, mine, *locks):
        old = self.open[mine]
        self.open[mine] = Description(*old[:3], old.locks.difference(locks))
        return self

    def close(self, who, mine):
        old = self.open.get(mine)
        if old is not None and who in old.holders:
            left = old.holders - {who}
            if left:
                self.open[mine] = old._replace(holders=left)
            else:
                del self.open[mine]
        return self

    def end(self, who):
        """All that a process holds ends with it; what was sent to a mover and not taken, too."""
        for mine in list(self.open):
            self.close(who, mine)
        if self.scene.processes[who].kind == 'mover':
            self.queue = tuple(q for q in self.queue if q[0] != who)
        return self

    def is_mover(self, who):
        return self.scene.processes[who].kind == 'mover'

    def rivals(self, mine, number, modes=('write',)):
        """Other programs' descriptions of the file: not a mover's."""
        return [name for name, d in self.others(mine, number) if d.mode in modes and any(not self.is_mover(h) for h in d.holders)]

    def touch(self, mine, number):
        """A program changes the file, natively: beside another writer nothing is promised, to a reader neither."""
        if self.rivals(mine, number):
            self.flag(number, 'wild')
        for name in self.rivals(mine, number, ('read',)):
            self.lock(name, 'disturbed')
        return self

    def may_open(self, number, mine=None):
        """A lease of the mover holds up open(2)."""
        return not any('lease' in d.locks for name, d in self.others(mine, number))

    # The log.

    def ids(self, entry):
        return [s[0] for s in self.tier[entry].segments] if entry in self.tier else []

    def log(self, entry, mark):
        """What the log says of the two blocks, from the segment with the id on."""
        found, value = not self.has('O1: the log must have the id of the mark'), [None, None]
        for number, *blocks in self.tier[entry].segments:
            found = found or number == mark
            if found:
                value = [new or old for new, old in zip(blocks, value)]
        return tuple(value)

    def find_log(self, number, name):
        """The entry in T that has the log of the file; no marker is asked on this host."""
        mark = self.inodes[number].mark
        if not self.has('O1: the log is looked for in T, not by the marker'):
            entry = self.names.get(name + '-tier')
            return entry if mark in self.ids(entry) else None
        for entry in sorted(self.tier):
            of_file = self.tier[entry].inode == number or not self.has('O1: an entry of another inode is not used')
            fits = mark in self.ids(entry) or self.ids(entry) and not self.has('O1: the log must have the id of the mark')
            if of_file and fits:
                return entry
        return None

    def view(self, name):
        """What an opener with the plugin sees, nobody else being there."""
        number = self.names[name]
        inode = self.inodes[number]
        if inode.mark == 1 and not self.has('O1: a file that is marked with 1 is empty'):
            return NO_LOG
        if inode.mark in (None, 1):
            return EMPTY
        if inode.mark == 0:
            return inode.blocks
        entry = self.find_log(number, name)
        return over(self.log(entry, inode.mark), inode.blocks) if entry else NO_LOG


def over(log, blocks):
    value = tuple(new or old for new, old in zip(log, blocks))
    return EMPTY if value == (None, None) else value
