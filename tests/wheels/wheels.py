#!/usr/bin/env python3
"""Random programs through the wheels: each runs under the plugin in several modes and natively, and numpy says what is right.

    wheels.py LIBRARY --seeds 1-6 [--modes default,async,deferred]       what every change runs
    wheels.py LIBRARY --seconds 600 [--seeds 1000-]                      for a time, with ever other seeds
    wheels.py LIBRARY --mode async --seed 7 [--repeat N]                 one of them again, N times
    wheels.py LIBRARY --mode async --seed 7 --minimise                   and made as short as it still fails
    wheels.py LIBRARY --seeds 1-9 --break overlay --expect-failure       the negative control

A round is one process for each mode, and then a native one: it runs the same programs as a control, and looks at the files
that the others left. A program that natively differs from the model as well is native's own: it is named, and not held
against the plugin (more than one in five is a failure: then the programs are to be looked at). A crash, a hang, an error and
a difference are failures, each with the command that repeats it and the shortest list of operations found in a minute.
WHEELS_SECONDS takes the place of --seconds. From the plugin's summaries it is required that bytes were deferred and chunks went through the lanes.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
import client  # noqa: E402

ASYNC = {"TIDELANE_MODE": "async"}
SLOW = {"STRESS_SLOW_US": "2000"}  # with the library that WHEELS_SLOW_STORAGE names preloaded
MODES = {
    "default": {},
    "async": ASYNC,
    "deferred": {**ASYNC, **SLOW, "TIDELANE_CLOSE": "deferred", "TIDELANE_FLUSH": "deferred"},
    "slow": {**SLOW, "TIDELANE_CLOSE": "deferred"},
}
ROUND = 40  # programs of a round where time decides how many there are
ROUND_S = 900
COUNTED = {  # what the programs of a library must have used
    "deferred": ("bytes_deferred",),
    "filtered": ("chunks_filtered_by_lanes", "chunks_filtered_by_caller"),
    "read": ("chunks_by_lanes", "chunks_by_callers"),
}
WRITES = {"deferred", "filtered"}  # of small files: what HDF5's chunk cache can hold, it reads itself
NEEDED = {"netcdf": WRITES, "tables": WRITES, "xarray": WRITES, "pandas": {"deferred"}}


@dataclasses.dataclass
class Failure:
    seed: int
    mode: str
    kind: str
    what: str


class Wheels:
    def __init__(self, args):
        self.args = args
        self.counters = {}
        self.failures, self.natives, self.judged = [], [], 0

    def environment(self, mode):
        """What a mode adds, and whether that can be had here."""
        settings = dict(MODES[mode])
        library = os.environ.get("WHEELS_SLOW_STORAGE", "")
        if "STRESS_SLOW_US" in settings and library:
            settings["LD_PRELOAD"] = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), library]))
        if self.args.broken:
            settings["TIDELANE_BREAK"] = self.args.broken
        return settings

    def plugins(self):
        return os.environ["TIDELANE_TEST_BROKEN_DIR"] if self.args.broken else None

    def run(self, words, mode=None):
        """One worker. Returns the lines that it printed and how it ended; a hang ends it."""
        command = [sys.executable, "-B", HERE / "worker.py", self.args.library, *words]
        try:
            if mode is None:
                done = client.run_native(command, ".", ROUND_S)
                return done.output, done.rc
            settings = self.environment(mode)
            done, summaries = client.run_with_summaries(command, ".", settings=settings, timeout=ROUND_S, plugins=self.plugins())
        except client.ClientError as error:
            return str(error), "hang"
        for summary in summaries.values():
            for name, value in summary["counters"].items():
                self.counters[mode, name] = self.counters.get((mode, name), 0) + value
        return done.output, done.rc

    def outcomes(self, output, rc, mode):
        """{program: trouble or None}; the one that was at work when a worker ended early gets all the blame."""
        found, begun = {}, None
        for line in output.splitlines():
            word, _, rest = line.partition(" ")
            if word == "begin":
                begun = rest
            elif word == "ok":
                found[rest.split()[0]] = None
            elif word == "wrong":
                found[rest.split()[0]] = json.loads(rest.partition(" ")[2])
        if rc != 0 or not output.rstrip().endswith("end"):
            kind = f"signal {-rc}" if isinstance(rc, int) and rc < 0 else f"ended with {rc}"
            if "Timeout (" in output or rc == "hang":
                kind = "hang"
            found[begun] = {"kind": kind, "what": output[-1500:], "where": mode}
        return found

    def mode_round(self, folder, mode, first, last, ops=None):
        """All seeds in one process; those after one that crashed in another."""
        found = {}
        while first <= last:
            words = ["--mode", mode, "--folder", folder, "--seeds", f"{first}-{last}", *(["--ops", ops] if ops else [])]
            now = self.outcomes(*self.run(words, mode), mode)
            found.update({int(k): v for k, v in now.items() if k is not None})
            if None in now:
                raise client.ClientError(f"the worker did not begin: {now[None]['what']}")
            first = max(found) + 1
        return found

    def native_round(self, folders, first, last, ops=None):
        """(the control's outcomes, those of the files that were left, by mode and seed)"""
        with tempfile.TemporaryDirectory(dir=".") as scratch:
            words = ["--folder", f"{scratch}/native", "--seeds", f"{first}-{last}", *(["--ops", ops] if ops else [])]
            found = self.outcomes(*self.run([*words, "--check", *folders]), "native")
        control, left = {}, {}
        for name, trouble in found.items():
            mode, slash, seed = (name or "").rpartition("/")
            if slash:
                left[mode, int(seed)] = trouble
            else:
                control[name] = trouble
        return {int(seed): trouble for seed, trouble in control.items() if seed}, left

    def round(self, modes, first, last, ops=None):
        """Runs and judges; returns the failures of this round."""
        failures = []
        with tempfile.TemporaryDirectory(dir=".", prefix="round.") as scratch:
            top = pathlib.Path(scratch, "a")  # storage is slow for files below a/
            top.mkdir()
            found = {mode: self.mode_round(top / mode, mode, first, last, ops) for mode in modes}
            control, left = self.native_round([top / mode for mode in modes], first, last, ops)
        native = {seed for seed, trouble in control.items() if trouble}
        self.natives += sorted(native)
        self.judged += last - first + 1
        for mode in modes:
            crashes = [seed for seed in native if (found[mode].get(seed) or {}).get("kind", "").startswith(("signal", "ended"))]
            for seed in range(first, last + 1):
                trouble = found[mode].get(seed)
                # A crash that is native's own takes what the same process had closed and not stored: so it is promised.
                with_a_crash = mode in ("deferred", "slow") and any(crash > seed for crash in crashes)
                if trouble is None and not with_a_crash:
                    trouble = left.get((mode, seed))
                if trouble and seed not in native:
                    place = trouble.get("left") and f"{trouble['left']}, read by a process without the plugin" or trouble["where"]
                    failures.append(Failure(seed, mode, trouble["kind"], f"{trouble['what']} ({place})"))
        return failures

    def repeating(self, failure):
        words = ["tests/wheels/wheels.py", self.args.library, "--mode", failure.mode, "--seed", str(failure.seed)]
        return " ".join(words + (["--break", self.args.broken] if self.args.broken else []))

    def report(self, failures, minimise):
        for failure in failures:
            print(f"FAILED {self.args.library} {failure.mode} seed {failure.seed}: {failure.kind}: {failure.what}")
            print(f"  again: {self.repeating(failure)}", flush=True)
        if failures and minimise:
            Minimiser(self, failures[0]).report()

    def check_use(self, modes):
        """The programs went through what they are to try."""
        for mode in modes:
            for name in sorted(NEEDED.get(self.args.library, COUNTED)):
                count = sum(self.counters.get((mode, one), 0) for one in COUNTED[name])
                print(f"{self.args.library} {mode}: {name} {count}")
                client.require(count > 0, f"nothing was {name} in mode {mode}: {COUNTED[name]}")


class Minimiser:
    """Leaves operations out, halves first, as long as the program fails in the same way."""

    TRIES = 3  # what depends on the lanes' timing may not fail each time

    def __init__(self, wheels, failure):
        self.wheels, self.failure = wheels, failure
        self.end = time.monotonic() + wheels.args.minimise_seconds

    def fails(self, operations):
        with tempfile.TemporaryDirectory(dir=".") as scratch:
            ops = os.path.join(scratch, "ops")
            pathlib.Path(ops).write_text("".join(json.dumps(one) + "\n" for one in operations))
            for _ in range(self.TRIES):
                found = self.wheels.round([self.failure.mode], self.failure.seed, self.failure.seed, ops)
                if any(one.kind == self.failure.kind for one in found):
                    return True
        return False

    def drawn(self):
        """The operations of the failing program, as it was."""
        with tempfile.TemporaryDirectory(dir=".") as scratch:
            seed, mode = self.failure.seed, self.failure.mode
            self.wheels.mode_round(pathlib.Path(scratch, mode), mode, seed, seed)
            kept = pathlib.Path(scratch, mode, str(seed), "operations")
            return [json.loads(line) for line in kept.read_text().splitlines()]

    def reduce(self, operations):
        size = max(1, len(operations) // 2)
        while operations and time.monotonic() < self.end:
            at, shorter = len(operations), False
            while at > 0 and time.monotonic() < self.end:
                rest = operations[: max(0, at - size)] + operations[at:]
                if self.fails(rest):
                    operations, shorter = rest, True
                at -= size
            if size == 1 and not shorter:
                break
            size = max(1, size // 2)
        return operations

    def report(self):
        operations = self.drawn()
        if not self.fails(operations):
            print(f"  does not fail again in {self.TRIES} runs of its own: repeat the round, or --repeat")
            return
        before = len(operations)
        operations = self.reduce(operations)
        kept = pathlib.Path(f"{self.wheels.args.library}-{self.failure.mode}-{self.failure.seed}.ops").resolve()
        kept.write_text("".join(json.dumps(one) + "\n" for one in operations))
        print(f"  {len(operations)} of {before} operations are enough: {self.wheels.repeating(self.failure)} --ops {kept}")
        print("".join(f"    {json.dumps(one)}\n" for one in operations), flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--modes", "--mode", default="default,async,deferred", type=lambda text: text.split(","))
    parser.add_argument("--seeds", default="1-5")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seconds", type=float, help="go on with further seeds for so long; WHEELS_SECONDS overrides it")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--ops", help="a file of operations in place of the seed's")
    parser.add_argument("--minimise", action="store_true")
    parser.add_argument("--minimise-seconds", type=float, default=60)
    parser.add_argument("--break", dest="broken", default="")
    parser.add_argument("--expect-failure", action="store_true")
    args = parser.parse_args()
    if args.seconds is not None and "WHEELS_SECONDS" in os.environ:
        args.seconds = float(os.environ["WHEELS_SECONDS"])
    if args.ops:
        args.ops = os.path.abspath(args.ops)
    return args


def rounds(args):
    """(first, last) of each round."""
    if args.seed is not None:
        yield from [(args.seed, args.seed)] * args.repeat
        return
    first, dash, last = args.seeds.partition("-")
    first = int(first)
    if args.seconds is None:
        if dash and not last:
            sys.exit(f"--seeds {args.seeds}: up to which?")
        yield first, int(last or first)
        return
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        yield first, first + ROUND - 1
        first += ROUND


def main():
    args = arguments()
    if args.seed is not None and len(args.modes) > 1 and args.minimise:
        sys.exit("--minimise: say in which --mode")
    wheels, failures = Wheels(args), []
    for first, last in rounds(args):
        now = wheels.round(args.modes, first, last, args.ops)
        wheels.report(now, minimise=(args.seed is None or args.minimise) and not failures and not args.expect_failure)
        failures += now
        if failures and args.expect_failure:
            break
    differences = sum(failure.kind == "differs" for failure in failures)
    print(f"{args.library}: {wheels.judged} programs in {len(args.modes)} modes, {len(failures)} failures; native's own: {wheels.natives}")
    if args.expect_failure:
        client.require(differences, "no program found the fault")
        return
    client.require(not failures, f"{len(failures)} programs failed")
    client.require(len(wheels.natives) <= max(1, wheels.judged // 5), "too many programs fail natively")
    if args.seed is None:
        wheels.check_use(args.modes)


if __name__ == "__main__":
    os.environ.setdefault("TIDELANE_HISTORY", "0")
    root = HERE.parents[1] / "build/release"
    os.environ.setdefault("TIDELANE_TEST_PLUGIN_DIR", str(root / "lib/tidelane"))
    os.environ.setdefault("TIDELANE_TEST_BROKEN_DIR", str(root / "lib/tidelane-broken"))
    os.environ.setdefault("WHEELS_SLOW_STORAGE", str(root / "tests/stress/libstress_slow_storage.so"))
    client.main_of(main)
