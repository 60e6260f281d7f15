"""Draws what a run with native HDF5 and one with Tidelane did when, above one another on one time axis.

The application's rows come from the program's own spans, the lanes' rows from the plugin's trace (TIDELANE_TRACE): both
are in microseconds of CLOCK_MONOTONIC, so they fit together without any adjustment.
"""

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (the backend is chosen first)
from matplotlib.patches import Patch  # noqa: E402

COMPUTE, WRITE, WAIT, LANE = "#5b8db8", "#e07a3f", "#a4243b", "#3d9a80"
INK, FAINT = "#23313d", "#8a97a3"
KINDS = {
    "compute": (COMPUTE, "computes"),
    "create": (WRITE, None),
    "write": (WRITE, "creates and writes"),
    "flush": (WRITE, None),
    "close": (WRITE, None),
    "file_close": (WAIT, "closes and waits"),
    "wait": (WAIT, None),
    "shutdown": (WAIT, None),
}
ROW_HEIGHT = 0.62


def lanes_of(trace):
    """The lanes' writes: a list of (begin_us, end_us) for each lane, in the order of the lanes."""
    lanes = {}
    for event in trace["traceEvents"]:
        if event.get("ph") == "X" and event["name"] == "pwrite":
            lanes.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    return [sorted(lanes[tid]) for tid in sorted(lanes)]


def merged(spans, gap_s):
    """Spans of one kind that follow each other closely, as one: a sliver for each call could not be seen."""
    out = []
    for kind, begin, end in spans:
        if out and out[-1][0] == kind and begin - out[-1][2] <= gap_s:
            out[-1][2] = end
        else:
            out.append([kind, begin, end])
    return out


def application_spans(run):
    zero = run["begin_us"]
    spans = [(s["class"], (s["begin_us"] - zero) / 1e6, (s["end_us"] - zero) / 1e6) for s in run["spans"]]
    return merged([(KINDS[kind][0], begin, end) for kind, begin, end in spans], 1e-4)


def bar(axes, y, begin, end, color, **more):
    axes.broken_barh([(begin, end - begin)], (y - ROW_HEIGHT / 2, ROW_HEIGHT), facecolors=color, **more)


def draw_application(axes, y, run):
    steps = 0
    for color, begin, end in application_spans(run):
        bar(axes, y, begin, end, color, linewidth=0)
        if color == COMPUTE:
            steps += 1
            axes.text((begin + end) / 2, y, f"step {steps}", color="white", ha="center", va="center", fontsize=9)


def draw_lane(axes, y, writes, zero_us):
    for begin, end in writes:
        bar(axes, y, (begin - zero_us) / 1e6, (end - zero_us) / 1e6, LANE, edgecolor="white", linewidth=0.25)


def panel(axes, title, run, rows):
    """A panel's frame: its title, its row names, and how long the program ran."""
    seconds = run["total_us"] / 1e6
    axes.set_yticks(range(len(rows)), rows, fontsize=10, color=INK)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(length=0)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="x", color="#e6eaee", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold", color=INK, pad=8)
    axes.axvline(seconds, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    waits = run["waits_us"] / 1e6
    axes.text(
        seconds, -0.52, f"done after {seconds:.2f} s, of which {waits:.2f} s waiting ",
        ha="right", va="bottom", fontsize=10, color=INK,
    )


def draw_gain(axes, y, native, tidelane):
    """The arrow from Tidelane's end to the native one's, where there is room for it."""
    begin, end = tidelane["total_us"] / 1e6, native["total_us"] / 1e6
    if end - begin < 0.1 * end:
        return
    axes.annotate(
        "", xy=(end, y), xytext=(begin, y),
        arrowprops={"arrowstyle": "<->", "color": INK, "linewidth": 1, "shrinkA": 2, "shrinkB": 2},
    )
    axes.text(
        (begin + end) / 2, y - 0.1, f"{end - begin:.2f} s sooner",
        ha="center", va="bottom", fontsize=10, color=INK,
    )


def draw_heading(figure, subtitle):
    figure.text(0.085, 0.96, "Writing behind the computation", fontsize=15, fontweight="bold", color=INK, va="top")
    figure.text(0.085, 0.885, subtitle, fontsize=10, color=FAINT, va="top")
    handles = [Patch(color=color, label="application " + label) for color, label in KINDS.values() if label]
    handles.append(Patch(color=LANE, label="lane writes to storage"))
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0.079, 0.845), ncols=4, frameon=False, fontsize=9.5,
        handlelength=1.2, columnspacing=2.2, labelcolor=INK,
    )


def draw(native, tidelane, lanes, subtitle, path):
    """Writes path.svg and path.png."""
    pyplot.rcParams.update({"font.family": "DejaVu Sans", "svg.fonttype": "path"})
    lane_rows = len(lanes)
    figure, (above, below) = pyplot.subplots(
        2, 1, sharex=True, figsize=(12, 3.8 + 0.42 * lane_rows),
        gridspec_kw={"height_ratios": [1, 1 + lane_rows], "hspace": 0.5},
    )
    panel(above, "Native HDF5", native, ["application"])
    draw_application(above, 0, native)
    panel(below, "The same program with Tidelane", tidelane, ["application"] + [f"lane {i + 1}" for i in range(lane_rows)])
    draw_application(below, 0, tidelane)
    for i, writes in enumerate(lanes):
        draw_lane(below, i + 1, writes, tidelane["begin_us"])
    draw_gain(below, 0, native, tidelane)

    longest = max(native["total_us"], tidelane["total_us"]) / 1e6
    below.set_xlim(0, longest * 1.005)
    below.set_xlabel("seconds since the program's first HDF5 call", fontsize=10, color=INK)
    for axes in (above, below):
        axes.tick_params(axis="x", labelsize=9, colors=INK)
    figure.subplots_adjust(left=0.085, right=0.985, top=0.68, bottom=0.11)
    draw_heading(figure, subtitle)
    for suffix in ("svg", "png"):
        figure.savefig(path.with_suffix("." + suffix), dpi=160)
    pyplot.close(figure)
