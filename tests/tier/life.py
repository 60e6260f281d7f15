"""How movers begin and end, and how programs find them: mover.lock, the socket, the last look through T.

A file is 'open' (a program has it), 'sent' to a mover, 'left' in T (nobody has it), or 'done'. If nobody is killed all files are done when
all have ended, but for those of a scene that has no more movers to start; nobody waits for ever; the lock has one holder.
"""
from collections import deque
from typing import NamedTuple

from world import Violation

ASKS = 'life: who finds mover.lock taken asks the socket, and tries again if nobody answers'
LAST_LOOK = 'life: a mover looks through T between the end of its socket and that of its lock'
RESET_FIRST = 'life: what was sent and not taken is given up before the last look'
FIRST_LOOK = 'life: a mover looks through T when it begins'
START_AFTER = 'life: who leaves a file in T, and finds nobody, starts a mover after that'
OWN_NAME = 'life: the name of the socket is removed before the lock is given up'
RULES = [ASKS, LAST_LOOK, START_AFTER, RESET_FIRST]
# The last look finds all; without the first one it may come late. Without the other a program finds nobody, and starts a mover that waits.
NEEDLESS = [FIRST_LOOK, OWN_NAME]
ENDED = ('end', 'dead')


class State(NamedTuple):
    programs: tuple
    movers: tuple
    files: tuple  # of each program: 'open', ('sent', mover), 'left', 'done'
    socket: object = None  # which mover's the name leads to; it may be dead
    kills: int = 0
    exhausted: bool = False

    def program(self, i, at, **changes):
        return self._replace(programs=put(self.programs, i, at), **changes)

    def mover(self, i, at, **changes):
        return self._replace(movers=put(self.movers, i, at), **changes)

    def listens(self, m):
        return m is not None and self.movers[m] in ('listen', 'look', 'idle')


def put(values, i, value):
    return values[:i] + (value,) + values[i + 1:]


def started(s, i, at):
    """Program i has started a mover, and is at `at`."""
    new = next((m for m, where in enumerate(s.movers) if where == 'new'), None)
    if new is None:
        return s.program(i, at, exhausted=True)
    return s.program(i, at).mover(new, 'lock')


def program_steps(s, i, without):
    at = s.programs[i]
    if at in ('connect', 'connect again'):
        if s.listens(s.socket):
            yield s.program(i, 'wait', files=put(s.files, i, ('sent', s.socket)))
        elif at == 'connect':
            yield started(s, i, 'connect again')
        if at == 'connect again':
            yield s.program(i, 'leave')  # it took too long
    elif at == 'wait':
        yield s.program(i, 'leave' if s.files[i] == 'open' else 'end')
    elif at == 'leave':
        yield s.program(i, 'end' if START_AFTER in without else 'left', files=put(s.files, i, 'left'))
    elif at == 'left':
        yield s.program(i, 'end') if s.listens(s.socket) else started(s, i, 'end')


def look(s, m):
    return s._replace(files=tuple('done' if f == 'left' else f for f in s.files))


def reset(s, m):
    """Connections end: a program that waits has its file still; of one that has ended it is left."""
    for i, f in enumerate(s.files):
        if f == ('sent', m):
            s = s._replace(files=put(s.files, i, 'open' if s.programs[i] == 'wait' else 'left'))
    return s


def is_locked(s):
    return any(at in ('listen', 'look', 'idle', 'reset', 'last look', 'unlock') for at in s.movers)


def mover_steps(s, m, without):
    at = s.movers[m]
    if at == 'lock':
        if not is_locked(s):
            yield s.mover(m, 'listen')
        elif ASKS in without or s.listens(s.socket):
            yield s.mover(m, 'end')
    elif at == 'listen':
        yield s.mover(m, 'look' if FIRST_LOOK not in without else 'idle', socket=m)
    elif at == 'look':
        yield look(s, m).mover(m, 'idle')
    elif at == 'idle':
        sent = [i for i, f in enumerate(s.files) if f == ('sent', m)]
        for i in sent:
            yield s._replace(files=put(s.files, i, 'done'))
        if not sent or RESET_FIRST in without:
            gone = s if OWN_NAME in without else s._replace(socket=None)
            yield gone.mover(m, 'reset')
    elif at == 'reset':
        after = s if RESET_FIRST in without else reset(s, m)
        yield after.mover(m, 'last look' if LAST_LOOK not in without else 'unlock')
    elif at == 'last look':
        yield look(s, m).mover(m, 'unlock')
    elif at == 'unlock':
        after = reset(s, m).mover(m, 'end')
        yield after.mover(m, 'unlink') if OWN_NAME in without else after
    elif at == 'unlink':
        yield s.mover(m, 'end', socket=None)


def steps(s, without, kills):
    for i in range(len(s.programs)):
        yield from program_steps(s, i, without)
    for m in range(len(s.movers)):
        yield from mover_steps(s, m, without)
    if s.kills < kills:
        for i, at in enumerate(s.programs):
            if at not in ENDED:
                left = put(s.files, i, 'left') if s.files[i] == 'open' else s.files
                yield s.program(i, 'dead', files=left, kills=s.kills + 1)
        for m, at in enumerate(s.movers):
            if at not in ENDED + ('new',):
                yield reset(s, m).mover(m, 'dead', kills=s.kills + 1)


def check_end(s):
    going = [at for at in s.programs + s.movers if at not in ENDED + ('new',)]
    if going:
        raise Violation('nobody goes on, and there are %s' % going)
    if not s.kills and not s.exhausted and set(s.files) != {'done'}:
        raise Violation('nobody was killed, and a file is left: %s' % (s.files,))


def explore(programs, movers, kills, without):
    first = State(('connect',) * programs, ('new',) * movers, ('open',) * programs)
    seen, todo = {first: ()}, deque([first])
    while todo:
        s = todo.popleft()
        following = [after for after in steps(s, without, kills) if after != s]
        try:
            if not [a for a in following if a.kills == s.kills]:
                check_end(s)
        except Violation as violation:
            raise Violation('%s\n        %s' % (violation, '\n        '.join(str(way[:4]) for way in seen[s] + (s,)))) from None
        for after in following:
            if after not in seen:
                seen[after] = seen[s] + (s,)
                todo.append(after)
    return len(seen)


def check(without, is_long):
    """(states, None or the violation)."""
    states = 0
    try:
        for programs, movers, kills in ((1, 2, 1), (2, 3, 1)) + (((3, 4, 1), (2, 5, 2)) if is_long else ()):
            states += explore(programs, movers, kills, without)
    except Violation as violation:
        return states, str(violation)
    return states, None
