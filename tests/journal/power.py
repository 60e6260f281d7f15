#!/usr/bin/env python3
"""Records what programs do to storage, makes of it what power failures may leave, recovers that, and compares it with what was committed.

    power.py --plugin DIR --seeds 1-6                       writer.c and writer.py with journal=power, in all the ways of SCENARIOS
    power.py --plugin DIR --seeds 3 --scenario fail-open --keep /tmp/found     one again; the states that are wrong are kept (threads: a trace is never quite the same twice)
    power.py --plugin DIR --seeds 1-9 --journal process --control     a control: states must be wrong
    power.py --seeds 1-9 --native --control                 the same for HDF5 without the plugin, whose program syncs the file after each flush
    power.py --plugin BROKEN --break log_commit_sync --control   and with a rule of the plugin switched off (builds with TIDELANE_BREAK)

A program runs with record.c. At cuts of its trace, replay.py makes states of what is durable, and of some of what is not. Each state is recovered, in turn, by `tidelane recover`, by an
open with the plugin, and after a look at it with the plugin that must change nothing. Then stock HDF5 reads it: the last commit that was acknowledged before the cut, or one begun later, object by
object and byte by byte. Exit status: 0, or 1 if a state is wrong, or there were fewer than --least (--control: if none is wrong).
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile

import content
import kill
import numpy as np
import replay
from common import Built, Plugin, Reader, Unfit, is_unborn, native_env, run, scratch, snapshot

SCENARIOS = {
    "whole": "the program, from its begin to its end",
    "killed-recover": "`tidelane recover` after a kill of the program, of which not all is durable",
    "killed-open": "the next program, which opens that and goes on",
    "failed-recover": "the rest of a program one of whose syncs fails, and `tidelane recover`",
    "failed-open": "and the next program",
    "cut-recover": "`tidelane recover` after a power failure",
    "cut-open": "the next program after a power failure",
}
WAYS = ["tool", "open", "look"]
BATCH = 48


def model_of_c(k, rows, state):
    """What writer.c has in its file at commit k."""
    length = k * rows // 2 if k % 10 == 9 else k * rows
    made = k - k % 3
    turn = 700 + 13 * (made % 7)
    i64 = np.dtype("<i8")
    states = np.zeros(state, i64) if k % 11 == 10 else k * 1000003 + np.arange(state, dtype=i64)
    notes = {f"note{n % 40}": np.int64(n) for n in range(max(1, k - 39), k + 1)}
    return {
        "/": content.Object(attributes={"k": np.int64(k)}),
        "/rows": content.Object(np.arange(length, dtype=i64) * 7919 + 13, (None,)),
        "/state": content.Object(states, (state,)),
        "/notes": content.Object(attributes=notes),
        "/turn": content.Object(made * 31 + np.arange(turn, dtype=i64), (turn,)),
    }


class Told:
    """The portraits that one file may have, by what its programs have said so far: the first is the last acknowledged one."""

    def __init__(self, translate):
        self.translate, self.allowed, self.numbers = translate, [content.EMPTY], [0]
        self.exits, self.wrong = False, None

    def take(self, word, rest):
        if word == "begin":
            self.numbers.append(rest[0])
            self.allowed.append(self.translate(rest[1]))
        elif word == "done":
            self.acknowledge(len(self.numbers) - 1 - self.numbers[::-1].index(rest[0]))
        elif word == "exits":
            self.exits = True
        else:
            self.find(self.translate(rest[0]))

    def acknowledge(self, place):
        self.numbers, self.allowed = self.numbers[place:], self.allowed[place:]

    def find(self, portrait):
        """What a later program sees is what storage may have at most, and no commit of its own: what was acknowledged before is what is promised."""
        if portrait == content.BARE and content.EMPTY in self.allowed:
            self.allowed, self.numbers = [*self.allowed, content.BARE], [*self.numbers, 0]
        fitting = [place for place, allowed in enumerate(self.allowed) if content.fits(portrait, allowed)]
        if not fitting:
            self.wrong = " | ".join(content.difference(portrait, allowed) for allowed in self.allowed[:3])
            return
        self.allowed = [*self.allowed[: fitting[-1]], portrait]
        self.numbers = [-1] * len(self.allowed)  # the next program counts for itself

    def ended(self, well):
        if self.exits and well:
            self.acknowledge(len(self.allowed) - 1)
        self.exits = False


@dataclasses.dataclass
class State:
    files: dict
    allowed: dict  # name -> portraits
    words: str


@dataclasses.dataclass
class Wrong:
    words: str
    text: str


class Checker:
    """Recovers states in batches, and lets stock HDF5 read them."""

    def __init__(self, tools, work, turn=0):
        self.tools, self.args, self.work = tools, tools.args, work
        self.batch, self.seen, self.turn = [], set(), turn
        self.counts, self.wrong = collections.Counter(), []

    def add(self, state):
        """Whether it is a new one."""
        digest = hashlib.blake2b(digest_size=16)
        for name in sorted(state.files):
            digest.update(f"{name} {len(state.files[name])} ".encode() + state.files[name])
        digest.update(repr([(name, [id(allowed) for allowed in portraits]) for name, portraits in state.allowed.items()]).encode())
        if digest.digest() in self.seen:
            return False
        self.seen.add(digest.digest())
        self.batch.append(state)
        if len(self.batch) == BATCH:
            self.flush()
        return True

    def flush(self):
        if not self.batch:
            return
        way = "native" if self.args.native else WAYS[self.turn % len(WAYS)]
        self.turn += 1
        folder = self.work / "states"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for number, state in enumerate(self.batch):
            for name, data in state.files.items():
                (folder / f"{number}-{name}").write_bytes(data)
        self.recover(way, folder)
        for number, state in enumerate(self.batch):
            self.look(number, state, folder, way)
        self.counts["states"] += len(self.batch)
        self.counts[f"by {way}"] += len(self.batch)
        self.batch = []

    def each(self, folder):
        for number, state in enumerate(self.batch):
            for name in state.allowed:
                yield state, folder / f"{number}-{name}", name

    def recover(self, way, folder):
        if way == "look":
            before = snapshot(folder)
            for state, path, name in self.each(folder):
                found = self.tools.plugin_reader().ask("read", path)
                nothing = content.EMPTY in state.allowed[name] and "refused" in found  # what has nothing committed cannot be opened by HDF5
                if path.exists() and not nothing and not self.fits(found, path, state.allowed[name]):
                    self.note(state, f"{name}, only read with the plugin: {self.difference(found, state.allowed[name])}")
            if snapshot(folder) != before:
                self.note(self.batch[0], "a look has changed something in this batch")
        if way == "open":
            for _, path, _ in self.each(folder):
                if path.exists():
                    self.tools.plugin_reader().ask("open", path)
        elif way != "native":
            done = self.tools.plugin.recover(folder)
            if done.rc is None or done.rc < 0:
                self.note(self.batch[0], f"tidelane recover, of this batch: {done.words()}")

    def fits(self, found, path, allowed):
        if content.EMPTY in allowed:
            if "refused" in found and (path.stat().st_size == 0 or is_unborn(path)):
                return True
            if found.get("portrait") == content.BARE:
                return True
        return "portrait" in found and any(content.fits(found["portrait"], one) for one in allowed)

    def difference(self, found, allowed):
        return found.get("refused") or " | ".join(content.difference(found["portrait"], one) for one in allowed[:2])

    def look(self, number, state, folder, way):
        for name, allowed in state.allowed.items():
            path = folder / f"{number}-{name}"
            found = self.tools.stock_reader().ask("read", path)
            if not self.fits(found, path, allowed):
                self.note(state, f"{name} ({way}): {self.difference(found, allowed)}")
            elif found.get("portrait", content.EMPTY) != content.EMPTY:
                self.counts["whole"] += 1
                if self.counts["whole"] % 40 == 0 and "refused" in (used := self.tools.stock_reader().ask("use", path)):
                    self.note(state, f"{name} ({way}), used: {used['refused']}")
            else:
                self.counts["empty"] += 1

    def note(self, state, text):
        self.wrong.append(Wrong(state.words, text))
        if self.args.keep and len(self.wrong) <= 20:
            folder = pathlib.Path(self.args.keep) / f"{state.words.split(':')[0].replace(' ', '-')}-{len(self.wrong)}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for name, data in state.files.items():
                (folder / name).write_bytes(data)
            (folder / "words").write_text(f"{state.words}\n{text}\n")


class Story:
    """A folder, the programs that have worked in it one after another, and its disk."""

    def __init__(self, tools, program, work, name, scenario="whole"):
        self.tools, self.program, self.built, self.args = tools, program, tools.built, tools.args
        self.work, self.name = work, name
        self.folder, self.trace, self.report = work / "data", work / "trace", work / "report"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for path in (self.trace, self.report):
            path.unlink(missing_ok=True)
        self.rng = random.Random(f"{program.seed} {name}")
        self.told = {one: Told(self.translate) for one in program.names()}
        self.models, self.goes_on = {}, scenario.endswith("-open")
        self.begin()

    def begin(self):
        self.disk = replay.Disk(self.folder, self.rng)
        self.line = b""

    def translate(self, portrait):
        """One object for each portrait of writer.c."""
        if "commit" not in portrait:
            return portrait
        k = portrait["commit"]
        if k not in self.models:
            sizes = [int(word) for word in self.program.sizes[1::2]]
            self.models[k] = content.portrait(model_of_c(k, sizes[1], sizes[0]))
        return self.models[k]

    # What programs do.

    def record(self, command, end=None, fail=None, plugin=True):
        """Runs a program; its events."""
        at = self.trace.stat().st_size if self.trace.exists() else 0
        env = native_env() if self.args.native or not plugin else self.tools.plugin.env(self.program.settings, self.args.journal)
        if plugin and self.args.rule:
            env["TIDELANE_BREAK"] = self.args.rule
        done = run(command, env | self.built.record_env(self.folder, self.trace, self.report, end, fail, self.args.slow), self.work, 60)
        self.done, self.failed = done, fail is not None
        events = replay.read_trace(self.trace, at) if self.trace.exists() else []
        if done.rc is None or (done.rc < 0 and -done.rc != signal.SIGKILL):
            raise replay.Strange(f"the program ended with {done.words()}")
        return events

    def write(self, go_on=False, **how):
        command = self.program.command(self.folder, self.report, go_on, 1)
        return self.record([*command, "--fsync"] if self.args.native else command, **how)

    def recover(self):
        return self.record([self.tools.plugin.tool, "recover", self.folder], plugin=False)

    # What is known of it then.

    def take(self, event):
        is_end, call = event
        self.disk.take(is_end, call)
        if call.kind == replay.MARK:
            *lines, self.line = (self.line + call.data).split(b"\n")
            for line in lines:
                word, name, *rest = json.loads(line)
                self.told[name].take(word, rest)

    def end(self):
        """A program has ended: the disk is what the folder is, or the trace has not told everything."""
        for told in self.told.values():
            told.ended(self.done.rc == 0 and not self.failed)  # an exit cannot say that the close that it makes has failed
        for call in list(self.disk.under_way):  # a thread that _exit has ended may have been in a call
            call.result = len(call.data)
            self.disk.take(True, call)
        there = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        if there != {name: bytes(file.cache) for name, file in self.disk.names.items()}:
            raise replay.Strange(f"{self.name}: what was recorded is not what is in the folder: {sorted(there)}, {sorted(self.disk.names)}")

    def allowed(self):
        return {name: list(told.allowed) for name, told in self.told.items()}

    def replay(self, events, ends=True):
        """Without looking at states."""
        for event in events:
            self.take(event)
        if ends:
            self.end()

    def look(self, events, checker, states):
        """States at cuts of these events, about so many: spread, most of them around syncs, names and marks. A program that finds something is looked at closely when it begins."""
        first = 60 if self.goes_on and len(events) > 100 else 0
        if first:
            states //= 2
            self.look_among(events, checker, states, 0, first)
        if not self.is_over(checker):
            self.look_among(events, checker, states, first, len(events))
        if self.is_over(checker):
            return
        self.end()
        self.look_here("the end", checker)
        for name, told in self.told.items():
            if told.wrong:
                checker.note(State({}, {}, f"{self.name}: {name}"), f"what the next program found is {told.wrong}")

    def look_among(self, events, checker, states, after, before):
        left, rate = states, 4.0  # of states that a cut gives
        for number, event in enumerate(events[after:before], after):
            self.take(event)
            telling = event[1].kind >= replay.SYNC or event[1].kind == replay.MARK
            if self.rng.random() < (2 if telling else 0.8) * left / rate / (before - number):
                new = self.look_here(f"event {number} of {len(events)}, {event[1]}{'' if event[0] else ' (begun)'}", checker)
                left, rate = left - new, rate * 0.9 + new * 0.1
            if self.is_over(checker):
                break

    def is_over(self, checker):
        """A control needs no more than one state that is wrong."""
        return self.args.control and checker.wrong

    def look_here(self, words, checker):
        new, allowed = 0, self.allowed()
        for ways in self.disk.cuts(self.rng, self.args.random):
            said = "/".join(sorted({way.partition(":")[0] for way in ways.values()})) or "all is durable"
            new += checker.add(State(self.disk.state(ways, self.rng), allowed, f"{self.name}: {words}; {said}"))
        return new

    def cut(self, events):
        """Power fails somewhere: the folder is a state of then, and all of it is durable."""
        number = self.rng.randrange(len(events))
        for event in events[: number + 1]:
            self.take(event)
        ways = {thing: self.rng.choice(replay.WAYS) for thing in self.disk.unsynced()}
        state = self.disk.state(ways, self.rng)
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        for name, data in state.items():
            (self.folder / name).write_bytes(data)
        for told in self.told.values():
            told.exits, told.numbers = False, [-1] * len(told.allowed)
        self.begin()


class Tools:
    """What each process has of its own."""

    def __init__(self, args):
        self.args, self.built = args, Built(args.build)
        self.plugin = None if args.native else Plugin(args.plugin, args.tool)
        self.readers = {}

    def reader(self, name, env):
        if name not in self.readers:
            self.readers[name] = Reader(env)
        return self.readers[name]

    def stock_reader(self):
        return self.reader("stock", native_env())

    def plugin_reader(self):
        return self.reader("plugin", self.plugin.env(journal="power"))


def points(events, kinds):
    """(call numbers, how often): those of the given kinds."""
    return [call.number for is_end, call in events if not is_end and call.kind in kinds]


def last_syncs(events, ends):
    """The last sync before each event that `ends` says: it is what lets a name go, or makes a commit."""
    found, last = [], None
    for is_end, call in events:
        if not is_end and call.kind == replay.SYNC:
            last = call.number
        elif ends(is_end, call) and last is not None:
            found.append(last)
    return found


def play(tools, program, scenarios, turn, checker, work):
    """All scenarios of a program: the whole one is recorded once, and tells where the others can end."""
    name = f"{program.kind} {program.seed}" + (f" again {turn}" if turn else "")
    story = Story(tools, program, work, f"{name} whole")
    events = story.write()
    if "whole" in scenarios:
        story.look(events, checker, tools.args.states)
    for scenario in scenarios:
        if scenario != "whole" and not (tools.args.control and checker.wrong):
            go_on(Story(tools, program, work, f"{name} {scenario}", scenario), scenario, events, checker)


def go_on(story, scenario, events, checker):
    """What comes before the point is only replayed; states of the rest are looked at."""
    how, _, then = scenario.partition("-")
    states, rng = story.args.states, story.rng
    if how == "cut":
        story.cut(events)
    elif how == "killed":
        telling = points(events, [replay.SYNC, replay.SYNC_FOLDER, replay.UNLINK, replay.MAKE, replay.RENAME])
        every = points(events, range(replay.WRITE, replay.STRANGE))
        removal = last_syncs(events, lambda is_end, call: not is_end and call.kind == replay.UNLINK) or telling
        commit = last_syncs(events, lambda _, call: call.kind == replay.MARK and b'["done"' in call.data) or telling
        end = rng.choice({"removal": removal, "commit": commit}.get(story.args.kills) or rng.choice([telling, removal, commit, every]))
        story.name += f" at {end}"
        story.replay(story.write(end=end))
    else:
        fail = rng.randint(1, max(1, len(points(events, [replay.SYNC]))))
        story.name += f" at sync {fail}"
        events = story.write(fail=fail)
        failed = [number + 1 for number, (is_end, call) in enumerate(events) if is_end and call.kind == replay.SYNC and call.result < 0]
        story.replay(events[: failed[0] if failed else len(events)], ends=False)
        story.look(events[failed[0] if failed else len(events) :], checker, states // 2)
        if story.is_over(checker):
            return
    story.look(story.recover() if then == "recover" else story.write(go_on=True), checker, states)


def one(args, seed, scenarios):
    """In a process of its own."""
    global tools
    if "tools" not in globals():
        tools = Tools(args)
    program = kill.Program(seed, args, tools.built)
    if args.words:
        program.words, program.sizes = args.words.split(), args.words.split()[:4]
    with scratch(args.dir, "power.") as work:
        checker = Checker(tools, work, seed)
        for turn in range(args.rounds):
            try:
                play(tools, program, scenarios, turn, checker, work)
                checker.flush()
            except replay.Strange as strange:
                checker.wrong.append(Wrong(f"{program.kind} {program.seed}", f"cannot be followed: {strange}"))
            if args.control and checker.wrong:
                break
    checker.counts["scenarios"] += len(scenarios) * args.rounds
    return checker.counts, checker.wrong


def campaign(args):
    counts, wrong = collections.Counter(), []
    scenarios = args.scenario or (["whole"] if args.native else list(SCENARIOS))
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        todo = [pool.submit(one, args, seed, scenarios) for seed in args.seeds]
        for future in todo:
            if future.cancelled():
                continue
            more, found = future.result()
            counts += more
            wrong += found
            for violation in found[:3]:
                if not args.control:
                    print(f"WRONG {violation.words}\n    {violation.text[:600]}", flush=True)
            if args.control and wrong:
                for other in todo:
                    other.cancel()
    return counts, wrong


def tell(args, counts, wrong):
    print(", ".join(f"{number} {name}" for name, number in counts.items()))
    if args.control:
        if wrong:
            print(f"control: found after {counts['states']} states: {wrong[0].words}\n    {wrong[0].text[:600]}")
        else:
            print(f"control: nothing was found in {counts['states']} states")
        return 0 if wrong else 1
    print(f"{len(wrong)} wrong" if wrong else "none is wrong")
    if counts["states"] < args.least:
        print(f"fewer than {args.least} states")
    return 1 if wrong or counts["states"] < args.least else 0


def parser(about):
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin", help="the folder with libtidelane.so")
    parser.add_argument("--tool", help="the program tidelane")
    parser.add_argument("--native", action="store_true", help="without the plugin")
    parser.add_argument("--journal", choices=["process", "power"], default="power")
    parser.add_argument("--break", dest="rule", help="rules of the plugin that are switched off in the programs: a+b")
    parser.add_argument("--control", action="store_true", help="it ends with the first state that is wrong, and there must be one")
    parser.add_argument("--program", choices=["py", "c", "both"], default="both")
    parser.add_argument("--seeds", "--seed", type=kill.seeds_of, default="1-4", help="such as 1-20")
    parser.add_argument("--scenario", action="append", choices=list(SCENARIOS), help="instead of all")
    parser.add_argument("--states", type=int, default=150, help="of each scenario, about")
    parser.add_argument("--kills", choices=["any", "removal", "commit"], default="any", help="all at the syncs that let names go, or that make a commit")
    parser.add_argument("--rounds", type=int, default=1, help="how often each scenario is played, with other ends")
    parser.add_argument("--random", type=int, default=4, help="random states at each cut, and of single changes, besides the extremes")
    parser.add_argument("--least", type=int, default=0, help="states that must have been looked at")
    parser.add_argument("--ops", type=int, default=15, help="the most operations of a session of writer.py")
    parser.add_argument("--large", action="store_true", help="writer.c with 8 MiB a commit")
    parser.add_argument("--pause", type=int, help="milliseconds that writer.c waits after each commit")
    parser.add_argument("--slow", type=int, help="microseconds that a sync may take more: what goes on beside it then does")
    parser.add_argument("--words", help="what writer.c is given instead of what the seed draws: '--state N --rows N ...'")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable of the program")
    parser.add_argument("--draw", action="append", default=[], metavar="NAME=V1,V2", help="a variable whose value the seed draws (an empty one: not set)")
    parser.add_argument("--dir", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else None, help="where to work")
    parser.add_argument("--keep", help="keeps states that are wrong here, as they were before their recovery")
    parser.add_argument("--build", default=os.path.join(tempfile.gettempdir(), "tidelane-power"), help="where the shim and the C program are compiled")
    parser.add_argument("--jobs", type=int, default=2)
    return parser


def understood(args):
    args.no_journal = args.native
    args.program = "c" if args.native else args.program
    return args


def main():
    args = understood(parser(__doc__).parse_args())
    try:
        Tools(args)
    except Unfit as reason:
        sys.exit(f"power.py: {reason}")
    sys.exit(tell(args, *campaign(args)))


if __name__ == "__main__":
    main()
