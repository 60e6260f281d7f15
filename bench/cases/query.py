"""Queries: the elements that fulfil a condition, by Tidelane and by what people use instead.

Each way of asking (bench/query/ways.py) is a process that stays, so that nothing but the asking is measured; every answer is
compared with NumPy's. Ways whose packages are missing are left out, and named.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys

from comparison import TIDELANE, Case, Derived, Metric, Side, TidelaneSide, interleave
from harness import REPO, DemoError, native_environment, run, tidelane_environment

HERE = REPO / "bench" / "query"
# Packages that nothing else here needs have an environment of their own: `make bench-query` makes it.
OTHERS = REPO / "build" / "bench-query-venv" / "bin" / "python"
WHOLE, BLOCKS, POINTS, MEMMAP = "h5py, whole", "h5py, by blocks", "H5Dread, points", "NumPy memmap"
KERNEL, INDEXED = "PyTables, in-kernel", "PyTables, indexed"
DUCKDB, FLOOR = "DuckDB, Parquet", "no comparing"
# Hits that take minutes where there are more: points that HDF5 is asked for, rows that PyTables goes through one by one.
MOST_SLOW = 2_000_000

# Name of the side, class in ways.py, form of the data, packages.
WAYS = [
    (TIDELANE, "Tidelane", "hdf5", ["h5py"]),
    (WHOLE, "H5pyWhole", "hdf5", ["h5py"]),
    (BLOCKS, "H5pyBlocks", "hdf5", ["h5py"]),
    (POINTS, "H5pyPoints", "hdf5", ["h5py"]),
    (MEMMAP, "Memmap", "hdf5", ["h5py"]),
    (KERNEL, "PyTables", "pytables", ["tables"]),
    (INDEXED, "PyTablesIndexed", "pytables", ["tables"]),
    (DUCKDB, "DuckDB", "parquet", ["duckdb", "pyarrow"]),
    ("zarr", "Zarr", "zarr", ["zarr"]),
    (FLOOR, "Pread", "hdf5", ["h5py"]),
]
ASKED = {"count": "count", "where": "positions", "read": "values"}


def interpreter_of(form):
    return str(OTHERS) if form in ("parquet", "zarr") else sys.executable


def versions_of(form, packages):
    """{package: version}, or None where one is missing."""
    code = "import sys, importlib.metadata as m; print(*(m.version(p) for p in sys.argv[1:]))"
    with contextlib.suppress(OSError):
        done = subprocess.run([interpreter_of(form), "-c", code, *packages], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return dict(zip(packages, done.stdout.split()))
    return None


def available():
    return [way for way in WAYS if versions_of(*way[2:])]


class Worker(Side):
    """A side whose process stays while a data set is asked."""

    def __init__(self, places, name, way, form, folder):
        super().__init__(name)
        env = tidelane_environment(places) if way in ("Tidelane", "Decoding") else native_environment()
        env["PYTHONPATH"] = str(REPO / "python")
        command = [interpreter_of(form), "-B", "-W", "ignore", str(HERE / "worker.py"), way, folder]
        self.process = subprocess.Popen(command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, question):
        try:
            print(json.dumps(question), file=self.process.stdin, flush=True)
            return json.loads(self.process.stdout.readline())
        except (OSError, ValueError):
            raise DemoError(f"{self.name} did not answer {question}") from None

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def require_right(report, wanted, what):
    if "digest" in report and report["digest"] != wanted:
        raise DemoError(f"{what}: found {report['digest']}, NumPy finds {wanted}")


class Asked:
    """A data set with its files and the ways of asking for what is in it."""

    def __init__(self, bench, folder, name, data, ways):
        self.data, self.workers = data, {}
        scale = str(1000 if bench.tiny else bench.scale)
        self.rows = data.rows // int(scale)
        self.label = f"{data.label}, {self.rows / 1e6:g}M"
        for form, python in {way[2]: interpreter_of(way[2]) for way in ways}.items():
            run([python, "-B", "-W", "ignore", str(HERE / "data.py"), form, folder, name, scale], native_environment(), timeout=600)
        self.expected = json.loads(pathlib.Path(folder, "expected.json").read_text())
        for side, way, form, _ in ways:
            if data.gzip and side == FLOOR:
                way = "Decoding"
            if (side == MEMMAP and data.gzip) or (side == INDEXED and not data.indexed):
                continue
            self.workers[side] = Worker(bench.places, side, way, form, folder)

    def question(self, side, ask, fraction):
        """None: the way has no such answer, or one that would take minutes."""
        slow = side in (POINTS, KERNEL, INDEXED) and fraction * self.rows > MOST_SLOW
        if side not in self.workers or slow or (side == POINTS and ask != "read"):
            return None
        return {"ask": "floor" if side == FLOOR else ask, "terms": self.data.terms(fraction)}

    def rounds(self, sides, rounds, ask, fraction):
        def one_run(side, _):
            question = self.question(side.name, ask, fraction)
            if question is None:
                return {}
            report = self.workers[side.name].ask(question)
            require_right(report, self.expected[str(fraction)][ask], f"{self.label}, {ASKED[ask]}, {fraction:.2%}, {side.name}")
            return report

        def after(_, reports):
            ours = reports[TIDELANE]
            ours["asked"] = ask
            for key in ("cpu", "wall"):
                ours[f"{key}_of"] = {name: ours[key] / max(r[key], 1e-6) for name, r in reports.items() if r}
            ours["decodes"] = self.data.gzip

        return interleave(sides, rounds, one_run, after_round=after)

    def close(self):
        for worker in self.workers.values():
            worker.close()


def data_sets(bench):
    """By name; bench/query is no package of the benchmarks': its programs run elsewhere."""
    sys.path.insert(0, str(HERE))
    try:
        from data import DATA
    finally:
        sys.path.remove(str(HERE))
    wanted = bench.data or (("and",) if bench.tiny else DATA)
    if unknown := [name for name in wanted if name not in DATA]:
        raise DemoError(f"no data set is called {unknown[0]}: {', '.join(DATA)}")
    return {name: DATA[name] for name in wanted}


def query_rows(bench):
    ways = available()
    for side, _, form, packages in WAYS:
        if not versions_of(form, packages):
            bench.progress(f"{QUERY.key}: {side} is skipped, missing in {interpreter_of(form)}: {' or '.join(packages)}")
    if not versions_of("hdf5", ["h5py"]):
        return
    sides = [Side(way[0]) for way in ways]
    for storage in bench.storages(QUERY):
        for name, data in data_sets(bench).items():
            bench.progress(f"{QUERY.key}: {data.label}: files")
            asked = Asked(bench, storage.fresh("query"), name, data, ways)
            try:
                for ask, words in ASKED.items():
                    for fraction in data.fractions:
                        bench.progress(f"{QUERY.key}: {asked.label}: {words}, {fraction:.2%}")
                        labels = {"data": asked.label, "asked for": words, "hits": f"{100 * fraction:g} %"}
                        yield labels, asked.rounds(sides, bench.rounds, ask, fraction), ()
            finally:
                asked.close()
                storage.remove("query")


def share(key, side, *asks, decodes=None):
    """Tidelane's part of what another way takes, where that is what was asked for."""

    def value(report):
        if report.get("asked") not in asks or (decodes is not None and report["decodes"] != decodes):
            return None
        return report[f"{key}_of"].get(side)

    return value


def notes(_):
    """What was compared, below the table."""
    found = {}
    for _, _, form, packages in WAYS:
        found |= versions_of(form, packages) or {}
    missing = [way[0] for way in WAYS if not versions_of(*way[2:])]
    text = "Versions: " + ", ".join(f"{name} {version}" for name, version in found.items()) + "."
    return text + (f" Left out, their packages are missing: {', '.join(missing)}." if missing else "")


QUERY = Case(
    key="query",
    title="Queries",
    text="Elements that fulfil a condition: how many there are, their positions, the values of the (first) column at them. *CPU* is that of the process"
    " with all its threads, user and system, for the asking alone, of data in memory; *no comparing*: the same bytes are copied by `pread` in pieces of"
    " 512 KiB into one buffer; with gzip, read by Tidelane into memory that is there already. *Of* a way: Tidelane's time divided by the way's.",
    metrics=[
        Metric("cpu", "CPU, ms", lambda r: 1e3 * r["cpu"] if r else None),
        Metric("wall", "wall, ms", lambda r: 1e3 * r["wall"] if r else None, shown="Tidelane"),
        Metric("of_whole", "CPU, of h5py's, whole", share("cpu", WHOLE, "count", decodes=False), "{:.2f}", "Tidelane", 0.7),
        Metric("of_blocks", "by blocks", share("cpu", BLOCKS, "count", decodes=False), "{:.2f}", "Tidelane", 0.7),
        Metric("of_memmap", "of NumPy's", share("cpu", MEMMAP, "count"), "{:.2f}", "Tidelane", 0.7),
        Metric("of_duckdb", "of DuckDB's", share("cpu", DUCKDB, "count"), "{:.2f}", "Tidelane", 0.2),
        Metric("of_points", "of H5Dread's with points", share("cpu", POINTS, "read"), "{:.3f}", "Tidelane", 0.333),
        Metric("of_decoding", "wall, of decoding alone", share("wall", FLOOR, "count", decodes=True), "{:.2f}", "Tidelane", 1.1),
    ],
    derived=[Derived("cpu_ratio", "CPU, times Tidelane's", "cpu", shown=False)],
    rows=query_rows,
    storages=("tmpfs",),
    notes=notes,
)


LATER_ROUNDS = 9  # at least: one is short
# Label, rows, arguments of bench/query_later.
LATER_DATA = [("float32, 400 MB", 100_000_000, ()), ("float32, gzip, 100 MB", 25_000_000, ("--gzip",))]


def later_rows(bench):
    """Both ways of asking compute for as long after each query as H5Qapply takes: what an event set is for."""
    at_once, later = TidelaneSide(bench.places, "H5Qapply"), TidelaneSide(bench.places)
    program = bench.places.program("query_later")
    for storage in bench.storages(LATER):
        for label, rows, kind in LATER_DATA:
            bench.progress(f"{LATER.key}, {storage.name}: {label}")
            folder, result = storage.fresh("query"), bench.scratch / "query_later.json"
            data = [program, f"--file={folder}/data.h5", f"--json={result}", f"--rows={rows // (1000 if bench.tiny else 1)}", *kind]
            run([*data, "--make"], native_environment(), timeout=300)
            hits = json.loads(result.read_text())["hits"]

            def asked(side, env, compute_us, data=data, result=result, hits=hits, label=label):
                run([*data, f"--compute-us={compute_us:.0f}", *(["--later"] if side is later else [])], env, timeout=300)
                report = json.loads(result.read_text())
                require_right({"digest": report["hits"]}, hits, f"{label}, {side.name}")
                return report

            with at_once.environment({}) as (env, _):
                compute_us = asked(at_once, env, 0)["visible_us"]

            def after(_, reports, label=label, tiny=bench.tiny):
                counters = reports[TIDELANE]["summary"]["counters"]
                if counters["reads_deferred"] == 0 and not tiny:
                    raise DemoError(f"{label}: no lane looked at anything")

            rounds = 1 if bench.tiny else max(bench.rounds, LATER_ROUNDS)
            one_run = lambda side, env, compute_us=compute_us, asked=asked: asked(side, env, compute_us)  # noqa: E731
            yield {"data": label}, interleave([at_once, later], rounds, one_run, {}, after_round=after), ()
            storage.remove("query")


LATER = Case(
    key="query_later",
    title="Queries with an event set",
    text="A query over a dataset in memory (one element of 20,000 is a hit), after which the program computes on one core for as long as H5Qapply takes. *Waits*: in the call, and for the"
    " answer after it has computed; Tidelane is H5Qapply_async. *CPU* is that of the process, its computing included.",
    metrics=[
        Metric("visible_us", "waits, ms", lambda r: r["visible_us"] / 1e3),
        Metric("call_us", "of it in the call, ms", lambda r: r["call_us"] / 1e3),
        Metric("cpu", "CPU, ms", lambda r: r["process_cpu_us"] / 1e3),
    ],
    derived=[
        Derived("visible_ratio", "waits, ratio", "visible_us", format="{:.3f}"),
        Derived("cpu_ratio", "CPU, ratio", "cpu"),
    ],
    rows=later_rows,
    storages=("disk",),
)
