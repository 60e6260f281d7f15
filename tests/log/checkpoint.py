"""The checkpoint: a segment's bytes move to the file, beside a program that goes on. One step is one system call."""
from program import NOTHING, change_names, failing, sync, write
from storage import FILE


def begin(checks, s):
    """What ('move',) of a program does: a segment begins to move, or one goes on that failed."""
    if s.broken or s.moves:
        return
    if s.moving is None:
        if s.current is None or (s.entries and not checks.lacks('a segment with uncommitted bytes is not moved')):
            return
        s.moving = s.current + (s.committed, s.generation if s.last else 0)
        s.moving_pieces, s.current, s.pieces, s.entries, s.last = s.pieces, None, NOTHING, (), None
        s.said, s.free = (), ()
    note = ()
    if not checks.lacks('note: which commit is whole'):
        note = (('note whole',), ('sync log',)) if s.syncs else (('note whole',),)
    blocks = tuple(('block', a, v) for a, v in enumerate(s.moving_pieces) if v is not None)
    before, after = (('sync file',),) * s.syncs, (('sync file',),) * s.syncs
    if checks.lacks('power: a checkpoint syncs the file before the superblock'):
        before = ()
    if checks.lacks('power: a checkpoint syncs the file before the segment is free'):
        after = ()
    decide = (('decide',),) if checks.lacks('checkpoint: the mark is decided when it is written') else ()
    superblock, free = (('superblock',),), (('free',),)
    if checks.lacks('checkpoint: the superblock last'):
        s.moves = note + decide + superblock + before + blocks + after + free
    elif checks.lacks('checkpoint: free after the superblock'):
        s.moves = note + decide + blocks + before + free + superblock + after
    else:
        s.moves = note + decide + blocks + before + superblock + after + free


def may_step(s):
    return bool(s.moves) and not (s.lock == 'program' and s.moves[0][0] in ('note whole', 'superblock'))


def step(checks, earlier):
    """The state after the checkpoint's next step."""
    s = earlier.copy()
    operation, s.moves = earlier.moves[0], earlier.moves[1:]
    kind = operation[0]
    if kind == 'block':
        move_block(checks, s, *operation[1:])
    elif kind == 'note whole':
        note = s.cache[s.moving[1]][3] or (0, 0, 0)
        write(checks, s, s.moving[1], ('note', (s.moving[2], note[1], s.moving[5])))
        s.lock = 'checkpoint' if s.syncs else None
    elif kind in ('sync log', 'sync file'):
        move_sync(checks, s, operation)
    elif kind == 'decide':
        s.decided = (s.current[2] if s.current else 0,)
    elif kind == 'superblock':
        move_superblock(checks, s)
    elif kind == 'free':
        move_free(checks, s)
    else:
        change_names(checks, s, operation)
        if not any(op[0] == 'unlink' for op in s.moves):
            s.lock = None
    return s


def move_block(checks, s, address, value):
    """Zeros are written, too, as far as the file goes: if it grows again under the high water, they are seen."""
    if checks.lacks('checkpoint: zeros of a truncation are moved, too') and address >= s.committed_end:
        return
    write(checks, s, FILE, ('grow', address + 1), ('block', address, value))


def move_sync(checks, s, operation):
    is_file = operation[0] == 'sync file'
    rule = 'power: a checkpoint that is under way ends when another sync fails'
    if not (s.broken and not checks.lacks(rule)) and sync(s, FILE if is_file else s.moving[1]):
        if not is_file:
            s.lock = None
        return
    if checks.lacks('power: no checkpoint after a failed sync') and is_file:
        s.moves = (operation,) + s.moves
        return
    s.broken, s.moves, s.lock = True, (), None


def move_superblock(checks, s):
    """The file's mark goes, or becomes that of the segment that goes on. Until the segment is free nobody begins another one."""
    s.lock = 'checkpoint'
    mark = s.current[2] if s.current else 0
    if s.decided:
        mark, s.decided = s.decided[0], None
    if checks.lacks('checkpoint: marked while a later segment goes on'):
        mark = 0
    value, end, _, is_open = s.moving[4]
    if not mark and not checks.lacks('checkpoint: HDF5 flags are cleared'):
        is_open = 0
    failed, happened = failing(s, 'unmark')
    if happened:
        write(checks, s, FILE, ('superblock', (value, end, mark, is_open)))
    if failed:
        s.moves, s.lock = (), None
        if not mark and not checks.lacks('checkpoint: who begins a segment after a mark that failed marks again'):
            s.marked = False
    elif not checks.lacks('checkpoint: free after the superblock'):
        s.marked = bool(mark)
    else:
        s.lock = None


def move_free(checks, s):
    """The segment may be used again, or the chain has ended."""
    freed = s.moving
    s.moving, s.moving_pieces = None, NOTHING
    if s.current:
        s.spare = (freed[0], freed[1], freed[3])
        s.lock = None
        return
    s.moves = (('unlink', freed[0]),) + ((('unlink', s.spare[0]),) if s.spare else ()) + s.moves
    s.spare = None
