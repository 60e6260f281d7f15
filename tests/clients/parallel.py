#!/usr/bin/env python3
"""Runs HDF5's parallel API tests and testphdf5 natively and under the plugin, and compares their named results.

    parallel.py MPIRUN ROOT [--ranks N] [--repeat N] [--preload LIBRARY] [PROGRAM ...]

ROOT is a parallel HDF5 that scripts/setup/hdf5-parallel.sh built. What a program finds natively in this run is the measure:
the same named results on every rank, no error output of HDF5 that native does not have, no hang. Every rank must leave a summary,
and together they must have deferred bytes. Needs TIDELANE_TEST_PLUGIN_DIR.
"""

import argparse
import collections
import os
import pathlib
import re
import tempfile

import client

# Bytes of a run that must have been deferred: most of what these programs write is collective, or smaller than is worth it.
PROGRAMS = {"h5_api_test_parallel": 1 << 10, "testphdf5": 1_000_000}
ASYNC_TESTS = ("Async", "async")
MODES = {
    "default": {},
    "deferred": {"TIDELANE_MODE": "async", "TIDELANE_CLOSE": "deferred", "TIDELANE_FLUSH": "deferred"},
    "small arena": {"TIDELANE_MODE": "async", "TIDELANE_ARENA": "1M"},
    "filtered by HDF5": {"TIDELANE_MODE": "async", "TIDELANE_PARALLEL_WRITES": "serial"},
    "sync": {"TIDELANE_MODE": "sync"},
}
NAMED = re.compile(r"^\s*((?:Testing|Skipping)\b.*?)\s*(PASSED|\*FAILED\*|-SKIP-)?\s*$")
HEAD = re.compile(r"^\*\s+API Parallel (\w+) Tests\s+\*$")


def named_results(output):
    """How often each named result was printed: ranks print when they like. Without the asynchronous group, which a
    native run cannot have."""
    found, group = collections.Counter(), ""
    for line in output.splitlines():
        if head := HEAD.match(line):
            group = head[1]
        elif (named := NAMED.match(line)) and group not in ASYNC_TESTS:
            found[group, named[1], named[2]] += 1
    return found


def complaints(output):
    return len(re.findall(r"HDF5-DIAG|infinite loop closing|tidelane:", output))


def require_sane(name, done):
    client.require(done.rc == 0, f"{name}: exit status {done.rc}\n{done.output[-4000:]}")
    client.require("*FAILED*" not in done.output, f"{name}: a test failed\n{done.output[-4000:]}")


class Runs:
    """One program on so many ranks of one MPI: natively, and as often as asked for under the plugin."""

    def __init__(self, args, program):
        self.program, self.ranks = program, args.ranks
        path = pathlib.Path(args.root) / "bin" / program
        client.require(path.exists(), f"{path} is missing")
        self.command = [args.mpirun, "-np", args.ranks, path]
        self.timeout = args.timeout
        self.expected = None
        self.preload = {"LD_PRELOAD": args.preload} if args.preload else {}

    def native(self):
        if self.expected is not None:
            return self.expected
        with tempfile.TemporaryDirectory(prefix="parallel.") as folder:
            env = {**client.native_environment(), **self.preload}
            done = client.run(self.command, env, folder, self.timeout)
        require_sane(f"{self.program} natively", done)
        client.require(len(named_results(done.output)) > 20, "natively hardly anything was tested")
        self.expected = done
        return done

    def under_plugin(self, mode):
        expected = self.native()
        with tempfile.TemporaryDirectory(prefix="parallel.") as folder:
            settings = {**MODES[mode], **self.preload}
            done, summaries = client.run_with_summaries(self.command, folder, settings=settings, timeout=self.timeout)
        require_sane(f"{self.program}, {mode}", done)
        here, there = named_results(expected.output), named_results(done.output)
        client.require(here == there, f"{self.program}, {mode}: natively {here - there}, under the plugin {there - here}")
        client.require(
            complaints(done.output) <= complaints(expected.output),
            f"{self.program}, {mode}: error output that native does not have\n{done.output[-4000:]}",
        )
        return done, self.judge(mode, summaries)

    def judge(self, mode, summaries):
        client.require(len(summaries) == self.ranks, f"{len(summaries)} summaries of {self.ranks} ranks")
        counters = [summary["counters"] for summary in summaries.values()]
        client.require(sum(c["errors"] for c in counters) == 0, f"{self.program}, {mode}: the plugin counted errors")
        total = {key: sum(c[key] for c in counters) for key in ("bytes_deferred", "bytes_sync", "lane_busy_ns")}
        if mode == "sync":
            client.require(total["bytes_deferred"] == 0, f"{self.program}: sync mode deferred bytes")
        else:
            least = PROGRAMS[self.program]
            client.require(
                total["bytes_deferred"] >= least and total["lane_busy_ns"] > 0,
                f"{self.program}, {mode}: {total}, at least {least} bytes should have been deferred",
            )
        return total


def main():
    parser = argparse.ArgumentParser(description="HDF5's parallel tests, natively and under the plugin")
    parser.add_argument("mpirun")
    parser.add_argument("root", type=os.path.realpath)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=100)
    parser.add_argument("--mode", action="append", choices=MODES, help="one or more; all if none is named")
    parser.add_argument("--preload", help="into every rank")
    args = parser.parse_intermixed_args()
    os.environ["TIDELANE_HDF5_ROOT"] = args.root  # that one, for what is shared with the tests of serial programs
    for program in args.programs or PROGRAMS:
        runs = Runs(args, program)
        print(f"{program} on {args.ranks} ranks: natively {runs.native().seconds:.1f} s", flush=True)
        for turn in range(args.repeat):
            for mode in args.mode or MODES:
                done, total = runs.under_plugin(mode)
                print(
                    f"  {mode:17} {done.seconds:5.1f} s, {total['bytes_deferred']} bytes deferred, "
                    f"{total['bytes_sync']} written by the caller, lanes busy {total['lane_busy_ns'] / 1e6:.1f} ms",
                    flush=True,
                )


if __name__ == "__main__":
    client.main_of(main)
