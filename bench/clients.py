"""Programs that nobody here wrote, under the plugin: h5repack, h5copy, and a stock h5py wheel with its own HDF5.

Each runs once natively and once with Tidelane on the simulated slow storage; the outputs must be equal by h5diff and
the plugin must have deferred at least part of what was written.
"""

import os
import pathlib
import shutil
import sys
import tempfile

from harness import native_environment, read_summary, require_deferred, require_equal, run, tidelane_environment

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
GROUPS = 30
LOOP_ROUNDS = 40


def commands(places, source):
    """name, what to run given the output file, and a lower bound for the bytes that must be deferred."""
    python = sys.executable
    yield (
        f"h5repack, {GROUPS * 11} objects",
        lambda out: [places.tool("h5repack"), "-f", "GZIP=1", source, out],
        1 << 20,
    )
    yield (
        f"h5copy, {GROUPS * 11} objects",
        lambda out: [places.tool("h5copy"), "-i", source, "-o", out, "-s", "/groups", "-d", "/groups"],
        1 << 20,
    )
    yield (
        f"h5py wheel, {LOOP_ROUNDS} rounds of write, append, read",
        lambda out: [python, str(PROGRAMS / "loop.py"), out, str(LOOP_ROUNDS)],
        16 << 20,
    )


def one_side(throttle, folder, command, env):
    """Runs the command with its output in `folder` of the slow storage; returns its seconds and its requests."""
    target = os.path.join(throttle.path, folder)
    shutil.rmtree(os.path.join(throttle.backing, folder), ignore_errors=True)
    os.mkdir(target)
    throttle.reset()
    seconds = run(command(os.path.join(target, "out.h5")), env)
    stats = throttle.stats()
    return seconds, stats["reads"]["requests"] + stats["writes"]["requests"]


def compare(places, throttle, scratch, name, command, at_least):
    summaries = tempfile.mkdtemp(dir=scratch)
    settings = {"summary": os.path.join(summaries, "summary-%p.json")}
    native_s, native_requests = one_side(throttle, "native", command, native_environment())
    tidelane_s, tidelane_requests = one_side(
        throttle, "tidelane", command, tidelane_environment(places, **settings)
    )
    summary = read_summary(summaries)
    require_deferred(summary, at_least, name)
    require_equal(places, f"{throttle.backing}/native", f"{throttle.backing}/tidelane", name)
    return {
        "name": name,
        "native_s": native_s,
        "tidelane_s": tidelane_s,
        "native_requests": native_requests,
        "tidelane_requests": tidelane_requests,
        "deferred_bytes": summary["counters"]["bytes_deferred"],
        "summary": summary,
    }


def prepare(places, throttle):
    """Makes the source file; returns what there is to compare."""
    made = os.path.join(throttle.backing, "objects.h5")
    run([sys.executable, str(PROGRAMS / "make_objects.py"), made, str(GROUPS)], native_environment())
    return commands(places, os.path.join(throttle.path, "objects.h5"))
