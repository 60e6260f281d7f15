#!/usr/bin/env python3
"""Runs HDF5's own API tests (h5_api_test) natively and under the plugin, and compares the named results one by one.

    api_tests.py [MODE ...]            every mode if none is named; --list shows them
    api_tests.py --repeat N [MODE ...] every mode N times: threads do not fail every time
    api_tests.py --control             the plugin with a fault: this test must notice

Needs TIDELANE_TEST_PLUGIN_DIR and TIDELANE_HDF5_ROOT. Natively the asynchronous group is skipped; under the plugin it must run
and pass. Bytes must have been deferred, or else the plugin was tested while it did nothing.
"""

import argparse
import os
import re
import tempfile

import client

DEFERRED_AT_LEAST = 1 << 20
ASYNC_GROUP = "Async"
ASYNC_AT_LEAST = 20  # 1.14.6 has 28
RESULTS = {"PASSED": "passed", "*FAILED*": "failed", "-SKIP-": "skipped"}

# name: connector, settings
BOTH = {"TIDELANE_MODE": "async", "TIDELANE_CLOSE": "deferred", "TIDELANE_FLUSH": "deferred"}
MODES = {
    "wait": ("tidelane", {"TIDELANE_CLOSE": "wait", "TIDELANE_FLUSH": "wait"}),
    "journal": ("tidelane", {"TIDELANE_MODE": "async", "TIDELANE_JOURNAL": "process"}),
    "journal_power": ("tidelane", {"TIDELANE_MODE": "async", "TIDELANE_JOURNAL": "power", "TIDELANE_CLOSE": "deferred"}),
    "deferred_close": ("tidelane", {"TIDELANE_MODE": "async", "TIDELANE_CLOSE": "deferred", "TIDELANE_FLUSH": "wait"}),
    "deferred_flush": ("tidelane", {"TIDELANE_CLOSE": "wait", "TIDELANE_FLUSH": "deferred"}),
    "deferred_both": ("tidelane", BOTH),
    "small_arena": ("tidelane", {**BOTH, "TIDELANE_ARENA": "1M"}),
    "long_linger": ("tidelane", {**BOTH, "TIDELANE_LINGER": "50000"}),
    "sync": ("tidelane", {"TIDELANE_MODE": "sync"}),
    "name_with_info": ("tidelane under_vol=0;under_info={}", {}),
    "async_name": ("async", {}),
    "async_name_with_info": ("async under_vol=0;under_info={}", BOTH),
}


class Results:
    """The named results of one run, by group, in order."""

    HEAD = re.compile(r"^\*\s+API (\w+) Tests\s+\*$")
    NAMED = re.compile(r"^(\s*)Testing (.+?)\s+(PASSED|\*FAILED\*|-SKIP-)\s*$")
    TOTAL = re.compile(r"^(\d+)/\d+ \(.*\) API tests (passed|did not pass|were skipped) with VOL connector", re.M)

    def __init__(self, done):
        self.groups = {}
        self.output = done.output
        group = None
        for line in done.output.splitlines():
            if head := self.HEAD.match(line):
                group = self.groups.setdefault(head[1], [])
            elif (named := self.NAMED.match(line)) and group is not None:
                group.append((named[1] + named[2], RESULTS[named[3]]))
        totals = {what: int(count) for count, what in self.TOTAL.findall(done.output)}
        client.require(len(totals) == 3, f"h5_api_test printed no totals (exit status {done.rc})\n{done.output[-3000:]}")
        self.passed, self.failed = totals["passed"], totals["did not pass"]
        self.skipped = totals["were skipped"]
        client.require(done.rc == 0 and self.failed == 0, self.failures(done))

    def failures(self, done):
        names = [name for group in self.groups.values() for name, result in group if result == "failed"]
        return f"exit status {done.rc}, {self.failed} failed: {names}\n{done.output[-3000:]}"

    def common(self):
        return {name: results for name, results in self.groups.items() if name != ASYNC_GROUP}


def natively(program):
    with tempfile.TemporaryDirectory(prefix="api.") as folder:
        results = Results(client.run_native([program], folder))
    client.require(ASYNC_GROUP in results.groups, "this h5_api_test was built without the asynchronous group")
    client.require(results.passed > 1000, f"only {results.passed} tests passed natively: not the whole program")
    return results


def compare(native, under):
    """The same tests, in the same order, with the same results; and the asynchronous group on top."""
    here, there = native.common(), under.common()
    client.require(list(here) == list(there), f"groups differ: {list(here)} natively, {list(there)} under the plugin")
    for group, expected in here.items():
        for one, other in zip(expected, there[group]):
            client.require(one == other, f"{group}: natively {one}, under the plugin {other}")
        client.require(
            len(expected) == len(there[group]), f"{group}: {len(expected)} results natively, {len(there[group])} here"
        )
    extra = under.groups.get(ASYNC_GROUP, [])
    client.require(len(extra) >= ASYNC_AT_LEAST, f"the asynchronous group ran only {len(extra)} tests")
    client.require(all(result == "passed" for _, result in extra), f"asynchronous group: {extra}")
    client.require(
        under.passed == native.passed + len(extra),
        f"{under.passed} passed, {native.passed} natively and {len(extra)} of the asynchronous group",
    )
    client.require("infinite loop closing library" not in under.output, "the library did not shut down cleanly")


def judge_summary(mode, counters):
    client.require(counters["errors"] == 0, f"the plugin counted {counters['errors']} errors")
    if mode == "sync":
        client.require(counters["bytes_deferred"] == 0, f"sync mode deferred {counters['bytes_deferred']} bytes")
        client.require(counters["bytes_sync"] >= DEFERRED_AT_LEAST, f"sync mode wrote {counters['bytes_sync']} bytes")
        return
    deferred = counters["bytes_deferred"]
    client.require(deferred >= DEFERRED_AT_LEAST, f"only {deferred} bytes were deferred")
    client.require(counters["lane_busy_ns"] > 0, "no lane ever worked")


def under_plugin(program, native, mode, plugins=None, settings=None):
    connector, mode_settings = MODES[mode]
    with tempfile.TemporaryDirectory(prefix="api.") as folder:
        done, summary = client.run_plugin(
            [program], folder, connector, {**mode_settings, **(settings or {})}, plugins=plugins
        )
    results = Results(done)
    compare(native, results)
    judge_summary(mode, summary["counters"])
    return results, summary["counters"], done.seconds


def all_modes(program, modes, repeat):
    native = natively(program)
    print(f"{'mode':22} passed failed skipped    deferred        sync  lanes busy  seconds")
    print(f"{'native':22} {native.passed:6} {native.failed:6} {native.skipped:7}")
    for turn in range(repeat):
        for mode in modes:
            try:
                results, counters, seconds = under_plugin(program, native, mode)
            except client.ClientError as error:
                raise client.ClientError(f"{mode}, turn {turn + 1}: {error}") from None
            print(
                f"{mode:22} {results.passed:6} {results.failed:6} {results.skipped:7} {counters['bytes_deferred']:11} "
                f"{counters['bytes_sync']:11} {counters['lane_busy_ns'] / 1e6:8.1f} ms {seconds:8.2f}",
                flush=True,
            )


def control(program):
    """A plugin that forgets pending bytes when it reads must fail here, and one that is absent as well."""
    native = natively(program)
    faults = {
        "pending bytes are not read": ("TIDELANE_BREAK", "overlay", os.environ.get("TIDELANE_TEST_BROKEN_DIR")),
        "the plugin is not there": ("HDF5_VOL_CONNECTOR", "native", None),
    }
    for name, (variable, value, plugins) in faults.items():
        settings = {**BOTH, "TIDELANE_LINGER": "50000", variable: value}
        try:
            under_plugin(program, native, "deferred_both", plugins, settings)
        except client.ClientError as error:
            print(f"noticed ({name}): {str(error).splitlines()[0]}")
            continue
        raise client.ClientError(f"not noticed: {name}")


def main():
    parser = argparse.ArgumentParser(description="HDF5's API tests, natively and under the plugin")
    parser.add_argument("modes", nargs="*", metavar="MODE")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--control", action="store_true")
    args = parser.parse_args()
    if args.list:
        print("\n".join(MODES))
        return
    unknown = set(args.modes) - set(MODES)
    client.require(not unknown, f"unknown modes {sorted(unknown)}: --list shows them")
    program = client.hdf5_program("h5_api_test")
    if args.control:
        control(program)
    else:
        all_modes(program, args.modes or list(MODES), args.repeat)


if __name__ == "__main__":
    client.main_of(main)
