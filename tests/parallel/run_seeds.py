#!/usr/bin/env python3
"""Runs the parallel stress program over several seeds, and judges how each run ended.

    run_seeds.py MPIRUN PROGRAM --ranks 2 --seeds 1-4 [--ops N] [--set NAME=VALUE ...]
    run_seeds.py ... --native                         native HDF5 on both sides: what is drawn must work without the plugin
    run_seeds.py ... --expect-difference --set TIDELANE_BREAK=...    a negative control: one seed that finds the fault is enough

Under the plugin every rank must leave a summary, together they must have deferred --min-deferred bytes a seed, and the
files must be equal by h5diff. A crash or hang is held against the plugin only if native HDF5 survives the same seed, a difference only if two native
runs side by side are equal (MPI-IO may store what its buffer holds in the gaps of a collective write); such a seed is
reported, and more than one is a failure; with --well N, for HDF5 with its assertions on, which many random programs meet natively, other seeds
follow until N have gone well. Needs TIDELANE_TEST_PLUGIN_DIR and TIDELANE_HDF5_ROOT (for h5diff).
"""

import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))
import client  # noqa: E402

DIFFERENCE = 10


def seeds_of(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


class Difference(client.ClientError):
    """What the stress program or h5diff found."""


class Seeds:
    def __init__(self, args):
        self.args = args
        # What is deferred must not depend on how quick storage was.
        self.settings = {"TIDELANE_COLLECTIVE_PIECE": "4k"} | dict(setting.split("=", 1) for setting in args.set)
        if args.preload:
            self.settings["LD_PRELOAD"] = " ".join(args.preload)
        self.h5diff = client.hdf5_program("h5diff")

    def command(self, seed, folder, native):
        command = [self.args.mpirun, "-np", self.args.ranks, self.args.program, "--seed", seed, "--ops", self.args.ops]
        command += ["--dir", folder] + (["--strict"] if self.args.strict else []) + (["--native"] if native else [])
        command += ["--compressed"] if self.args.compressed else []
        command += ["--read-only"] if self.args.read_only else []
        return command + (["--fault", self.args.fault] if self.args.fault is not None else [])

    def native(self, seed):
        """Native on both sides; raises what is wrong with the program itself."""
        with tempfile.TemporaryDirectory(prefix="parallel.", dir=self.args.dir) as folder:
            env = {**client.native_environment(), **{k: v for k, v in self.settings.items() if k in ("LD_PRELOAD", "STRESS_SLOW_US")}}
            done = client.run(self.command(seed, folder, True), env, folder, self.args.timeout)
            self.compare(done, folder)
        return f"{done.seconds:.1f} s"

    def under_plugin(self, seed):
        with tempfile.TemporaryDirectory(prefix="parallel.", dir=self.args.dir) as folder:
            done, summaries = client.run_with_summaries(
                self.command(seed, folder, False), folder, self.args.connector, self.settings, self.args.timeout,
                self.args.plugin,
            )  # fmt: skip
            self.compare(done, folder)
        client.require(len(summaries) == self.args.ranks, f"{len(summaries)} summaries of {self.args.ranks} ranks")
        total = {
            key: sum(s["counters"][key] for s in summaries.values())
            for key in ("bytes_deferred", "lane_busy_ns", "errors", "requests_written", "chunks_filtered_by_lanes", "collective_reads_alone")
        }
        client.require(total["errors"] == 0, f"the plugin counted {total['errors']} errors")
        client.require(
            total["bytes_deferred"] >= self.args.min_deferred and (total["lane_busy_ns"] > 0 or self.args.min_deferred == 0),
            f"at least {self.args.min_deferred} bytes should have been deferred: {total}",
        )
        client.require(
            total["chunks_filtered_by_lanes"] >= self.args.min_chunks, f"lanes filtered {total['chunks_filtered_by_lanes']} chunks"
        )
        client.require(total["collective_reads_alone"] > 0 or not self.args.read_only, "no collective read was made alone")
        return f"{done.seconds:.1f} s, {total['chunks_filtered_by_lanes']} chunks by lanes, {total['bytes_deferred']} bytes deferred, {total['requests_written']} requests"

    def compare(self, done, folder):
        if done.rc == DIFFERENCE or "DIFFERENCE" in done.output:
            raise Difference(done.output[done.output.find("DIFFERENCE") :][:6000])
        client.require(done.rc == 0, f"exit status {done.rc}\n{done.output[-3000:]}")
        found = client.run_native([self.h5diff, f"{folder}/a/x.h5", f"{folder}/b/x.h5"], folder)
        if found.rc != 0:
            raise Difference(f"h5diff finds a difference (status {found.rc})\n{found.output[:2000]}")


def judge(seeds, seed):
    """Whether it went well, the fault was found, or native HDF5 fails on this seed, too."""
    try:
        print(f"seed {seed}: {(seeds.native if seeds.args.native else seeds.under_plugin)(seed)}", flush=True)
        return "well"
    except Difference as difference:
        if seeds.args.expect_difference:
            print(f"seed {seed}: found\n{str(difference)[:600]}")
            return "found"
        try:
            if not seeds.args.native:
                seeds.native(seed)
        except Difference as natively:  # it is no oracle there
            print(f"seed {seed}: native HDF5 differs from itself: {str(natively)[:600]}\nunder the plugin: {str(difference)[:600]}", flush=True)
            return "native fails"
        raise client.ClientError(f"seed {seed}: {difference}") from None
    except client.ClientError as error:
        if seeds.args.native or seeds.args.expect_difference:
            raise client.ClientError(f"seed {seed}: {error}") from None
        try:
            seeds.native(seed)
        except client.ClientError as natively:
            print(f"seed {seed}: native HDF5 fails, too: {natively}", flush=True)
            return "native fails"
        raise client.ClientError(f"seed {seed}: {error}") from None


def main():
    parser = argparse.ArgumentParser(description="Cross-rank stress, native HDF5 as the oracle")
    parser.add_argument("mpirun")
    parser.add_argument("program")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seeds", default="1-4")
    parser.add_argument("--well", type=int, help="so many seeds must go well, however often native HDF5 fails")
    parser.add_argument("--ops", type=int, default=300)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--min-deferred", type=int, default=100000)
    parser.add_argument("--compressed", action="store_true", help="mostly compressed datasets, in whole chunks")
    parser.add_argument("--read-only", action="store_true", help="files are opened again for reading only; every rank must have read so")
    parser.add_argument("--min-chunks", type=int, default=0, help="chunks that lanes must have filtered")
    parser.add_argument("--connector", default="tidelane")
    parser.add_argument("--plugin")
    parser.add_argument("--dir")
    parser.add_argument("--preload", action="append", default=[])
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--strict", action="store_true", help="a barrier, not a flush, before what another rank wrote")
    parser.add_argument("--native", action="store_true")
    parser.add_argument("--fault", type=int, help="damage the first read from that operation on: the test's own check")
    parser.add_argument("--expect-difference", action="store_true")
    args = parser.parse_args()
    seeds = Seeds(args)
    verdicts = []
    for seed in seeds_of(args.seeds):
        verdicts.append(judge(seeds, seed))
        if verdicts[-1] == "found" or verdicts.count("well") == args.well:
            return
    client.require(not args.expect_difference, "no seed found the fault")
    client.require(args.well is None, f"{verdicts.count('well')} of {len(verdicts)} seeds went well, not {args.well}")
    client.require(verdicts.count("native fails") <= 1 and "well" in verdicts, f"native HDF5 fails too often: {verdicts}")


if __name__ == "__main__":
    client.main_of(main)
