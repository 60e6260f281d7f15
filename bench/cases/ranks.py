"""Ranks of an MPI program that share a file: collective transfers, independent ones, and Tidelane under the collective program."""

import json
import os

from comparison import Case, ConnectorSide, Derived, Metric, RanksSide, Side, TIDELANE, interleave
from harness import STARTING, DemoError, native_environment, require_equal, run

NATIVE, INDEPENDENT = "native, collective", "native, independent"
EMPTY = "native, no elements"  # the floor of a time series: all its calls but those that move elements
OPTIONS = {INDEPENDENT: ["--independent"], EMPTY: ["--empty"]}
MIB = 1 << 20
STEPS, VARIABLES = 5, 8
RANKS = (1, 2, 4)
PIECES = (64, 1 << 10, 16 << 10, 256 << 10, 1 << 20)
PATTERNS = {"contiguous": "1-D", "rows": "2-D", "planes": "3-D"}
SIZES = (1 << 10, 16 << 10, 256 << 10)
MOST_BYTES = 16 * MIB  # of a rank's writes


def sides_of(bench):
    others = [side for side in bench.sides if isinstance(side, ConnectorSide)]
    return [Side(NATIVE), Side(INDEPENDENT), RanksSide(bench.places), *others]


def series_sides(bench):
    return [*sides_of(bench), Side(EMPTY)]


def mpi_of(bench):
    """The MPI whose ranks are started; None, and a word about it, where there is no parallel HDF5."""
    for mpi in ("mpich", "openmpi"):
        if (bench.places.bin / f"series_{mpi}").exists():
            return mpi
    bench.progress("skipped: no program for ranks; `make bench-papers` and `make demo-mpi` make the parallel HDF5 that they need")
    return None


class Program:
    """One program of ranks, run on all sides in turn."""

    def __init__(self, bench, storage, app, ranks):
        self.bench, self.storage, self.app, self.ranks = bench, storage, app, ranks
        self.mpi = mpi_of(bench)

    def run(self, env, options):
        result = self.bench.scratch / "ranks.json"
        command = [f"mpirun.{self.mpi}", "-np", str(self.ranks), self.bench.places.program(f"{self.app}_{self.mpi}")]
        run([*command, *options, f"--json={result}"], {**env, **STARTING}, timeout=300)
        report = json.loads(result.read_text())
        if self.storage.throttle:
            stats = self.storage.throttle.stats()
            report["requests"] = stats["reads"]["requests"] + stats["writes"]["requests"]
        return report

    def rounds(self, options, reads=False, compute_us=None, sides=None):
        """Rounds of all sides; `options` is a function of the folder. `compute_us`: of a native run's report, what a step computes."""
        sides = sides or sides_of(self.bench)
        if reads:
            self.storage.fresh("read")
            self.run(native_environment(), [*options(os.path.join(self.storage.backing, "read")), "--write"])
        folder_of = lambda side: os.path.join(self.storage.path, "read") if reads else self.storage.fresh(side.name.replace(" ", ""))  # noqa: E731
        more = []
        if compute_us:
            more = [f"--compute-us={compute_us(self.run(native_environment(), options(folder_of(sides[0])))):.0f}"]

        def one_run(side, env):
            folder = folder_of(side)
            if self.storage.throttle:
                self.storage.throttle.reset()
            return self.run(env, [*options(folder), *more, *OPTIONS.get(side.name, [])])

        def after(number, reports):
            if reads or number != 0:
                return
            full = (side.name.replace(" ", "") for side in sides if side.name != EMPTY)
            first, *others = (os.path.join(self.storage.backing, name) for name in full)
            for other in others:
                require_equal(self.bench.places, first, other, f"{self.app}, {self.ranks} ranks")

        try:
            return interleave(sides, self.bench.rounds, one_run, self.bench.settings, after_round=after)
        finally:
            self.storage.remove("read", *(side.name.replace(" ", "") for side in sides))


def require_deferred(reports, what):
    for report in reports[TIDELANE]:
        if report["counters"]["bytes_deferred"] < 0.5 * report["bytes"]:
            raise DemoError(f"{what}: {report['counters']['bytes_deferred']} of {report['bytes']:.0f} bytes were deferred")


def deferred_percent(report):
    return 100 * report["counters"]["bytes_deferred"] / report["bytes"] if "counters" in report else None


METRICS = [
    Metric("waits_ms", "waits, ms", lambda r: r["io_us"] / 1e3),
    Metric("total_ms", "total, ms", lambda r: r["total_us"] / 1e3),
    Metric("requests", "requests", lambda r: r.get("requests"), "{:.0f}"),
]


def step_us(report):
    return 1.2 * report["io_us"] / STEPS


def series_rows(bench):
    size = 64 << 10 if bench.tiny else MIB
    for storage in bench.storages(SERIES):
        for write in (True, False):
            for ranks in RANKS[1:2] if bench.tiny else RANKS:
                what = "VPIC-IO" if write else "BD-CATS-IO"
                bench.progress(f"{SERIES.key}, {storage.name}: {what}, {ranks}")
                program = Program(bench, storage, "series", ranks)
                if program.mpi is None:
                    return
                shape = [f"--bytes={size}", f"--steps={STEPS}", f"--variables={VARIABLES}", *(["--write"] if write else [])]
                reports = program.rounds(lambda folder: [*shape, f"--folder={folder}"], not write, step_us, series_sides(bench))  # noqa: B023
                if write and storage.throttle:
                    require_deferred(reports, what)
                yield {"storage": storage.name, "program": what, "ranks": str(ranks)}, reports, () if write else ("waits",)


SERIES = Case(
    key="ranks",
    title="Ranks of an MPI program: a time series",
    text=f"Weak scaling: each rank writes (VPIC-IO) or reads (BD-CATS-IO) 1 MiB of {VARIABLES} variables in {STEPS} steps, all in one file, and after"
    " each step sleeps for 1.2 times as long as native HDF5 needs for it. MPICH; one rank is a serial file. The program under Tidelane is the collective one.",
    metrics=METRICS,
    derived=[Derived("waits", "waits, ratio", "waits_ms", format="{:.3f}", most=0.1), Derived("total", "total, ratio", "total_ms")],
    rows=series_rows,
    storages=("throttle", "disk"),
)


def later_ms(report):
    return sum(report["waits_us"][2:]) / 1e3


def reads_rows(bench):
    size = 64 << 10 if bench.tiny else MIB
    for storage in bench.storages(READS):
        for computes in (True, False):
            for ranks in RANKS[1:2] if bench.tiny else RANKS[1:]:
                bench.progress(f"{READS.key}, {storage.name}: {ranks}")
                program = Program(bench, storage, "series", ranks)
                if program.mpi is None:
                    return
                shape = [f"--bytes={size}", f"--steps={STEPS}", f"--variables={VARIABLES}"]
                reports = program.rounds(lambda folder: [*shape, f"--folder={folder}"], True, step_us if computes else None, series_sides(bench))  # noqa: B023
                for report in reports[TIDELANE]:
                    if report["counters"]["collective_reads_alone"] == 0:
                        raise DemoError("no rank read for itself")
                labels = {"storage": storage.name, "ranks": str(ranks), "computes": "1.2 times" if computes else "no"}
                yield labels, reports, ("total",) if computes else ("later",)


READS = Case(
    key="ranks_reads",
    title="Ranks that read a time series from one file",
    text=f"BD-CATS-IO: each rank reads 1 MiB of {VARIABLES} variables in {STEPS} steps, collectively, from a file that all have opened for reading only; after each"
    " step it sleeps for 1.2 times as long as native HDF5 needs for it, or goes on. *Later* are the steps after the second.",
    metrics=[*METRICS, Metric("later_ms", "later, ms", later_ms)],
    derived=[Derived("later", "later, ratio", "later_ms", format="{:.3f}", most=0.1), Derived("total", "total, ratio", "total_ms", most=1.1)],
    rows=reads_rows,
    storages=("throttle",),
)


def piece_text(size):
    return f"{size >> 20} MiB" if size >= MIB else f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} B"


def pieces_rows(bench):
    for storage in bench.storages(INTERLEAVED):
        for piece in PIECES[1:2] if bench.tiny else PIECES:
            bench.progress(f"{INTERLEAVED.key}, {storage.name}: {piece_text(piece)}")
            program = Program(bench, storage, "series", 2)
            if program.mpi is None:
                return
            shape = [f"--bytes={min(MIB, 256 * piece)}", "--steps=2", "--variables=2", "--write", f"--piece={piece}"]
            reports = program.rounds(lambda folder: [*shape, f"--folder={folder}"])  # noqa: B023
            if storage.throttle and piece == PIECES[-1]:  # in one piece: nobody could join it
                require_deferred(reports, f"pieces of {piece_text(piece)}")
            yield {"storage": storage.name, "piece": piece_text(piece)}, reports, ()


INTERLEAVED = Case(
    key="pieces",
    title="Ranks whose pieces interleave",
    text="Two ranks write two variables in two steps without computing, each the columns of its own of a two-dimensional array: *pieces* of so many bytes,"
    " in turn, 256 of them, at most 1 MiB. Tidelane leaves collective writes of small pieces to MPI (`collective_piece`).",
    metrics=[*METRICS, Metric("deferred", "deferred, %", deferred_percent, "{:.0f}", shown=TIDELANE)],
    derived=[Derived("waits", "waits, ratio", "waits_ms", most=1.1), Derived("fewer", "times fewer requests", "requests", "fewer", "{:.1f}")],
    rows=pieces_rows,
    storages=("throttle", "disk"),
)


def steps_ms(report):
    return sum(report["waits_us"]) / 1e3


def filtered_rows(bench):
    sides = [Side(NATIVE), RanksSide(bench.places), Side(EMPTY)]
    for storage in bench.storages(FILTERED):
        for computes in (False, True):
            for ranks in RANKS[1:2] if bench.tiny else RANKS[1:]:
                bench.progress(f"{FILTERED.key}, {storage.name}: {ranks}")
                program = Program(bench, storage, "series", ranks)
                if program.mpi is None:
                    return
                shape = [f"--bytes={(64 << 10) if bench.tiny else MIB}", f"--steps={STEPS}", "--variables=4", "--write", "--deflate=4"]
                reports = program.rounds(lambda folder: [*shape, f"--folder={folder}"], False, step_us if computes else None, sides)  # noqa: B023
                for report in reports[TIDELANE]:
                    if report["counters"]["chunks_filtered_by_lanes"] == 0:
                        raise DemoError("lanes compressed nothing")
                labels = {"storage": storage.name, "ranks": str(ranks), "computes": "as long" if computes else "no"}
                yield labels, reports, () if computes else ("steps",)


FILTERED = Case(
    key="ranks_filtered",
    title="Ranks that write compressed datasets",
    text=f"Each rank writes a chunk of 1 MiB of 4 variables in {STEPS} steps, collectively, with shuffle and deflate, level 4, into one file; after each step"
    " it sleeps for 1.2 times as long as native HDF5 needs for it, or goes on. *Steps* are the writes alone, without open and close.",
    metrics=[*METRICS, Metric("steps_ms", "steps, ms", steps_ms)],
    derived=[
        Derived("steps", "steps, ratio", "steps_ms", format="{:.3f}", most=0.15),
        Derived("waits", "waits, ratio", "waits_ms", format="{:.3f}"),
        Derived("total", "total, ratio", "total_ms"),
    ],
    rows=filtered_rows,
    storages=("throttle", "disk"),
)


def writes_rows(bench):
    for storage in bench.storages(MERGING):
        for pattern, name in PATTERNS.items():
            for size in SIZES[:1] if bench.tiny else SIZES:
                for shuffled in (False, True):
                    order = "shuffled" if shuffled else "in order"
                    bench.progress(f"{MERGING.key}, {storage.name}: {name}, {piece_text(size)}, {order}")
                    program = Program(bench, storage, "writes", 2)
                    if program.mpi is None:
                        return
                    writes = 64 if bench.tiny else max(64, min(256 if storage.throttle else 1024, MOST_BYTES // size))
                    shape = [f"--pattern={pattern}", f"--bytes={size}", f"--writes={writes}", *(["--shuffled"] if shuffled else [])]
                    reports = program.rounds(lambda folder: [*shape, f"--file={folder}/writes.h5"])  # noqa: B023
                    if storage.throttle:
                        require_deferred(reports, f"{name}, {piece_text(size)}")
                    labels = {"storage": storage.name, "pattern": name, "write": piece_text(size), "order": order}
                    yield labels, reports, () if storage.throttle and size == SIZES[0] else ("quicker",)


MERGING = Case(
    key="ranks_writes",
    title="Ranks that make small writes",
    text="The request-merging benchmark: two ranks write blocks of a slab of their own, each block a collective (or independent) write, without computing.",
    metrics=[*METRICS, Metric("deferred", "deferred, %", deferred_percent, "{:.0f}", shown=TIDELANE)],
    derived=[
        Derived("quicker", "times quicker", "waits_ms", "fewer", "{:.1f}", least=10),
        Derived("fewer", "times fewer requests", "requests", "fewer", "{:.1f}"),
    ],
    rows=writes_rows,
    storages=("throttle", "disk"),
)


def opening_rows(bench):
    groups = 25 if bench.tiny else 1000
    sides = [Side("native"), RanksSide(bench.places)]
    for storage in bench.storages(OPENING):
        for ranks in RANKS[1:2] if bench.tiny else RANKS:
            bench.progress(f"{OPENING.key}, {storage.name}: {ranks}")
            program = Program(bench, storage, "walk", ranks)
            if program.mpi is None:
                return
            shape = [f"--groups={groups}", "--apart"]
            yield {"storage": storage.name, "ranks": str(ranks)}, program.rounds(lambda folder: [*shape, f"--file={folder}/walk.h5"], True, sides=sides), ()  # noqa: B023


OPENING = Case(
    key="ranks_opening",
    title="Ranks that open a cold file",
    text="All ranks open a file for reading and walk 1000 groups and 1000 datasets, each rank all of them, and read the datasets' attributes; metadata is not read"
    " collectively. MPICH; one rank has a serial file. Storage has no cache of its own.",
    metrics=[METRICS[1], METRICS[2]],
    derived=[Derived("total", "total, ratio", "total_ms"), Derived("fewer", "times fewer requests", "requests", "fewer", "{:.0f}", least=20)],
    rows=opening_rows,
    storages=("throttle",),
    latency_us=500,
)
