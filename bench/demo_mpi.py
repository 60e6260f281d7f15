"""`make demo-mpi`: ranks that write one file together, with native HDF5 and with Tidelane, side by side.

The VPIC-IO pattern, weak scaling: every rank writes its slice of eight variables after each step, with collective transfers,
then computes. For each MPI that there is a parallel HDF5 for, rounds of native and Tidelane alternate on simulated slow
storage; each of Tidelane's outputs is compared with the native one by h5diff, and the ranks' summaries must show that the
bytes were deferred. Printed are medians; all numbers go to build/demo-mpi/results.json.
"""

import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile

import report
from demo import median, requests_of
from harness import (
    REPO,
    STARTING,
    DemoError,
    Places,
    Storage,
    Throttle,
    native_environment,
    require_equal,
    tidelane_environment,
)
from simulation import Simulation

MPIS = {"mpich": "MPICH", "openmpi": "Open MPI"}
TRANSFERS = {"collective": [], "independent": ["--independent"]}
WAITS_TARGET = 0.1


class Ranks(Simulation):
    """The checkpoint program of several ranks; its bytes are those of all of them."""

    def __init__(self, places, scratch, mpi, ranks, **kwargs):
        super().__init__(places, scratch, **kwargs)
        self.mpi, self.ranks = mpi, ranks

    @property
    def bytes(self):
        return super().bytes * self.ranks

    def command(self, *more):
        program = self.places.program(f"checkpoint_{self.mpi}")
        return [f"mpirun.{self.mpi}", "-np", str(self.ranks), program, f"--bytes={self.variable_bytes}", *more]


def summed(folder, ranks, at_least, what):
    """The counters of all ranks. A comparison with a plugin that quietly did nothing would look perfect: refuse it."""
    found = [json.loads(path.read_text()) for path in pathlib.Path(folder).glob("summary-*.json")]
    if len(found) != ranks:
        raise DemoError(f"{what}: {len(found)} summaries of {ranks} ranks: was the plugin loaded?")
    counters = {key: sum(s["counters"][key] for s in found) for key in found[0]["counters"]}
    fallbacks = {key: sum(s["fallbacks"][key] for s in found) for key in found[0]["fallbacks"]}
    if counters["bytes_deferred"] < at_least:
        reasons = {key: value for key, value in fallbacks.items() if value}
        raise DemoError(
            f"{what}: nothing to compare: the plugin captured {counters['bytes_deferred']} bytes of {at_least}, the rest was "
            f"written natively. Reasons that it counted: {reasons}"
        )
    if counters["errors"]:
        raise DemoError(f"{what}: the plugin counted {counters['errors']} errors")
    return counters


class Demo:
    def __init__(self, places, out, ranks, rounds):
        self.places, self.ranks, self.rounds = places, ranks, rounds
        self.scratch = out / "scratch"
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)

    def tidelane_run(self, simulation, storage, options, what):
        summaries = tempfile.mkdtemp(dir=self.scratch)
        env = tidelane_environment(self.places, summary=f"{summaries}/summary-%p.json")
        data = simulation.run(storage, options, env, "tidelane")
        data["counters"] = summed(summaries, self.ranks, 0.9 * simulation.bytes, what)
        return data

    def compare(self, simulation, storage, transfer):
        what = f"{MPIS[simulation.mpi]}, {transfer}"
        native, tidelane = [], []
        for _ in range(self.rounds):
            native.append(simulation.covered_run(storage, TRANSFERS[transfer]))
            tidelane.append(self.tidelane_run(simulation, storage, TRANSFERS[transfer], what))
            require_equal(self.places, f"{storage.backing}/native", f"{storage.backing}/tidelane", what)
        storage.remove("native", "tidelane")
        return row(what, native, tidelane)


def row(what, native, tidelane):
    out = {"case": what, "rounds": len(native)}
    for side, runs in (("native", native), ("tidelane", tidelane)):
        out[side] = {
            "total_s": median(runs, lambda r: r["total_us"]) / 1e6,
            "waits_s": median(runs, lambda r: r["waits_us"]) / 1e6,
            "write_s": median(runs, lambda r: r["classes"]["write"]) / 1e6,
            "requests": median(runs, requests_of),
            "runs": runs,
        }
    out["waits_ratio"] = out["tidelane"]["waits_s"] / out["native"]["waits_s"]
    out["total_ratio"] = out["tidelane"]["total_s"] / out["native"]["total_s"]
    out["deferred_bytes"] = median(tidelane, lambda r: r["counters"]["bytes_deferred"])
    out["target"] = {"what": "waits_ratio", "limit": WAITS_TARGET}
    return out


def run_all(demo, mpis, results):
    missing = Throttle.missing()
    if missing:
        results["failures"].append(f"slow storage: {missing}")
        return
    with Throttle(demo.places) as throttle:
        storage = Storage("slow storage", throttle.path, throttle)
        for mpi in mpis:
            simulation = Ranks(demo.places, demo.scratch, mpi, demo.ranks)
            for transfer in TRANSFERS:
                report.progress(f"{MPIS[mpi]}, {demo.ranks} ranks, {transfer} writes")
                try:
                    if not simulation.substeps:
                        simulation.calibrate(storage, [])
                    results["rows"].append(demo.compare(simulation, storage, transfer))
                except DemoError as error:
                    results["failures"].append(str(error))


def show(results, ranks, out):
    head = ["", "waits", "", "ratio", "writes", "", "total", "", "ratio", "requests", "", "deferred"]
    unit = ["", "native", "Tidelane", "", "native", "Tidelane", "native", "Tidelane", "", "native", "Tidelane", ""]
    lines = [unit]
    for line in results["rows"]:
        lines.append(
            [
                line["case"],
                *report.pair(line, "waits_s"),
                report.mark(line, "waits_ratio"),
                *report.pair(line, "write_s"),
                *report.pair(line, "total_s"),
                report.mark(line, "total_ratio"),
                *report.requests(line),
                f"{line['deferred_bytes'] / 2**20:.0f} MiB",
            ]
        )
    if results["rows"]:
        rounds = results["rows"][0]["rounds"]
        print(f"\n{report.BOLD}{ranks} ranks, one file, slow storage{report.OFF} (seconds of the slowest rank, median of {rounds} rounds)")
        report.print_table(head, lines)
        print(
            "\n  waits: the run without its computation, its close included. Every output of Tidelane was equal to the native one"
            "\n  by h5diff. No MPI thread support is asked for: the lanes make no MPI call."
        )
    for failure in results["failures"]:
        print(f"\n  {report.RED}FAILED{report.OFF} {failure}")
    print(f"  all numbers: {out}/results.json")
    return all(report.verdict(line) for line in results["rows"])


def main():
    parser = argparse.ArgumentParser(description="Ranks that write one file together: native HDF5 and Tidelane side by side.")
    parser.add_argument("--build", default=REPO / "build" / "release", help="where the programs and the plugin are")
    parser.add_argument("--out", default=REPO / "build" / "demo-mpi", help="where results go")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mpi", action="append", choices=MPIS, help="one or more; all that were built if none is named")
    parser.add_argument("--strict", action="store_true", help="a missed target is a failure too")
    arguments = parser.parse_args()
    out = pathlib.Path(arguments.out)
    os.environ.update(STARTING)
    results = {"rows": [], "failures": []}
    demo = Demo(Places(arguments.build), out, arguments.ranks, arguments.rounds)
    try:
        mpis = arguments.mpi or [mpi for mpi in MPIS if (demo.places.bin / f"checkpoint_{mpi}").exists()]
        demo.places.check([f"checkpoint_{mpi}" for mpi in mpis], ["h5diff"])
        run_all(demo, mpis, results)
    except DemoError as error:
        report.progress_end()
        print(f"demo-mpi: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(demo.scratch, ignore_errors=True)
    (out / "results.json").write_text(json.dumps(results, indent=1))
    report.progress_end()
    met = show(results, arguments.ranks, out)
    return 0 if results["rows"] and not results["failures"] and (met or not arguments.strict) else 1


if __name__ == "__main__":
    sys.exit(main())
