"""Reads that can be told from those before them, and reads that cannot: time series, random access, a training's loader."""

import json
import os

from comparison import Case, Derived, Metric, interleave
from harness import DemoError, native_environment, run

MIB = 1 << 20
STEPS = 5
VARIABLES = 8
# How many steps pass before the next one can be told.
LEARNING = {"groups": 1, "datasets": 2, "files": 2}


def run_program(bench, name, env, *options):
    result = bench.scratch / f"{name}.json"
    run([bench.places.program(name), *options, f"--json={result}"], env, timeout=300)
    return json.loads(result.read_text())


def require_no_loss(report, what, hits):
    summary = report.get("summary")
    if summary and summary["counters"]["ahead_hits"] < hits:
        raise DemoError(f"{what}: only {summary['counters']['ahead_hits']} reads found what lanes had fetched")


def series_rounds(bench, storage, layout, random):
    folder = storage.fresh("series")
    backing = os.path.join(storage.backing, "series")
    options = [f"--layout={layout}", f"--steps={STEPS}", f"--variables={VARIABLES}"]
    options.append(f"--bytes={64 << 10 if bench.tiny else 4 * MIB}")
    run_program(bench, "series", native_environment(), *options, "--write", f"--folder={backing}")
    here = [f"--folder={folder}", *options, *(["--random"] if random else [])]
    probe = run_program(bench, "series", native_environment(), *here)
    here += ["--busy", f"--compute-us={1.2 * max(probe['waits_us']):.0f}"]

    def one_run(_, env):
        return run_program(bench, "series", env, *here)

    def after(_, reports):
        for report in reports.values():
            report["learning"] = 0 if random else LEARNING[layout]
            if not bench.tiny and not random:
                require_no_loss(report, f"{storage.name}, {layout}", VARIABLES)

    try:
        return interleave(bench.sides, bench.rounds, one_run, after_round=after)
    finally:
        storage.remove("series")


def series_rows(bench):
    for storage in bench.storages(SERIES):
        for layout, random in (("groups", False), ("datasets", False), ("files", False), ("groups", True)):
            access = "at random" if random else "in order"
            bench.progress(f"{SERIES.key}, {storage.name}: {layout}, {access}")
            labels = {"storage": storage.name, "steps in": layout, "read": access}
            yield labels, series_rounds(bench, storage, layout, random), ("worst_told",) if random else ("all_ratio",)


def told(report):
    return report["waits_us"][report["learning"] :]


def counter(name, scale=1.0):
    return lambda r: r["summary"]["counters"][name] / scale if "summary" in r else None


SERIES = Case(
    key="series",
    title="Reading a time series",
    text=f"{VARIABLES} variables of 4 MiB, {STEPS} steps (the BD-CATS-IO pattern); after each step the program computes for"
    " longer than native HDF5 needs to read it. Steps lie in groups of one file, in slabs of one dataset for each variable,"
    " or in files. *Told* are the steps after those that nobody could have told: the first one; with slabs and files, two."
    " At random, the same number of steps is read in no order.",
    metrics=[
        Metric("all_ms", "all steps: waits, ms", lambda r: sum(r["waits_us"]) / 1e3),
        Metric("told_ms", "a told step: waits, ms", lambda r: sum(told(r)) / len(told(r)) / 1e3),
        Metric("worst_ms", "the worst one, ms", lambda r: max(told(r)) / 1e3),
        Metric("fetched", "fetched ahead, MiB", counter("ahead_bytes", MIB), shown="Tidelane"),
        Metric("wasted", "in vain, MiB", counter("ahead_bytes_wasted", MIB), shown="Tidelane"),
    ],
    derived=[
        Derived("worst_told", "worst, ratio", "worst_ms", format="{:.3f}", most=0.1),
        Derived("all_ratio", "all, ratio", "all_ms", most=1.05),
    ],
    rows=series_rows,
    storages=("throttle",),
    programs=("series",),
)


def loader_rounds(bench, storage, chunked, shuffle):
    folder = storage.fresh("loader")
    path = os.path.join(storage.backing, "loader", "samples.h5")
    options = [f"--samples={64 if bench.tiny else 512}", "--epochs=3", *(["--chunked"] if chunked else [])]
    run_program(bench, "loader", native_environment(), *options, "--write", f"--file={path}")
    here = [f"--file={folder}/samples.h5", *options, "--shuffle" if shuffle else "--no-shuffle"]
    probe = run_program(bench, "loader", native_environment(), *here)
    batches = 3 * (64 if bench.tiny else 512) / 16
    here += ["--busy", f"--compute-us={sum(probe['epochs_us']) / batches:.0f}"]
    try:
        return interleave(bench.sides, bench.rounds, lambda _, env: run_program(bench, "loader", env, *here))
    finally:
        storage.remove("loader")


def loader_rows(bench):
    for storage in bench.storages(LOADER):
        for chunked, shuffle in ((False, True), (True, True), (False, False)):
            labels = {
                "storage": storage.name,
                "layout": "a chunk a sample" if chunked else "contiguous",
                "order": "shuffled" if shuffle else "as they lie",
            }
            bench.progress(f"{LOADER.key}, {', '.join(labels.values())}")
            yield labels, loader_rounds(bench, storage, chunked, shuffle), ()


LOADER = Case(
    key="loader",
    title="The loader of a training",
    text="512 samples of 64 KiB in one dataset, three epochs, batches of 16; after each batch the program computes for as"
    " long as native HDF5 needs to read it. Shuffled: each epoch in another order, which nobody can tell.",
    metrics=[
        Metric("epochs_ms", "all epochs: waits, ms", lambda r: sum(r["epochs_us"]) / 1e3),
        Metric("last_ms", "the last one, ms", lambda r: r["epochs_us"][-1] / 1e3),
        Metric("fetched", "fetched ahead, MiB", counter("ahead_bytes", MIB), shown="Tidelane"),
        Metric("wasted", "in vain, MiB", counter("ahead_bytes_wasted", MIB), shown="Tidelane"),
    ],
    derived=[Derived("ratio", "all, ratio", "epochs_ms", most=1.05), Derived("last", "last, ratio", "last_ms")],
    rows=loader_rows,
    storages=("throttle", "tmpfs"),
    programs=("loader",),
)
