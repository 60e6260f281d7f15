"""Runs a program of several ranks that creates files with publish=atomic: the same file as natively, nothing beside it, and the
counters that are to be.

    publish.py <mpirun> <program> <plugin dir> <h5diff> <case> --ranks N [--set NAME=VALUE] ...
    publish.py ... --published N    how many files got their names; -1: that depends
    publish.py ... --counted REASON every rank must have written a file in place for it
    publish.py ... --killed         a rank is gone: the old file is there, and the next program creates it anew
    publish.py ... --wrong          a negative control: the program must find what is wrong
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

TIMEOUT = 120


def run(arguments, case, path, plugin):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TIDELANE_", "HDF5_VOL"))}
    if plugin:
        environment.update(
            HDF5_VOL_CONNECTOR="tidelane",
            HDF5_PLUGIN_PATH=plugin,
            TIDELANE_MODE="async",
            TIDELANE_PUBLISH="atomic",
            TIDELANE_SUMMARY=os.path.join(os.path.dirname(path), "summary-%p.json"),
        )
        environment.update(setting.split("=", 1) for setting in arguments.set)
    command = [arguments.mpirun, "-np", str(arguments.ranks), arguments.program, path, case]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, cwd=os.path.dirname(path))


def must(done):
    if done.returncode != 0:
        sys.exit(f"{' '.join(done.args)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")


def others_in(folder, allowed):
    return sorted(name for name in os.listdir(folder) if not name.startswith("summary-") and name not in allowed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("mpirun", "program", "plugin", "h5diff", "case"):
        parser.add_argument(name)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--published", type=int, default=1)
    parser.add_argument("--counted", metavar="REASON")
    parser.add_argument("--killed", action="store_true")
    parser.add_argument("--wrong", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidelane-mpi-") as folder:
        ours, native = (os.path.join(folder, way, "file.h5") for way in ("ours", "native"))
        for path in (ours, native):
            os.mkdir(os.path.dirname(path))
        done = run(arguments, arguments.case, ours, arguments.plugin)
        if arguments.wrong:
            if "wrong: rank" not in done.stderr or done.returncode == 0:
                sys.exit(f"nothing wrong was found\n{done.stdout}{done.stderr}")
            return
        if arguments.killed:
            if done.returncode == 0 or "is gone" not in done.stderr or "wrong" in done.stderr:
                sys.exit(f"exit status {done.returncode}\n{done.stdout}{done.stderr}")
            if (text := open(ours, "rb").read()) != b"old\n":
                sys.exit(f"the old file is not there: {text[:40]}")
            for path in glob.glob(os.path.join(os.path.dirname(ours), "summary-*")):
                os.unlink(path)  # of who was not killed
            done = run(arguments, "over", ours, arguments.plugin)
        must(done)
        must(run(arguments, "over" if arguments.killed else arguments.case, native, None))
        allowed = {"file.h5", "file.h5.target"}
        if left := others_in(os.path.dirname(ours), allowed):
            sys.exit(f"was left: {left}")
        subprocess.run([arguments.h5diff, ours, native], check=True, timeout=TIMEOUT)
        summaries = [json.load(open(path)) for path in glob.glob(os.path.join(os.path.dirname(ours), "summary-*.json"))]
        if len(summaries) != arguments.ranks:
            sys.exit(f"{len(summaries)} summaries of {arguments.ranks} ranks")
        published = [summary["counters"]["files_published"] for summary in summaries]
        if arguments.published >= 0 and sum(published) != arguments.published:
            sys.exit(f"files that were published: {published}, not {arguments.published}")
        fallbacks = [{key: count for key, count in summary["fallbacks"].items() if key.startswith("publish_") and count} for summary in summaries]
        if arguments.published >= 0 and any(set(counted) != ({arguments.counted} if arguments.counted else set()) for counted in fallbacks):
            sys.exit(f"written in place: {fallbacks}")


main()
