"""Who takes part: each scene is explored in all orders, with so many kills."""
from typing import NamedTuple


class Spec(NamedTuple):
    kind: str
    mode: str = 'r+'
    tag: str = ''
    commits: int = 1
    checkpoint: bool = False
    path: str = 'F'
    locks: bool = True
    actions: tuple = ()
    after: str = ''  # whose end it waits for; 'T': until there is an entry


class Scene(NamedTuple):
    name: str
    processes: dict
    kills: int = 1
    files: tuple = ('F',)
    elsewhere: bool = False
    has_leases: object = True  # 'break': they do, when somebody waits for long
    is_full: bool = False


SPECS = {'mover': Spec('mover'), 'program': lambda name: Spec('program', 'r+', 'z', path=name)}


def program(tag, mode='r+', commits=1, checkpoint=False, path='F', locks=True, after=''):
    return Spec('program', mode, tag, commits, checkpoint, path, locks, after=after)


def stock(mode, locks=True):
    return Spec('stock', mode, 's', locks=locks)


def user(*actions):
    return Spec('user', actions=tuple(tuple(a.split()) for a in actions), after='T')


MOVER, FREE = Spec('mover', 'started'), Spec('mover', 'free')


def reader(path='F', locks=True):
    return Spec('reader', 'r', path=path, locks=locks)


def pairs(locks, leases=True):
    """A program, another one, a mover; with HDF5's lock, and without."""
    end = ('' if locks else ', no locks') + ('' if leases else ', no leases')
    a = program('a', locks=locks)
    others = {'read': ('r', reader(locks=locks)), 'reopen': ('b', program('b', locks=locks)),
              'create over it again': ('b', program('b', 'w', locks=locks)),
              'stock writes': ('s', stock('r+', locks)), 'stock creates over': ('s', stock('w', locks))}
    for name, (who, other) in others.items():
        yield Scene(name + end, {'a': a, who: other, 'm': FREE}, elsewhere=True, has_leases=leases)


def names(leases=True):
    """What users do with the file, beside a program and a mover."""
    a, b, r = program('a'), program('b', after='a'), reader()
    new, at_g = program('b', 'w', after='a'), program('b', path='G', after='a')
    before = {'b': program('b', path='G'), 'a': program('a', after='b')}
    found = {
        'rename': {'a': a, 'm': FREE, 'u': user('mv F G'), 'r': reader('G')},
        'rename over': {**before, 'u': user('mv F G'), 'r': reader('G')},
        'delete': {'a': a, 'm': FREE, 'u': user('rm F'), 'r': r},
        'delete, and create anew': {'a': a, 'b': new, 'm': FREE, 'u': user('rm F')},
        'hard link': {'a': a, 'm': FREE, 'u': user('ln F G', 'rm F'), 'r': reader('G')},
        'replace': {'a': a, 'b': b, 'm': FREE, 'u': user('new F')},
        'rename, and create anew': {'a': a, 'b': new, 'm': FREE, 'u': user('mv F G')},
        'copy': {'a': a, 'b': at_g, 'm': FREE, 'u': user('cp F G')},
        'a copy takes its place': {'a': a, 'm': FREE, 'u': user('cp F G', 'mv F H', 'mv G F')},
        'rename both': {'a': a, 'm': FREE, 'u': user('mv F G', 'mv F-tier G-tier'), 'b': at_g},
        'rename, and a new one': {'a': a, 'b': new, 'm': FREE, 'u': user('mv F G', 'new F')},
        'copy both': {'a': a, 'b': at_g, 'm': FREE, 'u': user('cp F G', 'cp F-tier G-tier')},
    }
    for name, processes in found.items():
        files = ('F', 'G') if name == 'rename over' else ('F',)
        yield Scene(name + ('' if leases else ', no leases'), processes, files=files, has_leases=leases)


ONLY_LONG = ('create over it again, no locks', 'replace', 'rename, and create anew', 'copy', 'delete, and create anew', 'rename both',
             'rename, and a new one', 'copy both')


def short_scenes():
    yield Scene('overwrite', {'a': program('a', commits=2), 'm': FREE, 'n': FREE}, kills=2, elsewhere=True)
    yield Scene('create', {'a': program('a', 'w'), 'm': FREE, 'n': FREE}, kills=2, files=(), elsewhere=True)
    yield Scene('create over', {'a': program('a', 'w'), 'm': FREE}, kills=2, elsewhere=True)
    yield Scene('checkpoint', {'a': program('a', commits=2, checkpoint=True), 'm': FREE}, kills=2, elsewhere=True)
    yield Scene('no room', {'a': program('a'), 'b': program('b', after='a'), 'm': FREE}, is_full=True)
    yield from pairs(True)
    yield from (s for s in pairs(False) if s.name not in ONLY_LONG)
    yield from (s for s in pairs(True, False) if s.name.startswith(('read', 'stock creates')))
    yield from (s for s in names() if s.name not in ONLY_LONG)
    yield from (s._replace(name='copy, nobody is killed', kills=0) for s in names() if s.name == 'copy')


def long_scenes():
    """Those that short_scenes leaves out, without leases, and more kills and commits."""
    yield from (s for s in pairs(True, False) if not s.name.startswith(('read', 'stock creates')))
    yield from (s for s in pairs(False, False) if not s.name.startswith('stock creates'))
    yield from (s for s in (*pairs(False), *names()) if s.name in ONLY_LONG)
    yield from names(False)
    for scene in (*pairs(True), *(s for s in names() if s.name in ('delete', 'replace'))):
        yield scene._replace(name=scene.name + ', leases break', has_leases='break')
    two = next(s for s in pairs(True) if s.name == 'reopen')
    yield two._replace(name='reopen, two kills and two movers', kills=2, processes={**two.processes, 'n': FREE})
    for locks in (True, False):
        for scene in pairs(locks):
            yield scene._replace(name=scene.name + ', two kills', kills=2)
            both = {n: s._replace(commits=2, checkpoint=True) if s.kind == 'program' else s for n, s in scene.processes.items()}
            yield scene._replace(name=scene.name + ', with a checkpoint', processes=both)


# What is not promised, and shown so that it is not forgotten.
BEYOND = {
    "stock HDF5 creates over the file while it is drained, without its locks, where there are no leases (or one was broken after 45 s)":
        next(s for s in pairs(False, False) if s.name.startswith('stock creates')),
    'another host is told less: the marker of a file that took the name of one that is drained is removed between look and removal':
        next(s for s in names() if s.name == 'replace')._replace(elsewhere=True),
}
