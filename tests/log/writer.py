"""The program that writes: one step is one system call. What it does is a queue of operations; some become several smaller ones.

    ('write', block)  ('resize', size)   what HDF5 writes, by the high water to the file or to the log
    ('flush', open)   ('data',)          HDF5's superblock, with its open flag or without, and a commit; a commit alone
    ('create',)                          a new file's first superblock, before its first commit
    ('move',)  ('wait',)                 a checkpoint begins; the program waits for its end
    ('close',)                           the last commit, all is moved, the file gets its size
    ('next', syncs)                      the program is killed wherever it and its checkpoint are; the next one opens the file,
                                         and recovers it if it is marked. syncs: with journal=power. With 'truncate' as a third
                                         word it is created over what is there
    ('reuse',)                           from now on places in a segment that no commit needs are used again
    ('fail', what, happened)             the next write or sync of that kind fails; a write may have happened all the same

`lock` is what makes a checkpoint's last decision and the beginning of a segment one step each: None, or who has it.
"""
import chain
import commits
from program import ENDS, begin_program, change_names, give_up, log_of, sync, take, write
from reader import read_log, recovery_steps, state_of
from storage import EMPTY, FILE, NEVER_COMMITTED, ZEROS


def may_step(s):
    """Whether the program has something to do, and need not wait for its checkpoint."""
    if not s.todo:
        return False
    kind = s.todo[0][0]
    return not (kind == 'wait' and s.moves or kind == 'begin' and s.lock == 'checkpoint')


def step(checks, before):
    """The state after the program's next operation."""
    s = before.copy()
    operation, s.todo = before.todo[0], before.todo[1:]
    STEPS[operation[0]](checks, s, operation)
    return s


# ---- what HDF5 does ------------------------------------------------------------------------------------------------


def needs_log(s, operation):
    """True: a segment has to come first, and was put before the operation."""
    if s.current is None:
        s.first(('begin',), operation)
    return s.todo[:1] == (('begin',),)


def do_write(checks, s, operation):
    address = operation[1]
    straight = address >= s.high_water or checks.lacks('high water')
    if not straight and needs_log(s, operation):
        return
    s.value += 1
    value = s.value
    if straight:
        write(checks, s, FILE, ('grow', address + 1), ('block', address, value))
    else:
        mine = [i for i, entry in enumerate(s.entries) if entry[0] == address]
        if mine and s.entries[mine[-1]][1] != ZEROS:  # in the place of what no commit has yet
            at = mine[-1]
            offset = s.entries[at][1]
            s.entries = s.entries[:at] + ((address, offset, value),) + s.entries[at + 1:]
        else:
            offset = take(s)
            s.entries += ((address, offset, value),)
        write(checks, s, s.current[1], ('item', offset, ('E', value)))
        s.pieces = s.pieces[:address] + (value,) + s.pieces[address + 1:]
    s.data = s.data[:address] + (value,) + s.data[address + 1:]
    s.end = max(s.end, address + 1)


def do_resize(checks, s, operation):
    size, size_before = operation[1], s.end
    file_size = s.cache[FILE][1]
    if size < size_before and size < s.high_water and not checks.lacks('truncation: an entry of zeros') and needs_log(s, operation):
        return
    stored = max(size, s.high_water)
    if size < size_before and checks.lacks('truncation: the file keeps what is under the high water'):
        stored = size
    if size < size_before and file_size > stored:
        write(checks, s, FILE, ('cut', stored))
    if size > file_size:
        write(checks, s, FILE, ('grow', stored))
    if size < size_before and size < s.high_water and not checks.lacks('truncation: an entry of zeros'):
        s.entries += tuple((a, ZEROS, 0) for a in range(size, s.high_water))
        s.pieces = s.pieces[:size] + (0,) * (s.high_water - size) + s.pieces[s.high_water:]
    s.data = tuple(b if i < size else 0 for i, b in enumerate(s.data))
    s.end = size


def do_flush(checks, s, operation):
    s.value += 1
    is_new = s.superblock is None
    s.superblock, s.changed = (s.value, s.end, 0, operation[1]), True
    s.first(('commit',))
    if is_new and not s.broken:  # a created file's first one, before all else: it is on storage at once
        value, end, _, is_open = s.superblock
        mark = 0 if checks.lacks('mark: of a file that is created') else NEVER_COMMITTED
        write(checks, s, FILE, ('superblock', (value, end, mark, is_open)))
        s.marked = True


def do_data(checks, s, operation):
    """HDF5 does not write a superblock that says what it said before."""
    if s.superblock and s.superblock[1] == s.end:
        s.first(('commit',))
    else:
        s.first(('flush', 1))


def do_create(checks, s, operation):
    """HDF5 writes a new file's superblock long before the first commit."""
    do_flush(checks, s, ('flush', 1))
    s.todo = s.todo[1:]


def do_truncate(checks, s, operation):
    """The file is opened to be written anew."""
    write(checks, s, FILE, ('empty',))
    s.commits += (EMPTY,)
    s.ever += (EMPTY,)
    if not checks.power:
        s.acked = len(s.commits) - 1
    begin_program(s)
    if s.syncs and not checks.lacks('power: a file that was cut when it was opened is synced'):
        s.first(('sync', FILE))


# ---- syncs, failures, the end ------------------------------------------------------------------------------------------


def do_sync(checks, s, operation):
    if sync(s, operation[1]):
        return
    if any(op[0] == 'acknowledge' for op in s.todo) and checks.lacks('power: no commit after a failed sync'):
        s.first(operation)  # calls it again, and believes it
        return
    s.broken = True
    if any(op[0] in ENDS for op in s.todo):
        give_up(s)


def do_sync_folder(checks, s, operation):
    s.names_durable, s.names_pending = s.names, ()


def do_fail(checks, s, operation):
    s.fail = operation


def do_reuse(checks, s, operation):
    s.reuses = True


def do_wait(checks, s, operation):
    pass


def do_close(checks, s, operation):
    s.first(('flush', 0), ('move',), ('wait',), ('move',), ('wait',), ('finish',))


def do_finish(checks, s, operation):
    if s.broken or s.current or s.moving or s.entries or s.changed:
        return
    if s.cache[FILE][1] != s.end:
        write(checks, s, FILE, ('cut', s.end))
    s.closed = True


# ---- the next program --------------------------------------------------------------------------------------------------


def do_next(checks, s, operation):
    """This program is killed; another one opens the file."""
    s.moves, s.lock, s.fail, s.syncs = (), None, None, operation[1] and checks.power
    if operation[2:] == ('truncate',):
        s.first(('truncate',))
        return
    segments = log_of(s)
    plan = read_log(s.cache[FILE], segments, checks.without)
    if plan is None:
        stores = s.syncs and segments and not checks.lacks('power: who opens a file beside a log stores its superblock first')
        s.first(*((('superblock again',), ('sync', FILE)) if stores else ()), ('opened', False))
        return
    s.first(*(('recover',) + one for one in recovery_steps(plan, segments, checks.without)), ('opened', True))


def do_recover(checks, s, operation):
    """A step of a recovery."""
    step_of, nodes = operation[1:], dict(s.names)
    if step_of[0] == 'file':
        write(checks, s, FILE, step_of[1])
    elif step_of[0] == 'segment':
        write(checks, s, nodes[step_of[1]], step_of[2])
    elif step_of[0] == 'sync file':
        sync(s, FILE)
    elif step_of[0] == 'sync log':
        for name in log_of(s):
            sync(s, nodes[name])
        if not checks.lacks('power: recovery syncs the folder'):
            do_sync_folder(checks, s, operation)
    else:
        change_names(checks, s, ('unlink', step_of[1]))


def do_opened(checks, s, operation):
    """Nothing that was begun later than what it sees can come back; what it sees may not be on storage yet."""
    seen = state_of(s.cache[FILE])
    if seen == 'no HDF5 file':
        seen = EMPTY
    at = max(i for i, commit in enumerate(s.commits) if commit == seen)
    s.commits = s.commits[:at + 1]
    if operation[1] or not checks.power:
        s.acked, s.promised = at, checks.power
    begin_program(s, checks.lacks('power: the first commit syncs what an earlier program left'))


def steps_of(module):
    """Its functions do_…, by the names of the operations."""
    return {name[3:].replace('_', ' '): function for name, function in module.items() if name.startswith('do_')}


STEPS = {**steps_of(vars(chain)), **steps_of(vars(commits)), **steps_of(globals())}
