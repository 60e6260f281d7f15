#!/usr/bin/env python3
"""Instructions of one call under the plugin, against a recorded baseline; counted by valgrind, so that a busy machine changes nothing.

    scripts/check/instructions.py [--fix]

A program makes so many calls, and twice as many: the difference is theirs, HDF5's own part and the lanes' included. Exit
status 1 where a call needs over 2 % more than instructions.json says; --fix records what was counted. It is for one machine
and compiler, before and after a change: `make check` does not run it.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = REPO / "build/release"
BASELINE = pathlib.Path(__file__).with_suffix(".json")
MOST = 1.02

# name: program, option that says how many calls, how many, further options
CALLS = {
    "write of 1 KiB": ("writes", "--writes", 4096, ["--bytes=1024"]),
    "write of 4 KiB": ("writes", "--writes", 2048, ["--bytes=4096"]),
    "write of a row": ("writes", "--writes", 2048, ["--bytes=1024", "--pattern=rows"]),
    "write of a whole chunk": ("writes", "--writes", 2048, ["--bytes=4096", "--pattern=chunked"]),
    "group, dataset, attribute": ("objects", "--groups", 500, ["--write"]),
}


def environment():
    env = {name: value for name, value in os.environ.items() if not name.startswith("TIDELANE_")}
    # Never early and never chosen by the clock: how often lanes sweep must not depend on the machine's load.
    return env | {
        "HDF5_PLUGIN_PATH": str(BUILD / "lib/tidelane"),
        "HDF5_VOL_CONNECTOR": "tidelane",
        "TIDELANE_MODE": "async",
        "TIDELANE_LINGER": "10000000",
        "TIDELANE_HISTORY": "off",
    }


def instructions(command, folder):
    out = folder / "callgrind.out"
    subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *command],
        env=environment(), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300,
    )
    return int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.MULTILINE)[1])


def of_one_call(program, option, calls, options):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        command = [str(BUILD / "bin" / program), f"--file={folder}/counted.h5", "--json=/dev/null", *options]
        few, many = (instructions([*command, f"{option}={times * calls}"], folder) for times in (1, 2))
    return (many - few) / calls


def main():
    counted = {name: round(of_one_call(*call)) for name, call in CALLS.items()}
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    worse = False
    for name, now in counted.items():
        before = baseline.get(name)
        worse = worse or (before is not None and now > MOST * before)
        print(f"{name:28} {now:9} {'' if before is None else f'{now / before:.3f} of {before}'}")
    if "--fix" in sys.argv[1:]:
        BASELINE.write_text(json.dumps(counted, indent=2) + "\n")
        return 0
    return int(worse)


if __name__ == "__main__":
    sys.exit(main())
