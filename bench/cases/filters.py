"""Compressed datasets: what a program waits for when it writes and reads them, and what came of its bytes."""

import ctypes.util
import json
import os

from comparison import Case, Derived, Metric, check_outputs, interleave
from harness import DemoError, native_environment, run

MIB = 1 << 20
CHUNKS = [64 << 10, MIB, 16 * MIB]
STEPS = 2


def ways(bench):
    """Level of deflate, bytes of a chunk, library, lanes."""
    if bench.tiny:
        return [(1, 64 << 10, "libdeflate", 2)]
    all_cores = [(level, chunk, "libdeflate", 2) for level in (1, 4) for chunk in CHUNKS]
    one_lane = [(level, MIB, "libdeflate", 1) for level in (1, 4)]
    return [*all_cores, *one_lane, *fast_ways()]


def fast_ways():
    """With ISA-L, where this machine has it."""
    if ctypes.util.find_library("isal") is None:
        return []
    return [(1, MIB, "isal", lanes) for lanes in (2, 1)]


def filters_run(bench, path, env, level, chunk, *more):
    result = bench.scratch / "filters.json"
    size = MIB if bench.tiny else 32 * MIB
    command = [bench.places.program("filters"), f"--file={path}", f"--bytes={size}", f"--steps={STEPS}"]
    run([*command, f"--level={level}", f"--chunk={chunk}", f"--json={result}", *more], env, timeout=300)
    return json.loads(result.read_text())


def rounds_of(bench, storage, way):
    level, chunk, library, lanes = way
    probe = os.path.join(storage.fresh("probe"), "filters.h5")
    native = filters_run(bench, probe, native_environment(), level, chunk)
    storage.remove("probe")
    compute = f"--compute-us={native['waits_us'] / STEPS:.0f}"

    def one_run(side, env):
        path = os.path.join(storage.fresh(side.name), "filters.h5")
        silent = {**env, "TIDELANE_SUMMARY": "0"} if "TIDELANE_SUMMARY" in env else env  # one a round is expected
        hidden = filters_run(bench, path, silent, level, chunk, compute)
        plain = filters_run(bench, path, env, level, chunk)
        read = filters_run(bench, path, silent, level, chunk, "--read")
        return {"hidden": hidden, "plain": plain, "read": read}

    def after(_, reports):
        what = f"{storage.name}, {way}"
        least = min(report["plain"]["file_bytes"] for report in reports.values())
        check_outputs(bench, storage, what, 1, reports, payload=0.9 * least)
        for report in reports.values():
            if "summary" in report and report["summary"]["counters"]["chunks_filtered_by_lanes"] == 0:
                raise DemoError(f"{what}: lanes compressed nothing")

    settings = {"deflate": library, "lanes": str(lanes)}
    try:
        return interleave(bench.sides, bench.rounds, one_run, settings, after_round=after)
    finally:
        storage.remove(*(side.name for side in bench.sides))


def filters_rows(bench):
    for storage in bench.storages(FILTERS):
        for way in ways(bench):
            level, chunk, library, lanes = way
            labels = {"level": str(level), "chunk": f"{chunk >> 10} KiB", "library": library, "lanes": str(lanes)}
            bench.progress(f"{FILTERS.key}, {storage.name}: {', '.join(labels.values())}")
            yield labels, rounds_of(bench, storage, way), ()


def waits_ms(part):
    return lambda report: report[part]["waits_us"] / 1e3


def cpu_per_mib(part):
    return lambda report: report[part]["total"]["process_cpu_us"] / 1e3 / (report[part]["bytes"] / MIB)


FILTERS = Case(
    key="filters",
    title="Compressed datasets",
    text="A dataset of 32 MiB of floats a step, two steps, shuffle and deflate. *Hidden*: the program computes after each step"
    " for as long as native HDF5 needs to write it; what it waits for all the same, and *locked*: the share of the time, computing included, in"
    " which a call holds HDF5's lock. *Plain*: without computing. *Read*: both datasets, from the page cache.",
    metrics=[
        Metric("hidden_ms", "hidden: waits, ms", waits_ms("hidden")),
        Metric("hidden_lock", "hidden: locked, %", lambda r: 100 * r["hidden"]["lock_share"], "{:.0f}"),
        Metric("plain_ms", "plain: waits, ms", waits_ms("plain")),
        Metric("read_ms", "read, ms", waits_ms("read")),
        Metric("plain_cpu", "write: CPU per MiB, ms", cpu_per_mib("plain"), "{:.2f}"),
        Metric("read_cpu", "read: CPU per MiB, ms", cpu_per_mib("read"), "{:.2f}"),
        Metric("size", "file, MiB", lambda r: r["plain"]["file_bytes"] / MIB),
    ],
    derived=[
        Derived("hidden_ratio", "hidden, ratio", "hidden_ms", most=0.2),
        Derived("plain_ratio", "plain, ratio", "plain_ms", most=0.35),
        Derived("read_ratio", "read, ratio", "read_ms", most=0.4),
    ],
    rows=filters_rows,
    storages=("tmpfs",),
    programs=("filters",),
)
