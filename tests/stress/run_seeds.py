#!/usr/bin/env python3
"""Runs the stress program over several seeds and settings, and judges how each run ended.

    run_seeds.py PROGRAM --plugin DIR --seeds 1-8 [--ops N] [--threads N] [--set NAME=VALUE ...]
    run_seeds.py PROGRAM --plugin DIR_OF_BROKEN --seeds 1-8 --expect-difference --set TIDELANE_BREAK=order
    run_seeds.py PROGRAM --no-plugin ...          the plugin is absent: every run must say so (status 11)
    run_seeds.py PROGRAM --library FILE ...       with another libhdf5 than the one it was linked to

A crash, a hang or a difference is held against the plugin only if native HDF5 alone survives the same seed, and agrees with
itself: some sequences crash 1.14 without us, or damage a file (what we could name is excluded where operations are drawn).
Such a seed is reported, and another one judged in its place: as many count as were asked for. More than one such seed, or one
in five of those asked for, is a failure: then the sequences are to be looked at.

Exit status: 0 as expected, 1 not.
"""

import argparse
import atexit
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

DIFFERENCE, NOT_DEFERRED, SKIPPED = 10, 11, 77
SUBSTITUTES, APART = 4, 1000  # so many other seeds for one that native HDF5 fails on, so far apart


def seeds_of(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def other_library(args, env):
    """Has the program load another HDF5 than the one it was linked to: a link of its name in a folder of our own."""
    folder = os.path.join(args.dir or tempfile.gettempdir(), f"stress.library.{os.getpid()}")
    os.makedirs(folder, exist_ok=True)
    needed = subprocess.run(["readelf", "-d", args.program], capture_output=True, text=True, check=True).stdout
    name = re.search(r"\[(libhdf5\.so[^\]]*)\]", needed)[1]
    if not os.path.lexists(os.path.join(folder, name)):
        os.symlink(os.path.abspath(args.library), os.path.join(folder, name))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    env["LD_LIBRARY_PATH"] = f"{folder}:{os.path.dirname(os.path.abspath(args.library))}"
    env["HDF5_DISABLE_VERSION_CHECK"] = "2"


def environment(args, plugin):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("HDF5_", "TIDELANE_"))}  # the plugin refuses settings it lacks
    if args.library:
        other_library(args, env)
    if plugin:
        env["HDF5_PLUGIN_PATH"] = args.plugin
        env["HDF5_VOL_CONNECTOR"] = args.connector
    for setting in args.set:
        name, _, value = setting.partition("=")
        if plugin or name == "STRESS_LISTS":  # which lists are drawn is a part of the seed
            env[name] = value
    return env


def run(args, seed, native=False):
    with tempfile.TemporaryDirectory(prefix="stress.", dir=args.dir) as folder:
        command = [args.program, "--seed", str(seed), "--ops", str(args.ops), "--threads",
                   str(args.threads), "--min-deferred", str(args.min_deferred),
                   "--min-chunks", str(args.min_chunks), "--min-filtered", str(args.min_filtered), "--dir", folder,
                   *(["--native"] if native else [])]
        env = environment(args, plugin=not native and not args.no_plugin)
        if args.tier and not native:
            tier = os.path.join(folder, "tier")
            os.mkdir(tier)
            tool = os.path.join(args.plugin, "..", "..", "tool", "tidelane")
            env |= {"TIDELANE_TIER": tier, "TIDELANE_CLOSE": "tier", "STRESS_SETTLE": f"{tool} drain"}
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True,
                                  errors="replace", timeout=args.timeout, check=False)
            return done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired as e:
            return "hang", (e.stdout or b"").decode(errors="replace")


def judge(args, seed):
    """One of "as expected", "native fails too", "skipped", or a description of what went wrong."""
    rc, output = run(args, seed)
    if rc == SKIPPED:
        return "skipped"
    expected = {args.expect_difference: DIFFERENCE, args.no_plugin: NOT_DEFERRED}.get(True, 0)
    if rc == expected:
        if rc == 0:
            for start in ("HDF5", "bytes", "filtered chunks"):
                print(next((l for l in output.splitlines() if l.startswith(start)), "").strip())
        if rc == DIFFERENCE:
            print(next((l for l in output.splitlines() if l.startswith("DIFFERENCE")), ""))
        return "as expected"
    if rc in ("hang", 1, DIFFERENCE) or (isinstance(rc, int) and rc < 0):
        native_rc, native_output = run(args, seed, native=True)
        if native_rc != 0:
            print(native_output[-1500:])
            return "native fails too"
    return f"status {rc}, expected {expected}\n{output[-6000:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--plugin", default=os.environ.get("TIDELANE_TEST_PLUGIN_DIR", ""))
    parser.add_argument("--no-plugin", action="store_true")
    parser.add_argument("--connector", default="tidelane")
    parser.add_argument("--seeds", default="1-4")
    parser.add_argument("--ops", type=int, default=20000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--min-deferred", type=int, default=1000000)
    parser.add_argument("--min-chunks", type=int, default=0)
    parser.add_argument("--min-filtered", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--dir", default=None)
    parser.add_argument("--tier", action="store_true", help="files are closed into a fast tier, and brought to their places in the end")
    parser.add_argument("--library", help="another libhdf5 to run with, of HDF5 2 for instance: a file or a pattern of names")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--expect-difference", action="store_true",
                        help="a negative control: one seed that finds the fault is enough")
    args = parser.parse_args()
    if args.library:
        found = sorted(glob.glob(args.library))
        if not found:
            print(f"skipped: no {args.library}")
            return SKIPPED
        args.library = found[0]
    native, bad, seen = [], [], 0
    for asked in seeds_of(args.seeds):
        for seed in range(asked, asked + APART * (SUBSTITUTES + 1), APART):
            verdict = judge(args, seed)
            print(f"seed {seed}: {verdict}", flush=True)
            if verdict != "native fails too":
                break
            native.append(seed)
        if verdict == "skipped":
            return SKIPPED
        if verdict == "as expected":
            seen += 1
            if args.expect_difference:
                print("the fault was found")
                return 0
        else:
            bad.append(seed)  # wrong, or native HDF5 fails on all substitutes and nothing was judged
    if args.expect_difference:
        print("FAILED: no seed found the fault")
        return 1
    too_many = len(native) > max(1, len(seeds_of(args.seeds)) // 5)
    print(f"{seen} seeds as expected, wrong: {bad}, native HDF5 itself fails on: {native}")
    return 1 if bad or too_many or seen == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
