#!/usr/bin/env python3
"""A model check of docs/formats/log.md: every kill, every power cut, every rule left out.

The model has a file of four blocks, a superblock and a size; up to two segments with header, slots, note and log; a
folder. A writer runs a short script of operations; each system call is one step, and the steps of a checkpoint in the
background come between the writer's in every order. After each step the program may be killed; under `power` the
machine may stop, and any subset of what was not synced survives, with torn headers, slots and notes. Each image that is
left is opened by stock HDF5, recovered (with kills and cuts in between), copied and moved with and without its log, damaged.

Then each rule is left out in turn: the checker has to find a violation, or the rule is named as one that others make needless.
Exits 0 only if the whole model has no violation, each rule that is left out is found, and the needless ones are needless.

Run: model_check.py [--long] [--trace RULE]. --trace prints the shortest trace that breaks without RULE (a part of its name).
"""
import sys
import time
from collections import deque
from itertools import product

NB = 4
EMPTY = ((), 0, 0)
LATE = {'mark before the first logged byte', 'mark before COMMIT', 'mark before a commit is acknowledged'}
FILE = 0  # inode of the file; the others are segments


class Violation(Exception):
    pass


# ---- images and what one write does to them -----------------------------------------------------------------------
# file: (blocks, size, sb); sb: None or (value, eof, mark, open_for_writing)
# segment: (header, slot0, slot1, note, items); header: None, 'BAD' or (id, before, created, end, sb)
#   slot: 0, 'BAD' or (id, generation, offset, record)
#   note: 0, 'BAD' or (id, id of the next segment or 0, generation that is known to be whole)
#   item: ('E', value) or ('R', id, generation, eof, high water, end of straight bytes, previous (offset, crc), entries, sb)

NEW_FILE = ((0,) * NB, 0, None)
NEW_SEG = (None, 0, 0, 0, ())


def put(img, op):
    k = op[0]
    if k == 'b':
        blocks, size, sb = img
        if op[1] >= size:
            return img
        return (blocks[:op[1]] + (op[2],) + blocks[op[1] + 1:], size, sb)
    if k == 's+':
        return (img[0], max(img[1], op[1]), img[2])
    if k == 's':
        n = op[1]
        return (tuple(b if i < n else 0 for i, b in enumerate(img[0])), n, img[2])
    if k == 'sb':
        return (img[0], img[1], op[1])
    if k == 'zero':
        return NEW_FILE
    hdr, s0, s1, note, items = img
    if k == 'h':
        hdr = op[1]
    elif k == 'z':
        s0 = s1 = note = 0
    elif k == 'sl':
        if op[1]:
            s1 = op[2]
        else:
            s0 = op[2]
    elif k == 'n':
        note = op[1]
    elif k == 'i':
        items = items + (0,) * (op[1] + 1 - len(items))
        items = items[:op[1]] + (op[2],) + items[op[1] + 1:]
    return (hdr, s0, s1, note, items)


def torn(op):
    if op[0] == 'h':
        return ('h', 'BAD')
    if op[0] == 'sl':
        return ('sl', op[1], 'BAD')
    if op[0] == 'n':
        return ('n', 'BAD')
    return None


def put_dir(d, op):
    d = dict(d)
    if op[0] == 'link':
        d[op[1]] = op[2]
    elif op[0] == 'unlink':
        d.pop(op[1], None)
    return tuple(sorted(d.items()))


SURV = {}


def survivors(node):
    """All images of an inode after a power cut. node: (durable, pending); pending: (op, state), state: 0 volatile, 1 durable, 2 its sync failed."""
    r = SURV.get(node)
    if r is not None:
        return r
    out = {node[0]}
    for op, st in node[1]:
        new = {put(i, op) for i in out}
        if st != 1:
            t = torn(op)
            if t:
                new |= {put(i, t) for i in out if put(i, op) != i}  # the same bytes again: nothing to tear
            new |= out
        out = new
    SURV[node] = out
    return out


def dir_survivors(durable, pending):
    out = {durable}
    for op in pending:
        out |= {put_dir(d, op) for d in out}
    return out


# ---- reader: what a file and its segments mean ---------------------------------------------------------------------

def stock(f):
    """What stock HDF5 sees: 'refused', 'nothing' (no HDF5 file), 'broken', or a state."""
    blocks, size, sb = f
    if sb is None:
        return 'nothing'
    if sb[2]:
        return 'refused'
    if sb[3] or size < sb[1]:
        return 'broken'
    return (blocks[:sb[1]], sb[1], sb[0])


class Refused(Exception):
    pass


def extents_ok(seg, rec, M):
    if 'reader: crc of extents' in M:
        return True
    return all(off < 0 or (off < len(seg[4]) and seg[4][off] == ('E', v)) for a, off, v in rec[7])


def commits_of(seg, M):
    """Records of a segment in order, the torn tail cut; Refused where something else is wrong."""
    hdr, s0, s1, note, items = seg
    good, bad = [], 0
    for s in (s0, s1):
        if s == 0:
            continue
        if s == 'BAD' or (s[0] != hdr[0] and 'reader: id in the slot' not in M):
            bad += 1
        else:
            good.append(s)
    good.sort(key=lambda s: -s[1])
    if bad == 2 and 'reader: two bad slots are damage' not in M:
        raise Refused('both slots are wrong')

    def right(off, crc):
        if off >= len(items) or items[off] == 0 or items[off][0] != 'R':
            return None
        rec = items[off]
        if hash(rec) != crc and 'reader: crc of record' not in M:
            return None
        return rec if extents_ok(seg, rec, M) else None

    last = None
    for n, s in enumerate(good):
        last = right(s[2], hash(s[3]))
        if last is None and 'reader: torn tail is cut' in M:
            raise Refused('a wrong record')
        if last is None and (bad or n):
            raise Refused('a wrong record beside a wrong slot')
        if last is not None:
            break
    if last is None:
        return []
    out = [last]
    while out[-1][6] is not None:
        off, crc = out[-1][6]
        rec = right(off, crc)
        if rec is None:
            if 'reader: damage in the middle' in M:
                break
            raise Refused('damage in the middle')
        out.append(rec)
    out.reverse()
    return out


def read_log(f, segs, M):
    """None: the file needs no log. Else (final file, names to be removed, (name, note to be written) or None). Raises Refused."""
    sb = f[2]
    if sb is None or not sb[2]:
        if not ('reader: only a marked file' in M and sb is not None):
            return None
    mark = sb[2]
    first = None
    for name in sorted(segs):
        h = segs[name][0]
        if h not in (None, 'BAD') and (h[0] == mark or 'reader: id of the mark' in M):
            first = name
            break
    if first is None:
        if 'reader: no log is an error' in M:
            s = (sb[0], f[1], 0, 0)
            return ((f[0], f[1], s), tuple(segs), None)
        raise Refused('no segment with the id of the mark')
    chain = [first]
    recs = []
    while True:
        seg = segs[chain[-1]]
        mine = commits_of(seg, M)
        if mine and recs and mine[0][2] != recs[-1][2] + 1 and 'reader: generations without a gap' not in M:
            raise Refused('a commit is missing')
        recs += mine
        others = [n for n in segs if n not in chain and segs[n][0] not in (None, 'BAD')]
        follows = [n for n in others if segs[n][0][1] == seg[0][0]]
        note = seg[3]
        if 'writer: note of the next segment' in M:
            nxt = follows
        elif note == 0:
            break
        elif note == 'BAD' or note[0] != seg[0][0]:
            nxt = follows  # a note may be torn
        else:
            if (recs[-1][2] if recs else 0) < note[2] and 'reader: the note knows the generation' not in M:
                raise Refused('a commit that the note knows is wrong')
            if not note[1]:
                break
            nxt = [n for n in others if segs[n][0][0] == note[1]]
            if not nxt:
                raise Refused('the next segment is missing')
        if not nxt or 'reader: the later segment too' in M:
            break
        chain.append(nxt[0])
    hdr = segs[first][0]
    if not recs:
        if hdr[2]:
            return (NEW_FILE, tuple(segs), None)
        g = put(put(f, ('s+', hdr[3])), ('s', hdr[3]))
        return ((g[0], g[1], (hdr[4][0], hdr[4][1], 0, 0)), tuple(segs), None)
    last = recs[-1]
    if f[1] < last[5] and 'reader: file not shorter than its straight bytes' not in M:
        raise Refused('the file is shorter than what the commit has in it')
    g = f
    s = hdr[4]
    for r in (reversed(recs) if 'reader: order of commits' in M else recs):
        for a, off, v in r[7]:
            if off >= 0:
                seg = next((segs[n] for n in chain if off < len(segs[n][4]) and segs[n][4][off] == ('E', v)), None)
                if seg is None:  # only without the crc of extents
                    v = -1
            g = put(put(g, ('s+', a + 1)), ('b', a, v))
    for r in recs:
        if r[8]:
            s = r[8]
    g = put(put(g, ('s+', last[3])), ('s', last[3]))
    flag = s[2] if 'recovery: HDF5 flags cleared' in M else 0
    return ((g[0], g[1], (s[0], s[1], 0, flag)), tuple(segs), (chain[-1], (segs[chain[-1]][0][0], 0, last[2])), last, hdr, recs, chain)


def view_of(f):
    return EMPTY if f[2] is None and f[1] == 0 else stock(f)


# ---- all that may happen to an image that a kill or a cut left -------------------------------------------------------

def recovery_steps(f, plan, segs, M):
    final, names, seal = plan[:3]
    g, remove = final, [('unlink', n) for n in sorted(names)]
    first = []
    if seal and 'power: recovery writes the newest commit again' not in M:
        seg, rec = segs[seal[0]], plan[3]
        for i, slot in enumerate(seg[1:3]):
            if slot and slot != 'BAD' and slot[3] == rec:
                first += [('S', seal[0], ('i', off, ('E', v))) for a, off, v in rec[7] if off >= 0]
                first += [('S', seal[0], ('i', slot[2], rec)), ('S', seal[0], ('sl', i, slot))]
    if 'power: recovery syncs the segments before the note' not in M:
        first += [('syncS',)]
    if seal and 'note before anything is moved' not in M:
        first += [('S', seal[0], ('n', seal[1]))]
    if 'power: recovery syncs the note before the file is changed' not in M:
        first += [('syncS',)]
    if g == NEW_FILE:
        return first + [('F', ('zero',)), ('sync',)] + remove
    copy = first
    for a in sorted({e[0] for r in plan[5] for e in r[7]} if len(plan) > 3 else ()):
        if a < g[1]:
            copy += [('F', ('s+', a + 1)), ('F', ('b', a, g[0][a]))]
    copy += [('F', ('s+', g[1])), ('F', ('s', g[1]))]
    s1 = [] if 'power: recovery syncs before the superblock' in M else [('sync',)]
    s2 = [] if 'power: recovery syncs before it removes' in M else [('sync',)]
    sb = [('F', ('sb', g[2]))]
    if 'recovery: superblock last' in M:
        return sb + s1 + copy + s2 + remove
    if 'recovery: removes last' in M:
        return copy + s1 + remove + sb + s2
    return copy + s1 + sb + s2 + remove


def check_image(run, image, allowed, history, why):
    """image: (file, ((name, segment), …)); allowed: states that may be found; history: all commits in order."""
    key = (image, allowed)
    if key in run.images:
        return
    run.images.add(key)
    M = run.M
    f, segs = image[0], dict(image[1])
    v = stock(f)
    if v == 'broken':
        raise Violation('stock HDF5 cannot open an unmarked file, and nobody recovers it: %s' % why)
    if v == 'nothing':
        if EMPTY not in allowed:
            raise Violation('the file is no HDF5 file any more: %s' % why)
    elif v != 'refused' and v not in allowed:
        raise Violation('stock HDF5 sees no commit: %s' % why)
    try:
        plan = read_log(f, segs, M)
    except Refused as e:
        raise Violation('recovery is refused (%s): %s' % (e, why))
    if plan is None:
        return
    final = plan[0]
    if view_of(final) not in allowed:
        raise Violation('recovery gives no commit that it may: %s' % why)
    # with a part of the log, or none: an error, or right
    for part in [()] + ([(n,) for n in segs] if len(segs) > 1 else []):
        try:
            p = read_log(f, {n: segs[n] for n in part}, M)
        except Refused:
            continue
        if p is None or view_of(p[0]) not in allowed:
            raise Violation('a copy with %s of the log is taken for whole: %s' % ('a part' if part else 'nothing', why))
    # recovery, with a kill or a cut at each step
    recover(run, (f, ()), {n: (g, ()) for n, g in segs.items()}, plan, allowed, history, why)
    if stock(final) == 'broken':
        raise Violation('a recovered file cannot be opened: %s' % why)
    if run.power:
        return
    # damage of one place: an error, or right, or the newest commit cut
    newest = view_of(final)
    may = set(allowed)
    if newest in history and history.index(newest):
        may.add(history[history.index(newest) - 1])
    for n, s in segs.items():
        spots = [('h', 'BAD'), ('n', 'BAD')] if s[0] and s[3] else [('h', 'BAD')]
        spots += [('sl', 0, 'BAD')] if s[1] else []
        spots += [('sl', 1, 'BAD')] if s[2] else []
        spots += [('i', i, 0) for i in range(len(s[4]))]
        both = [put(put(s, ('sl', 0, 'BAD')), ('sl', 1, 'BAD'))] if s[1] and s[2] else []
        for w in [put(s, o) for o in spots] + both:
            d = dict(segs)
            d[n] = w
            try:
                p = read_log(f, d, M)
            except Refused:
                continue
            if view_of(p[0]) not in may:
                raise Violation('damage is not noticed: %s' % why)


def recover(run, fnode, nodes, plan, allowed, history, why):
    final, names, seal = plan[:3]
    d, pend = fnode
    left, gone = dict(nodes), []
    for op in recovery_steps(fnode_now(fnode), plan, {n: fnode_now(x) for n, x in nodes.items()}, run.M):
        if op[0] == 'F':
            pend += ((op[1], 0),)
        elif op[0] == 'S':
            left[op[1]] = (left[op[1]][0], left[op[1]][1] + ((op[2], 0),))
        elif op[0] == 'sync':
            d, pend = synced((d, pend))
        elif op[0] == 'syncS':
            left = {n: synced(x) for n, x in left.items()}
        else:
            gone.append(op[1])
        if not run.power:
            d, pend = fnode_now((d, pend)), ()
            left = {n: (fnode_now(x), ()) for n, x in left.items() if n not in gone}
        for k in range(1 << len(gone) if run.power else 1):
            rest = [n for n in sorted(left) if not (n in gone and k >> gone.index(n) & 1)]
            for imgs in product(survivors((d, pend)), *(survivors(left[n]) for n in rest)):
                check_image(run, (imgs[0], tuple(zip(rest, imgs[1:]))), allowed, history, why + ['RECOVERY CUT SHORT AFTER', op])


def fnode_now(node):
    img = node[0]
    for op, st in node[1]:
        img = put(img, op)
    return img


def synced(node):
    d, p = node[0], tuple((o, 1 if st == 0 else st) for o, st in node[1])
    while p and p[0][1] == 1:
        d, p = put(d, p[0][0]), p[1:]
    return (d, p)


def stale(f, segs, M):
    """What a writer does with left segments where it begins a chain: names set aside; the others it removes."""
    out = set()
    for n, s in segs.items():
        if s[0] in (None, 'BAD'):
            out.add(n)
            continue
        try:
            recs = commits_of(s, set())
        except Refused:
            out.add(n)
            continue
        if 'begin: a left log is set aside' in M:
            continue
        sb = f[2] and (f[2][0], f[2][1])
        last = next((r[8] for r in reversed(recs) if r[8]), s[0][4])
        same = sb is not None and last is not None and sb == last[:2]
        if 'begin: all of the log is in the file before it is removed' in M:
            if not recs or same:
                continue
        elif same and all(a < f[1] and f[0][a] == v for r in recs for a, o, v in final_entries(recs) if a < recs[-1][3]):
            if recs:
                continue
        out.add(n)
    return out


def final_entries(recs):
    e = {}
    for r in recs:
        for a, o, v in r[7]:
            e[a] = (a, o, v)
    return list(e.values())


def check_moves(run, image, allowed, olds, history, why):
    """The file moved away and another one put in its place; older copies beside the newer log."""
    M = run.M
    f, segs = image[0], dict(image[1])
    key = (image, olds)
    if key in run.moved:
        return
    run.moved.add(key)
    others = [NEW_FILE, run.first, ((7, 7, 0, 0), 2, (99, 2, 0, 0)), ((7, 7, 0, 0), 2, (99, 2, 999, 0))]
    for o in others:
        try:
            p = read_log(o, segs, M)
        except Refused:
            continue
        if p is not None:
            raise Violation('a log is applied to a file that is not its own: %s' % why)
        if f[2] is not None and f[2][2]:
            kept = stale(o, segs, M)
            try:
                p = read_log(f, {n: segs[n] for n in kept}, M)
            except Refused as e:
                raise Violation('the file was moved, another one took its name, and its log is gone (%s): %s' % (e, why))
            if view_of(p[0]) not in allowed:
                raise Violation('the file was moved, another one took its name, and a part of its log is gone: %s' % why)
    for o in olds:
        try:
            p = read_log(o, segs, M)
        except Refused:
            run.older['refused'] += 1
            continue
        v = stock(o) if p is None else view_of(p[0])
        if v in history or v == 'nothing':
            run.older['a commit'] += 1
            continue
        # the id is right; bytes above the high water, which the log has not, were written (again) after the copy was made
        if p is not None and len(p) > 3:
            real = [c for c in history if c[2] == p[3][8][0]]
            if real and real[0][1] == v[1] and all(a >= p[4][3] for a in range(v[1]) if v[0][a] != real[0][0][a]):
                run.older['not noticed: bytes above the high water were changed after the copy'] += 1
                if o[1] < p[3][5]:
                    raise Violation('an older copy that lacks appended bytes is taken: %s' % why)
                continue
        raise Violation('an older copy gives what was never committed: %s' % why)


# ---- the writer ------------------------------------------------------------------------------------------------------

class S:
    __slots__ = ('nodes', 'cache', 'ddur', 'dpend', 'dir', 'wq', 'kq', 'chain', 'cur', 'free', 'begun', 'hw', 'log', 'sthi', 'unc',
                 'uncsb', 'gen', 'eof', 'data', 'val', 'commits', 'acked', 'dead', 'fail', 'closed', 'ids', 'pos', 'last', 'has',
                 'noted', 'dirty', 'olds', 'made', 'ckrec', 'decided', 'inmove')

    def copy(self):
        o = S()
        for k in S.__slots__:
            setattr(o, k, getattr(self, k))
        return o

    def key(self):
        return tuple(getattr(self, k) for k in S.__slots__)


class Run:
    def __init__(self, M, power, deep):
        self.M, self.power, self.deep = M, power, deep
        self.images, self.moved = set(), set()
        self.states = 0
        self.older = {'refused': 0, 'a commit': 0, 'not noticed: bytes above the high water were changed after the copy': 0}


def start(run, script):
    s = S()
    kind = script[0]
    run.first = ((1, 2, 0, 0), 2, (1, 2, 0, 0))
    f = run.first if kind in ('old', 'over') else NEW_FILE
    s.nodes = ((f, ()),)
    s.cache = (f,)
    s.dir = s.ddur = ()
    s.dpend = ()
    s.wq = (('over',),) * (kind == 'over') + tuple(script[1:])
    s.kq = s.chain = s.free = ()
    s.cur = None
    s.begun = s.dead = s.closed = s.has = s.noted = s.dirty = False
    s.hw = f[1]
    s.log = s.unc = ()
    s.sthi = s.gen = s.pos = s.ids = 0
    s.uncsb = s.last = s.fail = s.ckrec = s.decided = None
    s.inmove = False
    s.eof, s.data, s.val = f[1], f[0], 10
    s.commits = ((f[0][:2], 2, 1),) if f[2] else (EMPTY,)
    s.acked = 0
    s.olds = ()
    s.made = f[2] is None
    return s


def write(run, s, ino, op):
    d, p = s.nodes[ino]
    c = put(s.cache[ino], op)
    node = (d, p + ((op, 0),)) if run.power else (c, ())
    s.nodes = s.nodes[:ino] + (node,) + s.nodes[ino + 1:]
    s.cache = s.cache[:ino] + (c,) + s.cache[ino + 1:]
    if ino == FILE:
        s.dirty = True


def sync(s, ino):
    """True: it succeeded."""
    d, p = s.nodes[ino]
    if s.fail is not None and (s.fail == 'F') == (ino == FILE):
        s.fail = None
        node, ok = (d, tuple((o, 2 if st == 0 else st) for o, st in p)), False
    else:
        node, ok = synced((d, p)), True
    s.nodes = s.nodes[:ino] + (node,) + s.nodes[ino + 1:]
    return ok


def folder(run, s, op):
    s.dir = put_dir(s.dir, op)
    if run.power:
        s.dpend += (op,)
    else:
        s.ddur = s.dir


def new_segment(run, s):
    M, P = run.M, run.power
    if s.free:
        name, ino, old = s.free[0]
        s.free = s.free[1:]
        ops = (('reuse', name, ino, old),)
        if P and 'power: header synced when a segment is used again' not in M:
            ops += (('fs', ino),)
        return ops + (('use', name, ino),)
    name = '0' if not any(n == '0' for n, i in s.dir) else '1'
    ino = len(s.nodes)
    ops = (('creat', name), ('hdr', ino))
    if P:
        if 'power: header synced at begin' not in M:
            ops += (('fs', ino),)
        if 'power: folder synced at begin' not in M and not (s.begun and 'power: folder synced for the second segment' in M):
            ops += (('fsd',),)
    return ops + (('use', name, ino),)


def header(run, s, ident):
    # what the segment begins from: the newest commit, or the file as it was found
    created = s.made and s.acked == 0
    st = s.commits[s.acked]
    if 'header: of the segment, not of the chain' in run.M:
        created = s.made
        st = s.commits[0]
    return (ident, s.chain[-1][2] if s.chain else 0, created, 0 if created else max(st[1], 0), None if created else (st[2], st[1], 0))


def mark_of(run, s):
    """The mark's micro-step, or None if the file has one. Marks with the oldest segment's id."""
    f = s.cache[FILE]
    want = s.chain[1][2] if s.inmove and len(s.chain) > 1 and 'mark: never of a segment that has been moved' not in run.M else s.chain[0][2]
    if 'mark: the oldest segment with commits' in run.M and s.cur:
        want = s.cur[2]
        if f[2] is not None and f[2][2] == want:
            return None
        return ('mark', want)
    if f[2] is not None and f[2][2]:
        return None
    return ('mark', want)


def wstep(run, s0):
    """One step of the writer."""
    s = s0.copy()
    M, P = run.M, run.power
    op, s.wq = s0.wq[0], s0.wq[1:]
    k = op[0]

    def before(*ops):
        s.wq = tuple(ops) + (op,) + s.wq
        return s

    if k == 'over':  # a file is created over another one
        write(run, s, FILE, ('zero',))
        s.hw = s.eof = 0
        s.data = (0,) * NB
        s.made = True
        s.commits = (EMPTY,)
        if P:
            if 'power: a file that was cut at its opening is synced' in M:
                s.commits = (EMPTY,)
            else:
                s.wq = (('fs', FILE),) + s.wq
    elif k == 'w':
        a = op[1]
        if a > s.eof:
            return before(('g', a))
        if not s.begun:
            return before(*new_segment(run, s))
        val = op[2] if len(op) > 2 else None
        straight = a >= s.hw or 'high water' in M
        if not straight:
            if s.cur is None:
                return before(*new_segment(run, s))
            m = mark_of(run, s)
            if m and not M & LATE:
                return before(m)
        s.val += 1
        v = s.val
        s.data = s.data[:a] + (v,) + s.data[a + 1:]
        s.eof = max(s.eof, a + 1)
        if straight:
            if a >= s.cache[FILE][1]:
                write(run, s, FILE, ('s+', a + 1))
            write(run, s, FILE, ('b', a, v))
            s.sthi = max(s.sthi, a + 1)
        else:
            write(run, s, s.cur[1], ('i', s.pos, ('E', v)))
            s.unc = tuple(e for e in s.unc if e[0] != a) + ((a, s.pos, v),)
            s.pos += 1
            s.has = True
    elif k == 't':
        n = op[1]
        if not s.begun:
            return before(*new_segment(run, s))
        s.data = tuple(b if i < n else 0 for i, b in enumerate(s.data))
        s.eof = n
        s.unc = tuple(e for e in s.unc if e[0] < n)
        cut = max(n, s.hw)
        if 'truncation under the high water changes nothing' in M:
            cut = n
        if s.cache[FILE][1] > cut:
            write(run, s, FILE, ('s', cut))
        s.sthi = min(s.sthi, n)
    elif k == 'g':
        n, low = op[1], min(op[1], s.hw)
        if not s.begun:
            return before(*new_segment(run, s))
        if s.eof < low and 'zeros where the file grows again' not in M:
            if s.cur is None:
                return before(*new_segment(run, s))
            m = mark_of(run, s)
            if m and not M & LATE:
                return before(m)
            s.unc = tuple(e for e in s.unc if not s.eof <= e[0] < low) + tuple((a, -1, 0) for a in range(s.eof, low))
            s.has = True
        # above the high water the file grows later: with the next bytes there, or by the checkpoint
        s.eof = max(s.eof, n)
    elif k == 'creat':
        s.nodes += ((NEW_SEG, ()),)
        s.cache += (NEW_SEG,)
        folder(run, s, ('link', op[1], len(s.nodes) - 1))
    elif k in ('hdr', 'reuse'):
        ino = op[1] if k == 'hdr' else op[2]
        s.ids += 1
        ident = 100 + s.ids
        if k == 'reuse':
            if 'a new id when a segment is used again' in M:
                ident = op[3]
            if 'slots are zeros when a segment is used again' not in M:
                write(run, s, ino, ('z',))
        write(run, s, ino, ('h', header(run, s, ident)))
    elif k == 'use':
        name, ino = op[1], op[2]
        ident = s.cache[ino][0][0]
        s.cur = (name, ino, ident)
        s.chain += (s.cur,)
        s.pos, s.last, s.has, s.begun = 0, None, False, True
        s.noted = False
    elif k == 'mark':
        f = s.cache[FILE]
        sb = f[2] or (0, 0, 0, 0)
        write(run, s, FILE, ('sb', (sb[0], sb[1], op[1], sb[3])))
    elif k == 'C':
        if s.dead or not s.begun:
            return s
        ops = (('sbw', op[1] if len(op) > 1 else 1), ('cb',))
        s.wq = ops + s.wq
    elif k == 'sbw':
        if s.cur is None:
            return before(*new_segment(run, s))
        m = mark_of(run, s)
        if m and not M & (LATE - {'mark before the first logged byte'}):
            return before(m)
        s.val += 1
        s.uncsb = (s.val, s.eof, op[1])
        s.has = True
    elif k == 'cb':
        s.commits += ((s.data[:s.eof], s.eof, s.uncsb[0]),)
        if 'high water from the beginning of a commit' not in M:
            s.hw = max(s.hw, s.eof)
        rec, slot = ('rec',), ('slot',)
        ops = ()
        if P and s.dirty and 'power: file synced before COMMIT' not in M:
            ops += (('fs', FILE),)
        ops += (('note',),)
        ops += (slot, rec) if 'slot after the record' in M else (rec, slot)
        if P and 'power: segment synced after the slot' not in M:
            ops += (('fs', s.cur[1]),)
        late = (('latemark',),)
        ops += late + (('ack',),) if 'mark before COMMIT' in M else (('ack',),) + late if 'mark before a commit is acknowledged' in M else (('ack',),)
        s.wq = ops + s.wq
    elif k == 'latemark':
        m = mark_of(run, s)
        s.wq = ((m,) if m else ()) + s.wq
    elif k == 'note':
        if not s.noted and len(s.chain) > 1:
            p = s.chain[-2]
            if 'writer: note of the next segment' not in M and p[1] != s.cur[1]:
                write(run, s, p[1], ('n', (p[2], s.cur[2], s.gen)))
                if P and 'power: note synced before the first slot' not in M:
                    s.wq = (('fs', p[1]),) + s.wq
        s.noted = True
    elif k == 'rec':
        st = min(s.sthi, s.eof)
        rec = ('R', s.cur[2], s.gen + 1, s.eof, s.hw, st, s.last, s.unc, s.uncsb)
        write(run, s, s.cur[1], ('i', s.pos, rec))
        s.log = rec
    elif k == 'slot':
        rec = ('R', s.cur[2], s.gen + 1, s.eof, s.hw, min(s.sthi, s.eof), s.last, s.unc, s.uncsb)
        write(run, s, s.cur[1], ('sl', (s.gen + 1) & 1, (s.cur[2], s.gen + 1, s.pos, rec)))
    elif k == 'ack':
        rec = s.cache[s.cur[1]][4][s.pos]
        s.last = (s.pos, hash(rec))
        s.pos += 1
        s.gen += 1
        s.unc, s.uncsb, s.dirty = (), None, False
        s.acked = len(s.commits) - 1
        s.hw = max(s.hw, s.eof)
        if 'high water is the largest' in M:
            s.hw = s.eof
    elif k == 'fs':
        if not sync(s, op[1]):
            if 'power: no commit after a failed sync' in M and any(o[0] == 'ack' for o in s.wq):
                s.wq = (op,) + s.wq  # calls it again, and believes it
                return s
            s.dead = True
            if op[1] != FILE and s.cur and op[1] == s.cur[1] and 'power: the slot of a failed commit is cleared' not in M:
                s.wq = (('void',),) + s.wq
            q = s.wq
            head = ()
            if q and q[0][0] == 'void':
                head, q = q[:1], q[1:]
            while q and q[0][0] in ('fs', 'fsd', 'rec', 'slot', 'note', 'ack'):
                q = q[1:]
            s.wq = head + q
    elif k == 'void':
        write(run, s, s.cur[1], ('sl', (s.gen + 1) & 1, 0))
    elif k == 'fsd':
        s.ddur, s.dpend = s.dir, ()
    elif k == 'fail':
        s.fail = op[1]
    elif k == 'K':
        checkpoint(run, s)
    elif k == 'S':  # the segment has become large: the next one from here on
        if s.cur and not s.unc and not s.uncsb and len(s.chain) < 2 and s.last:
            s.cur = None
    elif k == 'X':
        s.wq = (('C', 0), ('K',), ('kw',), ('K',), ('kw',), ('rm',)) + s.wq
    elif k == 'rm':
        if s.chain or s.dead:
            return s
        if s.dir:
            folder(run, s, ('unlink', s.dir[0][0]))
            return before()
        s.closed = True
    return s


def checkpoint(run, s):
    if s.kq or s.dead or not s.chain:
        return
    M, P = run.M, run.power
    name, ino, ident = s.chain[0]
    seg = s.cache[ino]
    recs = commits_of(seg, set()) if seg[0][0] == ident else []
    if s.cur == s.chain[0]:
        if (s.unc or s.uncsb) and 'a segment with uncommitted bytes is not moved' not in M:
            return
        if not recs:
            return
        s.cur = None
    if not recs:
        return
    last = recs[-1]
    s.ckrec = last
    note = ()
    if 'note before anything is moved' not in M:
        note = (('ckn', ino, (ident, last[2])),) + ((('kss', ino),) if P else ())
    blocks = tuple(('ckb', a, v) for a, o, v in sorted(final_entries(recs)) if a < last[3])
    size = () if 'checkpoint: the size' in M else (('cksize', last[3], last[4]),)
    f1 = (('kfs',),) if P and 'power: file synced before the superblock of a checkpoint' not in M else ()
    f2 = (('kfs',),) if P and 'power: file synced before a segment is free' not in M else ()
    early = note + (('decide',),) if 'checkpoint: the mark is decided when it is written' in M else note
    sb, free = (('cksb',),), (('free',),)
    if 'checkpoint: superblock last' in M:
        s.kq = early + sb + f1 + blocks + size + f2 + free
    elif 'checkpoint: free after the superblock' in M:
        s.kq = early + blocks + size + f1 + free + sb + f2
    elif 'checkpoint: size before the superblock' in M:
        s.kq = early + blocks + f1 + sb + size + f2 + free
    else:
        s.kq = early + blocks + size + f1 + sb + f2 + free


def kstep(run, s0):
    """One step of the checkpoint."""
    s = s0.copy()
    M = run.M
    op, s.kq = s0.kq[0], s0.kq[1:]
    k = op[0]
    later = s.chain[1] if len(s.chain) > 1 and s.has else None
    if k == 'ckb':
        if op[1] >= s.cache[FILE][1]:
            write(run, s, FILE, ('s+', op[1] + 1))
        write(run, s, FILE, ('b', op[1], op[2]))
    elif k == 'ckn':
        n = s.cache[op[1]][3]
        if not n or n[2] < op[2][1]:  # else it says it already: a note with the next segment's id is never written again
            write(run, s, op[1], ('n', (op[2][0], 0, op[2][1])))
    elif k == 'kss':
        if not sync(s, op[1]):
            s.dead, s.kq = True, ()
    elif k == 'cksize':
        eof, hw = op[1], op[2]
        if 'checkpoint: straight bytes above stay' in M:
            # by the letter: only bytes that no commit has keep the file from being cut
            free = s.sthi > s.hw
        else:
            free = s.sthi > hw
        if s.cache[FILE][1] < eof:
            write(run, s, FILE, ('s+', eof))
        elif not free and s.cache[FILE][1] > eof:
            write(run, s, FILE, ('s', eof))
    elif k == 'kfs':
        if not sync(s, FILE):
            if 'power: no checkpoint after a failed sync' in M:
                s.kq = (op,) + s.kq
            else:
                s.dead, s.kq = True, ()
    elif k == 'decide':
        s.decided = (later[2] if later else 0,)
    elif k == 'cksb':
        mark = later[2] if later else 0
        if s.decided:
            mark, s.decided = s.decided[0], None
        if 'checkpoint: marked while a later segment has something' in M:
            mark = 0
        v, eof, flag = s.ckrec[8]
        if not mark and 'checkpoint: HDF5 flags cleared' not in M:
            flag = 0
        write(run, s, FILE, ('sb', (v, eof, mark, flag)))
        s.inmove = True
    elif k == 'free':
        if 'free segments are removed' in M:
            folder(run, s, ('unlink', s.chain[0][0]))
        else:
            s.free += (s.chain[0],)
        s.chain = s.chain[1:]
        s.inmove = False
        eof, hw = s.ckrec[3], s.ckrec[4]
        if 'high water falls only with an empty log' in M:
            s.hw = max(eof, s.commits[-1][1])
        elif not s.unc and not s.uncsb and not (s.chain and s.has) and s.sthi <= hw and s.commits[-1][1] == eof and s.eof == eof \
                and s.cache[FILE][1] == eof:
            s.hw = eof
    return s


# ---- exploration -----------------------------------------------------------------------------------------------------

def look(run, s, why):
    allowed = frozenset(s.commits[s.acked:])
    if run.power and s.made and s.acked == 0 and s.nodes[FILE][0][2] is not None and s.nodes[FILE][0][2][0] == 1:
        allowed |= {((1, 2), 2, 1)}  # the old file, whole: its cutting was never synced
    names = dict(s.dir)
    image = (s.cache[FILE], tuple(sorted((n, s.cache[i]) for n, i in names.items())))
    check_image(run, image, allowed, s.commits, why + ['KILL'])
    if s.closed:
        f = s.cache[FILE]
        if names or f[2] is None or f[2][2] or f[2][3] or f[1] != f[2][1]:
            raise Violation('a closed file is not plain: %s' % (why,))
        if stock(f) != s.commits[-1]:
            raise Violation('a closed file is not its last commit: %s' % (why,))
    if not run.power:
        check_moves(run, image, allowed, s.olds, s.commits, why + ['KILL'])
        f = s.cache[FILE]
        if f not in s.olds and f[2] is not None:
            s.olds += (f,)
        return
    # killed, then a cut while somebody recovers
    segs = {n: s.cache[i] for n, i in names.items()}
    try:
        plan = read_log(image[0], segs, run.M)
    except Refused as e:
        raise Violation('recovery is refused (%s): %s' % (e, why))
    if plan:
        nodes = {n: s.nodes[i] for n, i in names.items()}
        key = (s.nodes[FILE], tuple(sorted(nodes.items())), allowed)
        if key not in run.moved:
            run.moved.add(key)
            recover(run, s.nodes[FILE], nodes, plan, allowed, s.commits, why + ['KILL'])
    for d in dir_survivors(s.ddur, s.dpend):
        inos = [FILE] + [i for n, i in d]
        for imgs in product(*(survivors(s.nodes[i]) for i in inos)):
            image = (imgs[0], tuple((n, img) for (n, i), img in zip(d, imgs[1:])))
            check_image(run, image, allowed, s.commits, why + ['POWER CUT'])


def explore(run, script):
    s = start(run, script)
    seen = {s.key()}
    todo = deque([(s, [])])
    while todo:
        s, path = todo.popleft()
        run.states += 1
        try:
            look(run, s, path)
        except Violation as v:
            raise Violation(str(v))
        nxt = []
        wq = s.wq
        if wq and not (wq[0][0] == 'kw' and s.kq):
            if wq[0][0] == 'kw':
                n = s.copy()
                n.wq = wq[1:]
                nxt.append((n, path))
            else:
                nxt.append((wstep(run, s), path + [wq[0]]))
        if s.kq:
            nxt.append((kstep(run, s), path + [('checkpoint',) + s.kq[0]]))
        for n, p in nxt:
            k = n.key()
            if k not in seen:
                seen.add(k)
                todo.append((n, p))


C, K, X, SW, KW = ('C',), ('K',), ('X',), ('S',), ('kw',)


def w(a):
    return ('w', a)


def t(n):
    return ('t', n)


def g(n):
    return ('g', n)


PROCESS = [
    ('old', t(1), X),
    ('old', g(4), C, w(0), X),
    ('old', g(4), t(3), w(3), C, X),
    ('old', w(0), C, X),
    ('old', w(2), C, X),
    ('new', w(0), C, w(1), X),
    ('new', w(0), C, SW, w(0), K, KW, w(1), C, X),
    ('new', w(0), C, SW, w(0), C, K, w(1), X),
    ('new', w(0), C, K, w(1), C, X),
    ('old', w(0), C, K, w(1), C, K, w(0), C, X),
    ('old', w(0), w(2), C, SW, w(0), w(3), C, K, KW, w(3), C, X),
    ('old', t(1), C, g(3), w(2), C, K, KW, X),
    ('old', w(1), C, t(1), C, w(1), C, X),
    ('old', w(2), C, w(2), t(1), C, w(2), C, K, g(4), C, X),
    ('old', w(2), C, t(1), C, SW, w(3), K, g(4), w(2), C, X),
    ('old', w(0), C, SW, w(1), C, K, KW, w(0), C, K, KW, w(1), C, K, KW, X),
    ('old', w(0), C, w(1), K, C, X),
    ('old', t(1), C, K, KW, g(2), C, X),
    ('old', w(3), t(1), g(3), C, X),
    ('old', w(0), C, w(0), C, w(1), C, X),
    ('old', w(0), C, K, KW, w(0), w(2), C, K, w(2), C, X),
    ('old', w(0), w(2), C, w(3), w(2), C),
    ('old', w(0), w(3), w(2), C),
]
POWER = [
    ('old', t(1), X),
    ('old', g(4), C, X),
    ('old', w(0), C, X),
    ('old', w(0), C, w(1), C),
    ('old', w(2), C, X),
    ('new', w(0), C, X),
    ('over', w(1), C),
    ('old', w(0), C, SW, w(1), C, X),
    ('old', w(0), C, K, w(1), C, X),
    ('new', w(0), C, K, w(0), C),
    ('old', w(0), C, w(0), C, K, KW, w(1), C),
    ('old', w(0), C, K, KW, w(0), C, K, KW, w(1), C),
    ('old', w(0), C, K, KW, w(0), C, SW, w(1), C, K),
    ('old', w(2), C, ('fail', 's'), w(3), C, w(3), C),
    ('old', w(2), ('fail', 'F'), C, w(3), C),
    ('old', w(0), C, ('fail', 'F'), K, KW, w(1), C),
    ('old', t(1), C, g(2), C, X),
]
LONG_PROCESS = [('old', a, C, b, C, k, c, C, X) for a in (w(0), w(2), t(1)) for b in (w(1), w(3), t(1), g(4)) for k in (K, SW)
                for c in (w(0), w(2), t(0), g(4))] + \
    [('new', a, C, k, b, C, K, c, C, X) for a in (w(0), w(2)) for k in (K, SW) for b in (w(0), t(1), w(3)) for c in (w(0), g(3))]
LONG_POWER = [('old', a, C, k, b, C, K) for a in (w(0), w(2), t(1)) for k in (K, SW) for b in (w(1), w(3), t(1), g(3))]


# ---- locks: two recoverers, a writer after them, a reader -------------------------------------------------------------

def locks(M):
    """HDF5's own lock is off here; what is left are the locks of segments. Returns the number of states.

    File: (a, b, mark). Segment inode: (id, locked by, {block: value} committed). 5 processes: two recoverers, a writer that
    was there before (alive, or killed: its lock is gone), a writer that comes later, a reader."""
    OK = {('old', 'old'), ('new', 'new'), ('next', 'next')}
    # state: file, segs ((ino, id, lock, value)...), name -> ino or None, pcs, locals, reader's view
    start = (('old', 'old', 1), ((1, 1, 'L', 'new'),), 1, (('L', 0), ('R1', 0), ('R2', 0), ('W', 0), ('V', 0)),
             (('R1', None), ('R2', None), ('V', None)))
    seen, todo, n = {start}, deque([(start, [])]), 0

    def seg(sg, ino):
        return next(x for x in sg if x[0] == ino)

    def change(sg, ino, **kw):
        out = []
        for i, d, lk, v in sg:
            if i == ino:
                d, lk, v = kw.get('id', d), kw.get('lock', lk), kw.get('value', v)
            out.append((i, d, lk, v))
        return tuple(out)

    while todo:
        st, path = todo.popleft()
        n += 1
        f, sg, name, pcs, loc = st
        pcs, loc = dict(pcs), dict(loc)
        out = []

        def go(who, pc, f=f, sg=sg, name=name, **l):
            p, q = dict(pcs), dict(loc)
            p[who] = pc
            q.update(l)
            out.append(((f, sg, name, tuple(sorted(p.items())), tuple(sorted(q.items()))), path + [(who, pcs[who], pc)]))

        # what the file is, by its mark and log, whenever nobody is at work with right
        live = [x for x in sg if x[2]]
        state = f[:2]
        if f[2]:
            if name and seg(sg, name)[1] == f[2]:
                v = seg(sg, name)[3]
                state = (v, v) if v else state
            else:
                raise Violation('marked, and its log is gone: %s' % path)
        if not live or f[2]:
            if state not in OK:
                raise Violation('not a commit: %s %s' % (state, path))
            if pcs['W'] >= 5 and state != ('next', 'next'):
                raise Violation('a later commit was lost: %s' % path)
        # the first writer: alive it moves its log into the file, block by block, then commits more into the segment, used again
        pc = pcs['L']
        if pc == 0:
            go('L', 9, sg=change(sg, 1, lock=None))  # killed
            go('L', 1, f=('new', f[1], f[2]))
        elif pc == 1:
            go('L', 9, sg=change(sg, 1, lock=None))
            go('L', 2, f=('new', 'new', f[2]))
        elif pc == 2:
            go('L', 9, sg=change(sg, 1, lock=None))
            go('L', 3, f=('new', 'new', 0))
        elif pc == 3:  # used again: another id, a commit, and that is moved, too
            go('L', 4, sg=change(sg, 1, id=7, value=None))
        elif pc == 4:
            go('L', 5, f=(f[0], f[1], 7))
        elif pc == 5:
            go('L', 6, sg=change(sg, 1, value='next'))
        elif pc == 6:
            go('L', 7, f=('next', f[1], 7))
        elif pc == 7:
            go('L', 8, f=('next', 'next', 7))
        if pc in (1, 2, 3, 4) and pcs['R1'] == pcs['R2'] == pcs['V'] == pcs['W'] == 0:
            # the user moves the file away with its log; another one, closed, takes the name. The first writer then closes
            go('L', 20, name=None, f=('next', 'next', 0))
        elif pc == 20:
            go('L', 21, name=None if name == 1 or 'lock: only the own segment is removed' in M else name, sg=change(sg, 1, lock=None))
        # recoverers
        for r in ('R1', 'R2'):
            pc = pcs[r]
            if pc == 0 and f[2] and name and seg(sg, name)[1] == f[2]:
                go(r, 1, **{r: (name, f[2])})
            elif pc == 1:
                ino = loc[r][0]
                lk = seg(sg, ino)[2]
                if 'lock: a recoverer takes it' in M:
                    go(r, 2)
                elif lk is None:
                    go(r, 2, sg=change(sg, ino, lock=r))
                else:
                    go(r, 9)
            elif pc == 2:
                ino, mark = loc[r]
                if 'lock: mark and name are looked at again' in M or (name == ino and f[2] == mark and seg(sg, ino)[1] == mark):
                    go(r, 3)
                else:
                    go(r, 9, sg=change(sg, ino, lock=None if seg(sg, ino)[2] == r else seg(sg, ino)[2]))
            elif pc in (3, 4):
                v = seg(sg, loc[r][0])[3]
                v = v or f[pc - 3]
                go(r, pc + 1, f=(v, f[1], f[2]) if pc == 3 else (f[0], v, f[2]))
            elif pc == 5:
                go(r, 6, f=(f[0], f[1], 0))
            elif pc == 6:
                ino = loc[r][0]
                mine = name == ino or 'lock: only the own segment is removed' in M
                go(r, 9, name=None if mine else name, sg=change(sg, ino, lock=None if seg(sg, ino)[2] == r else seg(sg, ino)[2]))
            if 3 <= pc <= 6:  # killed in the middle
                ino = loc[r][0]
                go(r, 9, sg=change(sg, ino, lock=None if seg(sg, ino)[2] == r else seg(sg, ino)[2]))
        # a writer that comes when the file has no mark and nobody holds the name's lock
        pc = pcs['W']
        lk = seg(sg, name)[2] if name else None
        if pc == 0 and not f[2]:
            if lk is None or 'lock: a locked segment is not set aside' in M:
                go('W', 1, name=None)  # a left one is set aside
        elif pc == 1:
            if name is None:
                go('W', 2, name=2, sg=sg + ((2, 2, 'W', None),))
            else:
                go('W', 9)
        elif pc == 2:
            go('W', 3, f=(f[0], f[1], 2))
        elif pc == 3:
            go('W', 5, sg=change(sg, 2, value='next'))
        elif pc == 5:
            go('W', 6, f=('next', f[1], f[2]))
        elif pc == 6:
            go('W', 7, f=('next', 'next', f[2]))
        elif pc == 7:
            go('W', 8, f=('next', 'next', 0))
        elif pc == 8:
            go('W', 10, name=None if name == 2 else name, sg=change(sg, 2, lock=None))
        # a reader: the lock, then the log, then the two blocks, one after the other
        pc = pcs['V']
        if pc == 0 and f[2] and name and seg(sg, name)[1] == f[2]:
            if seg(sg, name)[2] is None or 'lock: a reader is refused while it is held' in M:
                # he holds it shared while he reads: nobody else gets it
                if 'lock: a reader is refused while it is held' in M:
                    go('V', 1, V=(seg(sg, name)[3], name, None))
                else:
                    go('V', 1, V=(seg(sg, name)[3], name, None), sg=change(sg, name, lock='V'))
        elif pc == 1:
            go('V', 2, V=(loc['V'][0], loc['V'][1], loc['V'][0] or f[0]))
        elif pc == 2:
            v, ino, a = loc['V']
            b = v or f[1]
            if (a, b) not in OK:
                raise Violation('a reader sees no commit: %s %s' % ((a, b), path))
            go('V', 9, sg=change(sg, ino, lock=None if seg(sg, ino)[2] == 'V' else seg(sg, ino)[2]))
        for x in out:
            if x[0] not in seen:
                seen.add(x[0])
                todo.append(x)
    return n


# ---- rules that are left out ------------------------------------------------------------------------------------------

RULES_PROCESS = [
    'mark before a commit is acknowledged', 'high water', 'high water is the largest',
    'high water falls only with an empty log', 'truncation under the high water changes nothing', 'zeros where the file grows again',
    'checkpoint: superblock last', 'checkpoint: the size', 'checkpoint: size before the superblock', 'checkpoint: straight bytes above stay',
    'checkpoint: free after the superblock', 'checkpoint: HDF5 flags cleared', 'checkpoint: marked while a later segment has something',
    'checkpoint: the mark is decided when it is written', 'a segment with uncommitted bytes is not moved',
    'mark: the oldest segment with commits', 'a new id when a segment is used again', 'slots are zeros when a segment is used again',
    'header: of the segment, not of the chain', 'writer: note of the next segment',
    'reader: id of the mark', 'reader: only a marked file', 'reader: no log is an error', 'reader: the later segment too',
    'reader: order of commits', 'reader: damage in the middle', 'reader: two bad slots are damage',
    'reader: the note knows the generation', 'note before anything is moved',
    'mark: never of a segment that has been moved', 'reader: file not shorter than its straight bytes',
    'recovery: superblock last', 'recovery: removes last', 'recovery: HDF5 flags cleared',
    'begin: a left log is set aside', 'begin: all of the log is in the file before it is removed',
]
RULES_POWER = [
    'mark before COMMIT',
    'power: recovery syncs the segments before the note', 'power: recovery writes the newest commit again',
    'high water from the beginning of a commit',
    'reader: crc of record', 'reader: crc of extents', 'reader: torn tail is cut',
    'power: file synced before COMMIT', 'power: segment synced after the slot', 'power: header synced at begin', 'power: folder synced at begin',
    'power: folder synced for the second segment', 'power: header synced when a segment is used again',
    'power: note synced before the first slot', 'power: file synced before the superblock of a checkpoint',
    'power: file synced before a segment is free', 'power: recovery syncs before the superblock', 'power: recovery syncs before it removes',
    'power: no commit after a failed sync', 'power: no checkpoint after a failed sync', 'power: a file that was cut at its opening is synced',
]
RULES_LOCKS = ['lock: a recoverer takes it', 'lock: mark and name are looked at again', 'lock: only the own segment is removed',
               'lock: a locked segment is not set aside', 'lock: a reader is refused while it is held']
# not needed beside the others: the checker is expected to find nothing
NOT_NEEDED = [
    'mark before the first logged byte', 'slot after the record',  # before the acknowledgement; the record's crc is in the slot
    'reader: generations without a gap',  # the note knows the generation
    'reader: id in the slot',  # slots are zeros when a segment is used again
    'power: recovery syncs the note before the file is changed',  # the commit itself is synced; the note is for damage
    'power: the slot of a failed commit is cleared',  # recovery writes it again
]
# in process mode only
NOT_NEEDED_PROCESS = ['mark before COMMIT']


def run_all(M, power, scripts):
    SURV.clear()
    run = Run(frozenset(M), power, False)
    images = 0
    for sc in scripts:
        run.moved.clear()
        images += len(run.images)
        run.images.clear()
        try:
            explore(run, sc)
        except Violation as v:
            return run, (sc, str(v)), images + len(run.images)
    return run, None, images + len(run.images)


def short(v):
    return v if len(v) < 1500 else v[:1500] + ' …'


def main():
    sys.setrecursionlimit(10000)
    long = '--long' in sys.argv
    trace = sys.argv[sys.argv.index('--trace') + 1] if '--trace' in sys.argv else None
    began = time.time()
    bad = 0
    print('%-64s %9s %9s %s' % ('model', 'states', 'images', ''))
    for title, power, scripts in (('process', False, PROCESS + (LONG_PROCESS if long else [])), ('power', True, POWER + (LONG_POWER if long else []))):
        if trace:
            break
        run, v, images = run_all((), power, scripts)
        print('%-64s %9d %9d %s' % (title, run.states, images, 'VIOLATION' if v else 'no violation'))
        if not power:
            print('    older copies of the file beside its log: ' + ', '.join('%d %s' % (n, k) for k, n in run.older.items()))
        if v:
            bad += 1
            print('   ', v[0], '\n   ', short(v[1]))
    if not trace:
        try:
            print('%-64s %9d %9s %s' % ('locks', locks(frozenset()), '', 'no violation'))
        except Violation as v:
            bad += 1
            print('locks: VIOLATION', v)
    found = total = 0
    rules = [('process', x) for x in RULES_PROCESS] + [('power', x) for x in RULES_POWER] + [('locks', x) for x in RULES_LOCKS]
    rules += [('both', x) for x in NOT_NEEDED] + [('process only', x) for x in NOT_NEEDED_PROCESS]
    for kind, rule in rules:
        if trace and trace not in rule:
            continue
        began1 = time.time()
        v = None
        if kind == 'locks':
            try:
                locks(frozenset([rule]))
            except Violation as e:
                v = ((), str(e))
        if kind in ('process', 'both', 'process only'):
            v = run_all((rule,), False, PROCESS)[1]
        if kind in ('power', 'both') and not v:
            v = run_all((rule,), True, POWER)[1]
        if kind in ('both', 'process only'):
            print('  not needed%s: %-62s %s' % (' (process)' if kind == 'process only' else '', rule, 'VIOLATION ' + short(v[1]) if v else 'survives, as it should'))
            bad += bool(v)
            continue
        total += 1
        found += v is not None
        print('  without: %-62s %s %5.2f s' % (rule, 'found' if v else 'MUTATION SURVIVES', time.time() - began1))
        if v and trace:
            print('     ', v[0], '\n     ', v[1])
    print('%d of %d left out rules found; %.1f s' % (found, total, time.time() - began))
    return 1 if bad or found != total else 0


if __name__ == '__main__':
    sys.exit(main())
