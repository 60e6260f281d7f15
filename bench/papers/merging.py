"""Figures 3 to 5 of "Efficient Asynchronous I/O with Request Merging": 1024 contiguous writes of a process, 1 KiB to 1 MiB, to a
dataset of one, two and three dimensions; and the same in random order, which the paper does not show."""

import statistics

from papers.figure import Claim, Figure, Panel, span
from papers.lab import NATIVE, TIDELANE, Way, seconds, size_text

PAPER = "Request merging"
PLAIN = "HDF5, no sieve buffer"
KIB = 1 << 10
SIZES = [1, 4, 16, 64, 256, 1024]  # KiB
FEWER = 256 * KIB  # from here on 256 writes: 1 GiB of memory is not everywhere


def writes_panel(lab, pattern, shuffled=False):
    panel = Panel("in random order" if shuffled else "in order")
    for size in [kib * KIB for kib in (SIZES[::2] if lab.quick else SIZES)]:
        lab.progress(f"merging, {pattern}, {size_text(size)}, {panel.name}")
        count = (256 if size < FEWER else 64) if lab.quick else (1024 if size < FEWER else 256)
        shape = [f"--pattern={pattern}", f"--bytes={size}", f"--writes={count}", *(["--shuffled"] if shuffled else [])]
        options = lambda folder, shape=shape: [f"--file={folder}/writes.h5", *shape]  # noqa: E731
        ways = [Way(PLAIN, lab.native, ("--sieve=0",)), Way(NATIVE, lab.native), Way(TIDELANE, lab.tidelane, ("--sieve=0",))]
        for series, reports in lab.compare("writes", options, lab.with_others(ways, PLAIN), must_defer=0).items():
            panel.add(size_text(size), series, seconds(reports))
    return panel


def panels_of(pattern, *orders):
    return lambda lab: [writes_panel(lab, pattern, shuffled) for shuffled in orders]


def faster(base, sizes, least):
    def here(panels):
        panel = panels["in order"]
        gains = [panel.value(x, base) / panel.value(x, TIDELANE) for x in sizes if panel.value(x, TIDELANE)]
        return f"{span(gains, '{:.1f}')} times", min(gains) >= least

    return here


def disorder(panels):
    ratios = [
        panels["in random order"].value(x, TIDELANE) / panels["in order"].value(x, TIDELANE) for x in panels["in order"].xs()
    ]
    return f"{span(ratios, '{:.2f}')} times as long as in order, {statistics.median(ratios):.2f} in the median", None


SCALED = (
    "One process; 1 ms a request, 400 MB/s, no computation; 256 writes of 256 KiB and 1 MiB. The paper's ranks write through MPI-IO,"
    " which makes a request of each write: here that is HDF5 without its sieve buffer. HDF5 as it is merges small writes in order itself."
    " Asynchronous writing without merging, the paper's third bar, does not exist here."
)
CLAIMS = {
    "contiguous": ("more than 10 times (30 against asynchronous without merging)", "about 2 times (2.5)"),
    "rows": ("more than 9 times, of 2 KiB (25)", "about 9 times on 16 nodes (11)"),
    "planes": ("more than 33 times on 128 nodes (70)", "faster; the others ran out of time"),
}


def figure(number, dimensions, pattern, orders):
    small, large = CLAIMS[pattern]
    claims = [
        Claim("1 KiB, against a request for each write", small, faster(PLAIN, ["1 KiB"], 5)),
        Claim("1 MiB, against a request for each write", large, faster(PLAIN, ["1 MiB"], 1.5)),
        Claim("1 to 16 KiB, against HDF5 with its sieve buffer", "not shown", lambda p: (faster(NATIVE, ["1 KiB", "4 KiB", "16 KiB"], 1)(p)[0], None)),
    ]
    if len(orders) > 1:
        claims.append(Claim("in random order", "merged in several passes, O(N²); no figure", disorder))
    return Figure(
        f"merging-{number}", f"{PAPER}, Figure {number}", f"{dimensions}-D writes", SCALED, "bytes of a write", "I/O time, s",
        panels_of(pattern, *orders), claims, log=True, latency_us=1000, bandwidth=400e6,
    )


FIGURES = [
    figure(3, 1, "contiguous", (False, True)),
    figure(4, 2, "rows", (False,)),
    figure(5, 3, "planes", (False,)),
]
