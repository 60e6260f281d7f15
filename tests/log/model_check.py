#!/usr/bin/env python3
"""A model check of docs/formats/log.md: every kill, every power cut, every rule left out.

The model has a file of four blocks, a superblock and a size, two segments, a folder. Programs run short scripts of what HDF5
does; each system call is one step, and the steps of a checkpoint come between the program's in every order. After each step the program may be
killed; under `power` the machine may stop, and any subset of what was not synced survives, with torn sectors. Each image that is left is
opened by stock HDF5, recovered (with kills and cuts in between), copied and moved with and without its log, damaged.

Then each rule is left out in turn: a violation has to be found, or the rule is named as one that others make needless.
Exits 0 only if the whole model has no violation, each rule that is left out is found, and the needless ones are needless.

    storage.py     what files hold, writes, syncs, what a cut leaves    explore.py   all orders of steps, a kill and a cut after each
    reader.py      stock HDF5, reading a log, the steps of recovery     scripts.py   what the programs do
    program.py     the state of a program                               locks.py     two recoverers, two writers, a reader
    writer.py      what it does, chain.py, commits.py with it           rules.py     the rules that can be left out
    checkpoint.py  the checkpoint                                       images.py    what must be true of what is left

Run: model_check.py [--long] [--trace RULE]. --trace prints the shortest trace that breaks without RULE (a part of its name).
"""
import sys
import time

import locks
import rules
import scripts
from explore import run_scripts
from images import Violation

LONG_SEED, LONG_COUNT = 1, 3000


def shortened(text, most=1500):
    return text if len(text) < most else text[:most] + ' …'


def run_locks(without):
    """(states, None or (script, violation))."""
    try:
        return locks.explore(frozenset(without)), None
    except Violation as violation:
        return 0, ('', str(violation))


def check_whole_model(is_long):
    """Prints a line for each part; returns how many have a violation."""
    bad = 0
    print('%-10s %9s %9s' % ('model', 'states', 'images'))
    for title, power, chosen in (('process', False, scripts.PROCESS), ('power', True, scripts.POWER)):
        if is_long:
            chosen = chosen + list(scripts.drawn(LONG_SEED, LONG_COUNT, power))
        checks, found = run_scripts((), power, chosen)
        print('%-10s %9d %9d %s' % (title, checks.states, checks.images, 'VIOLATION' if found else 'no violation'))
        if not power:
            print('    older copies of the file beside its log: ' + ', '.join('%d %s' % (n, what) for what, n in checks.older.items()))
        if found:
            bad += 1
            print('   ', found[0], '\n   ', shortened(found[1]))
    states, found = run_locks(())
    print('%-10s %9d %9s %s' % ('locks', states, '', 'VIOLATION ' + found[1] if found else 'no violation'))
    return bad + bool(found)


def without(rule, kinds):
    """None, or (script, violation) of the first kind that finds one. kinds: False: process; True: power; None: locks."""
    for power in kinds:
        if power is None:
            found = run_locks((rule,))[1]
        else:
            found = run_scripts((rule,), power, scripts.POWER if power else scripts.PROCESS)[1]
        if found:
            return found
    return None


def check_rules(part):
    """Leaves out each rule whose name has `part`; returns (how many, how many were found)."""
    total = found = 0
    for kind, names in ((False, rules.PROCESS), (True, rules.POWER), (None, rules.LOCKS)):
        for rule in names:
            if part is not None and part not in rule:
                continue
            began = time.process_time()
            violation = without(rule, (kind,))
            total, found = total + 1, found + bool(violation)
            print('  without: %-72s %s %5.2f s' % (rule, 'found' if violation else 'SURVIVES', time.process_time() - began))
            if violation and part is not None:
                print('     ', violation[0], '\n     ', violation[1])
    return total, found


def check_needless():
    """Returns how many are needed after all."""
    bad = 0
    for names, kinds, where in ((rules.NEEDLESS, (False, True), ''), (rules.NEEDLESS_IN_PROCESS, (False,), ' under process')):
        for rule in names:
            violation = without(rule, kinds)
            bad += bool(violation)
            print('  not needed%s: %-64s %s' % (where, rule, 'VIOLATION ' + shortened(violation[1]) if violation else 'nothing found'))
    return bad


def show_beyond(part):
    """What nobody promises, shown so that it is not forgotten."""
    for name, kind, chosen in rules.BEYOND:
        if part is not None and part not in name:
            continue
        found = run_locks((name,))[1] if kind is None else run_scripts((), kind, chosen)[1]
        print('  not covered: %-72s %s' % (name, 'it shows' if found else 'it does not show any more'))
        if found and part is not None:
            print('     ', found[0], '\n     ', found[1])


def main(arguments):
    sys.setrecursionlimit(10000)
    part = arguments[arguments.index('--trace') + 1] if '--trace' in arguments else None
    bad = 0 if part is not None else check_whole_model('--long' in arguments)
    total, found = check_rules(part)
    if part is None:
        bad += check_needless()
    show_beyond(part)
    print('%d of %d left out rules found; %.1f s' % (found, total, time.process_time()))
    return 1 if bad or found != total else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
