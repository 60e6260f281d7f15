"""All interleavings of a program with its checkpoint, and in each state a kill and every power cut."""
from collections import deque
from itertools import product

import checkpoint
import program
import storage
import writer
from images import Checks, History, Violation, check_image, check_moves, check_recovery
from reader import Refused, read_log, stock
from storage import FILE


def check_reads(s, why):
    """What the program reads: the log over the file."""
    blocks, size, _ = s.cache[FILE]
    for address in range(s.end):
        value = blocks[address] if address < size else 0
        for pieces in (s.moving_pieces, s.pieces):
            if pieces[address] is not None:
                value = pieces[address]
        if value != s.data[address]:
            raise Violation('the program does not read what it wrote: %s' % why)


def check_closed(s, why):
    file = s.cache[FILE]
    if file[2] is None or file[2][2] or file[2][3] or file[1] != file[2][1]:
        raise Violation('a closed file is not plain: %s' % why)
    if stock(file) != s.commits[-1]:
        raise Violation('a closed file is not its last commit: %s' % why)


def check_state(checks, s, why):
    allowed = frozenset(s.commits[s.acked:])
    image = (s.cache[FILE], tuple(sorted(program.log_of(s).items())))
    history = History(s.commits, s.ever)
    is_opening = s.todo and s.todo[0][0] in ('recover', 'opened')
    check_image(checks, image, allowed, history, why + ['KILL'])
    if not is_opening:
        check_reads(s, why)
    if s.closed:
        check_closed(s, why)
    if checks.power:
        if s.promised:
            check_power(checks, s, image, allowed, history, why)
        return
    check_moves(checks, image, allowed, s.copies, history, why + ['KILL'])
    file = s.cache[FILE]
    if file not in s.copies and file[2] is not None:
        s.copies += (file,)


def check_power(checks, s, image, allowed, history, why):
    """The machine stops now, or while somebody recovers the file after a kill."""
    try:
        plan = read_log(image[0], dict(image[1]), checks.without)
    except Refused as refused:
        raise Violation('recovery is refused (%s): %s' % (refused, why))
    if plan:
        nodes = {name: s.nodes[node] for name, node in s.names if name.startswith('wal.') and len(name) == 5}
        key = (s.nodes[FILE], tuple(sorted(nodes.items())), allowed)
        if key not in checks.seen_recoveries:
            checks.seen_recoveries.add(key)
            check_recovery(checks, s.nodes[FILE], nodes, plan, allowed, history, why + ['KILL'])
    for names in storage.folder_survivors(s.names_durable, s.names_pending):
        names = dict(names)
        if 'file' not in names:
            if storage.EMPTY not in allowed:
                raise Violation('the file has lost its name: %s' % (why + ['POWER CUT']))
            continue
        logs = [(name, node) for name, node in sorted(names.items()) if name in ('wal.0', 'wal.1')]
        for found in product(storage.survivors(s.nodes[FILE]), *(storage.survivors(s.nodes[node]) for _, node in logs)):
            image = (found[0], tuple((name, segment) for (name, _), segment in zip(logs, found[1:])))
            check_image(checks, image, allowed, history, why + ['POWER CUT'])


def steps_from(checks, s, path):
    """(state, path) after each step that may come next."""
    if writer.may_step(s):
        if s.todo[0][0] == 'move':
            after = s.copy()
            after.todo = s.todo[1:]
            checkpoint.begin(checks, after)
            yield after, path + ['checkpoint begins']
        else:
            yield writer.step(checks, s), path + [s.todo[0]]
    if checkpoint.may_step(s):
        yield checkpoint.step(checks, s), path + [('checkpoint',) + s.moves[0]]


def explore(checks, script):
    first = program.start(checks, script)
    seen, todo = {first.key()}, deque([(first, [])])
    while todo:
        s, path = todo.popleft()
        checks.states += 1
        check_state(checks, s, path)
        for after, way in steps_from(checks, s, path):
            key = after.key()
            if key not in seen:
                seen.add(key)
                todo.append((after, way))


def run_scripts(without, power, scripts):
    """(checks, None or (script, violation))."""
    storage.KNOWN.clear()
    checks = Checks(without, power)
    for script in scripts:
        checks.forget()
        try:
            explore(checks, script)
        except Violation as violation:
            return checks, (script, str(violation))
    return checks, None
