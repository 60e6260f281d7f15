#!/usr/bin/env python3
"""Kills the random programs of the stress test and of the wheels, as kill.py kills its own, and compares with what they had committed.

    kill_random.py --plugin DIR --stress PROGRAM --seeds 1-4 --points 20          tests/stress: every kind of call, two files, links, renames, event sets
    kill_random.py --plugin DIR --program h5py --seeds 1-4                        tests/wheels: h5py, lowlevel, tables
    kill_random.py --plugin DIR --stress PROGRAM --seed 3 --at 31 --recovery look one kill again (this line is printed with each violation)
    kill_random.py --native ...                                                   the control: without the plugin files must be lost
    kill_random.py --plugin BROKEN --set TIDELANE_BREAK=log_mark --expect-violation ...   the negative control

A seed always does the same. So it runs natively first, and shows the state of all its files at each call that may commit: copies, made after a flush. The program that is killed
says which state is about to be committed, and which one is (tests/stress/commit_log.h, tests/wheels/commits.py). After the kill, and after the recovery, each file must be
the state that was acknowledged last, or one that was begun later: compared by walk.py, object by object and byte by byte. A seed that fails natively is left out, and counted.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading

import content
import kill
from common import HDF5, HERE, Built, Plugin, Reader, Unfit, native_env, run

EMPTY, ANYTHING = "empty", "anything"
WHEELS = HERE.parent / "wheels"
WAYS = [way for way in kill.RECOVERIES if way != "continue"]  # the next program would not know what it found
FOUND = ("wrong", "lost", "view", "unusable")  # what a fault in the plugin leads to


def states_of(path):
    """{name: the states that the file may have}, as the report says: its number and the name that the file had in it, EMPTY, or ANYTHING: renamed without its log, or replaced while it was open."""
    states, begun, move = {}, 0, None
    text = path.read_text() if path.exists() else ""
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):  # the kill cut it short: it was never said
            break
        word, *rest = json.loads(line)
        if move:  # it is over by now
            states[move[1]] = states.pop(move[0], {EMPTY})
            move = None
        if word == "begin":
            begun = rest[0]
            for name in states:
                states[name].add((begun, name))
        elif word in ("done", "closed"):
            for name in rest[1]:
                known = states.get(name, set())
                numbered = {state for state in known if isinstance(state, tuple)}
                now = {state for state in numbered if state[0] == rest[0]} or {(rest[0], name)}
                states[name] = now | {state for state in numbered if state[0] > rest[0]} | (known & {ANYTHING} if word == "done" else set())
        elif word == "creating":
            states.setdefault(rest[0], set()).add(EMPTY)
        elif word == "replaced":
            states.setdefault(rest[0], set()).add(ANYTHING)
        elif word == "created":
            states[rest[0]] = {EMPTY} | (states.get(rest[0], set()) & {ANYTHING})
        elif word in ("renamed", "moved"):
            move = rest
            states[move[1]] = states.get(move[1], {EMPTY}) | states.get(move[0], {EMPTY})
            states.setdefault(move[0], set()).add(EMPTY)
            if word == "moved":
                states[move[0]].add(ANYTHING)
                states[move[1]].add(ANYTHING)
    return states


class RandomProgram:
    """What a seed draws, and the states that it goes through natively."""

    def __init__(self, seed, args, built):
        rng = random.Random(seed)
        self.seed, self.args, self.built, self.kind, self.deferred = seed, args, built, args.program, False
        self.settings = {name: value for name in kill.SETTINGS if (value := rng.choice(kill.SETTINGS[name])) is not None}
        self.settings |= {"TIDELANE_JOURNAL": rng.choice(["process", "process", "power"])} | dict(word.split("=", 1) for word in args.set)
        self.images = pathlib.Path(tempfile.mkdtemp(prefix="kill.images.", dir=args.dir))
        self.portraits, self.reader_of_images, self.lock = {}, Reader(script="walk.py"), threading.Lock()
        self.fit = self.show()

    def close(self):
        self.reader_of_images.close()
        shutil.rmtree(self.images, ignore_errors=True)

    def words(self, folder, report):
        if self.kind == "stress":
            return [self.args.stress, "--seed", self.seed, "--ops", self.args.ops, "--dir", folder, "--commits", report]
        return [sys.executable, "-B", WHEELS / "worker.py", self.kind, "--folder", folder, "--seeds", self.seed, "--commits", report]

    def command(self, folder, report):
        return self.words(folder, report)

    def show(self):
        """Runs natively; whether it ended well."""
        folder = self.images / "data"
        folder.mkdir()
        done = run([*self.words(folder, self.images / "report"), "--images", self.images], native_env(), self.images, self.args.timeout)
        if done.rc != 0 and self.args.verbose:
            print(f"{self.kind} {self.seed}, natively: {done.words()}")
        for path in self.images.glob("[0-9]*/*"):
            data = path.read_bytes()
            if any(data[place + 8 : place + 9] in (b"\2", b"\3") and data[place + 11] for place in (0, 512, 1024, 2048, 4096) if data[place : place + 8] == b"\x89HDF\r\n\x1a\n"):
                run([HDF5 / "bin" / "h5clear", "-s", path], native_env())  # it was copied while it was open
        return done.rc == 0

    def portrait(self, state):
        if state == EMPTY:
            return content.EMPTY
        with self.lock:
            if state not in self.portraits:
                number, name = state
                found = self.reader_of_images.ask("read", self.images / str(number) / name)
                self.portraits[state] = found.get("portrait", {"": f"state {number} of {name} cannot be read: {found.get('refused')}"})
            return self.portraits[state]

    def reader(self, path, mode):
        return [sys.executable, HERE / "walk.py", "read", path, "--mode", mode]


class RandomKill(kill.Kill):
    def repeat(self):
        args, words = self.args, [sys.executable, str(HERE / "kill_random.py")]
        words += ["--native"] if args.native else ["--plugin", str(self.plugin.folder)]
        words += ["--program", args.program] + (["--stress", str(args.stress)] if args.stress else []) + ["--seed", str(self.program.seed), "--ops", str(args.ops)]
        words += ["--at", str(self.point), "--recovery", self.recovery] + [word for setting in args.set for word in ("--set", setting)]
        return " ".join(words + (["--dir", args.dir] if args.dir else []))

    def env(self, journal=True):
        env = super().env(journal)
        return env if journal else {name: text for name, text in env.items() if not name.startswith("TIDELANE_JOURNAL")}

    def start(self):
        report, log, count = self.work / "report", self.work / "calls", self.work / "count"
        env = self.env() | self.built.kill_env(self.folder, self.point.at or None, self.point.tear, count, log)
        done = run(self.program.command(self.folder, report), env, self.work, self.args.timeout)
        (self.work / "output").write_text(done.words())
        self.calls = int.from_bytes(count.read_bytes(), "little") if count.exists() else 0
        self.log = log.read_text().splitlines() if log.exists() else []
        if done.rc not in (0, -signal.SIGKILL):
            self.violation("hang" if done.rc is None else "program", f"the program ended with {done.words()}")
            return False
        self.counts["kills" if done.rc else "not reached" if self.point.at else "not killed"] += 1
        for path in self.folder.iterdir():
            if path.is_symlink():
                path.unlink()
        return self.know(states_of(report))

    def know(self, states):
        """What is allowed. Whether there is something to look at."""
        if any(ANYTHING in some for some in states.values()):
            self.counts["renamed or replaced while it was open"] += 1
            return False
        self.allowed = {name: [self.program.portrait(state) for state in sorted(some, key=str)] for name, some in states.items()}
        self.names = sorted(name for name in states if (self.folder / name).exists() or content.EMPTY not in self.allowed[name])
        return True


class RandomCampaign(kill.Campaign):
    kill, script = RandomKill, "walk.py"

    def program(self, seed):
        """The seed's; of one that fails natively a substitute's."""
        for substitute in range(seed, seed + 5000, 1000):
            program = RandomProgram(substitute, self.args, self.tools.built)
            if program.fit:
                self.programs.append(program)
                return program
            self.counts["seeds that fail natively"] += 1
            program.close()
        raise Unfit(f"native HDF5 fails on seed {seed} and on all its substitutes")

    def run(self):
        self.programs = []
        try:
            return super().run()
        finally:
            for program in self.programs:
                program.close()

    def tell(self):
        status = super().tell()
        if not self.args.expect_violation:
            return status
        found = sum(violation.kind in FOUND for violation in self.violations)
        print(f"negative control: {found} violations" + ("" if found else ": the fault was not found"))
        return 0 if found else 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin", help="the folder with libtidelane.so")
    parser.add_argument("--tool", help="the program tidelane")
    parser.add_argument("--native", action="store_true", help="the control, without the plugin")
    parser.add_argument("--expect-violation", action="store_true", help="a negative control: nothing found is the failure")
    parser.add_argument("--program", choices=["stress", "h5py", "lowlevel", "tables"], default="stress")
    parser.add_argument("--stress", help="the program of tests/stress")
    parser.add_argument("--seeds", "--seed", type=kill.seeds_of, default="1-4", help="such as 1-20")
    parser.add_argument("--ops", type=int, default=400, help="operations of a stress program")
    parser.add_argument("--points", default="12", help="kills of each program, or all")
    parser.add_argument("--at", action="append", default=[], help="the kill to repeat: N, N:page")
    parser.add_argument("--recovery", action="append", choices=WAYS, help="instead of all in turn")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable of the program")
    parser.add_argument("--dir", help="where to work, such as /dev/shm")
    parser.add_argument("--known", action="append", default=[], choices=list(kill.KINDS), help="violations that are only counted")
    parser.add_argument("--keep", help="keeps the folders of violations here")
    parser.add_argument("--build", default=os.path.join(tempfile.gettempdir(), "tidelane-kill"), help="where the shim is compiled")
    parser.add_argument("--jobs", type=int, choices=[1, 2], default=1)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    args.recovery = args.recovery or WAYS
    args.half, args.only, args.no_journal = False, None, False
    if args.program == "stress" and not args.stress:
        parser.error("--stress: which program?")
    return args


def main():
    args = arguments()
    try:
        tools = kill.Tools(args, Built(args.build), None if args.native else Plugin(args.plugin, args.tool))
        sys.exit(RandomCampaign(tools).run())
    except Unfit as reason:
        sys.exit(f"kill_random.py: {reason}")


if __name__ == "__main__":
    main()
