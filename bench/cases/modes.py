"""The automatic mode against both fixed ones, over patterns that favour one or the other; and the model's predictions
for sizes it has not seen."""

import json
import shutil
import statistics
import subprocess

from comparison import Case, Derived, Metric, TIDELANE, TidelaneSide, interleave
from harness import DemoError, native_environment, run

AUTO, BETTER = TIDELANE, "better fixed mode"


class ModeSide(TidelaneSide):
    """Tidelane in one mode, with a history of its own or none."""

    def __init__(self, places, mode, history="0"):
        super().__init__(places, mode)
        self.more = {"mode": mode, "history": history}

    def environment(self, settings):
        return super().environment({**settings, **self.more})


def patterns(io_us, copy_us, kib):
    """(name, kinds of steps as (KiB, us of computation), flush each so many steps): `io_us` is what storage takes for a step
    of `kib`, `copy_us` the copy of it."""
    half, large, small = kib, kib * 7 // 4, kib // 4
    yield "no computation", [(half, 0)], 0
    yield "shorter than the copy", [(half, 0.5 * copy_us)], 0
    yield "as long as the copy", [(half, copy_us)], 0
    yield "half of the I/O", [(half, 0.5 * io_us)], 0
    yield "as long as the I/O", [(half, io_us)], 0
    yield "twice the I/O", [(half, 2 * io_us)], 0
    yield "five times the I/O", [(half, 5 * io_us)], 0
    yield "alternating, long and none", [(half, 2 * io_us), (half, 0)], 0
    yield "alternating, long and short", [(half, 2 * io_us), (half, 0.3 * io_us)], 0
    yield "alternating, large and small", [(large, io_us), (small, io_us)], 0
    yield "each step flushed", [(half, 2 * io_us)], 1
    yield "each second step flushed", [(half, 2 * io_us)], 2


class Epochs:
    """Runs of the program `epochs` on one storage."""

    def __init__(self, bench, storage):
        self.bench, self.storage = bench, storage
        self.program = bench.places.program("epochs")
        self.work = subprocess.run([self.program, "--calibrate"], capture_output=True, text=True, check=True).stdout.strip()

    def run(self, env, kinds, repeat, flush_each):
        folder, result = self.storage.fresh("epochs"), self.bench.scratch / "epochs.json"
        steps = [text for kib, us in kinds for text in (f"--step-kib={kib:.0f}", f"--step-us={us:.1f}")]
        command = [self.program, f"--file={folder}/run.h5", f"--json={result}", f"--work-per-us={self.work}"]
        run([*command, *steps, f"--repeat={repeat}", f"--flush-each={flush_each}"], env)
        self.storage.remove("epochs")
        return json.loads(result.read_text())

    def io_us(self, kib, steps=4):
        """What native HDF5 takes for a step, the median of some runs."""
        return statistics.median(self.run(native_environment(), [(kib, 0)], steps, 0)["total_us"] / steps for _ in range(3))


def history_folder(bench, name):
    folder = bench.scratch / "history" / name
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def regret_rows(bench):
    for storage in bench.storages(REGRET):
        epochs = Epochs(bench, storage)
        kib, steps = (1024, 2) if bench.tiny else (8192, 12) if storage.throttle else (16384, 24)
        io_us = epochs.io_us(kib)
        copy_us = kib / 1024 * 150
        for number, (name, kinds, flush_each) in enumerate(patterns(io_us, copy_us, kib)):
            bench.progress(f"{REGRET.key}, {storage.name}: {name}")
            history = history_folder(bench, f"{storage.name}-{number}".replace(" ", "-"))
            sides = [ModeSide(bench.places, "sync"), ModeSide(bench.places, "async"), ModeSide(bench.places, "auto", history)]
            repeat = max(1, steps // len(kinds))
            one_run = lambda _, env: epochs.run(env, kinds, repeat, flush_each)  # noqa: B023, E731
            interleave(sides[2:], 1, one_run)  # somebody ran it before
            reports = interleave(sides, bench.rounds, one_run)
            total = {mode: statistics.median(r["total_us"] for r in runs) for mode, runs in reports.items()}
            better = min(("sync", "async"), key=total.get)
            labels = {"storage": storage.name, "pattern": name, "better": better}
            yield labels, {BETTER: reports[better], AUTO: reports["auto"]}, ()


def handed_over(report):
    model = report["summary"]["model"]
    return 100 * model["asynchronous"] / model["epochs"] if model["epochs"] else None


REGRET = Case(
    key="regret",
    title="The automatic mode against the better fixed one",
    text="Steps of 8 MiB (16 where storage is quick), each followed by a computation; `mode=sync`, `async` and `auto` in turn,"
    " `auto` with the history of one run before. *Regret* is `auto`'s time against that of the fixed mode that was better in"
    " the median, round by round; in brackets the 95 % interval of its median (bootstrap).",
    metrics=[
        Metric("total_ms", "total, ms", lambda r: r["total_us"] / 1e3),
        Metric("waits_ms", "waits, ms", lambda r: (r["total_us"] - r["compute_us"]) / 1e3),
        Metric("cpu_ms", "CPU, ms", lambda r: r["cpu_us"] / 1e3),
        Metric("async_percent", "handed over, %", handed_over, "{:.0f}", shown=TIDELANE),
    ],
    derived=[
        Derived("regret", "regret", "total_ms", format="{:.3f}", most=1.03, interval=True),
        Derived("cpu_ratio", "CPU, ratio", "cpu_ms", format="{:.3f}", interval=True),
    ],
    rows=regret_rows,
    programs=("epochs",),
)

SEEN_MIB, UNSEEN_MIB = (2, 4, 8, 16, 24), (3, 6, 12, 20, 32)


def learned(bench, epochs, mode, history, io_us_mib, repeat):
    """Runs of the sizes that may be seen; each of them flushes, so that an epoch's I/O is its own."""
    side = ModeSide(bench.places, mode, history)
    for mib in SEEN_MIB[:2] if bench.tiny else SEEN_MIB:
        with side.environment({}) as (env, _):
            epochs.run(env, [(mib * 1024, 1.5 * io_us_mib * mib)], repeat, 0)


def predicted(bench, history, mib, compute_us):
    command = [bench.places.program("predict"), f"--history={history}", f"--bytes={mib << 20}", f"--compute-us={compute_us}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DemoError(done.stderr.strip())
    return json.loads(done.stdout)


def predict_rows(bench):
    for storage in bench.storages(PREDICT):
        epochs = Epochs(bench, storage)
        io_us_mib = epochs.io_us(8192) / 8
        # A run has a start and an end, which no epoch has: where storage is quick, more epochs share them.
        repeat = 3 if bench.tiny else 8 if storage.throttle else 24
        # Memory that a virtual machine touches for the first time costs more than storage does.
        epochs.run(native_environment(), [(UNSEEN_MIB[-1] * 1024, 0)], repeat, 0)
        for mode in ("sync", "async"):
            history = history_folder(bench, f"predict-{storage.name}-{mode}".replace(" ", "-"))
            bench.progress(f"{PREDICT.key}, {storage.name}, {mode}: learning")
            learned(bench, epochs, mode, history, io_us_mib, repeat)
            for share in (0.0, 0.7, 1.5) if mode == "async" else (1.0,):
                reports = []
                for mib in UNSEEN_MIB[:1] if bench.tiny else UNSEEN_MIB:
                    bench.progress(f"{PREDICT.key}, {storage.name}, {mode}, compute {share:g} I/O: {mib} MiB")
                    compute_us = share * io_us_mib * mib
                    expected = predicted(bench, history, mib, compute_us)[mode]
                    for _ in range(bench.rounds):
                        with ModeSide(bench.places, mode).environment({}) as (env, _):
                            report = epochs.run(env, [(mib * 1024, compute_us)], repeat, 0)
                        # All of storage's work is in the total, which is as many epochs.
                        report["expected"], report["epoch_s"] = expected, report["total_us"] / repeat / 1e6
                        reports.append(report)
                of_times = coefficient_of_determination(reports)
                for report in reports:
                    report["r2_of_times"] = of_times
                yield {"storage": storage.name, "mode": mode, "compute": f"{share:g} I/O"}, {TIDELANE: reports}, ()


def coefficient_of_determination(reports):
    took = [r["epoch_s"] for r in reports]
    left = sum((r["epoch_s"] - r["expected"]["seconds"]) ** 2 for r in reports)
    mean = statistics.fmean(took)
    return 1 - left / sum((t - mean) ** 2 for t in took)


def off(key):
    return lambda r: 100 * abs(r["expected"][key] - r["epoch_s"]) / r["epoch_s"]


PREDICT = Case(
    key="predict",
    title="Predictions for sizes not seen",
    text="The model learned from runs with steps of 2, 4, 8, 16 and 24 MiB, and predicts the epochs of runs with 3, 6, 12, 20"
    " and 32 MiB: by how much the prediction was off, in per cent of what an epoch took, medians over all runs. *As printed*"
    " is max(t_comp, t_io - t_comp) + t_overhead, the other one max(t_comp, t_io) + t_overhead. *r²* is of the predicted times"
    " of the runs; that of the rate's regression is near 0 where the rate is the same for all sizes.",
    metrics=[
        Metric("epoch_ms", "an epoch, ms", lambda r: r["epoch_s"] * 1e3),
        Metric("off", "prediction off, %", off("seconds"), most=10),
        Metric("printed_off", "as printed, %", off("as_printed")),
        Metric("r2_of_times", "r²", lambda r: r["r2_of_times"], "{:.3f}"),
        Metric("r2", "r² of the rate", lambda r: r["expected"]["r2"], "{:.3f}"),
    ],
    derived=[],
    rows=predict_rows,
    storages=("throttle", "disk"),
    programs=("epochs", "predict"),
)

