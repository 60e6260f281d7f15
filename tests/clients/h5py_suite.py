#!/usr/bin/env python3
"""The stock h5py wheel's own test suite, natively and under the plugin, compared by the name of each test.

    h5py_suite.py [--select EXPRESSION]     pytest's -k

With the plugin's defaults every test must end as it does natively. With deferred closes it is run for information: tests that
look at a file from outside right after its close (its size, another process) may rightly see it before it is whole.

Needs TIDELANE_TEST_PLUGIN_DIR, and h5py and pytest in this Python. Minutes.
"""

import argparse
import collections
import importlib.util
import pathlib
import sys
import tempfile
import xml.etree.ElementTree

import client

DEFERRED = {"TIDELANE_CLOSE": "deferred", "TIDELANE_FLUSH": "deferred"}
WAYS = {  # name: connector, settings, must it equal native?
    "wait": ("tidelane", {}, True),
    "async": ("async under_vol=0;under_info={}", {}, True),
    "deferred": ("tidelane", DEFERRED, False),
}
TESTS_AT_LEAST = 500  # of 3.x; fewer and the suite was not found
DEFERRED_AT_LEAST = 1 << 20
TIME_LIMIT = 900


def outcome_of(case):
    for tag in ("failure", "error", "skipped"):
        if case.find(tag) is not None:
            return {"failure": "failed", "error": "error", "skipped": "skipped"}[tag]
    return "passed"


def outcomes(report):
    cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase")
    return {f"{case.get('classname')}.{case.get('name')}": (outcome_of(case), case) for case in cases}


def command(report, select):
    words = [sys.executable, "-B", "-m", "pytest", "-q", "--pyargs", "h5py", "-p", "no:cacheprovider", f"--junitxml={report}"]
    return words + (["-k", select] if select else [])


def count(results):
    counts = collections.Counter(outcome for outcome, _ in results.values())
    return " ".join(f"{counts[name]:5} {name}" for name in ("passed", "failed", "error", "skipped"))


def differences(native, under):
    for name in sorted(native.keys() | under.keys()):
        one, other = (results.get(name, ("absent", None))[0] for results in (native, under))
        if one != other:
            yield name, one, other


def explain(case):
    return "".join((part.text or "")[-1500:] for part in case if part.tag in ("failure", "error")) if case is not None else ""


def run_way(way, scratch, select):
    connector, settings, _ = WAYS[way]
    report = scratch / f"{way}.xml"
    folder = scratch / way
    folder.mkdir()
    done, summary = client.run_plugin(
        command(report, select), folder, connector, {**settings, "TMPDIR": str(folder)}, TIME_LIMIT
    )
    client.require(report.exists(), f"{way}: pytest wrote no report (status {done.rc})\n{done.output[-3000:]}")
    return outcomes(report), summary["counters"]


def compare(way, native, scratch, select):
    results, counters = run_way(way, scratch, select)
    found = list(differences(native, results))
    print(f"{way:9} {count(results)}   {counters['bytes_deferred']:10} bytes deferred, {len(found)} differ", flush=True)
    for name, one, other in found:
        print(f"  {name}: natively {one}, here {other}\n{explain(results.get(name, ('', None))[1])}", flush=True)
    client.require(counters["bytes_deferred"] >= DEFERRED_AT_LEAST or select, "hardly anything was deferred")
    return found


def main():
    parser = argparse.ArgumentParser(description="h5py's own test suite, natively and under the plugin")
    parser.add_argument("--select", metavar="EXPRESSION", help="pytest's -k")
    args = parser.parse_args()
    if not all(importlib.util.find_spec(name) for name in ("h5py", "pytest")):
        print("skipped: this Python has no h5py or no pytest (`make setup-python` installs them)")
        sys.exit(client.SKIPPED)
    with tempfile.TemporaryDirectory(prefix="h5py.") as scratch:
        scratch = pathlib.Path(scratch)
        report, folder = scratch / "native.xml", scratch / "native"
        folder.mkdir()
        env = {**client.native_environment(), "TMPDIR": str(folder)}
        done = client.run(command(report, args.select), env, folder, TIME_LIMIT)
        client.require(report.exists(), f"pytest wrote no report (status {done.rc})\n{done.output[-3000:]}")
        native = outcomes(report)
        client.require(len(native) >= TESTS_AT_LEAST or args.select, f"only {len(native)} tests: not the whole suite")
        print(f"{'native':9} {count(native)}", flush=True)
        found = {way: compare(way, native, scratch, args.select) for way in WAYS}
        wrong = [way for way, (_, _, must) in WAYS.items() if must and found[way]]
        client.require(not wrong, f"other results than natively: {wrong}")


if __name__ == "__main__":
    client.main_of(main)
