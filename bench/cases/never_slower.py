"""Workloads of which somebody has shown that a connector can lose by factors: no more requests than natively."""

import os
import shutil
import sys
import time

from clients import PROGRAMS
from comparison import Case, Derived, Metric, interleave
from harness import native_environment, run

UNLOCKED = {"HDF5_USE_FILE_LOCKING": "FALSE"}
# What is done, (rows, bytes of one, datasets), variables of both sides, Tidelane's settings.
WORKLOADS = [
    ("rows in order", "rows", (1024, 1024, 1), UNLOCKED, {}),
    ("a column", "column", (2000, 64, 1), UNLOCKED, {}),
    ("a column, written", "write-column", (2000, 1024, 1), UNLOCKED, {}),
    ("rows in order", "rows", (1024, 1024, 1), {}, {"mode": "sync"}),
    ("a column, written", "write-column", (2000, 1024, 1), {}, {"mode": "sync"}),
    ("rows in order", "rows", (1024, 1024, 1), {}, {}),
    ("a column", "column", (2000, 64, 1), {}, {}),
    ("64 datasets in turn", "rows", (256, 1024, 64), {}, {}),
    ("rows in order", "rows", (512, 8192, 1), {}, {}),
]


def rounds_of(bench, storage, workload, size, variables, settings):
    folder = storage.fresh("rows")
    made = os.path.join(bench.scratch, "rows.h5")
    program = [sys.executable, str(PROGRAMS / "rows.py")]
    numbers = [str(64 if bench.tiny and number > 64 else number) for number in size]
    run([*program, "make", made, *numbers], native_environment())

    def one_run(_, env):
        path = os.path.join(folder, "rows.h5")
        shutil.copyfile(made, os.path.join(storage.backing, "rows", "rows.h5"))
        before = storage.throttle.stats()
        begin = time.monotonic()
        run([*program, workload, path, *numbers], {**env, **variables}, timeout=300)
        wall_s, after = time.monotonic() - begin, storage.throttle.stats()
        return {"wall_s": wall_s, **{kind: after[kind]["requests"] - before[kind]["requests"] for kind in ("reads", "writes")}}

    try:
        return interleave(bench.sides, bench.rounds, one_run, settings)
    finally:
        storage.remove("rows")


def rows(bench):
    for storage in bench.storages(NEVER_SLOWER):
        for what, workload, size, variables, settings in WORKLOADS:
            kept = "no file locks" if variables else ", ".join(f"{key}={value}" for key, value in settings.items()) or "as it comes"
            bench.progress(f"{NEVER_SLOWER.key}: {what}, {kept}")
            labels = {"h5py reads or writes": what, "of bytes each": str(size[1]), "with": kept}
            yield labels, rounds_of(bench, storage, workload, size, variables, settings), ()


NEVER_SLOWER = Case(
    key="never_slower",
    title="Small transfers of contiguous datasets",
    text="What HDF5's sieve buffer natively makes few requests of: rows and columns, with file locks off (usual on Lustre and NFS), with"
    " mode=sync, and as it comes. h5py's wheel, storage where a request costs 1 ms. Where nothing is locked nothing may be kept of the file,"
    " so that the sieve itself has to do it.",
    metrics=[
        Metric("reads", "requests to read", lambda report: report["reads"], "{:.0f}"),
        Metric("writes", "to write", lambda report: report["writes"], "{:.0f}"),
        Metric("wall_s", "time, s", lambda report: report["wall_s"], "{:.2f}"),
    ],
    derived=[
        Derived("more_reads", "reads, ratio", "reads", most=1.0),
        Derived("more_writes", "writes, ratio", "writes", most=1.0),
        Derived("time_ratio", "time, ratio", "wall_s", most=1.1),
    ],
    rows=rows,
    storages=("throttle",),
    latency_us=1000,
    bandwidth=200e6,
    programs=(),
)
