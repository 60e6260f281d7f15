#!/usr/bin/env python3
"""What a program that computes on a GPU waits for when it writes: `make bench-gpu`, on a machine with an NVIDIA GPU.

Two sides take turns: H5Dwrite with the device's pointer, under Tidelane; and what programs do without it, cudaMemcpy into ordinary
memory and H5Dwrite of native HDF5. Each process also times a copy of the same bytes into pinned memory, step by step: the least
that anybody could wait for. The first two steps are left out (memory is pinned then); what was written is read back and compared.

Needs nothing but Python. Writes build/bench/gpu.json.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

REPO = pathlib.Path(__file__).resolve().parents[1]
WARM_UP = 2
MOST = 1.2  # x a copy to pinned memory, from 16 MiB on
SLACK = 30e-6  # seconds more than such a copy, below
LEAST = 3.0  # x better than through ordinary memory
LARGE = 16 << 20
# KiB of the state, level of gzip, milliseconds of computing; whether the steps are rows of one dataset.
CASES = [
    (4, 0, 5, True), (64, 0, 5, True), (1024, 0, 10, True), (4096, 0, 10, True), (16 * 1024, 0, 20, True),
    (64 * 1024, 0, 60, True), (256 * 1024, 0, 250, True),
    (4, 0, 5, False), (1024, 0, 10, False), (16 * 1024, 0, 20, False), (64 * 1024, 0, 60, False),
    (16 * 1024, 1, 150, False), (64 * 1024, 1, 500, False), (16 * 1024, 1, 150, True),
]  # fmt: skip


def run(program, case, staged, folder, steps):
    kib, gzip, pause_ms, series = case
    command = [program, "--kib", kib, "--gzip", gzip, "--pause-ms", pause_ms, "--steps", steps, "--folder", folder]
    command += ["--series"] if series else []
    environment = dict(os.environ)
    if staged:
        command.append("--staged")
        environment.pop("HDF5_VOL_CONNECTOR", None)
    else:
        environment["HDF5_VOL_CONNECTOR"] = "tidelane"
    done = subprocess.run([str(part) for part in command], env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bench/gpu.py: {' '.join(done.args)} failed ({done.returncode})")
    return json.loads(done.stdout.splitlines()[-1])


def medians(runs):
    def median(key):
        return statistics.median(seconds for found in runs for seconds in found[key][WARM_UP:])

    keys = ("write_seconds", "pinned_copy_seconds", "read_seconds", "pinned_upload_seconds", "late_read_seconds")
    return {key: median(key) for key in keys if runs[0][key]} | {"first_write_seconds": runs[0]["write_seconds"][0]}


def measure(program, case, folder, rounds, steps):
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(run(program, case, False, folder, steps))
        theirs.append(run(program, case, True, folder, steps))
    found = medians(ours)
    native = medians(theirs)
    copy = found["pinned_copy_seconds"]
    return {
        "device": ours[0]["device"],
        "bytes": case[0] << 10,
        "gzip": case[1],
        "series": case[3],
        "tidelane": found,
        "native": native,
        "of_copy": found["write_seconds"] / copy,
        "over_copy_seconds": found["write_seconds"] - copy,
        "better": native["write_seconds"] / found["write_seconds"],
        "read_better": native["read_seconds"] / found["read_seconds"],
        "late_read_better": native["read_seconds"] / found["late_read_seconds"],
    }


def verdict(row):
    small = row["bytes"] < LARGE
    met = row["over_copy_seconds"] <= SLACK if small else row["of_copy"] <= MOST
    return "ok" if met and (small or row["better"] >= LEAST) else "MISSED"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=11)
    parser.add_argument("--program", default=REPO / "build/release/bin/gpu")
    parser.add_argument("--folder", help="where the files are made (default: a temporary one)")
    parser.add_argument("--only", type=int, action="append", help="sizes in KiB")
    parser.add_argument("--json", type=pathlib.Path, default=REPO / "build/bench/gpu.json")
    asked = parser.parse_args()
    if asked.steps <= WARM_UP:
        parser.error(f"--steps: more than {WARM_UP}")
    print(f"{'state':>9} {'gzip':>4} {'dataset':>8} {'pinned copy':>12} {'H5Dwrite':>10} {'of copy':>8} {'more':>9}"
          f" {'cudaMemcpy, native':>19} {'better':>7} {'read':>6} {'async':>6}  first")  # fmt: skip
    rows = []
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for case in CASES:
            if asked.only and case[0] not in asked.only:
                continue
            row = measure(asked.program, case, folder, asked.rounds, asked.steps)
            row["verdict"] = verdict(row)
            rows.append(row)
            ours, native = row["tidelane"], row["native"]
            print(f"{row['bytes'] >> 10:>5} KiB {row['gzip']:>4} {'one' if row['series'] else 'a step':>8} {ours['pinned_copy_seconds'] * 1e3:>9.3f} ms"
                  f" {ours['write_seconds'] * 1e3:>7.3f} ms {row['of_copy']:>8.2f} {row['over_copy_seconds'] * 1e6:>6.0f} us"
                  f" {native['write_seconds'] * 1e3:>16.3f} ms {row['better']:>7.1f} {row['read_better']:>6.2f} {row['late_read_better']:>6.2f}"
                  f"  {ours['first_write_seconds'] * 1e3:.1f} ms  {row['verdict']}", flush=True)  # fmt: skip
            asked.json.write_text(json.dumps(rows, indent=1) + "\n")
    return any(row["verdict"] != "ok" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
