"""A figure drawn: bars or lines, medians with their lowest and highest runs, as SVG and PNG."""

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (the backend is chosen first)

INK, FAINT = "#23313d", "#8a97a3"
COLORS = {"HDF5": "#e07a3f", "HDF5, no sieve buffer": "#f0b48c", "Tidelane": "#3d9a80", "HDF5, simulated": "#c9b8ab"}
MODES = {"synchronous": "#e07a3f", "asynchronous": "#3d9a80"}
SHARES = ["#a9d3c7", "#6fb8a5", "#2c7a64"]  # Tidelane with more and more computation
MORE = ["#5b8db8", "#a4243b", "#8d6bb0", "#b0973d"]


def colors_of(series):
    shares = [name for name in series if name.startswith("Tidelane, ") and name.endswith("%")]
    more = iter(MORE)
    return {name: SHARES[shares.index(name)] if name in shares else COLORS.get(name) or MODES.get(name.split(",")[0]) or next(more) for name in series}


def errors(points):
    low = [point.median - min(point.values) for point in points]
    high = [max(point.values) - point.median for point in points]
    return [low, high]


def draw_bars(axes, panel, colors):
    xs, series = panel.xs(), panel.series()
    width = 0.8 / len(series)
    for number, name in enumerate(series):
        points = [point for point in panel.points if point.series == name]
        places = [xs.index(point.x) + (number - (len(series) - 1) / 2) * width for point in points]
        axes.bar(
            places, [point.median for point in points], width * 0.92, color=colors[name], label=name,
            yerr=errors(points), error_kw={"elinewidth": 1, "ecolor": INK, "capsize": 2},
        )  # fmt: skip
    long = any(len(x) > 9 for x in xs)
    axes.set_xticks(range(len(xs)), xs, rotation=35 if long else 0, ha="right" if long else "center", rotation_mode="anchor")


def draw_lines(axes, panel, colors):
    """Series that are predictions (their name says so) are dotted, as in the paper."""
    shown = [point for point in panel.points if point.x.isdigit()]
    for name in panel.series():
        points = [point for point in shown if point.series == name]
        predicted = "predicted" in name
        axes.plot(
            [float(point.x) for point in points], [point.median for point in points], color=colors[name], label=name,
            linestyle=":" if predicted else "-", marker="x" if predicted else "o", markersize=5, linewidth=1.8,
        )  # fmt: skip
    ticks = list(dict.fromkeys(point.x for point in shown))
    axes.set_xticks([float(x) for x in ticks], ticks)
    axes.minorticks_off()


def frame(axes, figure, panel):
    axes.set_title(panel.name, loc="left", fontsize=11, color=INK)
    axes.set_xlabel(figure.x, fontsize=10, color=INK)
    if figure.log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.grid(axis="y", color="#e6eaee", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=9, colors=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw(figure, panels, path):
    """Writes path.svg and path.png."""
    pyplot.rcParams.update({"font.family": "DejaVu Sans", "svg.fonttype": "path", "svg.hashsalt": "tidelane"})
    wide = max(len(panel.xs()) * max(len(panel.series()), 2) for panel in panels)
    columns = min(len(panels), 2)
    rows = (len(panels) + columns - 1) // columns
    size = (min(14, max(7.6, max(4.4, 0.26 * wide + 2) * columns)), 3.9 * rows + 0.9)
    drawn, grid = pyplot.subplots(rows, columns, figsize=size, sharey=rows == 1, squeeze=False, layout="constrained")
    colors = colors_of(list(dict.fromkeys(name for panel in panels for name in panel.series())))
    for axes, panel in zip(grid.flat, panels):
        if figure.log_x:
            axes.set_xscale("log", base=2)
        (draw_lines if figure.kind == "lines" else draw_bars)(axes, panel, colors)
        frame(axes, figure, panel)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    for row in grid:
        row[0].set_ylabel(f"{figure.y}\n({figure.better} is better)", fontsize=10, color=INK)
    drawn.suptitle(f"{figure.title}\n\n", x=0.012, ha="left", fontsize=13, fontweight="bold", color=INK)
    drawn.text(0.012, 0.985 - 0.36 / size[1], figure.paper, fontsize=9, color=FAINT, va="top")
    handles = {label: handle for axes in grid.flat for handle, label in zip(*axes.get_legend_handles_labels())}
    drawn.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    for suffix in ("svg", "png"):
        drawn.savefig(path.with_suffix("." + suffix), dpi=130)
    pyplot.close(drawn)
