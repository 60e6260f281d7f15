#!/usr/bin/env python3
"""A model check of the fast tier's protocol: programs, movers, readers, stock HDF5, users at one file; kills, rules left out.

One system call is one step; a scene names who takes part, and all orders of their steps are explored, with kills at each. After each step
all may end: what is left then is opened, drained, written by a later program. Bounds: files of two blocks, one or two commits, a log
that is one commit after another (tests/log has the model of its format), at most four processes beside each other and one kill (two
where one program is alone with its movers; --long: more of each).

    P1  after any kill an opener sees the last acknowledged commit, or one begun later; so does stock HDF5 after a mover
    P2  stock HDF5 sees a commit, or refuses the file
    P3  a file that is created anew, replaced, renamed, deleted is never changed by an old entry of it
    P4  what a file needs stays in T; what it does not need does not stay there
    P5  nobody waits for one who may never go on; nobody is refused because a mover is there

Then each rule is left out in turn: a violation has to be found, or the rule is named as one that others make needless.
Exits 0 only if the whole model has no violation, each rule that is left out is found, the needless ones are needless, each step was taken.

    world.py    files, names, T, open descriptions and their locks   stock HDF5, readers, users   others.py
    program.py  a program that writes, with the plugin               what must be true            checks.py
    mover.py    the mover                                            all orders, kills            explore.py
    life.py     how movers begin and end                             who takes part, the rules    scenes.py, rules.py

Run: model_check.py [--long] [--trace RULE]. --trace prints the shortest way to a violation without RULE (a part of its name).
"""
import gc
import sys
import time

import life
import rules
from explore import INNER, STEPS, explore
from scenes import BEYOND, long_scenes, short_scenes
from world import Violation


def found_in(scene, without=frozenset(), taken=None):
    """(states, images, None or the violation)."""
    try:
        return (*explore(scene, without, taken), None)
    except Violation as violation:
        return 0, 0, str(violation)


def check_whole_model(scenes, is_long):
    """Prints a line for each scene; returns how many have a violation, or steps that nobody took."""
    bad, taken = 0, set()
    for scene in scenes:
        states, images, violation = found_in(scene, taken=taken)
        bad += bool(violation)
        print('%-58s %8d states %6d images  %s' % (scene.name, states, images, violation or 'no violation'))
    never = {(kind, at) for kind, steps in STEPS.items() for at in steps if at not in INNER} - taken - rules.ONLY_WITHOUT
    if never:
        print('nobody takes: %s' % sorted(never))
    states, violation = life.check(frozenset(), is_long)
    print('%-58s %8d states %6s         %s' % ('movers begin and end', states, '', violation or 'no violation'))
    return bad + bool(never) + bool(violation)


def without(rule, scene):
    if scene == 'life':
        return life.check(frozenset({rule}), False)[1]
    return found_in(scene, frozenset({rule}))[2]


def check_rules(scenes, part):
    """(How many rules were left out, how many of them were found.)"""
    total = found = 0
    for rule, name in list(rules.RULES.items()) + [(rule, 'life') for rule in life.RULES]:
        if part is not None and part not in rule:
            continue
        began = time.process_time()
        violation = without(rule, scenes.get(name, 'life'))
        total, found = total + 1, found + bool(violation)
        print('  without: %-76s %s %5.2f s' % (rule, 'found' if violation else 'SURVIVES', time.process_time() - began))
        if violation and part is not None:
            print('     ', violation)
    return total, found


def check_needless(scenes, is_long):
    """Returns how many are needed after all: in the nearest scene, or in all (is_long)."""
    bad = 0
    for rule, name in list(rules.NEEDLESS.items()) + [(rule, 'life') for rule in life.NEEDLESS]:
        chosen = list(short_scenes()) if is_long and name in scenes else [scenes.get(name, 'life')]
        violation = next(filter(None, (without(rule, scene) for scene in chosen)), None)
        bad += bool(violation)
        print('  not needed: %-73s %s' % (rule, violation or 'nothing found'))
    return bad


def show_beyond(part):
    for name, scene in BEYOND.items():
        if part is None or part in name:
            violation = found_in(scene)[2]
            print('  not covered: %s: %s' % (name, 'it shows' if violation else 'it does not show any more'))
            if violation and part is not None:
                print('     ', violation)


def main(arguments):
    gc.disable()
    part = arguments[arguments.index('--trace') + 1] if '--trace' in arguments else None
    is_long = '--long' in arguments
    scenes, more = list(short_scenes()), list(long_scenes())
    by_name = {scene.name: scene for scene in scenes + more}
    bad = 0 if part is not None else check_whole_model(scenes + more if is_long else scenes, is_long)
    total, found = check_rules(by_name, part)
    if part is None:
        bad += check_needless(by_name, is_long)
    show_beyond(part)
    print('%d of %d left out rules found; %.1f s' % (found, total, time.process_time()))
    return 1 if bad or found != total else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
