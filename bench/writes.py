"""Small writes of many shapes, native and with Tidelane: what a write costs, and how many requests storage sees.

    build/venv/bin/python bench/writes.py [--patterns tiles blocks ...] [--bytes 4096 ...]

Two questions, two storages. On memory: the processor time of a write, of the calling thread and of the whole process,
medians of alternating rounds. On the throttle: the requests, and the time the program takes when each costs something
(--latency-us; 0 by default, so that all patterns can be counted in minutes). Outputs are compared with h5diff.
Everything also goes to build/demo/writes.json.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import statistics
import sys
import tempfile

from harness import (
    REPO,
    DemoError,
    Places,
    Throttle,
    native_environment,
    read_summary,
    require_equal,
    run,
    tidelane_environment,
)

PATTERNS = ["contiguous", "append", "tiles", "blocks", "blocks-short-runs", "interleaved", "chunked"]
SIZES = [1 << 10, 4 << 10, 64 << 10, 1 << 20]
MOST_BYTES = 256 << 20  # of one run


def one_run(places, folder, case, env):
    """Runs the case with its output in `folder`; returns its report."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "writes.h5")
    if os.path.exists(path):
        os.unlink(path)
    pattern, size, shuffled = case
    writes = min(1024, MOST_BYTES // size)
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        command = [places.program("writes"), f"--file={path}", f"--pattern={pattern}", f"--bytes={size}"]
        command += [f"--writes={writes}", f"--json={result.name}"] + (["--shuffled"] if shuffled else [])
        run(command, env, timeout=300)
        return json.load(result)


def both(places, root, case, settings, throttle=None):
    """One round: native, then Tidelane, then the comparison; with the requests where storage counts them."""
    reports = []
    with tempfile.TemporaryDirectory() as summaries:
        tidelane = tidelane_environment(places, summary=os.path.join(summaries, "summary-%p.json"), **settings)
        for name, env in (("native", native_environment()), ("tidelane", tidelane)):
            if throttle:
                throttle.reset()
            report = one_run(places, os.path.join(root, name), case, env)
            if throttle:
                stats = throttle.stats()
                report["requests"] = {kind: stats[kind]["requests"] for kind in ("reads", "writes")}
            reports.append(report)
        reports[1]["summary"] = read_summary(summaries)
    backing = throttle.backing if throttle else root
    require_equal(places, f"{backing}/native", f"{backing}/tidelane", " ".join(map(str, case)))
    return reports


def median_us(reports, phase, clock):
    return statistics.median(report[phase][clock] for report in reports)


def measure(places, memory, throttle, case, arguments, settings):
    """All rounds of one case."""
    rounds = [both(places, memory, case, settings) for _ in range(arguments.rounds)]
    counted = both(places, throttle.path, case, settings, throttle) if throttle else None
    out = {"pattern": case[0], "bytes": case[1], "shuffled": case[2], "run_bytes": rounds[0][0]["run_bytes"]}
    for i, side in enumerate(("native", "tidelane")):
        reports = [pair[i] for pair in rounds]
        writes = reports[0]["writes"]
        out[side] = {
            "caller_cpu_us_per_write": median_us(reports, "total", "thread_cpu_us") / writes,
            "process_cpu_us_per_write": median_us(reports, "total", "process_cpu_us") / writes,
            "write_wall_us_per_write": median_us(reports, "write", "wall_us") / writes,
            "total_ms": median_us(reports, "total", "wall_us") / 1e3,
        }
        if counted:
            out[side]["requests"] = counted[i]["requests"]
            out[side]["throttle_total_ms"] = counted[i]["total"]["wall_us"] / 1e3
    out["tidelane"]["counters"] = (counted or rounds[-1])[1]["summary"]["counters"]
    return out


HEAD = (
    "pattern                 bytes    run order      caller CPU us     process CPU us   write wall us    total ms"
    "            requests (r+w)            on throttle ms"
)


def show(row):
    native, tidelane = row["native"], row["tidelane"]

    def two(key, width, digits=1):
        return f"{native[key]:{width}.{digits}f} {tidelane[key]:{width}.{digits}f}"

    line = f"{row['pattern']:<20}{row['bytes']:>9}{row['run_bytes']:>8} {'shuf' if row['shuffled'] else 'seq ':<5}"
    line += "  ".join(
        two(key, 8) for key in ("caller_cpu_us_per_write", "process_cpu_us_per_write", "write_wall_us_per_write", "total_ms")
    )
    if "requests" in native:
        counts = [f"{side['requests']['reads']}+{side['requests']['writes']}" for side in (native, tidelane)]
        line += f"   {counts[0]:>13} {counts[1]:>13}  {two('throttle_total_ms', 8, 0)}"
    print(line, flush=True)


def cases(arguments):
    for pattern, size, shuffled in itertools.product(arguments.patterns, arguments.bytes, (False, True)):
        if pattern != "append" or not shuffled:
            yield pattern, size, shuffled


def main():
    parser = argparse.ArgumentParser(description="What small writes cost, native and with Tidelane.")
    parser.add_argument("--build", default=REPO / "build" / "release")
    parser.add_argument("--out", default=REPO / "build" / "demo" / "writes.json")
    parser.add_argument("--patterns", nargs="+", choices=PATTERNS, default=PATTERNS)
    parser.add_argument("--bytes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--latency-us", type=float, default=0, help="of the throttle")
    parser.add_argument("--bandwidth", type=float, default=0, help="of the throttle, bytes per second; 0: no cap")
    parser.add_argument("--no-throttle", action="store_true", help="processor time only")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="TIDELANE_NAME=VALUE for the plugin")
    arguments = parser.parse_args()
    settings = dict(item.split("=", 1) for item in arguments.set)
    places = Places(arguments.build)
    rows = []
    print(HEAD + "\n" + " " * 43 + "each pair: native, Tidelane")
    try:
        places.check(["writes"], ["h5diff"])
        with tempfile.TemporaryDirectory(prefix="tidelane-writes-", dir="/dev/shm") as memory:
            slow = () if arguments.no_throttle else (places, arguments.latency_us, arguments.bandwidth)
            with Throttle(*slow) if slow else contextlib.nullcontext() as throttle:
                for case in cases(arguments):
                    rows.append(measure(places, memory, throttle, case, arguments, settings))
                    show(rows[-1])
    except DemoError as error:
        print(f"writes: {error}", file=sys.stderr)
        return 1
    out = pathlib.Path(arguments.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
