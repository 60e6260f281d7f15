"""All interleavings of a scene's processes, a kill at each step, and after each state the end of everything."""
from collections import deque

import mover
import others
import program
from checks import Ends
from scenes import SPECS
from world import Violation, World

STEPS = {'program': program.STEPS, 'mover': mover.STEPS, 'reader': others.READER, 'stock': others.STOCK, 'user': others.USER}
INNER = ('have', 'have lock', 'removed', 'done')  # no system call
ENDED = ('end', 'dead')
RESTING = ENDED + ('new', 'idle', 'no room')


def kill(w, who):
    p = w.processes[who]
    after = w.then(who, 'dead')
    after.kills += 1
    for d in w.open.values():
        if who in d.holders and d.mode == 'write' and w.scene.processes[who].kind == 'stock' and p.at != 'close':
            after.flag(d.inode, 'torn')
    return after.end(who)


def nothing(_w, _me):
    return ()


def following(w):
    """(who, where it was, the world after its step); then kills."""
    moves = False
    kinds = w.scene.processes
    for who, p in w.processes.items():
        if p.at in ENDED or p.at == 'new' and is_early(w, w.scene.processes[who].after):
            continue
        for after in STEPS[kinds[who].kind].get(p.at, nothing)(w, who):
            moves = True
            while after.processes[who].at in INNER:
                after = next(iter(STEPS[kinds[who].kind][after.processes[who].at](after, who)))
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
        key, who, at = came[key]
        way.append('%s: %s' % (who, at))
    return way[::-1]


def explore(scene, without=frozenset(), taken=None):
    """(states, images); Violation with the way to it. taken: the steps that were taken are added."""
    first = World(scene, without)
    ends = Ends(SPECS, any(a[0] == 'cp' for spec in scene.processes.values() for a in spec.actions))
    key = first.key()
    came, todo = {key: None}, deque([(first, key)])
    while todo:
        w, key = todo.popleft()
        try:
            ends.check(w, key[0])
            for who, at, after in following(w):
                after_key = after.key()
                if taken is not None:
                    taken.add((w.scene.processes[who].kind, at))
                known = len(came)
                came.setdefault(after_key, (key, who, at))
                if len(came) > known:
                    todo.append((after, after_key))
        except Violation as violation:
            raise Violation('%s\n        %s' % (violation, '\n        '.join(trace(came, key)))) from None
    return len(came), len(ends.seen)
