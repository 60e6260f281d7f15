#!/usr/bin/env python3
"""mpi4py and h5py on a parallel HDF5, natively and under the plugin: h5py's own test suite by ranks, and a program of ranks.

    h5py_ranks.py MPIRUN ROOT PYTHON [--ranks N] [--repeat N] [--only suite|program] [--select EXPRESSION]
    h5py_ranks.py MPIRUN ROOT PYTHON --control      the plugin with a fault: the program must notice

PYTHON is of the environment that scripts/setup/h5py-parallel.sh made. Of the suite each test must end on each rank as natively; of
the program what it prints must be native's, h5diff must find no difference between the files, and bytes must have been deferred,
chunks filtered and reads made by each rank for itself. Needs TIDELANE_TEST_PLUGIN_DIR.
"""

import argparse
import collections
import os
import pathlib
import sys
import tempfile
import xml.etree.ElementTree

import client

HERE = pathlib.Path(__file__).resolve().parent
ASYNC = {"TIDELANE_MODE": "async"}  # everything is deferred, as quick as the disk here may be
WAYS = {"default": {}, "async": ASYNC, "deferred": {**ASYNC, "TIDELANE_CLOSE": "deferred", "TIDELANE_FLUSH": "deferred"}}
LEAST_TESTS = 500  # of h5py's; fewer, and its suite was not found
LEAST = {"bytes_deferred": 4 << 20, "filter_bytes_in": 10 << 20, "collective_reads_alone": 8}  # of the program, with 2 ranks


def outcome_of(case):
    found = [tag for tag in ("failure", "error", "skipped") if case.find(tag) is not None]
    return found[0] if found else "passed"


def outcomes(report):
    cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase")
    return {f"{case.get('classname')}.{case.get('name')}": outcome_of(case) for case in cases}


class Ranks:
    """A script that all ranks run, natively and under the plugin, each time in a folder of its own."""

    def __init__(self, args, script, more=()):
        self.args, self.script, self.more = args, HERE / script, more

    def run(self, folder, settings=None, plugins=None):
        folder.mkdir()
        command = [self.args.mpirun, "-np", self.args.ranks, self.args.python, "-B", self.script, folder, *self.more]
        if settings is None:
            done, summaries = client.run_native(command, folder, self.args.timeout), {}
        else:
            done, summaries = client.run_with_summaries(command, folder, settings=settings, timeout=self.args.timeout, plugins=plugins)
            client.require(plugins or len(summaries) >= self.args.ranks, f"{len(summaries)} summaries of {self.args.ranks} ranks\n{done.output[-3000:]}")
        client.require(plugins or done.rc == 0, f"{self.script.name}, {settings}: exit status {done.rc}\n{done.output[-4000:]}")
        counters = {name: sum(s["counters"][name] for s in summaries.values()) for name in (*LEAST, "errors", "lane_busy_ns")}
        counters["mpi_written"] = sum(s["fallbacks"].get("mpi_written", 0) for s in summaries.values())
        return done, collections.Counter(counters)


def suite(args, scratch):
    ranks = Ranks(args, "h5py_ranks_suite.py", ["-k", args.select] if args.select else [])

    def results(name, settings=None):
        done, counters = ranks.run(scratch / name, settings)
        found = {rank: outcomes(scratch / name / f"rank{rank}.xml") for rank in range(args.ranks)}
        count = collections.Counter(outcome for of in found.values() for outcome in of.values())
        print(f"suite, {name:8} {dict(count)}, {done.seconds:.0f} s, {counters['bytes_deferred']} bytes deferred", flush=True)
        return found, counters

    native, _ = results("native")
    client.require(args.select or all(len(found) >= LEAST_TESTS for found in native.values()), "hardly any tests were found")
    wrong = []
    for way in ("default", "async"):
        found, counters = results(way, WAYS[way])
        client.require(counters["lane_busy_ns"] > 0 or way == "default", "no lane ever worked")
        for rank in native:
            for test in sorted(native[rank].keys() | found[rank].keys()):
                here, there = native[rank].get(test), found[rank].get(test)
                if here != there:
                    wrong.append(f"{way}, rank {rank}: {test}: natively {here}, here {there}")
    client.require(not wrong, "\n".join(wrong))


def program(args, scratch):
    ranks = Ranks(args, "h5py_ranks_program.py")
    native, _ = ranks.run(scratch / "alone")
    alone = 0
    for turn in range(args.repeat):
        for way, settings in WAYS.items():
            name = f"{way}{turn}"
            done, counters = ranks.run(scratch / name, settings)
            client.require(done.output == native.output, f"{way}: natively\n{native.output}\nhere\n{done.output}")
            files = [scratch / folder / "ranks.h5" for folder in ("alone", name)]
            compared = client.run([args.h5diff, "-v", *files], args.serial, scratch)
            client.require(compared.rc == 0, f"{way}: the files differ\n{compared.output[-3000:]}")
            client.require(counters["errors"] == 0, f"{way}: the plugin counted errors")
            alone += counters["collective_reads_alone"]
            client.require(counters["mpi_written"] == 0, f"{way}: what all have closed was found to be written")
            for counter, least in LEAST.items() if way != "default" else ():
                client.require(counters[counter] >= least, f"{way}: {counter} is {counters[counter]}, not {least}")
            print(f"program, {way:8} {done.seconds:.1f} s, {dict(counters)}", flush=True)
    client.require(alone > 0, "no rank ever read for itself")


def control(args, scratch):
    """A rank that reads alone does not ask the others for the chunks that they hold."""
    settings = {**ASYNC, "TIDELANE_BREAK": "ranks_peers"}
    done, _ = Ranks(args, "h5py_ranks_program.py").run(scratch / "control", settings, os.environ.get("TIDELANE_TEST_BROKEN_DIR"))
    noticed = "before a flush, packed is not what was written"
    client.require(done.rc != 0 and noticed in done.output, f"the plugin has a fault, and nothing noticed\n{done.output}")
    print("a fault of the plugin is noticed", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mpirun")
    parser.add_argument("root", type=os.path.realpath, help="of parallel HDF5")
    parser.add_argument("python")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=900)
    parser.add_argument("--only", choices=("suite", "program"))
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--select", metavar="EXPRESSION", help="pytest's -k")
    args = parser.parse_args()
    if not pathlib.Path(args.python).parents[1].joinpath("tidelane-stamp").exists():
        print(f"skipped: no {args.python} (scripts/setup/h5py-parallel.sh makes it)")
        sys.exit(client.SKIPPED)
    args.h5diff, args.serial = client.hdf5_program("h5diff"), client.native_environment()
    os.environ["TIDELANE_HDF5_ROOT"] = args.root  # that one, for what the ranks load
    with tempfile.TemporaryDirectory(prefix="h5py-ranks.") as scratch:
        for what in (control,) if args.control else (program, suite):
            if args.control or args.only in (None, what.__name__):
                what(args, pathlib.Path(scratch))


if __name__ == "__main__":
    client.main_of(main)
