"""The checkpoint pattern: computing between the steps, not computing at all, on all cores, and under a memory cap."""

import os
import statistics

from comparison import Case, Derived, Metric, check_outputs, interleave, must_defer
from simulation import MODES, WAITING_CLOSE, Simulation

CAP = 64 << 20


def simulation_of(bench, **more):
    if bench.tiny:
        more.update(steps=2, variable_bytes=64 << 10)
    return Simulation(bench.places, bench.scratch, **more)


def rounds_of(bench, simulation, storage, mode, rounds, extra=(), settings=None, covered=False, hidden=False):
    """The rounds of one mode. `covered`: the native run, always first, sees to it that its computation covers its I/O.
    `hidden`: which this mode can hide behind it."""

    def one_run(side, env):
        options = [*mode["options"], *extra]
        if covered and side is bench.sides[0]:
            return simulation.covered_run(storage, options)
        return simulation.run(storage, options, env, side.name)

    def after(_, reports):
        what = f"{storage.name}, {mode['options']}"
        # Few bytes on quick storage are written through whatever the pauses, all but metadata.
        deferred = must_defer(storage, simulation.bytes, hidden and not bench.tiny)
        check_outputs(bench, storage, what, deferred, reports, payload=simulation.bytes)

    settings = {**mode["settings"], **(settings or {})}
    try:
        return interleave(bench.sides, rounds, one_run, settings, alternate=not covered, after_round=after)
    finally:
        storage.remove(*(side.name for side in bench.sides))


def end_us(report):
    """What waiting for the end of a file, of an event set and of the library took."""
    return sum(report["classes"][name] for name in ("file_close", "wait", "shutdown"))


def copy_us(report):
    return statistics.median(report["copy_us"]) * report["steps"]


def later_calls_over_copy(report):
    """The calls (not the ends) of all steps but the first, which pays for starting, against the copy."""
    skipped = ("compute", "file_close", "wait", "shutdown")
    calls = sum(
        span["end_us"] - span["begin_us"]
        for span in report["spans"]
        if span["step"] > 0 and span["class"] not in skipped
    )
    return calls / (statistics.median(report["copy_us"]) * (report["steps"] - 1))


def checkpoint_rows(bench):
    for storage in bench.storages(CHECKPOINT):
        simulation = simulation_of(bench)
        bench.progress(f"{CHECKPOINT.key}, {storage.name}: what a step's I/O takes")
        simulation.calibrate(storage)
        for name, mode in MODES.items():
            bench.progress(f"{CHECKPOINT.key}, {storage.name}: {name}")
            copies = ["--copies=9"]
            hidden = name != WAITING_CLOSE
            reports = rounds_of(
                bench, simulation, storage, mode, bench.rounds, copies, covered=True, hidden=hidden
            )
            without = ("over_copy", "later_over_copy") if name == WAITING_CLOSE else ()
            yield {"storage": storage.name, "mode": name}, reports, without


CHECKPOINT = Case(
    key="checkpoint",
    title="The checkpoint pattern",
    text="8 variables of 4 MiB, 4 steps; after each step the program computes for at least as long as native HDF5 needs to"
    " write it. *Waits* is all the time in which it does not compute, from the first HDF5 call to the end of the"
    " library. *Copy* is memcpy of the same bytes, just computed, into warm memory, in the same program. *Later steps*"
    " counts the calls of all steps but the first, without closing and waiting for event sets.",
    metrics=[
        Metric("waits_ms", "waits, ms", lambda r: r["waits_us"] / 1e3),
        Metric("end_ms", "of it the ends, ms", lambda r: end_us(r) / 1e3),
        Metric("copy_ms", "copy, ms", lambda r: copy_us(r) / 1e3, shown="base"),
        Metric("over_copy", "waits / copy", lambda r: r["waits_us"] / copy_us(r), most=1.3),
        Metric("later_over_copy", "later steps / copy", later_calls_over_copy, "{:.2f}", most=1.3),
        Metric("compute_ms", "computes, ms", lambda r: r["classes"]["compute"] / 1e3, shown="none"),
        Metric("total_ms", "total, ms", lambda r: r["total_us"] / 1e3, shown="none"),
    ],
    derived=[
        Derived("waits_ratio", "waits, ratio", "waits_ms", format="{:.3f}"),
        Derived("compute_ratio", "computes, ratio", "compute_ms"),
        Derived("total_ratio", "total, ratio", "total_ms"),
    ],
    rows=checkpoint_rows,
    programs=("checkpoint",),
)


def plain_rows(bench):
    for storage in bench.storages(PLAIN):
        simulation = simulation_of(bench)
        rounds = bench.rounds if storage.throttle else 3 * bench.rounds
        for name, mode in MODES.items():
            bench.progress(f"{PLAIN.key}, {storage.name}: {name}")
            reports = rounds_of(bench, simulation, storage, mode, rounds)
            yield {"storage": storage.name, "mode": name}, reports, ()


PLAIN = Case(
    key="plain",
    title="No computing at all",
    text="The same program without its computation: there is nothing to hide behind, so the best that can be expected is"
    " no loss. *Total* is from the first HDF5 call to the end of the library, the plugin's loading included.",
    metrics=[
        Metric("total_ms", "total, ms", lambda r: r["total_us"] / 1e3),
        Metric("cpu_ms", "CPU, ms", lambda r: r["cpu_us"] / 1e3),
    ],
    derived=[Derived("total_ratio", "total, ratio", "total_ms", most=1.05)],
    rows=plain_rows,
    programs=("checkpoint",),
)


def memory_rows(bench):
    ways = {
        "one file, close=deferred": [],
        "a file per step, close=deferred": [],
        "a file per step, event sets": ["--late-wait"],
    }
    for storage in bench.storages(MEMORY):
        simulation = simulation_of(bench) if bench.tiny else simulation_of(bench, steps=8)
        for name, extra in ways.items():
            bench.progress(f"{MEMORY.key}, {storage.name}: {name}")
            settings = {"arena": CAP}
            reports = rounds_of(bench, simulation, storage, MODES[name], bench.rounds, extra, settings)
            yield {"storage": storage.name, "mode": name}, reports, ()


def counter(name, scale=1.0):
    return lambda r: r["summary"]["counters"][name] / scale if "summary" in r else None


MEMORY = Case(
    key="memory",
    title="Memory under a cap",
    text="256 MiB written without computing and without ever waiting before the end, with `TIDELANE_ARENA=64M`. *Peak* is"
    " the most memory that the process ever had (VmHWM); the arena's peak is the plugin's own count. The program's own"
    " arrays are 57 MiB.",
    metrics=[
        Metric("peak_mib", "peak, MiB", lambda r: r["peak_bytes"] / 2**20),
        Metric("arena_mib", "arena's peak, MiB", counter("arena_peak_bytes", 2**20), shown="Tidelane", most=64),
        Metric("deferred_mib", "deferred, MiB", counter("bytes_deferred", 2**20), "{:.0f}", shown="Tidelane"),
        Metric("total_ms", "total, ms", lambda r: r["total_us"] / 1e3, shown="none"),
    ],
    derived=[
        Derived("added_mib", "added, MiB", "peak_mib", "added", "{:.1f}"),
        Derived("total_ratio", "total, ratio", "total_ms"),
    ],
    rows=memory_rows,
    storages=("throttle", "tmpfs"),
    programs=("checkpoint",),
)


def busy_rows(bench):
    cores = len(os.sched_getaffinity(0))
    for storage in bench.storages(BUSY):
        simulation = simulation_of(bench, threads=cores)
        simulation.calibrate(storage)
        for name in ("one file", "a file per step, close=deferred"):
            bench.progress(f"{BUSY.key}, {storage.name}: {name}")
            reports = rounds_of(bench, simulation, storage, MODES[name], bench.rounds, covered=True)
            yield {"storage": storage.name, "mode": name}, reports, ()


BUSY = Case(
    key="busy",
    title="Computing on all cores",
    text="The checkpoint pattern with one computing thread per core: whatever lanes do, they take from the computation."
    " Natively nothing is written while it computes. Storage's own work (the page cache's copy, the simulated slow"
    " storage's process) needs the same cores.",
    metrics=[
        Metric("compute_ms", "computes, ms", lambda r: r["classes"]["compute"] / 1e3),
        Metric("cpu_ms", "CPU, ms", lambda r: r["cpu_us"] / 1e3),
        Metric("lanes_ms", "lanes busy, ms", counter("lane_busy_ns", 1e6), shown="Tidelane"),
        Metric("total_ms", "total, ms", lambda r: r["total_us"] / 1e3),
    ],
    derived=[
        Derived("compute_ratio", "computes, ratio", "compute_ms"),
        Derived("total_ratio", "total, ratio", "total_ms"),
    ],
    rows=busy_rows,
    programs=("checkpoint",),
)
