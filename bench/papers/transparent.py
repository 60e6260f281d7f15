"""Figures 3 to 8 of "Transparent Asynchronous Parallel I/O using Background Threads": the micro-benchmark, also of many ranks that
share metadata, VPIC-IO and BD-CATS-IO, each without computation, with half of what I/O takes or with more than it takes."""

import statistics

from papers.figure import Claim, Figure, Panel, span
from papers.lab import NATIVE, TIDELANE, Way, compute, seconds, size_text

PAPER = "Transparent asynchronous I/O"
GROUPS = 10
HIDING = 1.2  # of the I/O time: "more than"
KIB, MIB = 1 << 10, 1 << 20


def contents(quick):
    """(label, bytes of a dataset or 0 for none, attributes of a group)."""
    sizes = [64 * KIB, 512 * KIB] if quick else [64 * KIB, 512 * KIB, 4 * MIB]
    for attributes in (16, 128):
        yield f"no datasets, {attributes}", 0, attributes
    for size in sizes:
        for attributes in (0, 128):
            yield f"{size_text(size)}, {attributes}", size, attributes


def micro_options(size, attributes, *more):
    shape = [f"--groups={GROUPS}", f"--datasets={5 if size else 0}", f"--bytes={size or 4}", f"--attributes={attributes}"]
    return lambda folder: [f"--file={folder}/micro.h5", *shape, *more]


def micro_panels(lab, share):
    write, read = Panel("write"), Panel("read")
    for label, size, attributes in contents(lab.quick):
        lab.progress(f"micro-benchmark, {label} attributes, computing {share:.0%}")
        writing, reading = micro_options(size, attributes), micro_options(size, attributes, "--read")
        io_us = lab.io_us("micro", writing)
        ways = lambda io_us: lab.with_others(  # noqa: E731
            [Way(name, side, (compute(share, io_us, GROUPS), "--between")) for name, side in ((NATIVE, lab.native), (TIDELANE, lab.tidelane))]
        )
        for series, reports in lab.compare("micro", writing, ways(io_us)).items():
            write.add(label, series, seconds(reports))
        folder = lab.prepare("micro", writing)
        read_us = lab.start("micro", reading(folder), lab.plain)["io_us"]
        for series, reports in lab.compare("micro", reading, ways(read_us), reads=folder).items():
            read.add(label, series, seconds(reports))
        lab.storage.remove("read")
    return [write, read]


STEPS = 10
SHARES = {"Tidelane, 0 %": 0, "Tidelane, 50 %": 0.5, "Tidelane, 100 %": HIDING}


def particles(lab, ranks, write, ways_of):
    """Reports of VPIC-IO or BD-CATS-IO; the ways as a function of what native I/O takes."""
    shape = [f"--steps={STEPS}", f"--bytes={256 * KIB if lab.quick else MIB}"]
    writing = lambda folder: [f"--folder={folder}", "--write", *shape]  # noqa: E731
    reading = lambda folder: [f"--folder={folder}", *shape]  # noqa: E731
    lab.progress(f"{'VPIC-IO' if write else 'BD-CATS-IO'}, {ranks} ranks")
    folder = None if write else lab.prepare("series", writing, ranks)
    io_us = lab.io_us("series", writing, ranks) if write else lab.start("series", reading(folder), lab.plain, ranks)["io_us"]
    try:
        return lab.compare("series", writing if write else reading, lab.with_others(ways_of(io_us)), ranks, folder)
    finally:
        lab.storage.remove("read")


def particle_panels(lab, write):
    def ways(io_us):
        yield Way(NATIVE, lab.native)
        for name, share in SHARES.items():
            yield Way(name, lab.tidelane, (compute(share, io_us, STEPS), "--between"))

    panel = Panel("")
    for ranks in lab.ranks():
        for series, reports in particles(lab, ranks, write, lambda io_us: list(ways(io_us))).items():
            panel.add(ranks, series, seconds(reports))
    return [panel]


IDLE, COVERED = "Tidelane, 0 %", "Tidelane, 100 %"


def metadata_panels(lab, read):
    """Attributes alone, which all ranks make or read together in one file."""
    shape = ["--groups=10", "--datasets=0", "--attributes=64"]
    writing = lambda folder: [f"--file={folder}/micro.h5", *shape]  # noqa: E731
    options = (lambda folder: [*writing(folder), "--read"]) if read else writing
    panel = Panel("")
    with lab.one_file():
        for ranks in lab.ranks():
            lab.progress(f"metadata {'read' if read else 'written'} by {ranks} ranks")
            folder = lab.prepare("micro", writing, ranks) if read else None
            io_us = lab.start("micro", options(folder), lab.plain, ranks)["io_us"] if read else lab.io_us("micro", options, ranks)
            ways = [Way(NATIVE, lab.native)] + [
                Way(name, lab.tidelane, (compute(share, io_us, GROUPS), "--between")) for name, share in ((IDLE, 0), (COVERED, HIDING))
            ]
            for series, reports in lab.compare("micro", options, lab.with_others(ways), ranks, folder).items():
                panel.add(ranks, series, seconds(reports))
            lab.storage.remove("read")
    return [panel]


def more_ranks_take_longer(panels):
    panel = panels[""]
    xs = panel.xs()
    more = panel.value(xs[-1], NATIVE) / panel.value(xs[0], NATIVE)
    return f"{more:.1f} times as long with {xs[-1]} ranks as with one", more > 1


def same_without_computation(panels):
    added = [100 * (ratio - 1) for ratio in panels[""].ratios(IDLE, NATIVE)]
    return f"{span(added, '{:+.0f}')} %", max(added) <= 20


def less_with_several(panels):
    """One rank's file is its own, and another matter."""
    panel = panels[""]
    gains = {x: gain for x, gain in zip(panel.xs(), panel.ratios(NATIVE, COVERED), strict=True)}
    several = [gain for x, gain in gains.items() if x != "1"]
    text = f"{span(several, '{:.1f}')} times less with several ranks, {gains['1']:.1f} with one"
    return text + ("" if min(several) > 1.3 else ": what they wait for is on the program's thread"), min(several) > 1.3


def quicker(added):
    return ": less, because lanes make several requests at a time, and larger ones" if min(added) < 0 else ""


def overhead(panels):
    added = [100 * (ratio - 1) for panel in panels.values() for ratio in panel.ratios(TIDELANE, NATIVE)]
    return f"{span(added, '{:+.0f}')} %, {statistics.mean(added):+.0f} % on average{quicker(added)}", max(added) <= 20


def multifold(panels):
    gains = [gain for panel in panels.values() for gain in panel.ratios(NATIVE, TIDELANE)]
    return f"{span(gains, '{:.1f}')} times less I/O time, {statistics.median(gains):.1f} in the median", statistics.median(gains) > 2


def idle_overhead(panels):
    added = [100 * (ratio - 1) for ratio in panels[""].ratios("Tidelane, 0 %", NATIVE)]
    return f"{span(added, '{:+.0f}')} %{quicker(added)}", max(added) <= 9


def hidden(share, least):
    def here(panels):
        gains = panels[""].ratios(NATIVE, f"Tidelane, {share} %")
        return f"{span(gains, '{:.1f}')} times less", min(gains) >= least

    return here


MICRO_SCALED = (
    "One process; 10 groups of 5 datasets of 64 KiB to 4 MiB (the paper: 1 to 128 MiB, 32 times as much) and 0 to 128"
    " attributes."
)
METADATA_SCALED = (
    "10 steps of 64 attributes, made by 1 to 4 ranks together in one file, with collective metadata; no datasets. What the paper hides here"
    " is the communication of HDF5's metadata operations: its background thread runs HDF5's code. With Tidelane that stays on the thread"
    " that called, in the program's order, and needs no thread support of MPI; lanes have the bytes, of which there are few. HDF5 1.14"
    " communicates little (counted with MPICH, natively and with Tidelane: less than 20 collective calls of a run that writes, less than"
    " 40 of one that reads); with more ranks than cores most of the time is ranks that turn in circles until the others open and close the"
    " file, and load the plugin."
)
METADATA_WRITTEN = (
    METADATA_SCALED + " HDF5 writes all of it in the close, after the last computation, so that nothing of it can be hidden. With four ranks on two"
    " cores runs differ by a factor of two: of 25 pairs in turn Tidelane's median was 1.06 and, with another priority, 1.14 of native."
)
METADATA_READ = (
    METADATA_SCALED + " One rank reads for all, as HDF5 has it: with Tidelane two blocks instead of some 25 pieces."
)
METADATA_CLAIMS = [
    Claim("total I/O time", "increases with the number of processes", more_ranks_take_longer),
    Claim("added without computation", "similar performance", same_without_computation),
    Claim("computing for longer", "a significant I/O time reduction", less_with_several),
]
FIGURES = [
    Figure(
        "transparent-3", f"{PAPER}, Figure 3", "The micro-benchmark, no computation", MICRO_SCALED,
        "bytes of a dataset, attributes of a group", "I/O time, s", lambda lab: micro_panels(lab, 0),
        [Claim("what asynchronous I/O adds where nothing can be hidden", "0.6 to 20 %, 5 % on average", overhead)],
        log=True,
    ),
    Figure(
        "transparent-4", f"{PAPER}, Figure 4", "The micro-benchmark, computing for longer than I/O takes",
        MICRO_SCALED + " It sleeps after each group for 1.2 times as long as native HDF5 needs for one.",
        "bytes of a dataset, attributes of a group", "I/O time, s", lambda lab: micro_panels(lab, HIDING),
        [Claim("less I/O time", "a multi-fold speed-up", multifold)],
        log=True,
    ),
    Figure(
        "transparent-5", f"{PAPER}, Figure 5", "Metadata that ranks write together", METADATA_WRITTEN, "ranks", "I/O time, s",
        lambda lab: metadata_panels(lab, False), METADATA_CLAIMS,
    ),
    Figure(
        "transparent-6", f"{PAPER}, Figure 6", "Metadata that ranks read together", METADATA_READ, "ranks", "I/O time, s",
        lambda lab: metadata_panels(lab, True), METADATA_CLAIMS,
    ),
    Figure(
        "transparent-7", f"{PAPER}, Figure 7", "VPIC-IO",
        "10 steps of 8 variables; every rank writes 1 MiB of each (the paper: 32 MiB), weak scaling from 1 to 4 ranks (to 4096).",
        "ranks", "I/O time, s", lambda lab: particle_panels(lab, True),
        [
            Claim("added without computation", "0.8 to 9 %, 4 % on average (with Figure 8)", idle_overhead),
            Claim("computing half of what I/O takes", "partly hidden: up to 2 times less", hidden(50, 1.3)),
            Claim("computing for longer: what remains is the last step", "10 steps: up to 10 times less", hidden(100, 4)),
        ],
    ),
    Figure(
        "transparent-8", f"{PAPER}, Figure 8", "BD-CATS-IO",
        "Reads what VPIC-IO wrote. The paper's program asked for the next step itself; here lanes fetch what they expect.",
        "ranks", "I/O time, s", lambda lab: particle_panels(lab, False),
        [
            Claim("added without computation", "almost negligible", idle_overhead),
            Claim("computing half of what I/O takes", "several times less", hidden(50, 1.3)),
            Claim("computing for longer: what remains is the first step", "10 steps: up to 10 times less", hidden(100, 4)),
        ],
    ),
]
