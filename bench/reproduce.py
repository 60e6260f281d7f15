"""`make bench-papers`: the figures of the papers on asynchronous HDF5, at this machine's scale.

    reproduce.py [FIGURE ...] [--rounds N] [--quick] [--connector NAME[=PLUGINDIR] ...]
    reproduce.py --markdown docs/papers.md     puts what was measured into the page, and its pictures beside it

Each figure is in papers/; what it measured goes to build/papers/KEY.csv, KEY.svg and KEY.png. Exit status 0 where all figures
ran and all outputs were right; that a figure differs from the paper's is no failure, but said.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import shutil
import signal
import sys
import time

import report
from bench import machine_facts, versions
from harness import REPO, DemoError, Places, Throttle
from papers import FIGURES
from papers.figure import judged, read_csv, write_csv
from papers.lab import Lab
from papers.page import block, refresh

APPS = ("amr", "earthquake", "loader", "micro", "series", "writes", "scale", "throttle")


def parse_arguments():
    parser = argparse.ArgumentParser(description="The figures of the papers on asynchronous HDF5, at this machine's scale.")
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=f"{', '.join(FIGURES)}; default: all")
    parser.add_argument("--rounds", type=int, default=3, help="of each bar")
    parser.add_argument("--quick", action="store_true", help="one round, smaller: minutes, and no figures to quote")
    parser.add_argument("--shared-files", action="store_true", help="ranks write one file together; wants a core for each")
    parser.add_argument("--connector", action="append", default=[], metavar="NAME[=PLUGINDIR]", help="one more series")
    parser.add_argument("--markdown", metavar="PAGE", help="measure nothing: put earlier results into the page")
    parser.add_argument("--build", default=REPO / "build" / "release", help="where the programs and the plugin are")
    parser.add_argument("--out", default=REPO / "build" / "papers", help="where results go")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.figures if name not in FIGURES]:
        parser.error(f"no figure is called {unknown[0]}; there are {', '.join(FIGURES)}")
    return arguments


def one_figure(lab, figure, out):
    if figure.throttled:
        with lab.slow_storage(figure.latency_us, figure.bandwidth):
            panels = figure.panels(lab)
    else:
        panels = figure.panels(lab)
    write_csv(out / f"{figure.key}.csv", panels)
    return panels


def show(figure, panels):
    print(f"\n{report.BOLD}{figure.title}{report.OFF} ({figure.paper}; {figure.y})")
    for panel in panels:
        series = panel.series()
        lines = [[x, *(f"{value:.3g}" if (value := panel.value(x, name)) is not None else "" for name in series)] for x in panel.xs()]
        report.print_table([panel.name or figure.x, *series], lines)
    for claim, here, agrees in judged(figure, panels):
        mark = {True: " ok", False: " differs", None: ""}[agrees]
        print(f"  {claim.what}: paper {claim.paper}; here {here}{mark}")


def measure(arguments, out):
    places = Places(arguments.build)
    places.check(APPS, ["h5diff"])
    scratch = out / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    rounds = 1 if arguments.quick else arguments.rounds
    lab = Lab(places, scratch, rounds, arguments.quick, arguments.connector, arguments.shared_files, report.progress)
    facts = {"machine": machine_facts(out), "versions": versions(places), "rounds": rounds, "quick": lab.quick}
    failures = []
    for key in arguments.figures or FIGURES:
        begin = time.monotonic()
        try:
            panels = one_figure(lab, FIGURES[key], out)
            report.progress_end()
            show(FIGURES[key], panels)
            draw(FIGURES[key], panels, out / key)
            print(f"  {time.monotonic() - begin:.0f} s; {out}/{key}.csv, .svg, .png")
        except DemoError as error:
            report.progress_end()
            failures.append(f"{key}: {error}")
            print(f"\n  {report.RED}FAILED{report.OFF} {failures[-1]}")
    facts |= {"date": datetime.date.today().isoformat(), "shared_files": lab.shared}
    (out / "facts.json").write_text(json.dumps(facts, indent=1))
    shutil.rmtree(scratch, ignore_errors=True)
    return not failures


def draw(figure, panels, path):
    with contextlib.suppress(ImportError):  # matplotlib: the numbers are there without it
        from papers import plots

        plots.draw(figure, panels, path)


def machine_text(facts):
    machine, seen = facts["machine"], facts["versions"]
    files = "one file of all ranks" if facts["shared_files"] else "a file for each rank"
    busy = machine["load_before"] > machine["cores"] / 2
    return (
        f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gib']:.0f} GiB of memory; HDF5 {seen['hdf5']}, Tidelane"
        f" {seen['tidelane']} ({seen['commit']}); {facts['rounds']} rounds, {facts['date']}. Where there are several ranks: {files}."
        + (" **The machine was busy with other work.**" if busy else "")
        + (" **A quick run: no figures to quote.**" if facts["quick"] else "")
    )


def write_page(page, out):
    page = pathlib.Path(page)
    blocks = {}
    if (out / "facts.json").exists():
        blocks["machine"] = machine_text(json.loads((out / "facts.json").read_text()))
    for key, figure in FIGURES.items():
        if not (out / f"{key}.csv").exists():
            continue
        panels = read_csv(out / f"{key}.csv")
        draw(figure, panels, out / key)
        picture = f"papers/{key}.png"
        if (out / f"{key}.png").exists():
            (page.parent / "papers").mkdir(exist_ok=True)
            shutil.copyfile(out / f"{key}.png", page.parent / picture)
        else:
            picture = ""
        blocks[key] = block(figure, panels, picture)
    page.write_text(refresh(page.read_text(), blocks))


def main():
    arguments = parse_arguments()
    out = pathlib.Path(arguments.out)
    if arguments.markdown:
        write_page(arguments.markdown, out)
        return 0
    if missing := Throttle.missing():
        print(f"reproduce: slow storage: {missing}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of all that takes down mounts and folders
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MPLCONFIGDIR", str(out / "scratch"))
    try:
        return 0 if measure(arguments, out) else 1
    except DemoError as error:
        report.progress_end()
        print(f"reproduce: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
