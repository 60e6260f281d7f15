"""`make bench`: native HDF5 and Tidelane in one run, alternating, by a table for each question.

    bench.py [CASE ...] [--rounds N] [--storage throttle,disk,tmpfs] [--connector NAME[=PLUGINDIR] ...] [--json FILE]
    bench.py --markdown docs/performance.md [--json FILE]     refreshes the tables of the page from an earlier run

Each case is in cases/; how they are compared is in comparison.py. Everything measured goes to build/bench/results.json.
Exit status 0 where all cases ran and all outputs were right; whether targets were met is printed (--strict counts it).
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

import report
import tables
from cases import CASES
from cases.writes import PATTERNS
from comparison import ConnectorSide, NATIVE, Side, TidelaneSide, run_case
from harness import REPO, DemoError, Places, Storage, Throttle, disk_storage, memory_storage

STORAGES = ("throttle", "disk", "tmpfs")


class Bench:
    """What cases are given: places, sides, storages, how often and how much."""

    def __init__(self, arguments, out):
        self.places = Places(arguments.build)
        self.sides = [Side(NATIVE), TidelaneSide(self.places), *map(ConnectorSide, arguments.connector)]
        self.rounds, self.tiny = arguments.rounds, arguments.tiny
        self.patterns, self.sizes = arguments.patterns, arguments.bytes
        self.data, self.scale = arguments.data, arguments.scale
        self.settings = dict(item.split("=", 1) for item in arguments.set)
        self.wanted_storages = arguments.storage
        self.out, self.scratch = out, out / "scratch"
        self.progress = report.progress
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)

    def storages(self, case):
        """The storages of a case that were asked for, each open while its rows are made."""
        for name in case.storages:
            if name not in self.wanted_storages:
                continue
            with contextlib.ExitStack() as stack:
                if name == "throttle":
                    throttle = stack.enter_context(Throttle(self.places, case.latency_us, case.bandwidth))
                    yield Storage("slow storage", throttle.path, throttle)
                else:
                    yield stack.enter_context(disk_storage(self.out) if name == "disk" else memory_storage(compute=True))


def first_match(pattern, text, otherwise="unknown"):
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else otherwise


def output_of(*command):
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return ""


def machine_facts(out):
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": first_match(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), platform.machine()),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": memory / 2**30,
        "kernel": platform.release(),
        "disk": output_of("stat", "-f", "-c", "%T", str(out)) or "unknown",
        "load_before": os.getloadavg()[0],
    }


def versions(places):
    header = (REPO / "src" / "base" / "version.h").read_text()
    return {
        "tidelane": first_match(r'^#define TIDELANE_VERSION "(.*)"', header),
        "commit": output_of("git", "-C", str(REPO), "describe", "--always", "--dirty") or "unknown",
        "hdf5": first_match(r"Version ([\d.]+)", output_of(places.tool("h5diff"), "--version")),
        "python": platform.python_version(),
    }


def list_of(allowed):
    def parse(text):
        names = text.split(",")
        if unknown := [name for name in names if name not in allowed]:
            raise argparse.ArgumentTypeError(f"{unknown[0]} is not one of {', '.join(allowed)}")
        return names

    return parse


def parse_arguments():
    parser = argparse.ArgumentParser(description="Native HDF5 and Tidelane, alternating, by a table for each question.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"{', '.join(CASES)}; default: all")
    parser.add_argument("--rounds", type=int, default=5, help="of each way; short ones run three times as often")
    parser.add_argument("--storage", type=list_of(STORAGES), default=STORAGES, help="of throttle,disk,tmpfs")
    parser.add_argument("--connector", action="append", default=[], metavar="NAME[=PLUGINDIR]", help="one more side")
    parser.add_argument("--json", metavar="FILE", help="results; default: build/bench/results.json")
    parser.add_argument("--markdown", metavar="PAGE", help="measure nothing: refresh the page's tables from the results")
    parser.add_argument("--build", default=REPO / "build" / "release", help="where the programs and the plugin are")
    parser.add_argument("--tiny", action="store_true", help="as little as shows that everything works: no figures")
    parser.add_argument("--strict", action="store_true", help="a missed target is a failure too")
    parser.add_argument("--patterns", nargs="+", choices=PATTERNS, help="of writes and merging")
    parser.add_argument("--bytes", nargs="+", type=int, help="of each write in writes and merging")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="TIDELANE_NAME in writes and merging")
    parser.add_argument("--data", nargs="+", metavar="SET", help="of query, by their names in query/data.py")
    parser.add_argument("--scale", type=int, default=1, metavar="N", help="of query: rows divided by N")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.cases if name not in CASES]:
        parser.error(f"no case is called {unknown[0]}: {', '.join(CASES)}")
    return arguments


def measure(arguments, out):
    bench = Bench(arguments, out)
    cases = [CASES[name] for name in arguments.cases or CASES]
    bench.places.check(sorted({program for case in cases for program in case.programs}), ["h5diff"])
    results = {
        "date": datetime.date.today().isoformat(),
        "machine": machine_facts(out),
        "versions": versions(bench.places),
        "options": {"rounds": bench.rounds, "storages": list(arguments.storage), "connectors": arguments.connector},
        "cases": {},
    }
    missing = Throttle.missing() if "throttle" in bench.wanted_storages else None
    if missing:
        raise DemoError(f"{missing}; or leave it out: --storage disk,tmpfs")
    try:
        for case in cases:
            results["cases"][case.key] = run_case(bench, case)
    finally:
        shutil.rmtree(bench.scratch, ignore_errors=True)
    results["machine"]["load_after"] = os.getloadavg()[0]
    return results


def main():
    arguments = parse_arguments()
    out = REPO / "build" / "bench" if not arguments.json else pathlib.Path(arguments.json).resolve().parent
    file = pathlib.Path(arguments.json) if arguments.json else out / "results.json"
    if arguments.markdown:
        if not file.exists():
            sys.exit(f"bench.py: no results in {file}: run it without --markdown first")
        page = pathlib.Path(arguments.markdown)
        page.write_text(tables.refresh(page.read_text(), json.loads(file.read_text())))
        return 0
    out.mkdir(parents=True, exist_ok=True)
    try:
        results = measure(arguments, out)
    except DemoError as error:
        report.progress_end()
        print(f"bench: {error}", file=sys.stderr)
        return 1
    file.write_text(json.dumps(results, indent=1))
    report.progress_end()
    met = tables.show(results)
    print(f"  all numbers: {file}")
    failed = any(case["failures"] for case in results["cases"].values())
    return 1 if failed or (arguments.strict and not met) else 0


if __name__ == "__main__":
    sys.exit(main())
