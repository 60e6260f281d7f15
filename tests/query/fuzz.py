#!/usr/bin/env python3
"""Random datasets and queries of them, compared with an exact model: what every change runs, and a hundred thousand.

    fuzz.py --seeds 1-24 [--modes native,default,async,deferred] [--queries 25]     a process for each mode
    fuzz.py --pairs 100000                                                 ever other seeds, until there were so many pairs
    fuzz.py --modes async --seeds 7                                        one of them again
    fuzz.py --seeds 1-24 --break query_strict --expect-failure             the negative control

`native`: the plugin's file is loaded for its queries alone, and HDF5 serves itself. In the others HDF5 has it as connector. A pair is a
dataset and a query. A crash, a hang, an error and a difference are failures, each with the command that repeats it.
QUERY_PAIRS takes the place of --pairs, QUERY_PYTHON that of the interpreter (with another HDF5 in its h5py).
"""

import argparse
import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
import client  # noqa: E402

ASYNC = {"TIDELANE_MODE": "async"}
MODES = {"native": None, "default": {}, "async": ASYNC, "deferred": {**ASYNC, "TIDELANE_CLOSE": "deferred", "TIDELANE_FLUSH": "deferred"}}
ROUND = 60  # seeds of a round where pairs are counted
ROUND_S = 1800
NEEDED = {  # of async
    "deferred": ("bytes_deferred",),
    "filtered": ("chunks_filtered_by_lanes", "chunks_filtered_by_caller"),
    "read": ("chunks_by_lanes", "chunks_by_callers"),
}


class Fuzz:
    def __init__(self, args):
        self.args = args
        self.failures, self.pairs, self.counters = [], 0, {}

    def plugins(self):
        return os.environ["TIDELANE_TEST_BROKEN_DIR"] if self.args.broken else client.plugin_dir()

    def worker(self, mode, seeds, folder):
        """One process: (what it printed, how it ended)."""
        python = os.environ.get("QUERY_PYTHON", sys.executable)
        command = [python, "-B", HERE / "worker.py", "--folder", folder, "--seeds", seeds, "--queries", self.args.queries]
        settings = {"TIDELANE_TEST_QUERY_DIR": str(self.plugins())}
        if self.args.broken:
            settings["TIDELANE_BREAK"] = self.args.broken
        try:
            if MODES[mode] is None:
                done = client.run(command, {**client.native_environment(), **settings}, ".", ROUND_S)
                return done.output, done.rc
            settings.update(MODES[mode])
            done, summaries = client.run_with_summaries(command, ".", settings=settings, timeout=ROUND_S, plugins=self.plugins())
        except client.ClientError as error:
            return str(error), "hang"
        for summary in summaries.values():
            for name in sum(NEEDED.values(), ()):
                self.counters[mode, name] = self.counters.get((mode, name), 0) + summary["counters"].get(name, 0)
        return done.output, done.rc

    def judge(self, mode, output, rc):
        """Notes failures; returns the last seed that was begun."""
        begun, open_seed = None, False
        for line in output.splitlines():
            word, _, rest = line.partition(" ")
            if word == "begin":
                begun, open_seed = int(rest), True
            elif word == "ok":
                open_seed = False
                self.pairs += int(rest.split()[1])
            elif word == "wrong":
                open_seed = False
                self.failures.append((mode, begun, rest.partition(" ")[2]))
        if begun is None:
            raise client.ClientError(f"{mode}: the worker did not begin: {output[-2000:]}")
        if rc != 0 or not output.rstrip().endswith("end"):
            self.failures.append((mode, begun, f"{'ended with' if open_seed else 'after that seed:'} {rc}: {output[-2500:]}"))
        return begun

    def seeds(self, mode, first, last):
        """All of them; those after one that crashed in another process."""
        with tempfile.TemporaryDirectory(dir=".", prefix="query.") as folder:
            while first <= last:
                output, rc = self.worker(mode, f"{first}-{last}", folder)
                first = self.judge(mode, output, rc) + 1

    def run(self):
        modes = self.args.modes.split(",")
        first, _, last = self.args.seeds.partition("-")
        first, last = int(first), int(last or first)
        pairs = int(os.environ.get("QUERY_PAIRS", self.args.pairs)) if self.args.pairs else 0
        if not pairs:
            for mode in modes:
                self.seeds(mode, first, last)
        while pairs and self.pairs < pairs and len(self.failures) < 10:
            for mode in modes:
                self.seeds(mode, first, first + ROUND - 1)
                first += ROUND  # each mode has seeds of its own

    def require_work(self):
        """A comparison with a plugin that had nothing to do would look perfect."""
        for what, names in NEEDED.items() if "async" in self.args.modes and self.pairs >= 200 else ():
            client.require(any(self.counters.get(("async", name)) for name in names), f"async: nothing was {what} by the plugin")

    def tell(self):
        for mode, seed, what in self.failures[:10]:
            print(f"FAILED {mode} {seed}: {what}\n  again: {HERE / 'fuzz.py'} --modes {mode} --seeds {seed} --queries {self.args.queries}")
        print(f"{self.pairs} pairs agreed, {len(self.failures)} seeds failed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="1-24")
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--queries", type=int, default=25)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--break", dest="broken", default="")
    parser.add_argument("--expect-failure", action="store_true")
    fuzz = Fuzz(parser.parse_args())
    fuzz.run()
    fuzz.tell()
    if not fuzz.args.broken:
        fuzz.require_work()
    if fuzz.args.expect_failure:
        client.require(fuzz.failures, f"nothing was noticed of {fuzz.args.broken}")
        client.require(all("Wrong: " in what for _, _, what in fuzz.failures), "noticed otherwise than by a comparison")
    else:
        client.require(not fuzz.failures and fuzz.pairs, "queries found something else than the model")


if __name__ == "__main__":
    client.main_of(main)
