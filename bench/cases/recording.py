"""What being told costs: instructions with the summary off, on, and with the timeline, counted by valgrind.

Counted, not timed: the differences are far below what a clock shows. Lanes run under valgrind too, one thread at a time.
"""

import os
import re
import shutil

from comparison import Case, Derived, Metric, TidelaneSide, interleave
from harness import run


def instructions(bench, command, env):
    """All instructions of the process, in millions, the plugin's loading and the end of the library included."""
    out = bench.scratch / "callgrind.out"
    run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *command], env, timeout=300)
    total = re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.MULTILINE)
    return {"instructions": int(total[1]) / 1e6}


def commands(bench, folder):
    file = f"--file={os.path.join(folder, 'recorded.h5')}"
    writes = 64 if bench.tiny else 8192
    yield (
        f"{writes} writes of 4 KiB",
        [bench.places.program("writes"), file, "--bytes=4096", f"--writes={writes}", "--json=/dev/null"],
    )
    groups = 20 if bench.tiny else 1000
    yield f"{groups} groups, datasets, attributes", [bench.places.program("objects"), file, f"--groups={groups}", "--json=/dev/null"]


def recording_rows(bench):
    if not shutil.which("valgrind"):
        bench.progress("recording: skipped, valgrind is missing")
        return
    sides = [TidelaneSide(bench.places, name, name) for name in ("off", "summary", "trace")]
    for storage in bench.storages(RECORDING):
        folder = storage.fresh("recording")
        for name, command in commands(bench, folder):
            bench.progress(f"{RECORDING.key}: {name}")
            # Never early: how many sweeps lanes make of the same writes must not depend on the clock.
            settings = {"linger": 10_000_000}
            one_run = lambda side, env, command=command: instructions(bench, command, env)  # noqa: E731
            yield {"program": name}, interleave(sides, min(bench.rounds, 5), one_run, settings), ()
        storage.remove("recording")


RECORDING = Case(
    key="recording",
    title="What recording costs",
    text="Instructions of the whole process, by valgrind: without `TIDELANE_SUMMARY`, with it, and with `TIDELANE_TRACE`"
    " too. Counters always count (a relaxed atomic addition each); the summary only prints them.",
    metrics=[Metric("instructions", "instructions, millions", lambda r: r["instructions"], "{:.2f}")],
    derived=[Derived("ratio", "ratio to off", "instructions", format="{:.4f}", most=1.01)],
    rows=recording_rows,
    storages=("tmpfs",),
    programs=("writes", "objects"),
)
