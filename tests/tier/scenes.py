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
    has_file: bool = True
    elsewhere: bool = False
    has_leases: bool = True


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


def pairs(locks):
    """A program, another one, a mover; with HDF5's lock, and without."""
    end = '' if locks else ', no locks'
    a = program('a', locks=locks)
    yield Scene('read' + end, {'a': a, 'm': FREE, 'r': reader(locks=locks)})
    yield Scene('reopen' + end, {'a': a, 'b': program('b', locks=locks), 'm': FREE})
    yield Scene('create over it again' + end, {'a': a, 'b': program('b', 'w', locks=locks), 'm': FREE})
    yield Scene('stock writes' + end, {'a': a, 's': stock('r+', locks), 'm': FREE})
    yield Scene('stock creates over' + end, {'a': a, 's': stock('w', locks), 'm': FREE})


def names():
    """What users do with the file, beside a program and a mover."""
    a, b, r = program('a'), program('b', after='a'), reader()
    new, at_g = program('b', 'w', after='a'), program('b', path='G', after='a')
    yield Scene('rename', {'a': a, 'm': FREE, 'u': user('mv F G'), 'r': reader('G')})
    yield Scene('rename both', {'a': a, 'm': FREE, 'u': user('mv F G', 'mv F-tier G-tier'), 'b': at_g})
    yield Scene('delete', {'a': a, 'm': FREE, 'u': user('rm F'), 'r': r})
    yield Scene('hard link', {'a': a, 'm': FREE, 'u': user('ln F G', 'rm F'), 'r': reader('G')})
    yield Scene('replace', {'a': a, 'b': b, 'm': FREE, 'u': user('new F')})
    yield Scene('rename, and create anew', {'a': a, 'b': new, 'm': FREE, 'u': user('mv F G')})
    yield Scene('rename, and a new one', {'a': a, 'b': new, 'm': FREE, 'u': user('mv F G', 'new F')})
    yield Scene('copy', {'a': a, 'b': at_g, 'm': FREE, 'u': user('cp F G')})
    yield Scene('copy both', {'a': a, 'b': at_g, 'm': FREE, 'u': user('cp F G', 'cp F-tier G-tier')})
    yield Scene('a copy takes its place', {'a': a, 'm': FREE, 'u': user('cp F G', 'mv F H', 'mv G F')})


def scenes():
    yield Scene('overwrite', {'a': program('a', commits=2), 'm': FREE, 'n': FREE}, kills=2, elsewhere=True)
    yield Scene('create', {'a': program('a', 'w'), 'm': FREE, 'n': FREE}, kills=2, has_file=False, elsewhere=True)
    yield Scene('create over', {'a': program('a', 'w'), 'm': FREE}, kills=2, elsewhere=True)
    yield Scene('checkpoint', {'a': program('a', commits=2, checkpoint=True), 'm': FREE}, kills=2)
    yield from pairs(True)
    yield from pairs(False)
    yield from names()
