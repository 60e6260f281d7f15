"""A file a step that is closed into a fast tier: what the program waits for, beside native HDF5, a copy, and files on a tmpfs by hand."""

import json
import pathlib
import statistics
import tempfile
import time

from cases.checkpoint import copy_us, simulation_of
from comparison import TIDELANE, Case, Derived, Metric, check_outputs, interleave
from harness import DemoError, memory_storage, native_environment, run
from simulation import MODES, WAITING_CLOSE

STEPS = 8
WARM_UP = 2  # steps: the tier's pages are new
OPTIONS = [*MODES[WAITING_CLOSE]["options"], "--copies=9"]
PLACES = ("memory", "local disk")


def later_waits_us(report):
    """What the program stood still for in a step, of the third one on: its median."""
    waits = {}
    for span in report["spans"]:
        if span["step"] >= WARM_UP and span["class"] not in ("compute", "shutdown"):
            waits[span["step"]] = waits.get(span["step"], 0) + span["end_us"] - span["begin_us"]
    return statistics.median(waits.values()) if waits else None


def step_copy_us(report):
    return copy_us(report) / report["steps"]


def check_in_tier(report, files):
    """A tier that was not there would look like a close that waits."""
    counters = report["summary"]["counters"]
    if counters["closes_in_tier"] != files or counters["bytes_past_tier"]:
        raise DemoError(f"{counters['closes_in_tier']} of {files} files were closed into the tier, "
                        f"{counters['bytes_past_tier']} bytes went past it; reasons: {report['summary'].get('fallbacks')}")


def drain(bench, tier):
    """Before the other side's turn: the mover would be in its way."""
    tool = str(bench.places.build / "tool" / "tidelane")
    run([tool, "drain"], {**native_environment(), "TIDELANE_TIER": tier}, timeout=120)


def in_rounds(bench, storage, tier, one_run, after, alternate=True):
    """The reports of all sides, of which Tidelane closes its files into this tier."""
    try:
        return interleave(bench.sides, bench.rounds, one_run, {"close": "tier", "tier": tier}, alternate=alternate, after_round=after)
    finally:
        storage.remove(*(side.name for side in bench.sides))


def by_hand_us(simulation, options):
    """What the same program waits for in a step that writes its files to a tmpfs, from where somebody else would have to bring them."""
    with memory_storage() as memory:
        return later_waits_us(simulation.run(memory, options, native_environment(), "by-hand"))


def tiered(bench, simulation, storage, tier):
    def one_run(side, env):
        if side is bench.sides[0]:
            report = simulation.covered_run(storage, OPTIONS)
            return {**report, "by_hand_us": by_hand_us(simulation, OPTIONS)}
        report = simulation.run(storage, OPTIONS, env, side.name)
        if side.name == TIDELANE:
            drain(bench, tier)
        return report

    def after(_, reports):
        if TIDELANE in reports:
            check_in_tier(reports[TIDELANE], reports[TIDELANE]["steps"])
        check_outputs(bench, storage, "tier", 0, reports, payload=simulation.bytes)

    return in_rounds(bench, storage, tier, one_run, after, alternate=False)


def each_place(bench, case, storage):
    """The labels of a row, and the tier's setting."""
    for place in PLACES:
        bench.progress(f"{case.key}, {storage.name}: tier in {place}")
        with tempfile.TemporaryDirectory(prefix="tidelane-tier-", dir=pathlib.Path(bench.scratch)) as folder:
            yield {"storage": storage.name, "mode": place}, "memory" if place == "memory" else folder


def simulated(bench):
    simulation = simulation_of(bench)
    simulation.steps = WARM_UP + 1 if bench.tiny else STEPS
    return simulation


def calibrated(bench, case, storage):
    simulation = simulated(bench)
    bench.progress(f"{case.key}, {storage.name}: what a step's I/O takes")
    simulation.calibrate(storage)
    return simulation


def tier_rows(bench):
    for storage in bench.storages(TIER):
        simulation = calibrated(bench, TIER, storage)
        for labels, tier in each_place(bench, TIER, storage):
            yield labels, tiered(bench, simulation, storage, tier), ()


TIER = Case(
    key="tier",
    title="A file a step, closed into a tier",
    text="8 variables of 4 MiB a step, each step a file of its own; after each the program computes for at least as long as native HDF5 needs"
    " to write one. `close=tier`: the close returns when the tier, in memory or on the local disk, has the file; the mover brings it to its"
    " place meanwhile. *A step* is what the program stands still in one, the first two left out. *Copy* is memcpy of the same bytes into warm memory;"
    " *by hand*: native HDF5 writes the same files to /dev/shm, and nobody brings them home.",
    metrics=[
        Metric("step_ms", "a step, ms", lambda r: later_waits_us(r) / 1e3),
        Metric("copy_ms", "copy, ms", lambda r: step_copy_us(r) / 1e3, shown="base"),
        Metric("over_copy", "a step / copy", lambda r: later_waits_us(r) / step_copy_us(r), shown="Tidelane"),
        Metric("hand_ms", "a step by hand, ms", lambda r: r.get("by_hand_us", later_waits_us(r)) / 1e3, shown="base"),
        Metric("waits_ms", "all waits, ms", lambda r: r["waits_us"] / 1e3),
        Metric("cpu_ms", "CPU, ms", lambda r: r["cpu_us"] / 1e3),
    ],
    derived=[
        Derived("step_ratio", "a step, ratio", "step_ms", format="{:.3f}"),
        Derived("hand_ratio", "a step / by hand", "hand_ms", most=1.1),
        Derived("waits_ratio", "all waits, ratio", "waits_ms", format="{:.3f}"),
    ],
    rows=tier_rows,
    storages=("throttle", "disk"),
    programs=("checkpoint",),
)


def opened_again(bench, simulation, storage, tier):
    """One file, opened again for each step, with half the computation that would hide its I/O: the mover is not done when it is opened."""
    options = ["--layout=reopened", "--mode=implicit"]

    def one_run(side, env):
        report = simulation.run(storage, options, env, side.name)
        if side.name == TIDELANE:
            drain(bench, tier)
        return report

    def after(_, reports):
        if TIDELANE not in reports:
            return
        check_in_tier(reports[TIDELANE], reports[TIDELANE]["steps"])
        if storage.throttle and not bench.tiny and not reports[TIDELANE]["summary"]["counters"]["logs_continued"]:
            raise DemoError("the mover was always quicker than the program")
        check_outputs(bench, storage, "tier_again", 0, reports, payload=simulation.bytes)

    return in_rounds(bench, storage, tier, one_run, after)


def again_rows(bench):
    for storage in bench.storages(AGAIN):
        simulation = calibrated(bench, AGAIN, storage)
        simulation.substeps = max(1, simulation.substeps // 2)
        for labels, tier in each_place(bench, AGAIN, storage):
            yield labels, opened_again(bench, simulation, storage, tier), ()


AGAIN = Case(
    key="tier_again",
    title="One file, opened again for each step",
    text="8 variables of 4 MiB a step, which are added to one file that is opened for it and closed again, into a tier; between them the program computes for half"
    " as long as native HDF5 needs for a step, so that the mover is not done when the file is opened again. *A step* is what the program stands still in one, the first two left out.",
    metrics=[
        Metric("step_ms", "a step, ms", lambda r: later_waits_us(r) / 1e3),
        Metric("waits_ms", "all waits, ms", lambda r: r["waits_us"] / 1e3),
        Metric("continued", "opened while it waited", lambda r: r.get("summary", {}).get("counters", {}).get("logs_continued"), format="{:.0f}", shown="Tidelane"),
    ],
    derived=[
        Derived("step_ratio", "a step, ratio", "step_ms", format="{:.3f}"),
        Derived("waits_ratio", "all waits, ratio", "waits_ms", format="{:.3f}"),
    ],
    rows=again_rows,
    storages=("throttle",),
    programs=("checkpoint",),
)


def burst(bench, simulation, storage, tier):
    """Files one after another without a pause: how long the program takes, and how long until the last one is in its place."""

    def one_run(side, env):
        begin = time.monotonic()
        report = simulation.run(storage, ["--layout=per-step", "--mode=implicit"], env, side.name)
        report["program_s"] = time.monotonic() - begin
        if side.name == TIDELANE:
            drain(bench, tier)
        return {**report, "home_s": time.monotonic() - begin, "bandwidth_s": simulation.bytes / storage.throttle.bandwidth}

    def after(_, reports):
        if TIDELANE in reports:
            check_in_tier(reports[TIDELANE], reports[TIDELANE]["steps"])
        check_outputs(bench, storage, "tier_burst", 0, reports, payload=simulation.bytes)

    return in_rounds(bench, storage, tier, one_run, after)


def burst_rows(bench):
    for storage in bench.storages(BURST):
        simulation = simulated(bench)
        for labels, tier in each_place(bench, BURST, storage):
            yield labels, burst(bench, simulation, storage, tier), ()


BURST = Case(
    key="tier_burst",
    title="A burst of files, until all are in their places",
    text="8 files of 32 MiB that are written one after another, without computation, into a tier. *In place*: until the mover has brought the last one home;"
    " the storage's *bandwidth* alone would take what stands there. It writes two files at once (`tier_streams`): the requests of one wait for one another.",
    metrics=[
        Metric("program_s", "the program, s", lambda r: r["program_s"], format="{:.2f}"),
        Metric("home_s", "in place, s", lambda r: r["home_s"], format="{:.2f}"),
        Metric("bandwidth_s", "bandwidth, s", lambda r: r["bandwidth_s"], format="{:.2f}", shown="base"),
    ],
    derived=[
        Derived("program_ratio", "the program, ratio", "program_s", format="{:.3f}"),
        Derived("home_ratio", "in place, ratio", "home_s"),
    ],
    rows=burst_rows,
    storages=("throttle",),
    programs=("checkpoint",),
)


PLOTS = 6
SHAPE = ["--cells=64", "--box=16", "--levels=2", "--components=6", f"--time-steps={PLOTS}", "--plot-each=1"]
TINY = ["--cells=16", "--box=8", "--levels=2", "--components=2", f"--time-steps={PLOTS}", "--plot-each=1"]


def plots(bench, storage, tier):
    """A mesh that sleeps between plotfiles for 1.5 times as long as native HDF5 needs for one."""
    shape = TINY if bench.tiny else SHAPE
    program = bench.places.program("amr")

    def start(env, folder, *more):
        result = bench.scratch / "amr.json"
        run([program, *shape, *more, f"--folder={storage.fresh(folder)}", f"--json={result}"], env, timeout=120)
        return json.loads(result.read_text())

    compute = f"--compute-us={1.5 * start(native_environment(), 'probe')['io_us'] / PLOTS:.0f}"
    storage.remove("probe")

    def one_run(side, env):
        report = start(env, side.name, compute)
        if side.name == TIDELANE:
            drain(bench, tier)
        return report

    def after(_, reports):
        if TIDELANE in reports:
            check_in_tier(reports[TIDELANE], PLOTS)
        check_outputs(bench, storage, "plotfiles", 0, reports)

    return in_rounds(bench, storage, tier, one_run, after)


def plot_rows(bench):
    for storage in bench.storages(PLOTFILES):
        for labels, tier in each_place(bench, PLOTFILES, storage):
            yield labels, plots(bench, storage, tier), () if storage.throttle else ("faster",)


PLOTFILES = Case(
    key="tier_plotfiles",
    title="Plotfiles of an adaptive mesh, closed into a tier",
    text="2 levels of 64³ cells in boxes of 16³, 6 components: 128 writes of 192 KiB, and some small ones, in a file of 25 MB each; between them the program sleeps for 1.5 times as"
    " long as native HDF5 needs for one. *A plotfile* is what it waits for in one, the first two left out: the time to its next computation.",
    metrics=[
        Metric("plot_ms", "a plotfile, ms", lambda r: statistics.median(r["waits_us"][WARM_UP:]) / 1e3),
        Metric("waits_ms", "all waits, ms", lambda r: r["io_us"] / 1e3),
    ],
    derived=[
        Derived("faster", "times quicker", "plot_ms", kind="fewer", format="{:.1f}", least=2),
        Derived("waits_ratio", "all waits, ratio", "waits_ms", format="{:.3f}"),
    ],
    rows=plot_rows,
    storages=("throttle", "disk"),
    programs=("amr",),
)
