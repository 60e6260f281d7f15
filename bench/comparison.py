"""Sides, rounds and rows: the same program run natively and under connectors, alternating, and what is made of it.

Invariants: the first side is the base that the others are compared with, within each round; every output of another
side was equal to the base's by h5diff; where Tidelane ran, its counters show that bytes were deferred.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import random
import re
import statistics
import tempfile
import typing

from harness import (
    DemoError,
    native_environment,
    read_summary,
    require_deferred,
    require_passed,
    require_equal,
    tidelane_environment,
)

NATIVE, TIDELANE = "native", "Tidelane"


class Side:
    """One way of running a program. `prepare` gives its environment; `report` may be filled from what it left."""

    def __init__(self, name):
        self.name = name

    @contextlib.contextmanager
    def environment(self, settings):  # noqa: ARG002  (only Tidelane has settings)
        yield native_environment(), {}


class TidelaneSide(Side):
    def __init__(self, places, name=TIDELANE, recording="summary"):
        super().__init__(name)
        self.places, self.recording = places, recording

    @contextlib.contextmanager
    def environment(self, settings):
        with tempfile.TemporaryDirectory(prefix="tidelane-summary-") as folder:
            recorded = {}
            if self.recording != "off":
                recorded["summary"] = os.path.join(folder, "summary-%p.json")
            if self.recording == "trace":
                recorded["trace"] = os.path.join(folder, "trace.json")
            found = {}
            yield tidelane_environment(self.places, **settings, **recorded), found
            if self.recording != "off":
                found["summary"] = read_summary(folder)


class RanksSide(Side):
    """Tidelane for one process or several: what they counted, added up."""

    def __init__(self, places, name=TIDELANE, settings=None):
        super().__init__(name)
        self.places, self.settings = places, settings or {}

    @contextlib.contextmanager
    def environment(self, settings):
        with tempfile.TemporaryDirectory(prefix="tidelane-summary-") as folder:
            summary = os.path.join(folder, "summary-%p.json")
            found = {}
            yield tidelane_environment(self.places, **self.settings, **settings, summary=summary), found
            summaries = [json.loads(path.read_text()) for path in pathlib.Path(folder).glob("summary-*.json")]
            if not summaries:
                raise DemoError("the plugin left no summary: was it loaded?")
            names = summaries[0]["counters"]
            found["counters"] = {name: sum(summary["counters"][name] for summary in summaries) for name in names}


class ConnectorSide(Side):
    """Any other connector: NAME or "NAME INFO" as HDF5_VOL_CONNECTOR takes it, and where its plugin is."""

    def __init__(self, text):
        match = re.fullmatch(r"(.+?)(?:=([/.~].*))?", text)
        self.connector = match[1]
        self.plugins = os.path.abspath(os.path.expanduser(match[2])) if match[2] else None
        super().__init__(self.connector.split()[0])

    @contextlib.contextmanager
    def environment(self, settings):  # noqa: ARG002
        env = native_environment()
        env["HDF5_VOL_CONNECTOR"] = self.connector
        if self.plugins:
            env["HDF5_PLUGIN_PATH"] = self.plugins
        yield env, {}


@dataclasses.dataclass
class Metric:
    """A number of one run: `value(report)`, or None where there is none. `shown`: all sides, the base, Tidelane, none."""

    key: str
    label: str
    value: typing.Callable
    format: str = "{:.1f}"
    shown: str = "all"
    most: float | None = None  # the target for Tidelane


@dataclasses.dataclass
class Derived:
    """A side's number against the base's of the same round: ratio, fewer (the ratio upside down), or added."""

    key: str
    label: str
    metric: str
    kind: str = "ratio"
    format: str = "{:.2f}"
    most: float | None = None
    least: float | None = None
    interval: bool = False  # of the median, instead of the lowest and the highest round
    shown: bool = True

    def value(self, base, other):
        if base is None or other is None:
            return None
        if self.kind == "added":
            return other - base
        above, below = (base, other) if self.kind == "fewer" else (other, base)
        return above / below if below else float(above)


def spread(values):
    values = [value for value in values if value is not None]
    if not values:
        return None
    return {"median": statistics.median(values), "low": min(values), "high": max(values), "runs": values}


def interval_of_median(values, resamples=2000, seed=1):
    """The 95 % interval of the median, by bootstrap: the same for the same values."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    chance = random.Random(seed)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(resamples))
    return {
        "median": statistics.median(values),
        "low": medians[int(0.025 * resamples)],
        "high": medians[int(0.975 * resamples)],
        "runs": values,
    }


def interleave(sides, rounds, one_run, settings=None, alternate=True, after_round=None):
    """Rounds in which each side runs once, in turn first; returns {side's name: reports}."""
    reports = {side.name: [] for side in sides}
    for number in range(rounds):
        for side in reversed(sides) if alternate and number % 2 else sides:
            with side.environment(settings or {}) as (env, found):
                report = one_run(side, env)
            report.update(found)
            reports[side.name].append(report)
        if after_round:
            after_round(number, {name: runs[-1] for name, runs in reports.items()})
    return reports


def check_outputs(bench, storage, what, deferred, reports, compare=True, payload=0):
    """What every case asserts after a round: equal outputs, and where Tidelane ran, bytes deferred, and the `payload`
    seen by it."""
    for side in bench.sides[1:]:
        if compare:
            names = (f"{storage.backing}/{bench.sides[0].name}", f"{storage.backing}/{side.name}")
            require_equal(bench.places, *names, f"{what}, {side.name}")
        if summary := reports[side.name].get("summary"):
            require_deferred(summary, deferred, what)
            require_passed(summary, payload, what)


def must_defer(storage, payload, hidden=False):
    """How many of `payload` bytes must have been deferred. Where storage is as quick as memory, large writes are only
    behind a computation (`hidden`), and the first step's are not; otherwise only what is small waits."""
    if storage.throttle:
        return 0.9 * payload
    return 0.2 * payload if hidden else 1


@dataclasses.dataclass
class Case:
    """A benchmark: its columns, and `rows(bench)`, which yields (labels, reports, keys of targets that do not hold here)."""

    key: str
    title: str
    text: str
    metrics: list
    derived: list
    rows: typing.Callable
    storages: tuple = ("throttle", "disk", "tmpfs")
    latency_us: float = 2000  # of the throttle, and its
    bandwidth: float = 200e6
    programs: tuple = ()
    notes: typing.Callable | None = None  # what stands below the table, told when all rows were made

    def columns(self):
        def plain(column):
            return {k: v for k, v in dataclasses.asdict(column).items() if k != "value"}

        return {"metrics": [plain(m) for m in self.metrics], "derived": [plain(d) for d in self.derived]}

    def row(self, labels, reports, without=()):
        sides = {
            name: {m.key: spread([m.value(report) for report in runs]) for m in self.metrics}
            for name, runs in reports.items()
        }
        base, *others = reports
        values = {m.key: m.value for m in self.metrics}
        against = {}
        for name in others:
            pairs = list(zip(reports[base], reports[name]))
            against[name] = {
                d.key: (interval_of_median if d.interval else spread)([d.value(values[d.metric](b), values[d.metric](o)) for b, o in pairs])
                for d in self.derived
            }
        row = {"labels": labels, "rounds": len(reports[base]), "sides": sides, "against_base": against}
        row["targets"] = list(self.targets(row, without))
        return row

    def targets(self, row, without):
        """Targets are Tidelane's, or whoever is compared with the base in its place."""
        name = TIDELANE if TIDELANE in row["sides"] else next(iter(row["against_base"]))
        for column, found in [(m, row["sides"][name]) for m in self.metrics] + [
            (d, row["against_base"].get(name, {})) for d in self.derived
        ]:
            value = found.get(column.key)
            if column.key in without or value is None:
                continue
            least = getattr(column, "least", None)
            if column.most is not None:
                yield {"key": column.key, "most": column.most, "met": value["median"] <= column.most}
            elif least is not None:
                yield {"key": column.key, "least": least, "met": value["median"] >= least}


def run_case(bench, case):
    """All rows of a case, as they go into the results. What fails is recorded; the other rows still run."""
    out = {"title": case.title, "text": case.text, "columns": case.columns(), "rows": [], "failures": []}
    rows = case.rows(bench)
    while True:
        try:
            labels, reports, without = next(rows)
        except StopIteration:
            if case.notes:
                out["notes"] = case.notes(bench)
            return out
        except DemoError as error:
            out["failures"].append(str(error))
            return out
        out["sides"] = list(reports)
        out["rows"].append(case.row(labels, reports, without))
