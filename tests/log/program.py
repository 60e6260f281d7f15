"""All that a program that writes has, and what it can do to storage: what the steps of writer.py, chain.py and commits.py are made of."""
import storage
from reader import state_of
from storage import BLOCKS, FILE, NEW_FILE, UNSYNCED, put

NOTHING = (None,) * BLOCKS  # of a segment: it has no bytes for any block
LATE_MARKS = ('mark: before the first logged byte', 'mark: before COMMIT', 'mark: before a commit is acknowledged')
# What ends a group of small operations that is given up as a whole.
ENDS = ('use', 'acknowledge', 'superblock is commit')


class State:
    """All that the program, its checkpoint and storage have."""

    __slots__ = (
        'nodes', 'cache', 'names', 'names_durable', 'names_pending',  # storage
        'todo', 'moves', 'lock', 'syncs', 'promised', 'broken', 'fail', 'closed',
        'current', 'moving', 'spare', 'number', 'ids',  # segments: (name, node, id); moving: with superblock and generation
        'marked', 'high_water', 'end', 'data', 'superblock', 'changed', 'committed', 'committed_end',
        'entries', 'pieces', 'moving_pieces', 'place', 'last', 'generation', 'unsynced', 'decided',
        'reuses', 'said', 'free', 'at',  # said: the segment's committed entries; free: its places that no commit needs; at: the COMMIT's
        'value', 'commits', 'acked', 'ever', 'copies')  # commits: without those that failed before the last that did not

    def copy(self):
        other = State()
        for name in State.__slots__:
            setattr(other, name, getattr(self, name))
        return other

    def key(self):
        return tuple(getattr(self, name) for name in State.__slots__)

    def first(self, *operations):
        self.todo = operations + self.todo


def start(checks, script):
    """script: (kind, operation, ...); kind: 'old', 'new', 'over' (created over an old file); '… unsynced': under power, by a
    program with journal=process, of which nothing is promised."""
    s = State()
    kind = script[0].split()[0]
    file = NEW_FILE if kind == 'new' else ((1, 2, 0, 0), 2, (1, 2, 0, 0))
    checks.found = file
    s.nodes, s.cache = ((file, ()),), (file,)
    s.names = s.names_durable = (('file', FILE),)
    s.names_pending = ()
    s.syncs = s.promised = checks.power and 'unsynced' not in script[0]
    if kind == 'new':
        s.names_durable, s.names_pending = ((), (('link', 'file', FILE),)) if checks.power else (s.names, ())
    s.ids = s.value = 0
    s.value = 10
    s.copies, s.closed, s.reuses = (), False, False
    s.commits = s.ever = (state_of(file),)
    s.acked = 0
    s.todo = tuple(script[1:])
    begin_program(s)
    if kind == 'over':
        s.todo = (('truncate',),) + s.todo
    return s


def begin_program(s, is_synced=False):
    """It has opened the file, which is not marked. Nobody knows what was synced before."""
    file = s.cache[FILE]
    s.moves, s.lock, s.fail, s.decided = (), None, None, None
    s.broken = s.marked = s.changed = False
    s.unsynced = not is_synced
    s.current = s.moving = s.spare = s.last = None
    s.number = s.generation = s.place = 0
    s.entries, s.pieces, s.moving_pieces = (), NOTHING, NOTHING
    s.said, s.free, s.at = (), (), None
    s.high_water = s.end = s.committed_end = file[1]
    s.data = file[0]
    s.superblock = s.committed = file[2] and (file[2][0], file[2][1], 0, file[2][3])
    if file[2] and file[2][1] < file[1]:  # HDF5 cuts it to the end that it knows
        s.first(('resize', file[2][1]))


def write(checks, s, node, *writes):
    """Writes to a file, all of them in one step."""
    durable, pending = s.nodes[node]
    image = s.cache[node]
    for one in writes:
        image = put(image, one)
    new = (durable, pending + tuple((w, UNSYNCED) for w in writes)) if checks.power else (image, ())
    s.nodes = s.nodes[:node] + (new,) + s.nodes[node + 1:]
    s.cache = s.cache[:node] + (image,) + s.cache[node + 1:]
    if node == FILE:
        s.unsynced = True


def take(s):
    """A place in the segment."""
    if s.free:
        place, s.free = s.free[0], s.free[1:]
        return place
    s.place += 1
    return s.place - 1


def sync(s, node):
    """True: it succeeded."""
    failed = s.fail is not None and s.fail[:2] == ('fail', 'sync file' if node == FILE else 'sync log')
    if failed:
        s.fail = None
    new = storage.fail_sync(s.nodes[node]) if failed else storage.sync(s.nodes[node])
    s.nodes = s.nodes[:node] + (new,) + s.nodes[node + 1:]
    if node == FILE:
        s.unsynced = False
    return not failed


def failing(s, what):
    """Whether a write fails now, and whether it happens all the same."""
    if s.fail is None or s.fail[1] != what:
        return False, True
    happened, s.fail = s.fail[2], None
    return True, happened


def change_names(checks, s, change):
    s.names = storage.put_folder(s.names, change)
    if checks.power:
        s.names_pending += (change,)
    else:
        s.names_durable = s.names


def give_up(s):
    """Drops the rest of the commit, or of the beginning of a segment with the operation that needed it."""
    while s.todo[0][0] not in ENDS:
        s.todo = s.todo[1:]
    is_begin = s.todo[0][0] == 'use'
    s.todo = s.todo[1:]
    if is_begin:
        s.lock, s.todo = None, s.todo[1:]


def log_of(s):
    """The segments by their names, as programs see them."""
    return {name: s.cache[node] for name, node in s.names if name in ('wal.0', 'wal.1')}
