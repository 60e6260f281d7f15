"""Runs a program of several ranks natively and with the plugin: the same output, the same file, and on every rank bytes that
were deferred and lanes that stored them.

    run.py <mpirun> <program> <plugin dir> <h5diff> --ranks N [--set NAME=VALUE] ...words
    run.py ... --only-plugin    what native HDF5 cannot do; storage may fail
    run.py ... --errors         storage fails under the plugin, and the file must be the same in the end
    run.py ... --killed OBJECT  a rank is gone in the middle: what is in that object, which was flushed, must be the same
    run.py ... --wrong          a negative control: the program must find what is wrong, or a rank have left something to HDF5
                                that --never names
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

TIMEOUT = 120
ATTEMPTS = 5  # of a negative control: on a busy machine a rank may come too late to do harm


def run(arguments, path, folder, plugin, settings, wrong=False):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TIDELANE_", "HDF5_VOL"))}
    if plugin:
        environment.update(
            HDF5_VOL_CONNECTOR="tidelane",
            HDF5_PLUGIN_PATH=plugin,
            TIDELANE_MODE="async",
            TIDELANE_COLLECTIVE_PIECE="4k",  # what is deferred must not depend on how quick storage was
            TIDELANE_SUMMARY=os.path.join(folder, "summary-%p.json"),
        )
        environment.update(setting.split("=", 1) for setting in settings)
    if arguments.preload:
        environment["LD_PRELOAD"] = arguments.preload
    command = [arguments.mpirun, "-np", str(arguments.ranks), arguments.program, path, *arguments.words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, cwd=folder)
    if wrong and "wrong: rank" in done.stderr and done.returncode != 0:
        sys.exit(0)
    if (done.returncode != 0) != bool(arguments.killed) or (arguments.killed and "is gone" not in done.stderr):
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def summaries_in(folder):
    return [json.load(open(path)) for path in glob.glob(os.path.join(folder, "summary-*.json"))]


def left_to_hdf5(reason, summaries):
    """How much each rank left to HDF5 for that reason; nothing, if no rank left any."""
    counts = [summary["fallbacks"][reason] for summary in summaries] if reason else []
    return counts if any(counts) else []


def check_counters(counters, least, most):
    """Each rank's, against NAME=NUMBER."""
    for bounds, outside in ((least, lambda number, bound: number < bound), (most, lambda number, bound: number > bound)):
        for name, bound in (text.split("=") for text in bounds):
            numbers = [of[name] for of in counters]
            if any(outside(number, int(bound)) for number in numbers):
                sys.exit(f"{name} of the ranks is {numbers}, with a bound of {bound}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("mpirun", "program", "plugin", "h5diff"):
        parser.add_argument(name)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--writers", type=int, help="ranks that must have deferred bytes; all, if not said")
    parser.add_argument("--chunks", action="store_true", help="lanes must have filtered chunks, and every rank have put some into the file")
    parser.add_argument("--left", metavar="REASON", help="every rank must have left something to HDF5 for it")
    parser.add_argument("--never", metavar="REASON", help="no rank may have left anything to HDF5 for it")
    parser.add_argument("--without", metavar="REASON", help="of a negative control: that no rank has left anything to HDF5 for it is wrong")
    parser.add_argument("--least", action="append", default=[], metavar="COUNTER=N", help="every rank must have counted so much")
    parser.add_argument("--most", action="append", default=[], metavar="COUNTER=N", help="and no rank more than that")
    parser.add_argument("--preload", help="into every rank")
    parser.add_argument("--errors", action="store_true", help="a rank must have counted some")
    parser.add_argument("--killed", metavar="OBJECT")
    parser.add_argument("--only-plugin", action="store_true")
    parser.add_argument("--wrong", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidelane-mpi-") as folder:
        files = [os.path.join(folder, name) for name in ("native.h5", "ours.h5")]
        if arguments.wrong:
            for _ in range(ATTEMPTS):
                run(arguments, files[1], folder, arguments.plugin, arguments.set, True)
                if left_to_hdf5(arguments.never, summaries_in(folder)):
                    return
                if arguments.without and not left_to_hdf5(arguments.without, summaries_in(folder)):
                    return
            sys.exit("nothing wrong was found")
        ours = run(arguments, files[1], folder, arguments.plugin, arguments.set)
        if not arguments.only_plugin:
            native = run(arguments, files[0], folder, None, [])
            if native != ours and not arguments.killed:
                sys.exit(f"natively:\n{native}\nwith the plugin:\n{ours}")
            subprocess.run([arguments.h5diff, *files, *filter(None, [arguments.killed])], check=True, timeout=TIMEOUT)
        if arguments.killed:
            return  # who is killed leaves no summary
        summaries = summaries_in(folder)
        if len(summaries) != arguments.ranks:
            sys.exit(f"{len(summaries)} summaries of {arguments.ranks} ranks")
        counters = [summary["counters"] for summary in summaries]
        if not arguments.only_plugin and any(of["errors"] for of in counters) != arguments.errors:
            sys.exit(f"errors were {'not ' if arguments.errors else ''}counted: {counters}")
        check_counters(counters, arguments.least, arguments.most)
        if arguments.chunks and not (any(of["chunks_filtered_by_lanes"] for of in counters) and all(of["filter_bytes_out"] for of in counters)):
            sys.exit(f"nothing was filtered: {counters}")
        if counts := left_to_hdf5(arguments.never, summaries):
            sys.exit(f"{arguments.never} was counted: {counts}")
        if arguments.left and not all(summary["fallbacks"][arguments.left] for summary in summaries):
            sys.exit(f"nothing was left to HDF5: {[summary['fallbacks'] for summary in summaries]}")
        if sum(of["bytes_deferred"] > 0 and of["lane_busy_ns"] > 0 for of in counters) < (arguments.writers or arguments.ranks):
            sys.exit(f"nothing was deferred on a rank: {counters}")


main()
