"""Figures 3 to 8 of "Performance evaluation and modelling of asynchronous I/O", at the scale of this machine: aggregate bandwidth
of VPIC-IO and BD-CATS-IO (weak scaling), of an adaptive mesh, a training's loader and an earthquake simulation (strong
scaling), the time between plots, and other programs on the same storage. Figures beyond this machine are in scale.py."""

import contextlib
import statistics
import subprocess

from papers.figure import Claim, Figure, Panel, span
from papers.lab import NATIVE, TIDELANE, Way, bandwidths, compute, size_text, totals
from papers.scale import simulate
from papers.transparent import HIDING, STEPS, particles

PAPER = "Performance model"
KIB, MIB = 1 << 10, 1 << 20
SIMULATED = "HDF5, simulated"


def both(lab, *options, **settings):
    return [Way(NATIVE, lab.native, options), Way(TIDELANE, lab.tidelane, options, settings)]


def step_of(lab, size, write):
    """What a step of native VPIC-IO or BD-CATS-IO asks of storage besides its 8 large requests, counted: how many, and the bytes of
    each. HDF5 has metadata, and the kernel splits a transfer whose buffer begins within a page. Runs of one step and of several
    differ by whole steps, not by opening and closing."""
    folder = lab.storage.fresh("probe") if write else lab.prepare("series", lambda at: series_of(at, STEPS, size, True))

    def counted(steps):
        requests, total = lab.requests("series", series_of(folder, steps, size, write))
        return sum(count for up_to, count in requests.items() if up_to < size), total

    (few, few_bytes), (many, many_bytes) = counted(1), counted(STEPS)
    lab.storage.remove("probe" if write else "read")
    small = (many - few) / (STEPS - 1)
    return small, max((many_bytes - few_bytes) / (STEPS - 1) - 8 * size, 0) / max(small, 1)


def series_of(folder, steps, size, write):
    return [f"--folder={folder}", f"--steps={steps}", f"--bytes={size}", *(["--write"] if write else [])]


def simulated(lab, ranks, step):
    """What bench/scale says of the same program on the throttle: it knows what a request costs, and what a step asks for."""
    size = 256 * KIB if lab.quick else MIB
    here = ["--machine=here", "--workload=vpic-here", f"--bytes={8 * size}", f"--write-bytes={size}"]
    small = [f"--small-requests={step[0]:.2f}", f"--small-bytes={step[1]:.2f}"]
    return simulate(lab, *here, *small, f"--ranks={ranks}")["sync"]["points"][0]["bandwidth"] / 1e6


def weak_panels(lab):
    panels = []
    for name, write in (("VPIC-IO", True), ("BD-CATS-IO", False)):
        panel = Panel(name)
        step = step_of(lab, 256 * KIB if lab.quick else MIB, write)
        for ranks in lab.ranks():
            ways = lambda io_us: both(lab, compute(HIDING, io_us, STEPS), "--together")  # noqa: E731
            for series, reports in particles(lab, ranks, write, ways).items():
                panel.add(ranks, series, bandwidths(reports, first=0 if write else 1))
            panel.add(ranks, SIMULATED, [simulated(lab, ranks, step)])
        panels.append(panel)
    return panels


def strong_panel(lab, panel, app, options, steps):
    """One problem, shared by more and more ranks; it computes for longer than native I/O takes. Its files are one for each
    step: without close=deferred, or an event set, a program that closes them waits for them."""
    for ranks in lab.ranks():
        lab.progress(f"{app}, {ranks} ranks")
        share = compute(HIDING, lab.io_us(app, options, ranks), steps)
        ways = both(lab, share, close="deferred")
        for series, reports in lab.compare(app, options, lab.with_others(ways), ranks).items():
            panel.add(ranks, series, bandwidths(reports))
    return panel


def mesh(lab, boxes, *more):
    cells = 32 if lab.quick else 64
    return lambda folder: [f"--folder={folder}", f"--cells={cells}", f"--box={cells // boxes}", "--levels=2", *more]


def mesh_panels(lab):
    options = mesh(lab, 4, "--components=6", "--time-steps=4", "--plot-each=1")
    return [strong_panel(lab, Panel(""), "amr", options, 4)]


def earthquake_panels(lab):
    side = 64 if lab.quick else 128
    options = lambda folder: [f"--folder={folder}", f"--nx={side}", f"--ny={side}", f"--nz={side // 2}", "--checkpoints=5", "--own-files"]  # noqa: E731
    return [strong_panel(lab, Panel(""), "earthquake", options, 5)]


def loader_panels(lab):
    panel = Panel("")
    size, samples, epochs, batch = 256 * KIB, 64 if lab.quick else 128, 2, 8
    shape = [f"--bytes={size}", f"--samples={samples}", f"--epochs={epochs}", f"--batch={batch}"]
    folder = lab.prepare("loader", lambda folder: [f"--file={folder}/samples.h5", *shape, "--write"])
    options = lambda folder: [f"--file={folder}/samples.h5", *shape]  # noqa: E731
    for ranks in lab.ranks():
        lab.progress(f"loader, {ranks} ranks")
        batches = epochs * samples / batch / ranks
        share = compute(HIDING, lab.start("loader", options(folder), lab.plain, ranks)["io_us"], batches)
        ways = [
            Way(NATIVE, lab.native, (share, "--events")),
            Way(TIDELANE, lab.tidelane, (share, "--events")),
            Way("Tidelane, blocking reads", lab.tidelane, (share,)),
        ]
        for series, reports in lab.compare("loader", options, lab.with_others(ways), ranks, reads=folder).items():
            panel.add(ranks, series, bandwidths(reports))
    lab.storage.remove("read")
    return [panel]


TIME_STEPS = 24


def frequency_panels(lab):
    panel = Panel("")
    one_plot = lab.io_us("amr", mesh(lab, 2, "--time-steps=1", "--plot-each=1"))
    step = f"--compute-us={one_plot / 3:.0f}"
    for each in (1, 2, 4, 8, TIME_STEPS):
        lab.progress(f"amr, a plotfile each {each} time steps")
        options = mesh(lab, 2, f"--time-steps={TIME_STEPS}", f"--plot-each={each}", step)
        ways = both(lab, close="deferred")
        for series, reports in lab.compare("amr", options, lab.with_others(ways)).items():
            panel.add(each, series, totals(reports))
    return [panel]


@contextlib.contextmanager
def neighbours(lab, count):
    """Other programs that write to the same storage for as long as the block runs."""
    folder = lab.storage.fresh("neighbours")
    program = lab.places.program("series")
    command = "while :; do " + f'"{program}" --write --steps=4 --folder="$0" --compute-us=2000; done'
    running = []
    for number in range(count):
        place = f"{folder}/{number}"
        subprocess.run(["mkdir", place], check=True)
        running.append(
            subprocess.Popen(["sh", "-c", command, place], env=lab.plain, stdout=subprocess.DEVNULL, start_new_session=True)
        )
    try:
        yield
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                subprocess.run(["kill", "--", f"-{process.pid}"], check=False)
            process.wait()
        lab.storage.remove("neighbours")


OTHERS = [0, 3, 1, 2, 0, 2, 3, 1]


def contention_panels(lab):
    panel = Panel("")
    steps, size = 6, 256 * KIB if lab.quick else MIB
    options = lambda folder: [f"--folder={folder}", "--write", f"--steps={steps}", f"--bytes={size}"]  # noqa: E731
    share = compute(6, lab.io_us("series", options), steps)  # long: the paper's is 30 s
    rounds, lab.rounds = lab.rounds, 1
    try:
        for day, others in enumerate(OTHERS[:4] if lab.quick else OTHERS, 1):
            lab.progress(f"VPIC-IO, run {day}, {others} neighbours")
            with neighbours(lab, others):
                for series, reports in lab.compare("series", options, both(lab, share)).items():
                    panel.add(f"{day} ({others})", series, bandwidths(reports))
    finally:
        lab.rounds = rounds
    return [panel]


def grows(series, least):
    """How much more the last has than the first, by the number of ranks."""

    def here(panels):
        texts, agree = [], True
        for name, panel in panels.items():
            xs = panel.xs()
            more = panel.value(xs[-1], series) / panel.value(xs[0], series)
            texts.append((f"{name}: " if name else "") + f"{more:.1f} times for {int(xs[-1]) // int(xs[0])} times the ranks")
            agree = agree and least(more, int(xs[-1]) / int(xs[0]))
        return "; ".join(texts), agree

    return here


def off(panels):
    found = {name: [100 * (ratio - 1) for ratio in panel.ratios(SIMULATED, NATIVE)] for name, panel in panels.items()}
    text = "; ".join(f"{name}: {span(percents, '{:+.0f}')} %" for name, percents in found.items())
    return f"{text}, synchronous", all(abs(percent) <= 10 for percents in found.values() for percent in percents)


linear = lambda more, ranks: more > 0.7 * ranks  # noqa: E731
flat = lambda more, ranks: more < 0.7 * ranks  # noqa: E731
down = lambda more, ranks: more < 1  # noqa: E731


def above(panels):
    gains = {name: panel.ratios(TIDELANE, NATIVE) for name, panel in panels.items()}
    text = "; ".join((f"{name}: " if name else "") + f"{span(gain, '{:.1f}')} times" for name, gain in gains.items())
    return text, all(min(gain) > 1.5 for gain in gains.values())


def duration(panels):
    """Plots at each time step cost a synchronous program more than an asynchronous one."""
    panel = panels[""]
    xs = panel.xs()
    more = {series: panel.value(xs[0], series) / panel.value(xs[-1], series) for series in (NATIVE, TIDELANE)}
    return f"{more[NATIVE]:.1f} times as long synchronously, {more[TIDELANE]:.1f} asynchronously", more[TIDELANE] < more[NATIVE]


def hides_until(panels):
    panel = panels[""]
    last = panel.value(panel.xs()[-1], TIDELANE)
    held = [x for x in panel.xs() if panel.value(x, TIDELANE) < 1.15 * last]
    return f"within 15 % of the rarest plots down to a plot each {held[0]}", int(held[0]) > 1


def steady(panels):
    spread = {}
    for series in (NATIVE, TIDELANE):
        values = [point.median for point in panels[""].points if point.series == series]
        spread[series] = 100 * statistics.pstdev(values) / statistics.mean(values)
    lowest = {s: min(p.median for p in panels[""].points if p.series == s) for s in (NATIVE, TIDELANE)}
    highest = max(p.median for p in panels[""].points if p.series == NATIVE)
    return (
        f"varies by {spread[NATIVE]:.0f} % synchronously, by {spread[TIDELANE]:.0f} % asynchronously; the slowest asynchronous"
        f" run has {lowest[TIDELANE] / highest:.1f} times the bandwidth of the quickest synchronous one",
        spread[TIDELANE] < spread[NATIVE],
    )


SEEN = "bandwidth of the I/O phases, MB/s"
FIGURES = [
    Figure(
        "model-3", f"{PAPER}, Figure 3", "Bandwidth of VPIC-IO and BD-CATS-IO, weak scaling",
        "10 steps of 8 variables of 1 MiB for each rank; 1 to 4 ranks, where the paper has 192 to 12288 and 256 to 8192. As in the"
        " paper, the rate is that of the I/O phases (of reads without the first one, which nothing can hide), and the program"
        " computes after the last one too. Ranks begin each step together: those that drift apart see more than storage has. The"
        " simulator is told how many requests a step of one rank makes, counted on the throttle: 8 of 1 MiB, and ten or"
        " twenty small ones (the kernel splits a transfer whose buffer begins within a page, and HDF5 has metadata).",
        "ranks", SEEN, weak_panels,
        [
            Claim("synchronous bandwidth", "grows, then saturates where storage does (768 and 1024 ranks)", grows(NATIVE, flat)),
            Claim("asynchronous bandwidth", "grows linearly with the ranks", grows(TIDELANE, linear)),
            Claim("asynchronous against synchronous", "orders of magnitude for reads", above),
            Claim("the simulator of the figures at scale, off by", "(within 10 %)", off),
        ],
        log=True, better="higher",
    ),
    Figure(
        "model-4", f"{PAPER}, Figure 4", "Bandwidth of an adaptive mesh's plotfiles, strong scaling",
        "2 levels of 64³ cells, 6 components, boxes of 16³, a write for each box; 4 plotfiles, closed with `close=deferred`.",
        "ranks", SEEN, mesh_panels,
        [
            Claim("synchronous bandwidth", "falls slightly, or grows until it saturates", grows(NATIVE, flat)),
            Claim("asynchronous bandwidth", "grows linearly with the ranks", grows(TIDELANE, linear)),
            Claim("asynchronous against synchronous", "10 to 1000 times", above),
        ],
        log=True, better="higher",
    ),
    Figure(
        "model-5", f"{PAPER}, Figure 5", "Bandwidth of a training's loader",
        f"128 samples of {size_text(256 * KIB)}, batches of 8, two epochs in random order. The next batch is asked for with an"
        " event set before each computation, as the paper's loader does; without one nobody can tell a random order.",
        "ranks", SEEN, loader_panels,
        [Claim("asynchronous against synchronous", "stays higher; synchronous reads stop scaling at 128 nodes", above)],
        log=True, better="higher",
    ),
    Figure(
        "model-6", f"{PAPER}, Figure 6", "Bandwidth of an earthquake simulation's checkpoints, strong scaling",
        "Grids of 128 x 128 x 64 and half of it, two times, three components; 5 checkpoints, closed with `close=deferred`. Each rank has"
        " files of its own: its part of a common one would be many small pieces, which MPI joins, and Tidelane leaves to it.",
        "ranks", SEEN, earthquake_panels,
        [
            Claim("synchronous bandwidth", "falls with more ranks", grows(NATIVE, down)),
            Claim("asynchronous against synchronous", "consistently higher", above),
        ],
        log=True, better="higher",
    ),
    Figure(
        "model-7", f"{PAPER}, Figure 7", "How long a run takes, by the time steps between two plotfiles",
        f"{TIME_STEPS} time steps, each a third of the time that native HDF5 needs for a plotfile (the paper: 192 of Nyx).",
        "time steps for each plotfile", "run, s", frequency_panels,
        [
            Claim("plotfiles each time step, against the fewest", "costs much more synchronously", duration),
            Claim("asynchronous runs take as long as with few plotfiles", "until the computation is too short (1 time step)", hides_until),
        ],
    ),
    Figure(
        "model-8", f"{PAPER}, Figure 8", "Bandwidth of VPIC-IO while others use the storage",
        "Runs with none to three other programs writing to the same storage (in brackets); the paper's were on different days.",
        "run (other programs)", SEEN, contention_panels,
        [Claim("what others do to storage", "is hidden: consistent bandwidth", steady)],
        log=True, better="higher",
    ),
]
