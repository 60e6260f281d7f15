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
import os
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
    Throttle,
    native_environment,
    read_summary,
    require_deferred,
    require_equal,
    run,
    tidelane_environment,
)

STEPS = 4
VARIABLE_BYTES = 4 << 20
STEP_BYTES = 8 * VARIABLE_BYTES
SHORTEST_STEP_US = 0.1e6

# How a program writes: its options, and Tidelane's settings for it.
CASES = {
    "one file": {"options": ["--layout=one", "--mode=implicit"], "settings": {}},
    "a file per step": {"options": ["--layout=per-step", "--mode=implicit"], "settings": {}},
    "a file per step, close=deferred": {
        "options": ["--layout=per-step", "--mode=implicit"],
        "settings": {"close": "deferred"},
    },
    "one file, event sets": {"options": ["--layout=one", "--mode=explicit"], "settings": {}},
    "a file per step, event sets": {"options": ["--layout=per-step", "--mode=explicit"], "settings": {}},
}
# The case where nothing is gained, by design: a close that returns only when the bytes are written.
WAITING_CLOSE = "a file per step"
WAITS_TARGET = 0.05
TOTAL_TARGET = 1.05


class Storage:
    """A place to write to: `path`, the same files without delays at `backing`, and how much is computed per step."""

    def __init__(self, name, path, backing=None, throttle=None, compute=True):
        self.name, self.path, self.backing = name, path, backing or path
        self.throttle, self.compute = throttle, compute
        self.substeps = 0


class Demo:
    def __init__(self, places, out, rounds):
        self.places, self.out, self.rounds = places, out, rounds
        self.scratch = out / "scratch"
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        for old in ("results.json", "timeline.svg", "timeline.png"):
            (out / old).unlink(missing_ok=True)

    def one_run(self, storage, options, env, folder):
        """Runs the checkpoint writer into storage/folder; returns its report, with the requests the storage saw."""
        target = os.path.join(storage.path, folder)
        shutil.rmtree(os.path.join(storage.backing, folder), ignore_errors=True)
        os.mkdir(target)
        if storage.throttle:
            storage.throttle.reset()
        result = self.scratch / "run.json"
        command = [self.places.program("checkpoint"), f"--directory={target}", f"--json={result}", f"--steps={STEPS}"]
        command += [f"--bytes={VARIABLE_BYTES}", f"--substeps={storage.substeps}", *options]
        wall = run(command, env)
        data = json.loads(result.read_text())
        data["wall_us"] = wall * 1e6
        data["waits_us"] = data["total_us"] - data["classes"]["compute"]
        if storage.throttle:
            data["requests"] = storage.throttle.stats()
        return data

    def tidelane_run(self, storage, case, folder, **extra):
        summaries = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        settings = {**case["settings"], "summary": summaries / "summary-%p.json", **extra}
        env = tidelane_environment(self.places, **settings)
        data = self.one_run(storage, case["options"], env, folder)
        data["summary"] = read_summary(summaries)
        return data

    def calibrate(self, storage):
        """Chooses a computation that covers the I/O of a step, from what native HDF5 needs for it here."""
        if not storage.compute:
            return
        probe = self.one_run(storage, CASES["one file"]["options"], native_environment(), "probe")
        shutil.rmtree(os.path.join(storage.backing, "probe"))
        seconds = covering_us(probe["waits_us"]) / STEPS / 1e6
        command = [self.places.program("checkpoint"), f"--bytes={VARIABLE_BYTES}", f"--calibrate={seconds:.4f}"]
        answer = self.scratch / "calibrate.txt"
        run(["sh", "-c", 'exec "$@" > "$0"', str(answer), *command], native_environment())
        storage.substeps = int(answer.read_text())

    def covered_run(self, storage, options):
        """A native run whose computation covers its I/O: where the machine has become quieter or busier since the
        computation was chosen, it is adjusted and the run repeated."""
        for _ in range(4):
            data = self.one_run(storage, options, native_environment(), "native")
            computed, wanted = data["classes"]["compute"], covering_us(data["waits_us"])
            if not storage.compute or 0.75 * wanted <= computed <= 2 * wanted:
                return data
            storage.substeps = max(1, round(storage.substeps * wanted / computed))
        return self.one_run(storage, options, native_environment(), "native")

    def compare(self, storage, name):
        """The rounds of one case; returns its row."""
        case = CASES[name]
        what = f"{storage.name}, {name}"
        native, tidelane = [], []
        for _ in range(self.rounds if storage.compute else max(self.rounds, 9)):
            native.append(self.covered_run(storage, case["options"]))
            tidelane.append(self.tidelane_run(storage, case, "tidelane"))
            # Storage as quick as memory takes what exceeds a small backlog directly (the reason is counted).
            share = 0.9 if storage.throttle else 0.02
            require_deferred(tidelane[-1]["summary"], share * STEPS * STEP_BYTES, what)
            require_equal(self.places, f"{storage.backing}/native", f"{storage.backing}/tidelane", what)
        for folder in ("native", "tidelane"):
            shutil.rmtree(os.path.join(storage.backing, folder))
        return row(storage, name, native, tidelane)

    def traced_pair(self, storage):
        """A native run and one of Tidelane with its trace, from a moment when the machine gave both the same: the
        picture must not show as a gain what was somebody else's load."""
        case, trace = CASES["one file"], self.scratch / "trace.json"
        best = None
        for _ in range(4):
            native = self.covered_run(storage, case["options"])
            tidelane = self.tidelane_run(storage, case, "tidelane", trace=trace)
            unlike = abs(tidelane["classes"]["compute"] / native["classes"]["compute"] - 1)
            if best is None or unlike < best[0]:
                best = (unlike, native, tidelane, json.loads(trace.read_text()))
            if unlike < 0.03:
                break
        for folder in ("native", "tidelane"):
            shutil.rmtree(os.path.join(storage.backing, folder))
        return best[1:]

    def timeline(self, storage):
        """Draws one more run of each."""
        native, tidelane, trace = self.traced_pair(storage)
        lanes = timeline.lanes_of(trace)
        if not lanes:
            raise DemoError("the trace has no writes of the lanes")
        subtitle = (
            f"{STEPS} steps of {STEP_BYTES >> 20} MiB into one file on storage with "
            f"{storage.throttle.latency_us / 1000:g} ms per request and {storage.throttle.bandwidth / 1e6:g} MB/s"
        )
        timeline.draw(native, tidelane, lanes, subtitle, self.out / "timeline")


def covering_us(io_us):
    """How long a run should compute so that its I/O fits behind it."""
    return max(1.75 * io_us, STEPS * SHORTEST_STEP_US)


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


def local_storages(out, stack):
    disk = tempfile.mkdtemp(prefix="disk-", dir=out)
    stack.append(disk)
    yield Storage("local disk", disk)
    if os.access("/dev/shm", os.W_OK):
        memory = tempfile.mkdtemp(prefix="tidelane-demo-", dir="/dev/shm")
        stack.append(memory)
        yield Storage("memory, no computation", memory, compute=False)


def attempt(results, what, function, *arguments):
    """Runs one part; a failure is recorded, shown at the end and makes the demo fail, but the other parts still run."""
    report.progress(what)
    try:
        return function(*arguments)
    except DemoError as error:
        results["failures"].append(f"{what}: {error}")
        return None


def run_storage(demo, storage, results):
    attempt(results, f"{storage.name}: measuring what a step's I/O takes", demo.calibrate, storage)
    for name in CASES:
        row = attempt(results, f"{storage.name}: {name}", demo.compare, storage, name)
        if row:
            results["rows"].append(row)


def run_slow(demo, results):
    missing = Throttle.missing()
    if missing:
        results["failures"].append(f"slow storage: {missing}")
        return
    with Throttle(demo.places) as throttle:
        slow = Storage("slow storage", throttle.path, throttle.backing, throttle)
        run_storage(demo, slow, results)
        attempt(results, "slow storage: timeline", demo.timeline, slow)
        for what in clients.prepare(demo.places, throttle):
            row = attempt(results, what[0], clients.compare, demo.places, throttle, demo.scratch, *what)
            if row:
                results["clients"].append(row)


def run_all(demo, only_slow):
    results = {"rows": [], "clients": [], "failures": []}
    run_slow(demo, results)
    folders = []
    try:
        for storage in [] if only_slow else local_storages(demo.out, folders):
            run_storage(demo, storage, results)
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
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
