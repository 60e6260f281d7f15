"""All interleavings of a scene's processes, a kill at each step, and after each state the end of everything."""
from collections import deque

import mover
import others
import program
from checks import Ends, check_files, check_marker
from scenes import SPECS
from world import Violation, World

STEPS = {'program': program.STEPS, 'mover': mover.STEPS, 'reader': others.READER, 'stock': others.STOCK, 'user': others.USER}
ENDED = ('end', 'dead')
RESTING = ENDED + ('new', 'idle')


def kill(w, who):
    p = w.processes[who]
    after = w.then(who, 'dead')
    after.kills += 1
    for d in w.open.values():
        if who in d.holders and d.mode == 'write' and w.scene.processes[who].kind == 'stock' and p.at != 'close':
            after.flag(d.inode, 'torn')
    return after.end(who)


def following(w):
    """(who, where it was, the world after its step); then kills."""
    moves = False
    for who, p in w.processes.items():
        if p.at in ENDED or p.at == 'new' and is_early(w, w.scene.processes[who].after):
            continue
        for after in STEPS[w.scene.processes[who].kind][p.at](w, who):
            moves = True
            yield who, p.at, after
    if not moves:
        waiting = [who for who, p in w.processes.items() if p.at not in RESTING]
        if waiting:
            raise Violation('nobody goes on: %s' % ', '.join('%s at %s' % (who, w.processes[who].at) for who in waiting))
    if w.kills < w.scene.kills:
        for who, p in w.processes.items():
            if p.at not in ENDED + ('new',) and w.scene.processes[who].kind != 'user':
                yield who, 'KILLED at ' + p.at, kill(w, who)


def is_early(w, after):
    return after == 'T' and not w.tier or after in w.processes and w.processes[after].at not in ENDED


def trace(came, key):
    way = []
    while key in came and came[key]:
        key, step = came[key]
        way.append(step)
    return way[::-1]


def explore(scene, without=frozenset()):
    """(states, images); Violation with the way to it."""
    first = World(scene, without)
    ends = Ends(SPECS)
    key = first.key()
    came, todo = {key: None}, deque([(first, key)])
    while todo:
        w, key = todo.popleft()
        try:
            check_files(w)
            check_marker(w)
            ends.check(w)
            for who, at, after in following(w):
                after_key = after.key()
                if after_key not in came:
                    came[after_key] = key, '%s: %s' % (who, at)
                    todo.append((after, after_key))
        except Violation as violation:
            raise Violation('%s\n        %s' % (violation, '\n        '.join(trace(came, key)))) from None
    return len(came), len(ends.seen)
