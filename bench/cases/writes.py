"""Small writes of many shapes: what one costs the processor, and what is left of them when they reach storage."""

import itertools
import json
import os

from comparison import Case, Derived, Metric, check_outputs, interleave, must_defer
from harness import run

PATTERNS = ["contiguous", "append", "tiles", "blocks", "blocks-short-runs", "interleaved", "chunked"]
SIZES = [1 << 10, 4 << 10, 64 << 10, 1 << 20]
MOST_BYTES = 256 << 20  # of one run
MOST_BYTES_COUNTED = 16 << 20  # where each request costs
# Where a native program's requests take their time, counting them once must do.
LARGEST_TIMED = 4 << 10


def ways(bench):
    """The combinations that were asked for: pattern, bytes, shuffled."""
    patterns, sizes = bench.patterns or PATTERNS, bench.sizes or SIZES
    if bench.tiny:
        sizes = sizes[:1]
    for pattern, size, shuffled in itertools.product(patterns, sizes, (False, True)):
        if pattern != "append" or not shuffled:
            yield pattern, size, shuffled


def count_of(bench, storage, size):
    if bench.tiny:
        return 64
    most = MOST_BYTES_COUNTED if storage.throttle else MOST_BYTES
    return max(64, min(1024, most // size))


def rounds_of(bench, storage, way, rounds):
    pattern, size, shuffled = way
    writes = count_of(bench, storage, size)

    def one_run(side, env):
        path = os.path.join(storage.fresh(side.name), "writes.h5")
        result = bench.scratch / "writes.json"
        command = [bench.places.program("writes"), f"--file={path}", f"--pattern={pattern}", f"--bytes={size}"]
        command += [f"--writes={writes}", f"--json={result}"] + (["--shuffled"] if shuffled else [])
        run(command, env, timeout=300)
        report = json.loads(result.read_text())
        if storage.throttle:
            report["storage"] = storage.throttle.stats()
        return report

    def after(number, reports):
        # Comparing takes longer than writing: large outputs are compared once.
        compare = number == 0 or size * writes <= 4 << 20
        check_outputs(bench, storage, f"{storage.name}, {way}", must_defer(storage, size * writes), reports, compare, size * writes)

    try:
        return interleave(bench.sides, rounds, one_run, bench.settings, after_round=after)
    finally:
        storage.remove(*(side.name for side in bench.sides))


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def labels_of(way, reports):
    pattern, size, shuffled = way
    runs = next(iter(reports.values()))[0]["run_bytes"]
    return {"pattern": pattern, "write": size_text(size), "runs of": f"{runs} B", "order": "shuffled" if shuffled else "in order"}


def runs_of(report):
    return report["write_bytes"] // report["run_bytes"]


def rows_of(bench, case, rounds):
    for storage in bench.storages(case):
        for way in ways(bench):
            bench.progress(f"{case.key}, {storage.name}: {way[0]}, {size_text(way[1])}{', shuffled' if way[2] else ''}")
            reports = rounds_of(bench, storage, way, rounds(way))
            without = ("added_us", "added_process_us") if runs_of(next(iter(reports.values()))[0]) > 1 else ()
            yield labels_of(way, reports), reports, without


def per_write(phase, clock):
    return lambda r: (r["write"][clock] + r["close"][clock] if phase == "both" else r[phase][clock]) / r["writes"]


WRITES = Case(
    key="writes",
    title="Small writes: processor time",
    text="1024 writes (256 of 1 MiB) to memory-speed storage, writing and closing; *CPU* is processor time per write, of the"
    " calling thread and of the whole process with its lanes. A write of several runs (*runs of*: bytes that lie"
    " together in the file) is as many extents. The aim of 1 µs is for writes of one run.",
    metrics=[
        Metric("caller_us", "caller's CPU per write, µs", per_write("both", "thread_cpu_us")),
        Metric("process_us", "all CPU per write, µs", per_write("both", "process_cpu_us")),
        Metric("wall_us", "time per write, µs", per_write("both", "wall_us")),
    ],
    derived=[
        Derived("added_us", "caller's CPU added, µs", "caller_us", "added", most=1.0),
        Derived("added_process_us", "all CPU added, µs", "process_us", "added"),
        Derived("time_ratio", "time, ratio", "wall_us", most=1.1),
    ],
    rows=lambda bench: rows_of(bench, WRITES, lambda _: bench.rounds),
    storages=("tmpfs",),
    programs=("writes",),
)


def storage_requests(report):
    return sum(report["storage"][kind]["requests"] for kind in ("reads", "writes")) if "storage" in report else None


def amplified(kind):
    """Bytes that storage was asked to read or write, for each byte of the program."""
    return lambda r: r["storage"][kind]["bytes"] / r["bytes"] if "storage" in r else None


def gap_reads(report):
    return report["summary"]["counters"]["gap_fill_reads"] if "summary" in report else None


def merging_rows(bench):
    for labels, reports, without in rows_of(bench, MERGING, lambda way: bench.rounds if way[1] <= LARGEST_TIMED else 1):
        # Of 1 KiB, some tiles are whole rows of the sieve's window: there is little to merge natively either.
        if labels["pattern"] not in ("tiles", "blocks", "blocks-short-runs") or labels["write"] == "1 KiB":
            without = (*without, "fewer")
        yield labels, reports, without


MERGING = Case(
    key="merging",
    title="Small writes: requests",
    text="The same writes (256 of 64 KiB, 64 of 1 MiB) on storage where a request costs 0.1 ms and 800 MB/s pass: how many requests storage sees, reads included, and"
    " how many bytes it reads and writes for each byte of the program. *Gap reads* are the requests that read a gap"
    " between neighbours so that both can be written at once. Writes of 64 KiB and more run once: counts repeat.",
    metrics=[
        Metric("requests", "requests", storage_requests, "{:.0f}"),
        Metric("gap_reads", "gap reads", gap_reads, "{:.0f}", shown="Tidelane"),
        Metric("read_share", "read per byte", amplified("reads"), "{:.2f}"),
        Metric("written_share", "written per byte", amplified("writes"), "{:.2f}"),
        Metric("wall_ms", "time, ms", lambda r: (r["write"]["wall_us"] + r["close"]["wall_us"]) / 1e3, "{:.0f}"),
    ],
    derived=[
        Derived("fewer", "times fewer requests", "requests", "fewer", "{:.1f}", least=20),
        Derived("time_ratio", "time, ratio", "wall_ms", most=1.1),
    ],
    rows=merging_rows,
    storages=("throttle",),
    latency_us=100,
    bandwidth=800e6,
    programs=("writes",),
)
