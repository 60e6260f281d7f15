"""What must be true in each state, and of what is left when all have ended there."""
import mover
import program
from world import EMPTY, NO_LOG, UNSURE, Process, Violation


def check_files(w):
    """P2, P3: what stock HDF5 sees, whose bytes there are."""
    for inode in w.inodes.values():
        if inode.mark != 0 or inode.flags & {'wild', 'destroyed'}:
            continue
        if any(b is not None and b[0] not in inode.tags for b in inode.blocks):
            raise Violation('bytes of an old entry are in a file that is not its: %s' % (inode,))
        if 'torn' not in inode.flags and not is_commit(inode, inode.blocks):
            raise Violation('stock HDF5 sees what is no commit: %s' % (inode,))


def is_commit(inode, value):
    if 'copy' in inode.flags:
        return value == EMPTY or value in COMMITS
    return value in inode.allow


COMMITS = {(t + n, t + m) for t in 'oabsuz' for n, m in (('0', '0'), ('1', '1'), ('2', '2'), ('1', '2'))}


def check_marker(w):
    """On another host the marker says where the log is, of a file that nobody has renamed."""
    if not w.scene.elsewhere:
        return
    for entry, what in w.tier.items():
        number = w.names.get(what.path)
        if number == what.inode and number is not None and w.inodes[number].mark in w.ids(entry) and not w.inodes[number].flags:
            if w.names.get(what.path + '-tier') != entry:
                raise Violation('no marker says on which host the log of a marked file is')


def all_dead(w):
    after = w.copy()
    after.open, after.queue, after.processes = {}, (), {}
    return after


class Lonely:
    """A scene with one process that comes after all the others."""

    elsewhere, has_leases, is_full = False, True, False

    def __init__(self, spec, copies):
        self.processes, self.copies = {'z': spec}, copies


def run_alone(w, steps, spec, at='new', copies=False):
    """The world when the process has done all that it does."""
    world = w.copy()
    world.scene = Lonely(spec, copies)
    world.processes = {'z': Process(at, seen=frozenset() if at == 'idle' else None)}
    while True:
        step = steps.get(world.processes['z'].at)
        following = next(iter(step(world, 'z')), None) if step else None
        if following is None:
            return world
        world = following


class Ends:
    """What is left is checked once for each image."""

    def __init__(self, specs, copies):
        self.seen, self.specs, self.copies = set(), specs, copies

    def check(self, w, image):
        if image in self.seen:
            return
        self.seen.add(image)
        check_files(w)
        check_marker(w)
        dead = all_dead(w)
        check_views(dead, 'when all have ended')
        drained = run_alone(dead, mover.STEPS, self.specs['mover'], 'idle', self.copies)
        check_drained(dead, drained)
        for name in [n for n in dead.names if not n.endswith('-tier')]:
            check_later(dead, name, self.specs['program'](name))
            check_later(drained, name, self.specs['program'](name))


def check_views(w, when):
    """P1: every name is its last commit."""
    for name, number in w.names.items():
        if name.endswith('-tier') or w.inodes[number].flags & UNSURE:
            continue
        inode = w.inodes[number]
        value = w.view(name)
        if value == NO_LOG and 'copy' in inode.flags:
            continue
        if not is_commit(inode, value):
            raise Violation('%s is %s %s, and may be %s' % (name, value, when, sorted(map(str, inode.allow))))


def check_drained(dead, w):
    """P1, P2, P4 when a mover has done all there is to do."""
    check_files(w)
    check_views(w, 'when the mover has ended')
    for entry, what in w.tier.items():
        if what.path is None:
            raise Violation('%s of %s stay in T for ever: there is no E.file' % ('segments' if what.segments else 'notes', entry))
        if w.names.get(what.path) == what.inode:
            raise Violation('%s stays in T, and nobody has its file' % entry)
    for name, number in w.names.items():
        if name.endswith('-tier') and number not in w.tier and not w.scene.copies:
            raise Violation('%s stays, and its entry is gone' % name)
    for entry, what in dead.tier.items():
        number = w.names.get(what.path)
        if number is not None and number == what.inode and (w.inodes[number].mark == 1 or w.inodes[number].mark in dead.ids(entry)):
            raise Violation('a file was not drained')


def check_later(w, name, spec):
    """A program that opens the file writes a commit, and a mover brings it home; other files keep theirs."""
    number = w.names[name]
    flags = w.inodes[number].flags
    may_open = w.inodes[number].mark is not None and w.view(name) not in (EMPTY, NO_LOG)
    after = run_alone(w, program.STEPS, spec)
    if after.processes['z'].at != 'end':
        raise Violation('a later program stands still at %s' % after.processes['z'].at)
    check_files(after)
    check_views(after, 'when a later program has ended')
    if may_open and not flags and after.view(name) != ('z1', 'z1'):
        raise Violation('a later program could not write %s: %s' % (name, after.view(name)))

