#!/usr/bin/env python3
"""What the plugin says at the end of real programs: the JSON is what docs/summary.schema.json promises, keys that scripts
rely on agree with each other, and a summary that cannot be written is one clear line and nothing else.
"""

import importlib.util
import json
import pathlib
import sys
import tempfile

import client

REPO = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-B", pathlib.Path(__file__).resolve().parent / "h5py_program.py"]
WAYS = [
    ("loop", {}),
    ("loop", {"TIDELANE_CLOSE": "deferred", "TIDELANE_FLUSH": "deferred"}),
    ("loop", {"TIDELANE_MODE": "sync"}),
    ("loop", {"TIDELANE_ARENA": "1M", "TIDELANE_GAP": "0"}),
    ("swmr", {}),
    ("core", {}),
    ("virtual", {"HDF5_USE_FILE_LOCKING": "FALSE"}),
]


def schema():
    return json.loads((REPO / "docs" / "summary.schema.json").read_text())


def run(name, scratch, settings):
    folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    done, summary = client.run_plugin([*PROGRAM, name, folder], scratch, settings=settings)
    client.require(done.rc == 0, f"exit status {done.rc}\n{done.output[-3000:]}")
    return summary


def judge(summary, settings):
    """The same facts in two places must be the same."""
    counters, written, waits = summary["counters"], summary["written"], summary["waits"]
    client.require(written["asynchronous"]["bytes"] == counters["bytes_deferred"], "asynchronous bytes differ")
    client.require(written["synchronous"]["bytes"] == counters["bytes_sync"], "synchronous bytes differ")
    given = {reason["reason"]: reason for reason in written["synchronous"]["reasons"]}
    met = {reason for reason, count in summary["fallbacks"].items() if count}
    client.require(given.keys() == met, f"reasons {given.keys()}, fallbacks {met}")
    explained = sum(reason["bytes"] for reason in given.values())
    client.require(explained == counters["bytes_sync"], f"{counters['bytes_sync']} bytes synchronous, {explained} explained")
    for where, wait in waits.items():
        client.require(wait["times"] == counters[f"waits_{where}"], f"waits for {where} differ")
        client.require(wait["seconds"] <= summary["run_seconds"], f"waits for {where} are longer than the run")
    overlap = summary["overlap"]
    client.require(overlap["hidden_seconds"] <= overlap["storage_seconds"] <= summary["run_seconds"], f"{overlap}")
    busy = counters["lane_busy_ns"] / 1e9
    client.require(overlap["storage_seconds"] <= busy * 1.001, f"lanes were busy {busy} s, storage {overlap}")
    client.require((overlap["percent"] is None) == (busy == 0), f"lanes were busy {busy} s, {overlap}")
    values = {setting["name"]: setting for setting in summary["settings"]}
    for variable in settings:
        if variable.startswith("TIDELANE_"):
            setting = values[variable.removeprefix("TIDELANE_").lower()]
            client.require(setting["origin"] == variable, f"{variable} is said to come from {setting['origin']}")


def judge_ways(scratch):
    import jsonschema

    validator = jsonschema.Draft202012Validator(schema())
    validator.check_schema(validator.schema)
    for name, settings in WAYS:
        summary = run(name, scratch, settings)
        mistakes = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(summary)]
        client.require(not mistakes, f"{name} {settings}: not as the schema says:\n" + "\n".join(mistakes))
        judge(summary, settings)
        overlap = summary["overlap"]["percent"]
        print(
            f"{name:8} {summary['counters']['bytes_deferred']:9} deferred {summary['counters']['bytes_sync']:9} sync "
            f"{'-' if overlap is None else round(overlap):>4} % hidden  {settings}",
            flush=True,
        )
    broken = run("core", scratch, {})
    broken["counters"]["unheard_of"] = 1
    client.require(not validator.is_valid(broken), "the schema does not notice an unknown key")


def said(scratch, where):
    env = client.native_environment()
    env |= {"HDF5_PLUGIN_PATH": str(client.plugin_dir()), "HDF5_VOL_CONNECTOR": "tidelane", "TIDELANE_SUMMARY": where}
    folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    done = client.run([*PROGRAM, "virtual", folder], env, scratch)
    client.require(done.rc == 0, f"exit status {done.rc} with TIDELANE_SUMMARY={where}\n{done.output[-3000:]}")
    return [line for line in done.output.splitlines() if not line.startswith("[")]  # what the program prints


def judge_places(scratch):
    lines = said(scratch, "1")
    client.require(lines[0].startswith("tidelane ") and "  asynchronous " in lines[1], f"no table: {lines}")
    client.require(len(lines) < 20, f"the table is not short: {len(lines)} lines")
    for where, why in [("/nonexistent/summary.json", "No such file or directory"), (str(scratch), "Is a directory")]:
        lines = said(scratch, where)
        client.require(len(lines) == 1, f"one line was expected: {lines}")
        client.require(
            lines[0].startswith("tidelane: TIDELANE_SUMMARY: ") and where in lines[0] and why in lines[0], lines[0]
        )
        print(lines[0], flush=True)


def main():
    for module in ("h5py", "jsonschema"):
        if importlib.util.find_spec(module) is None:
            print(f"skipped: this Python has no {module} (`make setup-python` installs it)")
            sys.exit(client.SKIPPED)
    with tempfile.TemporaryDirectory(prefix="summary.") as scratch:
        judge_ways(pathlib.Path(scratch))
        judge_places(pathlib.Path(scratch))


if __name__ == "__main__":
    client.main_of(main)
