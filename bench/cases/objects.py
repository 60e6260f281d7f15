"""Many small objects: written, walked; and what one file costs where hardly anything is written."""

import json
import os
import shutil

from comparison import Case, Derived, Metric, check_outputs, interleave
from harness import native_environment, run


def objects_run(bench, path, env, groups, *more):
    result = bench.scratch / "objects.json"
    run([bench.places.program("objects"), f"--file={path}", f"--groups={groups}", f"--json={result}", *more], env)
    return json.loads(result.read_text())


def with_requests(storage, report):
    if storage.throttle:
        stats = storage.throttle.stats()
        report["reads"] = stats["reads"]["requests"]
        report["writes"] = stats["writes"]["requests"]
    return report


def written(bench, storage, groups, rounds, deferred):
    def one_run(side, env):
        path = os.path.join(storage.fresh(side.name), "objects.h5")
        return with_requests(storage, objects_run(bench, path, env, groups))

    def after(_, reports):
        check_outputs(bench, storage, f"{groups} objects on {storage.name}", deferred, reports)

    try:
        return interleave(bench.sides, rounds, one_run, after_round=after)
    finally:
        storage.remove(*(side.name for side in bench.sides))


def objects_rows(bench):
    groups = 50 if bench.tiny else 1000
    for storage in bench.storages(OBJECTS):
        bench.progress(f"{OBJECTS.key}, {storage.name}")
        rounds = bench.rounds if storage.throttle else 3 * bench.rounds
        yield {"storage": storage.name}, written(bench, storage, groups, rounds, 256 * groups), ()


def requests(report):
    return report["reads"] + report["writes"] if "reads" in report else None


COSTS = [
    Metric("total_ms", "total, ms", lambda r: r["total"]["wall_us"] / 1e3),
    Metric("cpu_ms", "CPU, ms", lambda r: r["total"]["process_cpu_us"] / 1e3),
    Metric("requests", "requests", requests, "{:.0f}"),
]

OBJECTS = Case(
    key="objects",
    title="1000 groups, datasets and attributes",
    text="1000 groups, each with a dataset of 64 numbers, and an attribute on it, in one file with a waiting close.",
    metrics=COSTS,
    derived=[
        Derived("total_ratio", "total, ratio", "total_ms", most=1.05),
        Derived("cpu_ratio", "CPU, ratio", "cpu_ms"),
    ],
    rows=objects_rows,
    programs=("objects",),
)


def start_rows(bench):
    for storage in bench.storages(START):
        bench.progress(f"{START.key}, {storage.name}")
        yield {"storage": storage.name}, written(bench, storage, 1, 3 * bench.rounds, 256), ()


START = Case(
    key="start",
    title="What starting costs",
    text="A file with one object: loading the plugin, starting its lanes, its first memory. Paid once per process.",
    metrics=COSTS,
    derived=[
        Derived("added_ms", "added, ms", "total_ms", "added"),
        Derived("added_cpu_ms", "CPU added, ms", "cpu_ms", "added"),
    ],
    rows=start_rows,
    storages=("tmpfs",),
    programs=("objects",),
)


def walk_rows(bench):
    groups = 50 if bench.tiny else 1000
    for storage in bench.storages(WALK):
        bench.progress(f"{WALK.key}, {storage.name}")
        made = bench.scratch / "walked.h5"
        objects_run(bench, made, native_environment(), groups)

        def one_run(side, env, storage=storage, made=made):
            path = os.path.join(storage.fresh(side.name), "objects.h5")
            shutil.copyfile(made, os.path.join(storage.backing, side.name, "objects.h5"))
            return with_requests(storage, objects_run(bench, path, env, groups, "--walk"))

        try:
            yield {"storage": storage.name}, interleave(bench.sides, bench.rounds, one_run), ()
        finally:
            storage.remove(*(side.name for side in bench.sides))


WALK = Case(
    key="walk",
    title="Opening a cold file and walking it",
    text="Visiting all of 1000 groups and 1000 datasets, opening each and reading the datasets' attribute: what listing"
    " tools and readers do first. Storage has no cache of its own.",
    metrics=[
        Metric("total_ms", "total, ms", lambda r: r["total"]["wall_us"] / 1e3),
        Metric("reads", "reads", lambda r: r.get("reads"), "{:.0f}"),
    ],
    derived=[
        Derived("total_ratio", "total, ratio", "total_ms"),
        Derived("fewer_reads", "times fewer reads", "reads", "fewer", "{:.0f}", least=20),
    ],
    rows=walk_rows,
    storages=("throttle",),
    latency_us=500,
    programs=("objects",),
)
