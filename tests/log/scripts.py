"""What the programs of the model do: short scripts for both promises, and random ones for --long."""
import random

COMMIT, MOVE, WAIT, CLOSE, DATA, CREATE = ('flush', 1), ('move',), ('wait',), ('close',), ('data',), ('create',)
REUSE = ('reuse',)
NEXT = ('next', True)
NEXT_TRUNCATES = ('next', True, 'truncate')


def w(block):
    return ('write', block)


def to(size):
    return ('resize', size)


def fails(what, happened=True):
    return ('fail', what, happened)


PROCESS = [
    ('old', to(1), CLOSE),
    ('old', to(4), COMMIT, w(0), CLOSE),
    ('old', to(4), to(3), w(3), COMMIT, CLOSE),
    ('old', w(0), COMMIT, CLOSE),
    ('old', w(0), DATA, CLOSE),
    ('old', w(2), COMMIT, w(2), CLOSE),
    ('old', w(0), COMMIT, MOVE, w(0), COMMIT, WAIT, MOVE, w(1), COMMIT, MOVE, CLOSE),
    ('new', CREATE, w(0), COMMIT, w(0), CLOSE),
    ('new', w(0), COMMIT, w(0), MOVE, w(1), CLOSE),
    ('old', w(0), COMMIT, MOVE, w(0), COMMIT, MOVE, WAIT, w(0), COMMIT, MOVE, w(1), COMMIT, CLOSE),
    ('old', w(0), COMMIT, MOVE, w(1), COMMIT, w(0), DATA, w(2), COMMIT, CLOSE),
    ('old', to(1), COMMIT, to(3), w(2), COMMIT, MOVE, WAIT, CLOSE),
    ('old', w(1), COMMIT, to(1), COMMIT, w(1), COMMIT, CLOSE),
    ('old', to(1), COMMIT, MOVE, WAIT, to(2), COMMIT, CLOSE),
    ('old', w(2), COMMIT, w(2), to(1), COMMIT, w(2), COMMIT, MOVE, to(4), COMMIT, CLOSE),
    ('old', w(2), COMMIT, to(1), COMMIT, MOVE, w(3), to(4), w(2), COMMIT, CLOSE),
    ('old', w(0), COMMIT, w(1), MOVE, COMMIT, CLOSE),
    ('old', w(0), COMMIT, MOVE, w(1), COMMIT, w(1), COMMIT),
    ('old', w(3), to(1), to(3), COMMIT, CLOSE),
    ('old', w(0), COMMIT, w(0), COMMIT, w(1), w(1), COMMIT, CLOSE),
    ('old', w(0), COMMIT, MOVE, NEXT, w(1), COMMIT, MOVE, NEXT, w(0), COMMIT, CLOSE),
    ('old', w(0), COMMIT, MOVE, w(1), COMMIT, MOVE, NEXT, w(1), COMMIT, CLOSE),
    ('old', w(0), COMMIT, MOVE, NEXT_TRUNCATES, w(1), COMMIT, w(1), CLOSE),
    ('old', w(0), fails('slot'), COMMIT, w(0), w(2), COMMIT, CLOSE),
    ('old', w(0), COMMIT, fails('slot'), COMMIT, MOVE, w(2), COMMIT, CLOSE),
    ('old', w(2), fails('superblock'), COMMIT, w(2), COMMIT, CLOSE),
    ('old', w(2), fails('superblock', False), COMMIT, w(2), COMMIT, CLOSE),
    ('old', fails('mark'), w(0), w(1), COMMIT, CLOSE),
    ('old', REUSE, w(0), COMMIT, w(0), DATA, w(0), COMMIT, CLOSE),
    ('old', REUSE, w(0), w(1), COMMIT, w(0), COMMIT, w(1), w(0), COMMIT, w(1), COMMIT, CLOSE),
    ('old', REUSE, w(0), COMMIT, w(0), fails('slot'), COMMIT, w(0), w(1), COMMIT, w(0), COMMIT, CLOSE),
    ('old', REUSE, w(0), COMMIT, w(0), COMMIT, MOVE, w(0), COMMIT, w(0), COMMIT, w(1), MOVE, COMMIT, CLOSE),
    ('old', REUSE, to(4), COMMIT, to(1), w(3), COMMIT, w(3), to(0), COMMIT, w(0), COMMIT, CLOSE),
    ('old', w(0), COMMIT, fails('unmark'), MOVE, WAIT, w(1), COMMIT, MOVE, WAIT, CLOSE),
    ('old', w(0), COMMIT, fails('unmark'), MOVE, w(1), COMMIT, MOVE, CLOSE),
]
POWER = [
    ('old', to(1), CLOSE),
    ('old', to(4), COMMIT, CLOSE),
    ('old', w(0), COMMIT, CLOSE),
    ('old', w(0), COMMIT, w(1), COMMIT),
    ('old', w(2), COMMIT, w(2), CLOSE),
    ('new', CREATE, w(0), COMMIT, w(0), COMMIT),
    ('over', w(1), COMMIT),
    ('old', w(0), COMMIT, MOVE, w(0), COMMIT, WAIT, MOVE, w(1), COMMIT),
    ('old', w(0), COMMIT, MOVE, w(1), COMMIT, CLOSE),
    ('old', w(0), COMMIT, MOVE, WAIT, w(0), COMMIT, MOVE, w(1), COMMIT),
    ('old', w(0), COMMIT, MOVE, w(0), COMMIT, MOVE, WAIT, w(1), COMMIT, MOVE),
    ('old', w(2), COMMIT, w(0), fails('sync log'), COMMIT, w(3), COMMIT),
    ('old', w(0), w(2), fails('sync log'), COMMIT, w(2), w(3), w(3), COMMIT),
    ('old', w(2), fails('sync file'), COMMIT, w(3), COMMIT),
    ('old', w(0), COMMIT, fails('sync file'), MOVE, WAIT, w(1), COMMIT),
    ('old', w(0), w(2), fails('slot'), COMMIT, w(2), COMMIT),
    ('old', w(2), fails('superblock'), COMMIT, w(2), COMMIT),
    ('old', fails('mark'), w(0), w(1), COMMIT),
    ('old', w(0), COMMIT, fails('unmark'), MOVE, WAIT, w(1), COMMIT, MOVE),
    ('old', REUSE, w(0), COMMIT, w(0), COMMIT, w(0), COMMIT),
    ('old', REUSE, w(0), w(1), COMMIT, w(0), COMMIT, w(1), COMMIT, w(0), NEXT, w(0), COMMIT),
    ('old', REUSE, w(0), COMMIT, w(0), COMMIT, MOVE, w(0), COMMIT, w(0), COMMIT),
    ('old', to(1), COMMIT, to(2), COMMIT, CLOSE),
    ('old', w(0), COMMIT, MOVE, NEXT, w(1), COMMIT),
    ('old', w(2), COMMIT, NEXT, w(2), COMMIT),
    ('old', w(0), COMMIT, MOVE, w(1), COMMIT, NEXT, w(0), COMMIT),
    ('old', w(0), COMMIT, NEXT_TRUNCATES, w(0), COMMIT),
    ('old', w(0), COMMIT, MOVE, fails('sync file'), NEXT, w(0), COMMIT),
    ('old', w(1), COMMIT, fails('sync file'), MOVE, COMMIT),
    ('old', w(0), COMMIT, fails('slot'), to(3), COMMIT, MOVE, NEXT),
    ('old unsynced', w(2), COMMIT, NEXT, DATA),
    ('old unsynced', w(0), COMMIT, MOVE, NEXT, w(2), COMMIT),
    ('new unsynced', w(0), COMMIT, w(0), COMMIT, NEXT, w(0), COMMIT),
]


def drawn(seed, count, power):
    """Random ones, for --long: the same ones each time."""
    draw = random.Random(seed)
    writes = [w(0), w(0), w(1), w(2), w(3), to(0), to(1), to(3), to(4)]
    failures = [fails(what, draw.random() < 0.5) for what in ('slot', 'superblock', 'mark', 'unmark')]
    failures += [fails('sync log'), fails('sync file')] if power else []
    most = 5 if power else 8
    for _ in range(count):
        script = [draw.choice(['old', 'old', 'old', 'new', 'over'] + ['old unsynced'] * power)]
        script += draw.choice([[], [], [REUSE]])
        while len(script) < draw.randint(4, most):
            script += [draw.choice(writes)]
            script += draw.choice([[], [COMMIT], [COMMIT], [COMMIT, MOVE], [COMMIT, MOVE], [COMMIT, MOVE, WAIT], [DATA], [NEXT], [NEXT_TRUNCATES]])
            if draw.random() < 0.15:
                script.insert(draw.randint(1, len(script)), draw.choice(failures))
        yield tuple(script + [draw.choice([CLOSE, COMMIT, NEXT])])


# The cheap ones first: what is found without a rule is found sooner.
for chosen in (PROCESS, POWER):
    chosen.sort(key=lambda script: (script.count(MOVE), len(script)))

# What the document does not promise (rules.BEYOND), and a script that shows it.
NAME_UNSYNCED = [('new unsynced', w(0), COMMIT, NEXT, w(1), COMMIT)]
