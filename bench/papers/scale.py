"""Figures 3 to 7 of the performance paper at its own scale, 32 to 8192 ranks of machines that are not here: simulated (bench/scale),
with the throttle's devices and the model's copies. What the model predicts of each point it learned from all others."""

import json

from harness import run
from papers.figure import Claim, Figure, Panel, span

PAPER = "Performance model"
RANKS = [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]
SYNC, ASYNC = "synchronous", "asynchronous"
MACHINES = {"summit": "Summit", "cori": "Cori"}


def simulate(lab, *options):
    result = lab.scratch / "scale.json"
    run([lab.places.program("scale"), *options, f"--json={result}"], lab.plain, timeout=120)
    return json.loads(result.read_text())


def curves(lab, workload, machine, name):
    found = simulate(lab, f"--workload={workload}", f"--machine={machine}", *(f"--ranks={ranks}" for ranks in RANKS))
    panel = Panel(f"{name}, {MACHINES[machine]}")
    for series, mode in ((SYNC, "sync"), (ASYNC, "async")):
        for point in found[mode]["points"]:
            panel.add(point["ranks"], series, [point["bandwidth"] / 1e9])
            panel.add(point["ranks"], f"{series}, predicted", [point["predicted"] / 1e9])
        panel.add("r²", series, [found[mode]["r2"]])  # of the whole curve: a line of the table, no place on the axis
    return panel


def panels_of(*wanted):
    return lambda lab: [curves(lab, *one) for one in wanted]


def frequency_panels(lab):
    workload, machine, ranks = "nyx-small", "cori", 2048
    point = simulate(lab, f"--workload={workload}", f"--machine={machine}", f"--ranks={ranks}")["sync"]["points"][0]
    phase = 256**3 * 6 * 8 / point["bandwidth"]
    panel = Panel(f"Nyx, {MACHINES[machine]}, {ranks} ranks")
    each = [1, 2, 4, 8, 16, 32, 64, 192]
    found = simulate(
        lab, f"--workload={workload}", f"--machine={machine}", f"--ranks={ranks}", f"--step-seconds={0.6 * phase:.6f}",
        *(f"--steps-each={steps}" for steps in each),
    )  # fmt: skip
    for series, mode in ((SYNC, "sync"), (ASYNC, "async")):
        for seen in found[mode]["points"]:
            panel.add(seen["steps"], series, [seen["seconds"]])
    return [panel]


def linear(panels):
    shares = {}
    for name, panel in panels.items():
        low, high = panel.value(RANKS[0], ASYNC), panel.value(RANKS[-1], ASYNC)
        shares[name] = high / low / (RANKS[-1] / RANKS[0])
    text = ", ".join(f"{100 * share:.0f} % ({name})" for name, share in shares.items())
    return f"of linear, from 32 to 8192 ranks: {text}", all(share > 0.8 or name == "Nyx, small, Cori" for name, share in shares.items())


def saturated_at(panel):
    """The smallest number of ranks within 15 % of the most that the series reaches."""
    most = max(panel.value(ranks, SYNC) for ranks in RANKS)
    return next(ranks for ranks in RANKS if panel.value(ranks, SYNC) > 0.85 * most)


def saturates(low, high):
    def here(panels):
        found = {name: saturated_at(panel) for name, panel in panels.items()}
        text = ", ".join(f"{ranks} ranks ({name})" for name, ranks in found.items())
        return text, all(low <= ranks <= high for ranks in found.values())

    return here


def falls(panels):
    texts, agree = [], True
    for name, panel in panels.items():
        most = max(panel.value(ranks, SYNC) for ranks in RANKS)
        share = panel.value(RANKS[-1], SYNC) / most
        texts.append(f"{name}: {100 * share:.0f} % of the most, which {saturated_at(panel)} ranks have")
        agree = agree and share <= 1
    return "; ".join(texts), agree


def apart(panels):
    gains = [panel.value(ranks, ASYNC) / panel.value(ranks, SYNC) for panel in panels.values() for ranks in RANKS[-3:]]
    return f"{span(gains, '{:.0f}')} times from 2048 ranks on", min(gains) > 10


def fits(series, least):
    def here(panels):
        found = {name: panel.value("r²", series) for name, panel in panels.items()}
        text = ", ".join(f"{value:.2f} ({name})" for name, value in found.items())
        return text, min(found.values()) > least

    return here


def longer(panels):
    (panel,) = panels.values()
    more = {series: panel.value(1, series) / panel.value(192, series) for series in (SYNC, ASYNC)}
    held = next(x for x in panel.xs() if panel.value(x, ASYNC) < 1.05 * panel.value(192, ASYNC))
    return (
        f"{more[SYNC]:.1f} and {more[ASYNC]:.1f} times; asynchronous runs stay within 5 % down to {held} time steps",
        more[ASYNC] < more[SYNC] and 1 < int(held) <= 4,
    )


SIMULATED = (
    "Simulated: links and storage as the throttle's, with bandwidths chosen so that storage is saturated by the number of ranks that the"
    " paper names; a cost for each request; copies by size. *Predicted*, of each point from all others, by the paper's regressions:"
    " linear-log for synchronous rates, linear for asynchronous ones."
)
SHORT = "Simulated, as Figure 3."
FITS = [
    Claim("r², synchronous (linear-log)", "above 0.8", fits(SYNC, 0.8)),
    Claim("r², asynchronous (linear)", "above 0.9", fits(ASYNC, 0.9)),
]
ACROSS = Claim("asynchronous bandwidth", "linear", linear)


def figure(number, title, panels, claims, scaled=SHORT, y="bandwidth, GB/s"):
    return Figure(
        f"scale-{number}", f"{PAPER}, Figure {number}", title, scaled, "ranks", y, panels, claims,
        kind="lines", log=True, log_x=True, better="higher", throttled=False,
    )  # fmt: skip


FIGURES = [
    figure(
        3, "VPIC-IO and BD-CATS-IO at scale, weak scaling",
        panels_of(
            ("vpic", "summit", "VPIC-IO"), ("vpic", "cori", "VPIC-IO"),
            ("bdcats", "summit", "BD-CATS-IO"), ("bdcats", "cori", "BD-CATS-IO"),
        ),
        [
            Claim("synchronous bandwidth is saturated from", "768 ranks (Summit), 1024 (Cori)", saturates(512, 2048)),
            ACROSS,
            Claim("asynchronous against synchronous", "orders of magnitude", apart),
            *FITS,
        ],
        SIMULATED,
    ),
    figure(
        4, "Nyx and Castro at scale, strong scaling",
        panels_of(
            ("nyx-large", "summit", "Nyx"), ("nyx-small", "cori", "Nyx, small"), ("castro", "summit", "Castro"), ("castro", "cori", "Castro")
        ),
        [
            Claim("synchronous bandwidth", "falls slightly or grows until it saturates; poor for little data", falls),
            Claim("asynchronous bandwidth", "linear, but for little data on Cori", linear),
            *FITS,
        ],
    ),
    figure(
        5, "CosmoFlow at scale", panels_of(("cosmoflow", "summit", "CosmoFlow")),
        [Claim("synchronous bandwidth is saturated from", "128 nodes: 768 ranks", saturates(512, 1024)), ACROSS, *FITS],
    ),
    figure(
        6, "EQSIM at scale, strong scaling", panels_of(("eqsim", "summit", "EQSIM")),
        [Claim("synchronous bandwidth", "falls with more ranks", falls), Claim("asynchronous bandwidth", "consistent", linear), *FITS],
    ),
    Figure(
        "scale-7", f"{PAPER}, Figure 7", "How long a run of Nyx takes, at scale",
        "Simulated: 192 time steps, each as long as 0.6 of a synchronous I/O phase.", "time steps for each plotfile", "run, s",
        frequency_panels,
        [Claim("plotfiles each time step against one: how much longer", "much, less so asynchronously, until 1 time step is too short", longer)],
        kind="lines", log_x=True, throttled=False,
    ),
]  # fmt: skip
