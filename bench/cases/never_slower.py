"""Workloads of which somebody has shown that a connector can lose by factors: no more requests than natively."""

import json
import os
import resource
import shutil
import sys
import time

from clients import PROGRAMS
from comparison import Case, Derived, Metric, check_outputs, interleave
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
    ("a column, written", "write-column", (2000, 8192, 1), {}, {}),
    ("64 datasets in turn", "rows", (256, 1024, 64), {}, {}),
    ("512 small datasets in turn", "rows", (40, 1024, 512), {}, {}),
    ("rows in order", "rows", (512, 8192, 1), {}, {}),
]

# Where bytes cost more than requests: metadata lies between data.
SCATTERED = [("objects opened", "walk", (128, 1024, 1000), {}, {})]
# Where neither costs anything: more datasets than anybody keeps habits of.
MANY = [
    ("512 datasets in turn, written", "write-rows", (130, 1024, 512), {}, {}),
    ("512 datasets in turn, read", "rows", (130, 1024, 512), {}, {}),
]

# Where little can be hidden: what is done, the workload of bench/corners, and how many.
CORNERS = [
    ("200 rows in each of 1000 open files, in turn", "open-files", 1000),
    ("a state of 64 KiB overwritten 15 times, a row of a log", "overwritten", 3000),
    ("chunks of 125 kB, pauses of 2 ms", "short-pauses", 6000),
]
IN_TURN = [("rows of 512 datasets in turn, written, then read", "datasets-in-turn", 512)]
LIGHT_FILTERS = [
    ("chunks of 16 KiB, shuffle alone", "shuffle", 30000),
    ("chunks of 16 KiB, fletcher32 alone", "fletcher32", 30000),
]


def requests(throttle):
    """What was asked of storage so far, where somebody counts."""
    if throttle is None:
        return {}
    stats = throttle.stats()
    return {name: stats[kind][what] for name, kind, what in
            [("reads", "reads", "requests"), ("writes", "writes", "requests"), ("read_bytes", "reads", "bytes")]}


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rounds_of(bench, storage, workload, size, variables, settings):
    folder = storage.fresh("rows")
    made = os.path.join(bench.scratch, "rows.h5")
    program = [sys.executable, str(PROGRAMS / "rows.py")]
    numbers = [str(64 if bench.tiny and number > 64 else number) for number in size]
    run([*program, "make", made, *numbers], native_environment())

    def one_run(_, env):
        path = os.path.join(folder, "rows.h5")
        shutil.copyfile(made, os.path.join(storage.backing, "rows", "rows.h5"))
        before, cpu_before = requests(storage.throttle), cpu_s()
        begin = time.monotonic()
        run([*program, workload, path, *numbers], {**env, **variables}, timeout=300)
        wall_s, cpu, after = time.monotonic() - begin, cpu_s() - cpu_before, requests(storage.throttle)
        return {"wall_s": wall_s, "cpu_s": cpu, **{kind: after[kind] - before[kind] for kind in after}}

    try:
        return interleave(bench.sides, bench.rounds, one_run, settings)
    finally:
        storage.remove("rows")


def rows_of(bench, case, workloads):
    for storage in bench.storages(case):
        for what, workload, size, variables, settings in workloads:
            kept = "no file locks" if variables else ", ".join(f"{key}={value}" for key, value in settings.items()) or "as it comes"
            bench.progress(f"{case.key}: {what}, {kept}")
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
    rows=lambda bench: rows_of(bench, NEVER_SLOWER, WORKLOADS),
    storages=("throttle",),
    latency_us=1000,
    bandwidth=200e6,
    programs=(),
)

NEVER_MORE_BYTES = Case(
    key="never_more_bytes",
    title="Metadata between data, where bytes are dear",
    text="1000 datasets of 128 KiB are opened in random order by h5py, and nothing else of them is read. On storage of 0.1 ms and 20 MB/s a block of"
    " 64 KiB takes as long as 26 requests.",
    metrics=[
        Metric("reads", "requests to read", lambda report: report["reads"], "{:.0f}"),
        Metric("read_bytes", "bytes read, MB", lambda report: report["read_bytes"] / 1e6, "{:.2f}"),
        Metric("wall_s", "time, s", lambda report: report["wall_s"], "{:.2f}"),
    ],
    derived=[
        Derived("more_bytes", "bytes, ratio", "read_bytes", most=4.0),
        Derived("time_ratio", "time, ratio", "wall_s", most=1.1),
    ],
    rows=lambda bench: rows_of(bench, NEVER_MORE_BYTES, SCATTERED),
    storages=("throttle",),
    latency_us=100,
    bandwidth=20e6,
    programs=(),
)

NEVER_MORE_CPU = Case(
    key="never_more_cpu",
    title="Rows of many datasets in turn, in memory",
    text="1 KiB to or from each of 512 datasets in turn, 130 times, by h5py on tmpfs: what it costs the processor.",
    metrics=[
        Metric("cpu_s", "processor time, s", lambda report: report["cpu_s"], "{:.2f}"),
        Metric("wall_s", "time, s", lambda report: report["wall_s"], "{:.2f}"),
    ],
    derived=[Derived("more_cpu", "processor time, ratio", "cpu_s", most=1.15)],
    rows=lambda bench: rows_of(bench, NEVER_MORE_CPU, MANY),
    storages=("tmpfs",),
    programs=(),
)


def corner_rounds(bench, storage, workload, count):
    def one_run(side, env):
        result = bench.scratch / "corners.json"
        folder = storage.fresh(side.name)
        run([bench.places.program("corners"), workload, f"--folder={folder}", f"--count={count}", f"--json={result}"], env, timeout=300)
        return json.loads(result.read_text())

    def after(_, reports):
        check_outputs(bench, storage, workload, 1, reports)

    try:
        return interleave(bench.sides, bench.rounds, one_run, after_round=after)
    finally:
        storage.remove(*(side.name for side in bench.sides))


def corner_rows(bench, key, workloads):
    for storage in bench.storages(CORNER_COSTS):
        for what, workload, count in workloads:
            bench.progress(f"{key}: {what}")
            yield {"what the program writes": what}, corner_rounds(bench, storage, workload, 20 if bench.tiny else count), ()


def corner_case(key, title, workloads, most_cpu, most_time=1.1):
    return Case(
        key=key,
        title=title,
        text="C programs on tmpfs, where writing is a copy: what they cost the processor, and the most memory that they had.",
        metrics=[
            Metric("cpu_ms", "processor time, ms", lambda report: report["total"]["process_cpu_us"] / 1e3, "{:.0f}"),
            Metric("wall_ms", "time, ms", lambda report: report["total"]["wall_us"] / 1e3, "{:.0f}"),
            Metric("memory_mib", "memory, MiB", lambda report: report["peak_memory"] / 2**20, "{:.0f}"),
        ],
        derived=[
            Derived("cpu_ratio", "processor time, ratio", "cpu_ms", most=most_cpu),
            Derived("time_ratio", "time, ratio", "wall_ms", most=most_time),
            Derived("more_memory", "memory, added MiB", "memory_mib", kind="added", format="{:.0f}", most=64),
        ],
        rows=lambda bench: corner_rows(bench, key, workloads),
        storages=("tmpfs",),
        programs=("corners",),
    )


CORNER_COSTS = corner_case("corners", "Where little can be hidden", CORNERS, 1.3)
IN_TURN_COSTS = corner_case("in_turn", "Rows of many datasets in turn, by a C program", IN_TURN, 1.2, 1.2)
LIGHT_FILTER_COSTS = corner_case("light_filters", "Filters that are no slower than a copy", LIGHT_FILTERS, 1.1)
