#!/usr/bin/env python3
"""Kills programs at each change that they make on storage, recovers their files, and compares them with what was committed.

    kill.py --plugin DIR --seeds 1-20                       random h5py programs (writer.py) and C programs (writer.c), 12 kills each
    kill.py --plugin DIR --program c --seeds 1-4 --points all     at every call, and within the writes that a kill can tear
    kill.py --plugin DIR --seed 7 --at 31:half --recovery look    one kill again (this line is printed with each violation)
    kill.py --native --seeds 1-10                           the control: without the plugin files must be lost, or this program would find nothing
    kill.py --plugin DIR --no-journal --seeds 1-40                the programs themselves, not killed

A run without a kill tells the number of calls. Then, for each kill:
 1. Stock HDF5 is refused, or what it reads is a commit that is allowed: the last one acknowledged, or one begun later.
 2. The file is recovered, in one of the ways of RECOVERIES, in turn.
 3. Stock HDF5 reads an allowed commit, object by object and byte by byte; the folder has nothing else; and the file can be worked on.
Violations are printed, the worst kind first at the end; --keep keeps the folder as it was after the kill. Exit status: 0, or 1 if there are any (--native: if there are none).
"""

import argparse
import collections
import concurrent.futures
import dataclasses
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
import log
from common import HERE, Built, Plugin, Reader, Unfit, answer, is_unborn, marked, native_env, run, scratch, segments, snapshot, superblock

RECOVERIES = ["tool", "folder", "look", "open", "plain", "killed", "killed-open", "continue"]
KINDS = {  # of violations, the worst first
    "wrong": "stock HDF5 reads what was never committed, or something older, and nothing warns",
    "lost": "after its recovery the file is no allowed commit",
    "unusable": "after its recovery the file is damaged by ordinary changes",
    "view": "a read-only open with the plugin shows something else, or changes something",
    "refuses": "the recovery fails",
    "program": "the program itself fails, or reads something else than it wrote",
    "document": "the file after its recovery is not the one that docs/formats/log.md describes",
    "stray": "an empty segment is left in the folder",
    "leftover": "something is left in the folder",
    "hang": "a program does not end",
}
SETTINGS = {  # drawn by the seed
    "TIDELANE_MODE": [None, "async", "sync"],
    "TIDELANE_LANES": [None, "1", "4"],
    "TIDELANE_ARENA": [None, "64k", "1M"],
    "TIDELANE_LINGER": [None, None, "0", "50ms"],
}


@dataclasses.dataclass
class Violation:
    kind: str
    text: str
    repeat: str


@dataclasses.dataclass
class Point:
    """Where a program is killed; at 0: nowhere."""

    at: int
    tear: str = None

    def __str__(self):
        return f"{self.at}:{self.tear}" if self.tear else str(self.at)

    @staticmethod
    def of(text):
        at, _, tear = text.partition(":")
        return Point(int(at), tear or None)


class Told:
    """What a program's report says of one file."""

    def __init__(self):
        self.begun, self.done, self.base, self.exits, self.found = {}, 0, content.EMPTY, False, None

    def allowed(self, deferred=False):
        """The portraits that the file may have."""
        last = max(self.begun, default=0) if self.exits else self.done
        if deferred:  # a flush or a close may return before its commit, or need not be one: any of them
            return [self.base, *self.begun.values()]
        return [self.begun.get(last, self.base), *(portrait for number, portrait in self.begun.items() if number > last)]


def read_report(path, ended_well):
    """A dict of name -> Told. A line that the kill cut short was never said."""
    told = collections.defaultdict(Told)
    text = path.read_text() if path.exists() else ""
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        word, name, *rest = json.loads(line)
        file = told[name]
        if word == "begin":
            file.begun[rest[0]] = rest[1]
        elif word == "done":
            file.done = rest[0]
        elif word == "exits":
            file.exits = ended_well
        else:
            file.begun, file.done, file.base, file.found = {}, 0, rest[0], rest[0]
    return told


class Program:
    """What a seed draws: a program, its words, its settings."""

    def __init__(self, seed, args, built):
        rng = random.Random(seed)
        self.seed, self.args, self.built = seed, args, built
        self.kind = args.program if args.program != "both" else ["py", "c"][seed % 2]
        self.settings = {name: value for name in SETTINGS if (value := rng.choice(SETTINGS[name])) is not None}
        for drawn in args.draw:
            name, _, values = drawn.partition("=")
            value = rng.choice(values.split(","))
            self.settings |= {name: value} if value else {}
        self.settings |= dict(word.split("=", 1) for word in args.set)
        self.deferred = any(self.settings.get(name) == "deferred" for name in ("TIDELANE_CLOSE", "TIDELANE_FLUSH")) or "TIDELANE_JOURNAL_COMMITS" in self.settings
        self.sizes = ["--state", str(rng.choice([16, 1000, 20000])), "--rows", str(rng.choice([3, 100, 3000]))]
        self.words = [*self.sizes, "--steps", str(rng.randint(2, 14))] + ["--latest"] * (rng.random() < 0.5) + ["--async"] * (rng.random() < 0.3)
        if args.large:  # a log that is moved while the program goes on
            self.sizes = ["--state", str(1 << 20), "--rows", str(rng.choice([3, 3000]))]
            self.words = [*self.sizes, "--steps", "26"] + ["--latest"] * (rng.random() < 0.5)
        if args.pause:  # so that a quiet file is moved out of its log
            self.words += ["--pause", str(args.pause)]
        self.words += ["--close-every", str(rng.randint(2, 6))] * (rng.random() < 0.4) + ["--leave", rng.choice(["close", "exit", "now"] if not args.no_journal else ["close", "exit"])]

    def command(self, folder, report, go_on=False, salt=0):
        more = ["--continue"] if go_on else []
        if self.kind == "c":
            return [self.built.writer, "--file", folder / "c.h5", "--report", report, *self.words, *more]
        more += ["--orderly"] if self.args.no_journal else []
        seed = self.seed if not go_on else self.seed * 1000 + salt
        return [sys.executable, HERE / "writer.py", "--folder", folder, "--seed", seed, "--report", report, "--ops", self.args.ops, *more]

    def names(self):
        return ["c.h5"] if self.kind == "c" else ["a.h5", "b.h5"]

    def reader(self, path, mode):
        if self.kind == "c":
            return [self.built.writer, "--read", path, "--mode", mode, *self.sizes]
        return [sys.executable, HERE / "content.py", "read", path, "--mode", mode]


class Kill:
    """One kill of one program, and all that is looked at after it."""

    def __init__(self, program, point, recovery, tools, stock):
        self.program, self.point, self.recovery, self.stock = program, point, recovery, stock
        self.args, self.built, self.plugin = tools.args, tools.built, tools.plugin
        self.rng = random.Random(f"{program.seed} {point}")
        self.violations, self.counts = [], collections.Counter()
        self.calls = 0

    # The parts.

    def repeat(self):
        """The command line that does this kill again."""
        args, words = self.args, [sys.executable, str(HERE / "kill.py")]
        words += ["--native"] if args.native else ["--plugin", str(self.plugin.folder)] + (["--no-journal"] if args.no_journal else [])
        words += ["--program", self.program.kind, "--seed", str(self.program.seed), "--ops", str(args.ops), "--at", str(self.point), "--recovery", self.recovery]
        words += ["--only", f"'{args.only}'"] if args.only else []
        words += ["--large"] * args.large + (["--pause", str(args.pause)] if args.pause else [])
        words += [word for name in args.set for word in ("--set", name)] + [word for name in args.draw for word in ("--draw", name)]
        return " ".join(words + (["--dir", args.dir] if args.dir else []))

    def violation(self, kind, text):
        self.violations.append(Violation(kind, text, self.repeat()))

    def env(self, journal=True):
        return self.plugin.env(self.program.settings, journal and not self.args.no_journal) if self.plugin else native_env()

    def is_allowed(self, portrait, name):
        return any(content.fits(portrait, allowed) for allowed in self.allowed[name])

    def admit_bare(self, found, name):
        """An open for writing makes a bare file of one that is empty: if that is what was found, it is what is there from now on."""
        if found.get("portrait") == content.BARE and content.EMPTY in self.allowed[name] and not self.is_allowed(content.BARE, name):
            self.allowed[name] = [*self.allowed[name], content.BARE]

    def is_unborn(self, name):
        return content.EMPTY in self.allowed[name] and is_unborn(self.folder / name)

    def not_allowed(self, portrait, name):
        """In words: what differs from the commits that are allowed."""
        return " | ".join(content.difference(portrait, allowed) for allowed in self.allowed[name][:3])

    def stock_reads(self, name, command="read"):
        path = self.folder / name
        if self.program.kind == "c" and command == "read":
            return answer(run(self.program.reader(path, "r"), native_env()))
        return self.stock.ask(command, path)

    # The kill.

    def run(self):
        with scratch(self.args.dir) as work:
            self.work, self.folder, self.before = work, work / "data", work / "before"
            self.folder.mkdir()
            if self.start():
                shutil.copytree(self.folder, self.before)
                (self.look_natively if self.args.native else self.look)()
            if self.args.keep and any(violation.kind not in self.args.known for violation in self.violations):
                kept = pathlib.Path(self.args.keep) / f"{self.program.kind}-{self.program.seed}-{str(self.point).replace(':', '-')}"
                shutil.copytree(work, kept, dirs_exist_ok=True)
        return self

    def start(self):
        """Runs the program to its end or its kill; whether there is something to look at."""
        report, log, count = self.work / "report", self.work / "calls", self.work / "count"
        env = self.env() | self.built.kill_env(self.folder, self.point.at or None, self.point.tear, count, log, self.args.only)
        done = run(self.program.command(self.folder, report), env, self.work, self.args.timeout)
        (self.work / "output").write_text(done.words())
        self.calls = int.from_bytes(count.read_bytes(), "little") if count.exists() else 0
        self.log = log.read_text().splitlines() if log.exists() else []
        if done.rc == -signal.SIGKILL:
            self.counts["kills"] += 1
        elif done.rc == 0:
            self.counts["not reached" if self.point.at else "not killed"] += 1
        else:
            self.violation("hang" if done.rc is None else "program", f"the program ended with {done.words()}")
            return False
        told = read_report(report, done.rc == 0)
        self.allowed = {name: told[name].allowed(self.program.deferred) for name in self.program.names()}
        self.names = [name for name in self.program.names() if told[name].begun or (self.folder / name).exists()]
        return True

    def look_natively(self):
        for name in self.names:
            found = self.stock_reads(name)
            whole = "portrait" in found and self.is_allowed(found["portrait"], name)
            self.counts["whole" if whole else "refused" if "refused" in found else "torn"] += 1
            if not whole:
                self.violation("wrong", f"{name}: {found.get('refused') or self.not_allowed(found['portrait'], name)}")

    def look(self):
        self.ended = self.recovery if self.point.at else "tool"
        self.unrecovered()
        if segments(self.folder):
            self.counts["with segments"] += 1
        if not self.point.at and list(snapshot(self.folder)) != [name for name in self.names if (self.folder / name).exists()] and not self.left_open():
            self.violation("leftover", f"after a normal end there is {list(snapshot(self.folder))}")
        if self.args.no_journal:
            if self.counts["refused"]:
                self.violation("program", "stock HDF5 is refused")
            return
        {
            "tool": self.by_tool, "folder": self.by_folder, "look": self.by_looking, "open": self.by_opening, "plain": self.by_opening, "killed": self.by_killed_tool,
            "killed-open": self.by_killed_opening, "continue": self.by_going_on,
        }[self.ended]()  # fmt: skip
        self.recovered()

    def left_open(self):
        """Whether the program ended by _exit with a file open: its segments are right to be there."""
        return any(marked(self.folder / name) for name in self.names if (self.folder / name).exists()) or any(
            len(portraits) > 1 for portraits in self.allowed.values()
        )

    def unrecovered(self, what="before its recovery"):
        """Stock HDF5 is refused, or reads an allowed commit."""
        for name in self.names:
            found = self.stock_reads(name)
            if "refused" in found:
                self.counts["refused"] += 1
                if "is not that of commit" in found["refused"]:
                    self.violation("wrong", f"{name}, {what}: {found['refused']}")
                continue
            self.counts["opened"] += 1
            # A file of no bytes cannot be opened by any HDF5: it is no old data, whatever is in its log.
            if found["portrait"] != content.EMPTY and not self.is_allowed(found["portrait"], name):
                self.violation("wrong", f"{name}, {what}: {self.not_allowed(found['portrait'], name)}")

    def recovered(self):
        """The file is whole for stock HDF5, and alone."""
        names = [name for name in self.names if (self.folder / name).exists()]
        there = list(snapshot(self.folder))
        if there != names:
            if self.ended in ("open", "plain", "continue"):  # an open that writes nothing may leave a segment that belongs to no state of the file
                self.counts["left to the tool"] += 1
                told = self.tool(self.folder).out
                # Who opens it without a journal and changes it does not look for a log that was begun and never marked: it is nobody's then.
                nobodys = {path.name for path in self.folder.iterdir() if self.ended == "plain" and f"{path}: a log of" in told}
                self.counts["nobody's, and told of"] += len(nobodys)
                there = [name for name in snapshot(self.folder) if name not in nobodys]
            if there != names:
                empty = all((self.folder / name).stat().st_size == 0 for name in set(there) - set(names))
                self.violation("stray" if empty else "leftover", f"after its recovery there is {there}")
        for name in self.names:
            found = self.stock_reads(name)
            if self.is_unborn(name):
                self.counts["no HDF5 file yet"] += 1  # the document allows it: killed before HDF5 wrote its first superblock
            elif "refused" in found:
                self.violation("lost", f"{name}: {found['refused']}")
            elif not self.is_allowed(found["portrait"], name):
                self.violation("lost", f"{name}: {self.not_allowed(found['portrait'], name)}")
            elif found["portrait"] != content.EMPTY:
                self.counts["whole"] += 1
                used = self.stock_reads(name, "use")
                if "refused" in used:
                    self.violation("unusable", f"{name}: {used['refused']}")
            else:
                self.counts["empty"] += 1

    # Ways to recover.

    def files(self):
        return [self.folder / name for name in self.names if (self.folder / name).exists()]

    def tool(self, *words, kill=None):
        done = self.plugin.recover(*words, env=self.built.kill_env(self.folder, kill) if kill else {})
        if done.rc == 0 or (kill and done.rc == -signal.SIGKILL) or ("no HDF5 file" in done.err and any(self.is_unborn(path.name) for path in self.files())):
            return done
        self.violation("hang" if done.rc is None else "refuses", f"tidelane recover {' '.join(str(word) for word in words)}: {done.words()}")
        return done

    def by_tool(self):
        for path in self.files():
            wanted = self.by_document(path)
            done = self.tool(path)
            if wanted is not None and done.rc == 0:
                self.counts["by the document"] += 1
                if log.plain(path) != wanted:
                    self.violation("document", f"{path.name}: {log.difference(log.plain(path), wanted)}")

    def by_document(self, path):
        """What log.py makes of a marked file whose log is small (it takes its time)."""
        mark, segment_id = superblock(path)
        if not mark or sum((self.folder / name).stat().st_size for name in segments(self.folder, path.name)) > 500000:
            return None
        try:
            return log.recovered(path, segment_id)
        except log.Damaged:
            return None

    def by_folder(self):
        self.tool(self.folder)

    def by_looking(self):
        """A read-only open sees an allowed commit and changes nothing; the recovery comes to the same."""
        before, seen = snapshot(self.folder), {}
        for path in self.files():
            found = self.opened(path, "r", journal=self.rng.random() < 0.5)
            if "portrait" in found:
                seen[path.name] = found["portrait"]
        if snapshot(self.folder) != before:
            self.violation("view", f"a read-only open changed {sorted(before.items() ^ snapshot(self.folder).items())}")
        self.by_tool()
        for name, portrait in seen.items():
            found = self.stock_reads(name)
            if found.get("portrait") != portrait:
                self.violation("view", f"{name}: seen before its recovery: {content.difference(portrait, found.get('portrait', {}))}")

    def opened(self, path, mode, journal=True):
        """What an open with the plugin shows. A file with nothing committed cannot be opened by HDF5."""
        found = answer(run(self.program.reader(path, mode), self.env(journal)))
        if mode == "r+":
            self.admit_bare(found, path.name)
        kind = "view" if mode == "r" else "lost"
        if "refused" in found:
            if not any(portrait == content.EMPTY for portrait in self.allowed[path.name]):
                self.violation("view" if mode == "r" else "refuses", f"{path.name} opened with the plugin ({mode}): {found['refused']}")
        elif not (found["portrait"] == content.EMPTY and path.stat().st_size == 0) and not self.is_allowed(found["portrait"], path.name):
            self.violation(kind, f"{path.name} opened with the plugin ({mode}): {self.not_allowed(found['portrait'], path.name)}")
        return found

    def by_opening(self):
        for path in self.files():
            self.opened(path, "r+", journal=self.ended == "open")

    def by_killed_tool(self):
        for path in self.files():
            for _ in range(self.rng.randint(1, 5)):
                if self.tool(path, kill=self.rng.randint(1, 12)).rc != -signal.SIGKILL:
                    break
                self.counts["recoveries killed"] += 1
                self.unrecovered("after a killed recovery")
            self.tool(path)

    def by_killed_opening(self):
        for path in self.files():
            for _ in range(self.rng.randint(1, 4)):
                env = self.env() | self.built.kill_env(self.folder, self.rng.randint(1, 12))
                done = run(self.program.reader(path, "r+"), env)
                self.admit_bare(answer(done) if done.rc == 0 else {"portrait": content.BARE}, path.name)  # killed: it may have got so far
                if done.rc == 0:
                    break
                self.counts["recoveries killed"] += 1
                self.unrecovered("after a killed recovery")
            self.tool(path)

    def by_going_on(self):
        """The next programs open the file, go on, and are killed, too; the last one may end well."""
        for salt in range(self.rng.randint(1, 3)):
            report = self.work / f"report{salt}"
            env = self.env() | self.built.kill_env(self.folder, self.rng.randint(1, self.calls + 20))
            done = run(self.program.command(self.folder, report, True, salt), env, self.work, self.args.timeout)
            if done.rc not in (0, -signal.SIGKILL):
                self.violation("hang" if done.rc is None else "program", f"program {salt + 2} ended with {done.words()}")
                return
            self.counts["kills"] += done.rc != 0
            for name, told in read_report(report, done.rc == 0).items():
                self.names = sorted({*self.names, name})
                if told.found is not None:
                    self.admit_bare({"portrait": told.found}, name)
                if told.found is not None and not self.is_allowed(told.found, name):
                    self.violation("lost", f"{name}: program {salt + 2} found {self.not_allowed(told.found, name)} ({done.err.strip()[:300]})")
                if told.found is not None:
                    told.base = content.EMPTY if told.found == content.BARE and content.EMPTY in self.allowed[name] else told.found
                    self.allowed[name] = told.allowed(self.program.deferred)
            self.unrecovered(f"after program {salt + 2}")
        self.by_tool()


@dataclasses.dataclass
class Tools:
    args: argparse.Namespace
    built: Built
    plugin: Plugin


class Campaign:
    def __init__(self, tools):
        self.tools, self.args = tools, tools.args
        self.local = threading.local()
        self.counts, self.violations, self.readers = collections.Counter(), [], []

    kill, script = Kill, "content.py"

    def program(self, seed):
        return Program(seed, self.args, self.tools.built)

    def one(self, program, point, recovery):
        if not hasattr(self.local, "stock"):
            self.local.stock = Reader(script=self.script)
            self.readers.append(self.local.stock)
        return self.kill(program, point, recovery, self.tools, self.local.stock).run()

    def take(self, kill):
        self.counts += kill.counts
        for violation in kill.violations:
            self.violations.append(violation)
            if not self.args.native and violation.kind not in self.args.known:
                print(f"VIOLATION {violation.kind}: {violation.text}\n    {violation.repeat}", flush=True)

    def points(self, program, log):
        """(point, recovery) of a program whose calls are known."""
        rng = random.Random(f"points {program.seed}")
        writes = [[int(word) for word in (line.split()[0], *line.split()[-2:])] for line in log if "write" in line.split()[1]]
        tears = [Point(number, "page") for number, at, size in writes if size and at // 4096 != (at + size - 1) // 4096]
        tears += [Point(number, "half") for number, _, _ in writes] if self.args.half else []
        whole = [Point(at) for at in range(1, len(log) + 1)]
        if self.args.at:
            chosen = [Point.of(text) for text in self.args.at]
        elif self.args.points == "all":
            chosen = whole + tears
        else:
            number = min(int(self.args.points), len(whole))
            chosen = rng.sample(whole, number - min(len(tears), number // 3)) + rng.sample(tears, min(len(tears), number // 3))
        ways = self.args.recovery or RECOVERIES
        return [(point, ways[(turn + program.seed) % len(ways)]) for turn, point in enumerate(chosen)]

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            for seed in self.args.seeds:
                program = self.program(seed)
                first = pool.submit(self.one, program, Point(0), "tool").result()
                self.take(first)
                number = 0
                if not first.violations or self.args.at or self.args.native:
                    kills = [pool.submit(self.one, program, *chosen) for chosen in self.points(program, first.log)]
                    number = len(kills)
                    for kill in kills:
                        self.take(kill.result())
                if self.args.verbose:
                    print(f"{program.kind} {seed}: {first.calls} calls, {number} kills, {program.settings}, {dict(self.counts)}", flush=True)
        for reader in self.readers:
            reader.close()
        return self.tell()

    def tell(self):
        print(", ".join(f"{number} {name}" for name, number in self.counts.items()))
        if self.args.native:
            lost = self.counts["refused"] + self.counts["torn"]
            print(f"control: {lost} files lost or torn without the plugin" + ("" if lost else ": this program finds nothing"))
            return 0 if lost else 1
        journalled = self.args.no_journal or self.counts["kills"] < 20 or self.counts["with segments"] > 0
        if not journalled:
            print("no segment was ever seen: there was no journal")
        for kind, meaning in KINDS.items():
            some = [violation for violation in self.violations if violation.kind == kind]
            if some:
                print(f"{len(some)} violations {kind}: {meaning}; such as\n    {some[0].text}\n    {some[0].repeat}")
        print("no violation" if not self.violations else f"{len(self.violations)} violations")
        return 0 if journalled and all(violation.kind in self.args.known for violation in self.violations) else 1


def seeds_of(text):
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin", help="the folder with libtidelane.so")
    parser.add_argument("--tool", help="the program tidelane")
    parser.add_argument("--native", action="store_true", help="the control, without the plugin")
    parser.add_argument("--no-journal", action="store_true", help="with the plugin, without a journal")
    parser.add_argument("--program", choices=["py", "c", "both"], default="both")
    parser.add_argument("--seeds", "--seed", type=seeds_of, default="1-4", help="such as 1-20")
    parser.add_argument("--ops", type=int, default=30, help="the most operations of a session of writer.py")
    parser.add_argument("--large", action="store_true", help="writer.c with 8 MiB a commit")
    parser.add_argument("--pause", type=int, help="milliseconds that writer.c waits after each commit")
    parser.add_argument("--points", default="12", help="kills of each program, or all")
    parser.add_argument("--only", help="count and kill at calls whose line in the shim's log contains this alone, such as 'unlinkat' or 'write c.h5 0 '")
    parser.add_argument("--half", action="store_true", help="tear writes within a page, too, which no end of a process does")
    parser.add_argument("--at", action="append", default=[], help="the kill to repeat: N, N:half, N:page")
    parser.add_argument("--recovery", action="append", choices=RECOVERIES, help="instead of all in turn")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable of the program")
    parser.add_argument("--draw", action="append", default=[], metavar="NAME=V1,V2", help="a variable whose value the seed draws (an empty one: not set)")
    parser.add_argument("--dir", help="where to work, such as /dev/shm")
    parser.add_argument("--known", action="append", default=[], choices=list(KINDS), help="violations that are only counted")
    parser.add_argument("--keep", help="keeps the folders of violations here")
    parser.add_argument("--build", default=os.path.join(tempfile.gettempdir(), "tidelane-kill"), help="where the shim and the C program are compiled")
    parser.add_argument("--jobs", type=int, choices=[1, 2], default=1)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    if args.no_journal:
        args.points, args.at = "0", []
    return args


def main():
    args = arguments()
    try:
        tools = Tools(args, Built(args.build), None if args.native else Plugin(args.plugin, args.tool))
    except Unfit as reason:
        sys.exit(f"kill.py: {reason}")
    sys.exit(Campaign(tools).run())


if __name__ == "__main__":
    main()
