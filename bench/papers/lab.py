"""Runs of the papers' workloads: natively, under Tidelane and other connectors, alternating, on throttled storage.

Invariants: only the environment differs between the sides of a comparison; outputs are compared by h5diff once for each
comparison; where Tidelane wrote, its counters show that bytes were deferred.
"""

import collections
import contextlib
import dataclasses
import json
import os

from comparison import ConnectorSide, RanksSide, Side
from harness import STARTING, DemoError, Storage, Throttle, native_environment, require_equal, run

NATIVE, TIDELANE = "HDF5", "Tidelane"


@dataclasses.dataclass
class Way:
    """One bar: how it is called, on which side it runs, with which options more, and the plugin's settings."""

    series: str
    side: Side
    options: tuple = ()
    settings: dict = dataclasses.field(default_factory=dict)


class Lab:
    """`shared`: ranks write one file together; otherwise each has its own."""

    def __init__(self, places, scratch, rounds, quick, connectors, shared, progress):
        self.places, self.scratch, self.rounds, self.quick, self.shared = places, scratch, rounds, quick, shared
        self.native, self.tidelane = Side(NATIVE), RanksSide(places)
        self.others = [ConnectorSide(text) for text in connectors]
        self.progress = progress
        self.storage = None
        self.plain = native_environment()
        self.mpi = next((mpi for mpi in ("mpich", "openmpi") if (places.bin / f"series_{mpi}").exists()), None)

    @contextlib.contextmanager
    def slow_storage(self, latency_us, bandwidth):
        with Throttle(self.places, latency_us, bandwidth) as throttle:
            self.storage = Storage("slow storage", throttle.path, throttle)
            yield self.storage

    @contextlib.contextmanager
    def one_file(self):
        """Ranks write one file together, whatever was asked for: where the figure is about that."""
        before, self.shared = self.shared, True
        try:
            yield
        finally:
            self.shared = before

    def ranks(self):
        return ([1, 2] if self.quick else [1, 2, 4]) if self.mpi else [1]

    def start(self, app, options, env, ranks=1):
        result = self.scratch / "report.json"
        program, files = self.places.program(app), []
        command = [program]
        if ranks > 1:
            files = [] if self.shared or "--own-files" in options else ["--own-files"]
            command = [f"mpirun.{self.mpi}", "-np", str(ranks), self.places.program(f"{app}_{self.mpi}")]
        run([*command, *options, *files, f"--json={result}"], {**env, **STARTING}, timeout=300)
        return json.loads(result.read_text())

    def io_us(self, app, options, ranks=1):
        """What native HDF5 waits for in all, without computing: `options` as a function of the folder."""
        folder = self.storage.fresh("probe")
        try:
            return self.start(app, options(folder), native_environment(), ranks)["io_us"]
        finally:
            self.storage.remove("probe")

    def requests(self, app, options):
        """Of one process, natively: how many requests storage got, by the power of two that holds them, and their bytes."""
        self.storage.throttle.reset()
        self.start(app, options, native_environment())
        kinds = [self.storage.throttle.stats()[kind] for kind in ("reads", "writes")]
        by_size = collections.Counter()
        for counted in kinds:
            by_size.update({int(size): count for size, count in counted["up_to"].items()})
        return by_size, sum(counted["bytes"] for counted in kinds)

    def with_others(self, ways, series=NATIVE):
        """The ways, and the first one's once more under each other connector."""
        like = next(way for way in ways if way.series == series)
        return [*ways, *(Way(side.name, side, like.options) for side in self.others)]

    def compare(self, app, options, ways, ranks=1, reads=None, must_defer=0.5):
        """Rounds of all ways in turn; {series: reports}. `reads` is a folder that holds what is read; otherwise each way
        writes into a folder of its own, `options` being a function of it."""
        reports = {way.series: [] for way in ways}
        rounds = self.rounds
        for number in range(rounds):
            for way in reversed(ways) if number % 2 else ways:
                reports[way.series].append(self.one(app, options, way, ranks, reads, must_defer))
            if number == 0 and reads is None:
                for way in ways[1:]:
                    require_equal(self.places, *(f"{self.storage.backing}/{w.series}" for w in (ways[0], way)), f"{app}, {way.series}")
        if reads is None:
            self.storage.remove(*(way.series for way in ways))
        return reports

    def one(self, app, options, way, ranks, reads, must_defer):
        folder = reads or self.storage.fresh(way.series)
        with way.side.environment(way.settings) as (env, found):
            report = self.start(app, [*options(folder), *way.options], env, ranks)
        report.update(found)
        if reads is None and "counters" in report and report["counters"]["bytes_deferred"] < must_defer * report["bytes"]:
            raise DemoError(
                f"{app}, {way.series}: {report['counters']['bytes_deferred']} of {report['bytes']:.0f} bytes were deferred"
            )
        return report

    def prepare(self, app, options, ranks=1):
        """Writes natively what will be read, past the delays; returns the folder to read from."""
        folder = self.storage.fresh("read")
        backing = os.path.join(self.storage.backing, "read")
        self.start(app, options(backing), native_environment(), ranks)
        return folder


def seconds(reports):
    """Of waiting in I/O calls: what the papers call I/O time."""
    return [report["io_us"] / 1e6 for report in reports]


def totals(reports):
    return [report["total_us"] / 1e6 for report in reports]


def bandwidths(reports, first=0):
    """MB/s of all ranks, over the calls of their I/O phases from the `first` one on."""

    def one(report):
        waits = report["waits_us"]
        return report["bytes"] * (len(waits) - first) / len(waits) / sum(waits[first:])

    return [one(report) for report in reports]


def compute(share, io_us, steps):
    return f"--compute-us={share * io_us / steps:.0f}"


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
