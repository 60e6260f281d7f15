"""`make demo`: one simulation, with native HDF5 and with Tidelane, side by side.

For every storage and every way of writing, rounds of native and Tidelane alternate, so that what else the machine does
falls on both. Each of Tidelane's outputs is compared with the native one by h5diff, and the plugin's own counters must
show that the bytes were deferred. Printed are medians; all numbers go to build/demo/results.json, and the timeline of
one run of each to build/demo/timeline.{svg,png}.

`waits` is the time the application did not compute. It includes opening, closing and the end of the library, where
anything still on its way must be waited for.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import sys
import tempfile

import clients
import report
import timeline
from harness import (
    REPO,
    DemoError,
    Places,
    Storage,
    Throttle,
    disk_storage,
    memory_storage,
    read_summary,
    require_deferred,
    require_equal,
    require_passed,
    tidelane_environment,
)
from simulation import MODES, WAITING_CLOSE, Simulation

# The demo leaves out what one file gains from a deferred close: nothing, it closes but once.
CASES = [name for name in MODES if name != "one file, close=deferred"]
WAITS_TARGET = 0.05
TOTAL_TARGET = 1.05


class Demo:
    def __init__(self, places, out, rounds):
        self.places, self.out, self.rounds = places, out, rounds
        self.scratch = out / "scratch"
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        for old in ("results.json", "timeline.svg", "timeline.png"):
            (out / old).unlink(missing_ok=True)

    def simulation(self, storage):
        """The program, computing as much as covers its I/O here, or not at all."""
        simulation = Simulation(self.places, self.scratch)
        if storage.compute:
            simulation.calibrate(storage)
        return simulation

    def tidelane_run(self, simulation, storage, mode, folder, **extra):
        summaries = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        settings = {**mode["settings"], "summary": summaries / "summary-%p.json", **extra}
        env = tidelane_environment(self.places, **settings)
        data = simulation.run(storage, mode["options"], env, folder)
        data["summary"] = read_summary(summaries)
        return data

    def compare(self, simulation, storage, name):
        """The rounds of one case; returns its row."""
        mode = MODES[name]
        what = f"{storage.name}, {name}"
        native, tidelane = [], []
        for _ in range(self.rounds if storage.compute else max(self.rounds, 9)):
            native.append(simulation.covered_run(storage, mode["options"]))
            tidelane.append(self.tidelane_run(simulation, storage, mode, "tidelane"))
            # Where storage is as quick as memory, a program that does not compute stores its bytes itself.
            least = 0.9 * simulation.bytes if storage.throttle else 1
            require_deferred(tidelane[-1]["summary"], least, what)
            require_passed(tidelane[-1]["summary"], simulation.bytes, what)
            require_equal(self.places, f"{storage.backing}/native", f"{storage.backing}/tidelane", what)
        storage.remove("native", "tidelane")
        return row(storage, name, native, tidelane)

    def traced_pair(self, simulation, storage):
        """A native run and one of Tidelane with its trace, from a moment when the machine gave both the same: the
        picture must not show as a gain what was somebody else's load."""
        mode, trace = MODES["one file"], self.scratch / "trace.json"
        best = None
        for _ in range(4):
            native = simulation.covered_run(storage, mode["options"])
            tidelane = self.tidelane_run(simulation, storage, mode, "tidelane", trace=trace)
            unlike = abs(tidelane["classes"]["compute"] / native["classes"]["compute"] - 1)
            if best is None or unlike < best[0]:
                best = (unlike, native, tidelane, json.loads(trace.read_text()))
            if unlike < 0.03:
                break
        storage.remove("native", "tidelane")
        return best[1:]

    def timeline(self, simulation, storage):
        """Draws one more run of each."""
        native, tidelane, trace = self.traced_pair(simulation, storage)
        lanes = timeline.lanes_of(trace)
        if not lanes:
            raise DemoError("the trace has no writes of the lanes")
        subtitle = (
            f"{simulation.steps} steps of {8 * simulation.variable_bytes >> 20} MiB into one file on storage with "
            f"{storage.throttle.latency_us / 1000:g} ms per request and {storage.throttle.bandwidth / 1e6:g} MB/s"
        )
        timeline.draw(native, tidelane, lanes, subtitle, self.out / "timeline")


def median(runs, value):
    return statistics.median(value(run) for run in runs)


def requests_of(data):
    return data["requests"]["writes"]["requests"] + data["requests"]["reads"]["requests"]


def row(storage, name, native, tidelane):
    out = {"storage": storage.name, "case": name, "rounds": len(native)}
    for side, runs in (("native", native), ("tidelane", tidelane)):
        out[side] = {
            "total_s": median(runs, lambda r: r["total_us"]) / 1e6,
            "waits_s": median(runs, lambda r: r["waits_us"]) / 1e6,
            "close_s": median(runs, lambda r: r["classes"]["file_close"] + r["classes"]["shutdown"]) / 1e6,
            "compute_s": median(runs, lambda r: r["classes"]["compute"]) / 1e6,
            "cpu_s": median(runs, lambda r: r["cpu_us"]) / 1e6,
            "wall_s": median(runs, lambda r: r["wall_us"]) / 1e6,
            "requests": median(runs, requests_of) if storage.throttle else None,
            "runs": [{k: v for k, v in r.items() if k != "spans"} for r in runs],
        }
    out["waits_ratio"] = out["tidelane"]["waits_s"] / out["native"]["waits_s"]
    out["total_ratio"] = out["tidelane"]["total_s"] / out["native"]["total_s"]
    if storage.compute:
        pairs = zip(native, tidelane)
        out["compute_ratio"] = statistics.median(t["classes"]["compute"] / n["classes"]["compute"] for n, t in pairs)
    out["deferred_bytes"] = median(tidelane, lambda r: r["summary"]["counters"]["bytes_deferred"])
    if storage.throttle and name != WAITING_CLOSE:
        out["target"] = {"what": "waits_ratio", "limit": WAITS_TARGET}
    elif not storage.compute and name != WAITING_CLOSE:
        out["target"] = {"what": "total_ratio", "limit": TOTAL_TARGET}
    return out


def attempt(results, what, function, *arguments):
    """Runs one part; a failure is recorded, shown at the end and makes the demo fail, but the other parts still run."""
    report.progress(what)
    try:
        return function(*arguments)
    except DemoError as error:
        results["failures"].append(f"{what}: {error}")
        return None


def run_storage(demo, storage, results):
    """Every mode; returns the simulation, or None where it could not even be started."""
    simulation = attempt(results, f"{storage.name}: measuring what a step's I/O takes", demo.simulation, storage)
    for name in CASES if simulation else []:
        row = attempt(results, f"{storage.name}: {name}", demo.compare, simulation, storage, name)
        if row:
            results["rows"].append(row)
    return simulation


def run_slow(demo, results):
    missing = Throttle.missing()
    if missing:
        results["failures"].append(f"slow storage: {missing}")
        return
    with Throttle(demo.places) as throttle:
        slow = Storage("slow storage", throttle.path, throttle)
        if simulation := run_storage(demo, slow, results):
            attempt(results, "slow storage: timeline", demo.timeline, simulation, slow)
        for what in clients.prepare(demo.places, throttle):
            row = attempt(results, what[0], clients.compare, demo.places, throttle, demo.scratch, *what)
            if row:
                results["clients"].append(row)


def run_all(demo, only_slow):
    results = {"rows": [], "clients": [], "failures": []}
    run_slow(demo, results)
    for open_storage in [] if only_slow else [disk_storage(demo.out), memory_storage()]:
        with open_storage as storage:
            if storage:
                run_storage(demo, storage, results)
    return results


def main():
    parser = argparse.ArgumentParser(description="Native HDF5 and Tidelane side by side.")
    parser.add_argument("--build", default=REPO / "build" / "release", help="where the programs and the plugin are")
    parser.add_argument("--out", default=REPO / "build" / "demo", help="where results go")
    parser.add_argument("--rounds", type=int, default=5, help="of each; more where there is no computation")
    parser.add_argument("--only-slow", action="store_true", help="only the simulated slow storage")
    parser.add_argument("--strict", action="store_true", help="a missed target is a failure too")
    arguments = parser.parse_args()
    out = pathlib.Path(arguments.out)
    demo = Demo(Places(arguments.build), out, arguments.rounds)
    try:
        demo.places.check(["checkpoint"], ["h5diff", "h5repack", "h5copy"])
        results = run_all(demo, arguments.only_slow)
    except DemoError as error:
        report.progress_end()
        print(f"demo: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(demo.scratch, ignore_errors=True)
    (out / "results.json").write_text(json.dumps(results, indent=1))
    report.progress_end()
    met = report.show(results, out)
    return 0 if not results["failures"] and (met or not arguments.strict) else 1


if __name__ == "__main__":
    sys.exit(main())
