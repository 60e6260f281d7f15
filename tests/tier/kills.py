#!/usr/bin/env python3
"""Kills programs whose files wait in a fast tier, their movers, and who opens the files meanwhile, at any of their calls; and compares the files with what was committed.

    kills.py --plugin DIR --seeds 1-20                         random h5py programs and C programs (tests/journal), 12 kills each
    kills.py --plugin DIR --program c --seeds 1-4 --points all at every call
    kills.py --plugin DIR --seed 7 --at 31 --way mover-killed  one kill again (this line is printed with each violation)
    kills.py --plugin DIR --seeds 1-3 --sabotage log           the control: logs are taken out of the tier, and that must be found

A run without a kill tells the number of calls. Then, for each kill, and after each further end that its way (WAYS) brings:
 1. Stock HDF5 is refused, to read and to write, or what it reads is a commit that is allowed: the last one acknowledged, or one begun later.
 2. With the plugin the file is such a commit, at once; and what was seen once is what is seen from then on.
 3. When a mover has come to its end, stock HDF5 sees the same; nothing is left in the tier nor beside the file; and the file can be worked on.
Exit status: 0, or 1 if there are violations (--sabotage: if there are none).
"""

import argparse
import collections
import os
import random
import shutil
import signal
import sys
import tempfile
import time

import tiers
from common import Built, Plugin, Reader, Unfit, answer, native_env, run, scratch

import content  # of tests/journal, whose folder tiers.py has made known
import kill

# What happens after the program was killed; a mover to its end follows each.
WAYS = {
    "mover": "nothing",
    "mover-killed": "movers are killed, at a call each",
    "open": "a program opens the file for writing, with the tier",
    "open-killed": "such programs are killed, at a call each",
    "plain": "a program opens the file for writing, with the plugin and no tier",
    "continue": "the next program goes on, and is killed, too; movers are killed between them",
    "both": "the next program goes on while a mover runs; both are killed, at a call each",
    "auto": "the next program goes on, and the plugin starts movers itself; they are killed at any time",
    "reader": "programs read while a mover runs",
}
DRAWN = ["HDF5_USE_FILE_LOCKING=,,,FALSE", "TIDELANE_JOURNAL=,,process,power"]


class Program(kill.Program):
    """A program of tests/journal, and how many calls a mover of its file makes."""

    mover_calls = 40


class TierKill(kill.Kill):
    """One kill of one program, and all that follows."""

    def run(self):
        with scratch(self.args.dir, "tier.") as work:
            self.work = work
            self.place = tiers.Place(work / "counted", self.plugin, self.args.alone)
            self.folder = self.place.data
            try:
                self.whole()
                if self.args.keep and self.violations:
                    shutil.copytree(work, os.path.join(self.args.keep, f"{self.program.kind}-{self.program.seed}-{self.point}-{self.recovery}"), ignore=shutil.ignore_patterns("*.socket"), dirs_exist_ok=True)
            finally:
                self.place.kill_movers()
        return self

    def whole(self):
        self.turns = 0
        if not self.program_runs(self.point.at):
            return
        if self.args.sabotage:
            self.sabotage()
        self.look("after the program")
        {
            "mover": lambda: None, "mover-killed": self.movers_killed, "open": self.opened_with_tier, "open-killed": self.openers_killed, "plain": self.opened_plainly,
            "continue": self.goes_on, "both": self.both, "auto": self.with_own_movers, "reader": self.read_meanwhile,
        }[self.recovery]()  # fmt: skip
        self.at_last()

    def repeat(self):
        return super().repeat().replace("kill.py", "../tier/kills.py").replace("--recovery", "--way")

    def env(self, journal=True, mover=False):
        return self.place.env(mover, journal, self.program.settings if journal else ())

    def kill_env(self, at, count=None, log=None):
        return self.built.kill_env(self.place.root, at or None, self.point.tear, count, log, self.args.only) | {"KILL_MORE": "1", "KILL_SPARE": tiers.MOVER}

    # Programs.

    def program_runs(self, at, mover=False):
        """Runs the program from where its files are, to its end or its kill; whether there is something to look at."""
        first, self.turns = self.turns == 0, self.turns + 1
        report, log, count = (self.work / f"{name}{self.turns}" for name in ("report", "calls", "count"))
        env = self.env(mover=mover) | self.kill_env(at, count, log)
        done = run(self.program.command(self.folder, report, not first, self.turns), env, self.work, self.args.timeout)
        if first:
            self.calls = int.from_bytes(count.read_bytes(), "little") if count.exists() else 0
            self.log = log.read_text().splitlines() if log.exists() else []
            self.names = []
            self.allowed = collections.defaultdict(lambda: [content.EMPTY])
        self.counts["kills"] += done.rc == -signal.SIGKILL
        if done.rc not in (0, -signal.SIGKILL):
            self.violation("hang" if done.rc is None else "program", f"program {self.turns} ended with {done.words()}")
            return False
        self.take_report(kill.read_report(report, done.rc == 0), done)
        self.counts["with segments"] += bool(self.place.entries())
        return True

    def take_report(self, told, done):
        for name in self.program.names():
            one = told[name]
            if one.found is not None:
                self.admit_bare({"portrait": one.found}, name)
                if not self.is_allowed(one.found, name):
                    self.violation("lost", f"{name}: program {self.turns} found {self.not_allowed(one.found, name)} ({done.err.strip()[:300]})")
                one.base = content.EMPTY if one.found == content.BARE and content.EMPTY in self.allowed[name] else one.found
            if one.found is not None or self.turns == 1:
                self.allowed[name] = one.allowed()
            elif content.EMPTY in self.allowed[name]:
                self.allowed[name] = [*self.allowed[name], content.BARE]  # opened for writing, and killed before it said so
            if one.begun or (self.folder / name).exists():
                self.names = sorted({*self.names, name})

    # What must hold after each end.

    def look(self, when):
        """Nobody writes now: stock HDF5 is refused or reads what is allowed; the plugin reads what is allowed."""
        self.unrecovered(when)
        for name in self.names:
            self.cannot_be_written(name, when)
        for path in self.files():
            before = path.read_bytes()
            found = answer(run(self.program.reader(path, "r"), self.env(self.rng.random() < 0.5)))
            if path.read_bytes() != before:
                self.violation("view", f"{path.name}, {when}: a read-only open changed the file")
            self.seen(found, path.name, f"{when}, read with the plugin")

    def seen(self, found, name, when):
        if "refused" in found:
            if content.EMPTY not in self.allowed[name]:
                self.violation("refuses", f"{name}, {when}: {found['refused']}")
        elif not self.is_allowed(found["portrait"], name):
            self.violation("lost", f"{name}, {when}: {self.not_allowed(found['portrait'], name)}")
        else:
            self.counts["seen"] += 1
            if found["portrait"] not in (content.EMPTY, content.BARE):
                self.allowed[name] = [found["portrait"]]

    def cannot_be_written(self, name, when):
        """Who is refused to read is refused to write, and changes nothing."""
        path = self.folder / name
        if self.rng.random() < 0.6 or not path.exists() or "refused" not in self.stock_reads(name):
            return
        before = path.read_bytes()
        if "refused" not in self.written_by_stock(path) or path.read_bytes() != before:
            self.violation("wrong", f"{name}, {when}: stock HDF5 opens it for writing, or changes it")

    def written_by_stock(self, path):
        return answer(run([sys.executable, tiers.HERE.parent / "journal" / "content.py", "read", path, "--mode", "r+"], native_env()))

    def at_last(self):
        """A mover comes to its end."""
        whole = self.rng.random() < self.args.idle
        rc = self.place.drain(whole=whole)
        if rc not in (0, -signal.SIGKILL):
            self.violation("hang" if rc is None else "refuses", f"the last mover ended with {rc}")
        if not self.point.at:
            self.program.mover_calls = max(20, self.calls // 2)
        if not self.place.drained():
            self.violation("leftover", f"a mover has ended: in the tier {self.place.entries()}, beside the files {self.place.beside()}")
        for path in self.files():  # killed when HDF5 had begun it, and nothing waited yet: nobody but the next opener, or the tool, knows
            if content.EMPTY in self.allowed[path.name] and "refused" in self.stock_reads(path.name):
                self.counts["begun, and cut by the tool"] += 1
                self.tool(path)
        self.ended = "tool"
        self.recovered()

    # Ways.

    def movers_killed(self):
        for number in range(self.rng.randint(1, 4)):
            rc = self.place.drain(self.kill_env(self.rng.randint(1, self.program.mover_calls)) | {"KILL_SPARE": ""})
            if rc not in (0, -signal.SIGKILL):
                self.violation("hang" if rc is None else "refuses", f"mover {number + 1} ended with {rc}")
            self.counts["movers killed"] += 1
            self.look(f"after mover {number + 1}")

    def opened_with_tier(self):
        for path in self.files():
            self.opened_once(path, True)
        self.look("after an open for writing")

    def opened_plainly(self):
        for path in self.files():
            self.opened_once(path, False)
        self.look("after an open for writing without a tier")

    def opened_once(self, path, tier, more=()):
        done = run(self.program.reader(path, "r+"), self.env(tier) | dict(more))
        if done.rc == -signal.SIGKILL:
            self.counts["openers killed"] += 1
            self.admit_bare({"portrait": content.BARE}, path.name)
            return
        found = answer(done)
        self.admit_bare(found, path.name)
        self.seen(found, path.name, f"opened for writing, {'with' if tier else 'without'} a tier")

    def openers_killed(self):
        for path in self.files():
            for _ in range(self.rng.randint(1, 4)):
                self.opened_once(path, self.rng.random() < 0.7, self.kill_env(self.rng.randint(1, 45)))
                self.look("after an opener was killed")

    def goes_on(self):
        for _ in range(self.rng.randint(1, 3)):
            if self.rng.random() < 0.5:
                self.place.drain(self.kill_env(self.rng.randint(1, self.program.mover_calls)) | {"KILL_SPARE": ""})
            if not self.program_runs(self.rng.randint(1, self.calls + 20)):
                return
            self.look(f"after program {self.turns}")

    def both(self):
        for _ in range(self.rng.randint(1, 2)):
            self.place.own.mkdir(exist_ok=True, mode=0o700)
            mover = self.place.start(self.kill_env(self.rng.randint(5, self.program.mover_calls)) | {"KILL_SPARE": ""} if self.rng.random() < 0.7 else {})
            if self.rng.random() < 0.5:
                time.sleep(self.rng.random() * 0.03)
            ran = self.program_runs(self.rng.randint(1, self.calls + 20))
            mover.kill()
            mover.wait()
            if not ran:
                return
            self.look(f"after program {self.turns} and a mover beside it")

    def with_own_movers(self):
        for _ in range(self.rng.randint(1, 3)):
            ran = self.program_runs(self.rng.randint(1, self.calls + 20), mover=True)
            time.sleep(self.rng.choice([0, 0.003, 0.01, 0.05]))
            self.counts["own movers"] += len(self.place.started())
            self.place.kill_movers()
            if not ran:
                return
            self.look(f"after program {self.turns} and a mover of its own")

    def read_meanwhile(self):
        self.place.own.mkdir(exist_ok=True, mode=0o700)
        mover = self.place.start()
        for turn in range(self.rng.randint(1, 4)):
            self.unrecovered("while a mover runs")
            for path in self.files():
                self.seen(answer(run(self.program.reader(path, "r"), self.env(turn % 2 == 0))), path.name, "while a mover runs, read with the plugin")
        mover.kill()
        mover.wait()
        self.look("after readers beside a mover")

    def sabotage(self):
        """What a broken tier would do."""
        if self.args.sabotage == "log":
            for name in self.place.entries():
                if "-wal." in name:
                    (self.place.own / name).unlink()
            return
        # The file is put back to what it was before the last program, as if nothing had marked it.
        self.place.drain()
        before = {path: path.read_bytes() for path in self.files()}
        self.program_runs(0)
        for path, data in before.items():
            with open(path, "r+b") as file:
                file.write(data)


class Campaign(kill.Campaign):
    kill = TierKill

    def program(self, seed):
        return Program(seed, self.args, self.tools.built)

    def points(self, program, log):
        rng = random.Random(f"points {program.seed}")
        whole = [kill.Point(at) for at in range(1, len(log) + 1)]
        if self.args.at:
            chosen = [kill.Point.of(text) for text in self.args.at]
        elif self.args.points == "all":
            chosen = whole
        else:
            chosen = rng.sample(whole, min(int(self.args.points), len(whole)))
        ways = self.args.recovery or list(WAYS)
        return [(point, ways[(turn + program.seed) % len(ways)]) for turn, point in enumerate(chosen)]

    def one(self, program, point, recovery):
        return super().one(program, point, recovery if recovery in WAYS else "mover")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin", help="the folder with libtidelane.so and tidelane-mover")
    parser.add_argument("--tool", help="the program tidelane")
    parser.add_argument("--program", choices=["py", "c", "both"], default="both")
    parser.add_argument("--seeds", "--seed", type=kill.seeds_of, default="1-4", help="such as 1-20")
    parser.add_argument("--ops", type=int, default=30, help="the most operations of a session of writer.py")
    parser.add_argument("--points", default="12", help="kills of each program, or all")
    parser.add_argument("--only", help="count and kill at calls whose line in the shim's log contains this alone")
    parser.add_argument("--at", action="append", default=[], help="the kill to repeat")
    parser.add_argument("--way", "--recovery", dest="recovery", action="append", choices=list(WAYS), help="instead of all in turn")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable of the program")
    parser.add_argument("--draw", action="append", default=None, metavar="NAME=V1,V2", help="a variable whose value the seed draws (an empty one: not set)")
    parser.add_argument("--sabotage", choices=["log", "old"], help="the control: what is broken before it is looked at")
    parser.add_argument("--idle", type=float, default=0.01, help="how many of the last movers are waited for until they end by themselves")
    parser.add_argument("--dir", help="where to work, such as /dev/shm")
    parser.add_argument("--known", action="append", default=[], choices=list(kill.KINDS), help="violations that are only counted")
    parser.add_argument("--keep", help="keeps the folders of violations here")
    parser.add_argument("--build", default=os.path.join(tempfile.gettempdir(), "tidelane-tier"), help="where the shim and the C program are compiled")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    args.draw = DRAWN if args.draw is None else args.draw
    args.native = args.no_journal = args.large = args.half = False
    args.pause = None
    return args


def main():
    args = arguments()
    try:
        plugin = Plugin(args.plugin, args.tool)
        tools = kill.Tools(args, Built(args.build), plugin)
        args.alone = tiers.without_mover(plugin, os.path.join(args.build, "alone"))
    except Unfit as reason:
        sys.exit(f"kills.py: {reason}")
    campaign = Campaign(tools)
    failed = campaign.run()
    if args.sabotage:
        found = [violation for violation in campaign.violations if violation.kind in ("wrong", "lost", "refuses")]
        print(f"control: {len(found)} violations" + ("" if found else ": this program finds nothing"))
        failed = not found
    sys.exit(failed)


if __name__ == "__main__":
    main()
