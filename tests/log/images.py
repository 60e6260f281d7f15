"""What must be true of a file and its log, as a kill or a power cut left them: an image is (file, ((name, segment), ...)).

`allowed` are the states that may be found: the last acknowledged commit, and those that were begun later.
"""
from collections import namedtuple
from itertools import product

import reader
import storage
from reader import Refused, read_log, state_of, stock
from storage import BAD, EMPTY, NEW_FILE, put

UNNOTICED = 'not noticed: bytes above the high water were written after the copy'


class Violation(Exception):
    pass


# All commits that were begun, in order; and without those that failed before one that did not.
History = namedtuple('History', 'commits ever')


class Checks:
    """One run of the model: the rules that are left out, and what was looked at already."""

    def __init__(self, without, power):
        self.without, self.power = frozenset(without), power
        self.states = self.images = 0
        self.older = {'refused': 0, 'a commit': 0, UNNOTICED: 0}
        self.found = NEW_FILE  # the file before the first program
        self.forget()

    def forget(self):
        self.seen_images, self.seen_moves, self.seen_recoveries = set(), set(), set()

    def lacks(self, rule):
        return rule in self.without


def check_image(checks, image, allowed, history, why):
    """Stock HDF5, a recovery, copies with a part of the log, damage. history: see History."""
    key = (image, allowed)
    if key in checks.seen_images:
        return
    checks.seen_images.add(key)
    checks.images += 1
    file, segments = image[0], dict(image[1])
    seen = stock(file)
    if seen == 'broken':
        raise Violation('stock HDF5 cannot open an unmarked file, and nobody recovers it: %s' % why)
    if seen == 'no HDF5 file':
        if EMPTY not in allowed:
            raise Violation('the file is no HDF5 file any more: %s' % why)
    elif seen != 'refused' and seen not in allowed:
        raise Violation('stock HDF5 sees no commit that it may: %s' % why)
    try:
        plan = read_log(file, segments, checks.without)
    except Refused as refused:
        raise Violation('recovery is refused (%s): %s' % (refused, why))
    if plan is None:
        return
    if state_of(plan.final) not in allowed:
        raise Violation('recovery gives no commit that it may: %s' % why)
    if stock(plan.final) == 'broken':
        raise Violation('a recovered file cannot be opened: %s' % why)
    check_parts(checks, file, segments, allowed, why)
    if not checks.power:
        check_damage(checks, file, segments, plan, allowed, history, why)
    check_recovery(checks, (file, ()), {n: (s, ()) for n, s in segments.items()}, plan, allowed, history, why)


def check_parts(checks, file, segments, allowed, why):
    """A copy with a part of the log, or with none: an error, or right."""
    if any(segment[3] == BAD for segment in segments.values()):
        return  # a torn note may have named a segment; storage that tears no sector leaves none
    for part in [()] + ([(name,) for name in segments] if len(segments) > 1 else []):
        try:
            plan = read_log(file, {name: segments[name] for name in part}, checks.without)
        except Refused:
            continue
        if plan is None or state_of(plan.final) not in allowed:
            raise Violation('a copy with %s of the log is taken for whole: %s' % ('a part' if part else 'nothing', why))


def check_recovery(checks, file, nodes, plan, allowed, history, why):
    """A recovery, with a kill or a power cut after each of its steps. file, nodes: with what was not synced before it began."""
    left, gone = dict(nodes), []
    segments = {name: storage.now(node) for name, node in nodes.items()}
    for step in reader.recovery_steps(plan, segments, checks.without):
        if step[0] == 'file':
            file = (file[0], file[1] + ((step[1], storage.UNSYNCED),))
        elif step[0] == 'segment':
            node = left[step[1]]
            left[step[1]] = (node[0], node[1] + ((step[2], storage.UNSYNCED),))
        elif step[0] == 'sync file':
            file = storage.sync(file)
        elif step[0] == 'sync log':
            left = {name: storage.sync(node) for name, node in left.items()}
        else:
            gone.append(step[1])
        if not checks.power:
            file = (storage.now(file), ())
            left = {name: (storage.now(node), ()) for name, node in left.items() if name not in gone}
        for lost in range(1 << len(gone) if checks.power else 1):  # folders are not synced: any of the names may be back
            names = [n for n in sorted(left) if not (n in gone and lost >> gone.index(n) & 1)]
            for found in product(storage.survivors(file), *(storage.survivors(left[n]) for n in names)):
                check_image(checks, (found[0], tuple(zip(names, found[1:]))), allowed, history, why + ['RECOVERY CUT SHORT AFTER', step])


def damaged(segment):
    """The same segment, damaged in one place."""
    writes = [('header', BAD)]
    writes += [('note', BAD), ('note', 0)] if segment[3] else []
    writes += [('slot', parity, BAD) for parity in (0, 1) if segment[1 + parity]]
    for place, item in enumerate(segment[4]):
        writes += [('item', place, 0)]
        writes += [('item', place, storage.half_record(item))] if item and item[0] == 'R' else []
    out = [put(segment, write) for write in writes]
    if segment[1] and segment[2]:
        out.append(put(put(segment, ('slot', 0, BAD)), ('slot', 1, BAD)))
    return out


def check_damage(checks, file, segments, plan, allowed, history, why):
    """Damage in one place: an error, or right, or the newest commit is taken for a torn tail."""
    newest, may = state_of(plan.final), set(allowed)
    if newest in history.commits:
        before = history.commits[max(history.commits.index(newest) - 1, 0)]
        may.update(history.ever[history.ever.index(before):])
    for name, segment in segments.items():
        for bad in damaged(segment):
            try:
                found = read_log(file, {**segments, name: bad}, checks.without)
            except Refused:
                continue
            if state_of(found.final) not in may:
                raise Violation('damage is not noticed: %s' % why)


def check_moves(checks, image, allowed, copies, history, why):
    """The file was moved away, and another one has its name; or an older copy of the file is put back beside its log."""
    key = (image, copies)
    if key in checks.seen_moves:
        return
    checks.seen_moves.add(key)
    file, segments = image[0], dict(image[1])
    others = [NEW_FILE, checks.found, ((7, 7, 0, 0), 2, (99, 2, 0, 0)), ((7, 7, 0, 0), 2, (99, 2, 999, 0))]
    for other in others:
        try:
            plan = read_log(other, segments, checks.without)
        except Refused:
            continue
        if plan is not None:
            raise Violation('a log is applied to a file that is not its own: %s' % why)
        if file[2] is not None and file[2][2] and stock(other) not in allowed:
            check_set_aside(checks, file, other, segments, allowed, why)
    for copy in copies:
        check_older_copy(checks, copy, segments, history, why)


def check_set_aside(checks, file, other, segments, allowed, why):
    """Another file with that name is written: the moved file's log is still to be had, if it has a commit."""
    whole = read_log(file, segments, checks.without)
    if whole is None or not whole.records():
        return
    kept = {}
    for name in segments:
        rule = 'left log: it is set aside'
        gone = checks.lacks(rule) or reader.is_useless(other, segments, name, checks.without)
        if not gone:
            kept[name] = segments[name]
    try:
        plan = read_log(file, kept, checks.without)
    except Refused as refused:
        raise Violation('the file was moved, another one took its name, and its log is gone (%s): %s' % (refused, why))
    if state_of(plan.final) not in allowed:
        raise Violation('the file was moved, another one took its name, and a part of its log is gone: %s' % why)


def check_older_copy(checks, copy, segments, history, why):
    try:
        plan = read_log(copy, segments, checks.without)
    except Refused:
        checks.older['refused'] += 1
        return
    seen = stock(copy) if plan is None else state_of(plan.final)
    if seen in history.ever or seen == 'no HDF5 file':
        checks.older['a commit'] += 1
        return
    # The id is right. Bytes above the high water, which the log has not, were written, or written again, after the copy was made.
    if plan is not None and plan.newest:
        real = [commit for commit in history.ever if commit[2] == plan.final[2][0] and commit[1] == seen[1]]
        if real and all(a >= plan.header_end for a in range(seen[1]) if seen[0][a] != real[0][0][a]):
            checks.older[UNNOTICED] += 1
            if copy[1] < plan.end:
                raise Violation('an older copy that lacks appended bytes is taken: %s' % why)
            return
    raise Violation('an older copy gives what was never committed: %s' % why)
