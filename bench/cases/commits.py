"""What a journal costs programs that flush: waits, processor time and bytes, against native HDF5, and against native HDF5 with fsync."""

import dataclasses
import json

from comparison import NATIVE, TIDELANE, Case, Derived, Metric, check_outputs, interleave
from harness import DemoError, run

ROUNDS = 9  # at least: one is short


@dataclasses.dataclass
class Workload:
    """What a program does: the arguments of bench/commits, and how many bytes it may write, as a multiple of native's.

    Bytes are counted, not measured: more of them fail the run.
    """

    what: str
    arguments: tuple
    count: int
    most_bytes: float
    flush_every: int = 1


APPENDS = Workload("rows of 1 MiB, a flush every 16", ("append",), 256, 1.05, 16)
# Many times: what a run takes to start is not what is asked here (docs/performance.md has it). Nothing is quiet for a second, and space in the
# log is used again: all of it is moved once, at the close.
OVERWRITES = Workload("4 MiB in their place, 160 times, 8 ms apart", ("overwrite", f"--bytes={4 << 20}", "--pause-ms=8"), 160, 1.3)
SMALLER = Workload("1 MiB in its place, 400 times, 3 ms apart", ("overwrite", "--pause-ms=3"), 400, 1.3)
OPEN = (1, 100, 5000)  # datasets, of which one is written


def rounds_of(bench):
    return 1 if bench.tiny else max(bench.rounds, ROUNDS)


def check_commits(report, what):
    """A journal that was not there would look perfect: each flush, and the close, is a commit."""
    commits = report["summary"]["counters"]["commits"]
    if not report["flushes"] <= commits <= report["flushes"] + 1:
        raise DemoError(f"{what}: {commits} commits of {report['flushes']} flushes; reasons counted: {report['summary'].get('fallbacks')}")


def check_bytes(base, other, most, what):
    if other["bytes"] > most * base["bytes"]:
        raise DemoError(f"{what}: {other['bytes']:.0f} bytes were written, natively {base['bytes']:.0f}: more than {most} times as many")


def run_commits(bench, storage, side, env, arguments, sync=False):
    folder, result = storage.fresh(side.name), bench.scratch / "commits.json"
    command = [bench.places.program("commits"), *arguments, f"--file={folder}/commits.h5", f"--json={result}"]
    # Who asks for the descriptor ends a journal: it is for those who have none.
    run([*command, "--fsync"] if sync and side.name == NATIVE else command, env, timeout=300)
    return json.loads(result.read_text())


def written(bench, storage, workload, journal):
    count = 2 * workload.flush_every if bench.tiny else workload.count
    arguments = [*workload.arguments, f"--count={count}", f"--flush-every={workload.flush_every}"]

    def after(number, reports):
        check_outputs(bench, storage, workload.what, 1, reports, compare=number == 0)
        if TIDELANE in reports:
            check_commits(reports[TIDELANE], workload.what)
            if not bench.tiny:
                check_bytes(reports[NATIVE], reports[TIDELANE], workload.most_bytes, workload.what)

    try:
        return interleave(
            bench.sides,
            rounds_of(bench),
            lambda side, env: run_commits(bench, storage, side, env, arguments, journal == "power"),
            {"journal": journal},
            after_round=after,
        )
    finally:
        storage.remove(*(side.name for side in bench.sides))


def rows_of(bench, case, workloads, journal):
    for storage in bench.storages(case):
        for workload in workloads:
            bench.progress(f"{case.key}: {workload.what}")
            yield {"what is written": workload.what}, written(bench, storage, workload, journal), ()


def counted(name, unit=1):
    return lambda report: report["summary"]["counters"][name] / unit if "summary" in report else None


def commits_case(key, title, text, workloads, journal, storage, most_waits, most_cpu):
    case = Case(
        key=key,
        title=title,
        text=text,
        metrics=[
            Metric("waits_ms", "waits, ms", lambda report: report["waits_us"] / 1e3, "{:.0f}"),
            Metric("flush_ms", "a flush, ms", lambda report: report["flush_us"] / 1e3, "{:.2f}"),
            Metric("cpu_ms", "CPU, ms", lambda report: report["total"]["process_cpu_us"] / 1e3, "{:.0f}"),
            Metric("bytes_mib", "written, MiB", lambda report: report["bytes"] / 2**20, "{:.1f}"),
            Metric("logged_mib", "of it to the log", counted("bytes_logged", 2**20), "{:.1f}", shown="Tidelane"),
            Metric("commits", "commits", counted("commits"), "{:.0f}", shown="Tidelane"),
            Metric("checkpoints", "checkpoints", counted("checkpoints"), "{:.0f}", shown="Tidelane"),
        ],
        derived=[
            Derived("waits_ratio", "waits, ratio", "waits_ms", most=most_waits),
            Derived("cpu_ratio", "CPU, ratio", "cpu_ms", most=most_cpu),
            Derived("bytes_ratio", "bytes, ratio", "bytes_mib"),
        ],
        rows=lambda bench: rows_of(bench, case, workloads, journal),
        storages=(storage,),
        programs=("commits",),
    )
    return case


APPENDED = commits_case(
    "commits_appended",
    "A journal: appends",
    "Rows that are new, with `journal=process`, in memory. *Waits* is what the calls of HDF5 take, *a flush* the median of a run, *CPU* that of the"
    " process with its lanes, *written* what it gives to the system in writes.",
    [APPENDS],
    "process",
    "tmpfs",
    1.15,
    1.15,
)
OVERWRITTEN = commits_case(
    "commits_overwritten",
    "A journal: a state that is overwritten",
    "The same in the place of what a commit has, and a flush after each. The run fails where more than 1.3 times native's bytes are written.",
    [OVERWRITES, SMALLER],
    "process",
    "tmpfs",
    1.5,
    2.5,
)
POWER = commits_case(
    "commits_power",
    "A journal for power failures",
    "`journal=power` on the disk; native HDF5 calls `fsync` after each flush.",
    [APPENDS, OVERWRITES],
    "power",
    "disk",
    1.2,
    None,
)


def open_rounds(bench, storage, count):
    arguments = ["overwrite", "--bytes=4096", f"--open={count}", f"--count={3 if bench.tiny else 200}"]

    def after(_, reports):
        if TIDELANE in reports:
            check_commits(reports[TIDELANE], f"{count} open")

    try:
        return interleave(
            bench.sides,
            rounds_of(bench),
            lambda side, env: run_commits(bench, storage, side, env, arguments),
            {"journal": "process"},
            after_round=after,
        )
    finally:
        storage.remove(*(side.name for side in bench.sides))


def open_rows(bench):
    for storage in bench.storages(OPEN_DATASETS):
        of_count = {}
        for count in OPEN:
            bench.progress(f"{OPEN_DATASETS.key}: {count}")
            of_count[count] = open_rounds(bench, storage, count)
        reports = {
            side.name: [
                {count: of_count[count][side.name][number]["least_flush_us"] for count in OPEN} for number in range(rounds_of(bench))
            ]
            for side in bench.sides
        }
        yield {"what is written": "4 KiB in their place, 200 times"}, reports, ()


def flush_of(count):
    return Metric(f"open_{count}", f"a flush, µs, {count} open", lambda report: report[count], "{:.0f}")


OPEN_DATASETS = Case(
    key="commits_open",
    title="A journal: a flush with many datasets open",
    text="One dataset is written, so many are open: the quickest of a run's flushes. What a journal adds must not grow with them: *growth* is what is added with"
    f" {OPEN[-1]} open, less three times that with one.",
    metrics=[
        *map(flush_of, OPEN),
        Metric("growth", "growth", lambda report: report[OPEN[-1]] - 3 * report[OPEN[0]], shown="none"),
    ],
    derived=[
        *(Derived(f"added_{count}", f"added, µs, {count} open", f"open_{count}", "added", "{:.0f}") for count in OPEN),
        Derived("growth_added", "growth, µs", "growth", "added", "{:.0f}", most=50),
    ],
    rows=open_rows,
    storages=("tmpfs",),
    programs=("commits",),
)
