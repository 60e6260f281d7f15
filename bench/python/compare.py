#!/usr/bin/env python3
"""Time that Python programs wait for their writes: native HDF5 and Tidelane in one run, zarr 3 and TensorStore beside them.

    compare.py [--rounds N] [--steps N] [--folder WHERE] [--writers h5py ...] [--forms gzip] [--set close=tier_deferred --set tier=memory] [--json FILE]
    compare.py --json FILE --markdown docs/performance.md

Rounds alternate: each runs every row natively, then with Tidelane, so that what else the machine does falls on both. Each row is
measured without computation, and with one that takes about as long as native HDF5 takes to write. The arrays are the
same everywhere; what Tidelane wrote is compared with what native HDF5 wrote. Its lanes must have compressed, and what was not
deferred must have been chosen to be stored at once.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402

HDF5 = [(writer, form, {}) for writer in ("h5py", "xarray", "pandas") for form in ("plain", "gzip")]
HDF5.insert(2, ("h5py", "gzip", {"deflate": "isal"}))  # as zarr's and TensorStore's fastest settings: the quickest deflate
OTHERS = [(writer, form) for writer in ("zarr", "tensorstore") for form in ("plain", "gzip", "fastest")]
SETTINGS = {"close": "deferred", "parallel_writes": "on"}
CHOSEN = ("quick_storage", "cost_model")
DIGEST = """
import glob, hashlib, h5py, sys
for path in sorted(glob.glob(sys.argv[1] + "/*.*")):
    def note(name, item):
        if isinstance(item, h5py.Dataset): print(name, item.shape, hashlib.sha256(item[()].tobytes()).hexdigest())
    with h5py.File(path) as file: file.visititems(note)
"""


def places_of_build():
    return harness.Places(os.environ.get("TIDELANE_BENCH_BUILD", HERE.parents[1] / "build/release"))


def one(writer, form, folder, env, args, compute, digested=False):
    with tempfile.TemporaryDirectory(dir=folder) as out:
        command = [sys.executable, str(HERE / "loop.py"), writer, form, out, "--steps", str(args.steps), "--compute", str(compute)]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, timeout=600, check=True)
        result = json.loads(done.stdout.splitlines()[-1])
        if digested:
            if "tier" in dict(args.set):
                tool = places_of_build().build / "tool" / "tidelane"
                subprocess.run([tool, "drain", out], env=env, stdout=subprocess.DEVNULL, timeout=600, check=True)
            digest = [sys.executable, "-c", DIGEST, out]
            result["digest"] = subprocess.run(digest, env=harness.native_environment(), stdout=subprocess.PIPE, text=True, check=True).stdout
    return result


def check(summary, what, form):
    """A plugin that was not loaded, or did everything at once, must not look like one that was and did not."""
    counters = summary["counters"]
    if form == "gzip" and counters["chunks_filtered_by_lanes"] == 0:
        raise harness.DemoError(f"{what}: lanes compressed nothing")
    # On storage as quick as memory the plugin may choose to store while the program waits; the table tells how much it did.
    others = [reason for reason in summary["written"]["synchronous"]["reasons"] if reason["reason"] not in CHOSEN]
    if counters["bytes_deferred"] == 0 or counters["bytes_deferred"] + counters["bytes_sync"] < 1 << 20:
        raise harness.DemoError(f"{what}: {counters['bytes_deferred']} bytes deferred, {counters['bytes_sync']} stored at once")
    if any(reason["bytes"] != 0 for reason in others):
        raise harness.DemoError(f"{what}: not deferred because of {', '.join(reason['text'] for reason in others)}")


def with_tidelane(places, writer, form, settings, folder, args, compute):
    with tempfile.TemporaryDirectory(dir=folder) as summaries:
        env = harness.tidelane_environment(places, summary=f"{summaries}/%p.json", **SETTINGS | settings | dict(args.set))
        result = one(writer, form, folder, env, args, compute, digested=True)
        (summary,) = (json.loads(path.read_text()) for path in pathlib.Path(summaries).glob("*.json"))
    check(summary, f"{writer} {form}", form)
    counters = summary["counters"]
    result["asynchronous"] = counters["bytes_deferred"] / (counters["bytes_deferred"] + counters["bytes_sync"])
    return result


def median(results):
    return statistics.median(result["waits"] for result in results)


def rounds_of(places, args, folder):
    rows = {}
    native_env = harness.native_environment()
    for number in range(args.rounds):
        for writer, form, settings in HDF5:
            if writer not in args.writers or form not in args.forms:
                continue
            key = ", ".join([f"{writer} {form}", *(f"{name}={value}" for name, value in settings.items())])
            row = rows.setdefault(key, {name: [] for name in ("native", "tidelane", "native_computing", "tidelane_computing")})
            row["native"].append(one(writer, form, folder, native_env, args, 0, digested=True))
            compute = row["native"][0]["total"] / args.steps
            row["tidelane"].append(with_tidelane(places, writer, form, settings, folder, args, 0))
            row["native_computing"].append(one(writer, form, folder, native_env, args, compute, digested=True))
            row["tidelane_computing"].append(with_tidelane(places, writer, form, settings, folder, args, compute))
            digests = {result["digest"] for results in row.values() for result in results}
            if len(digests) != 1:
                raise harness.DemoError(f"{key}: Tidelane wrote something else")
        for writer, form in OTHERS:
            if writer not in args.writers or form not in args.forms or importlib.util.find_spec(writer) is None:
                continue
            row = rows.setdefault(f"{writer} {form}", {"native": [], "native_computing": []})
            row["native"].append(one(writer, form, folder, native_env, args, 0))
            compute = rows["h5py gzip"]["native"][0]["total"] / args.steps if "h5py gzip" in rows else 0.2
            row["native_computing"].append(one(writer, form, folder, native_env, args, compute))
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
    return rows


def table(rows):
    yield "| program | size | waits, without computing | with Tidelane | ratio | waits, computing | with Tidelane | ratio | stored later |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for key, row in rows.items():
        cells = [key, f"{row['native'][0]['size'] / 1e6:.0f} MB"]
        for name in ("", "_computing"):
            native = median(row["native" + name])
            cells.append(f"{native:.3f} s")
            if "tidelane" in row:
                ours = median(row["tidelane" + name])
                cells += [f"{ours:.3f} s", f"{ours / native:.2f}"]
            else:
                cells += ["", ""]
        share = [result["asynchronous"] for result in row.get("tidelane_computing", ())]
        cells.append(f"{statistics.median(share):.0%}" if share else "")
        yield "| " + " | ".join(cells) + " |"


def put_into(page, rows):
    lines = "\n".join(table(rows))
    text = re.sub(r"(<!-- python -->\n).*?(<!-- /python -->)", lambda m: f"{m[1]}{lines}\n{m[2]}", page.read_text(), flags=re.DOTALL)
    page.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--folder", help="where to write; default: the system's temporary folder")
    parser.add_argument("--writers", nargs="+", default=["h5py", "xarray", "pandas", "zarr", "tensorstore"])
    parser.add_argument("--forms", nargs="+", default=["plain", "gzip", "fastest"])
    parser.add_argument("--set", nargs="+", action="extend", default=[], type=lambda text: tuple(text.split("=", 1)), metavar="NAME=VALUE", help="a setting of Tidelane's")
    parser.add_argument("--json", type=pathlib.Path, help="every round")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="PAGE", help="measure nothing: put the table of --json into this page")
    args = parser.parse_args()
    if args.markdown:
        put_into(args.markdown, json.loads(args.json.read_text()))
        return
    places = places_of_build()
    with tempfile.TemporaryDirectory(prefix="python-bench.", dir=args.folder) as folder:
        rows = rounds_of(places, args, folder)
    for row in rows.values():
        for results in row.values():
            for result in results:
                result.pop("digest", None)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    print(*table(rows), sep="\n")


if __name__ == "__main__":
    main()
