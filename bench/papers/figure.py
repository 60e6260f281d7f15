"""What a figure is: its panels of points, how the paper drew it, and what the paper says that can be held against it.

A point is one bar or marker: a place on the x axis, a series, and the runs' values. A claim is a sentence of the paper with
its numbers, and a function that gives the same numbers of the runs here, and whether they agree.
"""

import csv
import dataclasses
import statistics
import typing


@dataclasses.dataclass
class Point:
    x: str
    series: str
    values: list

    @property
    def median(self):
        return statistics.median(self.values)


@dataclasses.dataclass
class Panel:
    name: str
    points: list = dataclasses.field(default_factory=list)

    def add(self, x, series, values):
        self.points.append(Point(str(x), series, list(values)))

    def value(self, x, series):
        """The median of a bar; None where there is none."""
        found = [point.median for point in self.points if point.x == str(x) and point.series == series]
        return found[0] if found else None

    def ratios(self, above, below):
        """Of two series, at each x that both have."""
        pairs = [(self.value(x, above), self.value(x, below)) for x in self.xs()]
        return [a / b for a, b in pairs if a is not None and b]

    def xs(self):
        return list(dict.fromkeys(point.x for point in self.points))

    def series(self):
        return list(dict.fromkeys(point.series for point in self.points))


@dataclasses.dataclass
class Claim:
    """`here(panels)` gives (text, whether it agrees), or None where the runs cannot say."""

    what: str
    paper: str
    here: typing.Callable


@dataclasses.dataclass
class Figure:
    key: str
    paper: str  # which figure of which paper
    title: str
    scaled: str  # what is different here
    x: str
    y: str
    panels: typing.Callable  # of a Lab; returns a list of Panel
    claims: list
    kind: str = "bars"  # or lines
    log: bool = False
    log_x: bool = False
    better: str = "lower"
    latency_us: float = 2000
    bandwidth: float = 200e6
    throttled: bool = True


def write_csv(path, panels):
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["panel", "x", "series", "median", "lowest", "highest", "runs"])
        for panel in panels:
            for point in panel.points:
                runs = " ".join(f"{value:.6g}" for value in point.values)
                low, high = min(point.values), max(point.values)
                out.writerow([panel.name, point.x, point.series, f"{point.median:.6g}", f"{low:.6g}", f"{high:.6g}", runs])


def read_csv(path):
    panels = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            panel = panels.setdefault(row["panel"], Panel(row["panel"]))
            panel.add(row["x"], row["series"], [float(value) for value in row["runs"].split()])
    return list(panels.values())


def judged(figure, panels):
    """(claim, text of what came here, agrees or None) for each claim."""
    out = []
    for claim in figure.claims:
        try:
            found = claim.here({panel.name: panel for panel in panels}) if panels else None
        except (KeyError, IndexError, ValueError, TypeError, ZeroDivisionError):
            found = None  # a part that was not run
        out.append((claim, *(found or ("not run", None))))
    return out


def span(values, form="{:.2f}"):
    """'1.2 to 3.4', or one of them where they are alike."""
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"
