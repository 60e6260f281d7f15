#!/usr/bin/env python3
"""A stock h5py wheel (with the HDF5 inside it) under the plugin: everyday programs read and write what they do natively.

Each program of h5py_program.py runs natively and in several ways under the plugin. What it printed and what is in its files,
read natively, must be equal; bytes must have been deferred; what runs natively must have been counted with its reason.

Needs TIDELANE_TEST_PLUGIN_DIR, and h5py in this Python.
"""

import dataclasses
import importlib.util
import json
import pathlib
import sys
import tempfile

import client

HERE = pathlib.Path(__file__).resolve().parent
WAYS = {
    "wait": ("tidelane", {}),
    "deferred": ("tidelane", {"TIDELANE_CLOSE": "deferred", "TIDELANE_FLUSH": "deferred"}),
    "small arena": ("tidelane", {"TIDELANE_CLOSE": "deferred", "TIDELANE_FLUSH": "deferred", "TIDELANE_ARENA": "1M"}),
    "async": ("async under_vol=0;under_info={}", {"TIDELANE_CLOSE": "deferred", "TIDELANE_LINGER": "50000"}),
}


@dataclasses.dataclass
class Expected:
    deferred: int  # bytes, at least
    fallback: str = ""  # the reason that must have been counted
    chunks: int = 0  # filtered by us, at least


PROGRAMS = {
    "loop": Expected(3 << 20),
    "points": Expected(128 << 10),
    "overwritten": Expected(800_000, chunks=4 * 12),
    "text": Expected(1_000),
    "virtual": Expected(3 << 10),
    "swmr": Expected(0, "swmr_write"),
    "core": Expected(0, "driver"),
    "left_open": Expected(1 << 20),
    "fork": Expected(1 << 20),
}


def command(name, folder):
    return [sys.executable, "-B", HERE / "h5py_program.py", name, folder]


def contents(folder, scratch):
    done = client.run_native(command("digest", folder), scratch)
    client.require(done.rc == 0, f"what was written cannot be read natively:\n{done.output[-3000:]}")
    return json.loads(done.output)


def natively(name, scratch):
    folder = scratch / name / "native"
    folder.mkdir(parents=True)
    done = client.run_native(command(name, folder), scratch)
    client.require(done.rc == 0, f"{name} fails natively:\n{done.output[-3000:]}")
    return done, contents(folder, scratch)


def judge(expected, summary):
    counters = summary["counters"]
    client.require(counters["errors"] == 0, f"the plugin counted {counters['errors']} errors")
    client.require(
        counters["bytes_deferred"] >= expected.deferred,
        f"{counters['bytes_deferred']} bytes deferred, expected {expected.deferred}; {summary['fallbacks']}",
    )
    filtered = counters["chunks_filtered_by_lanes"] + counters["chunks_filtered_by_caller"]
    client.require(filtered >= expected.chunks, f"{filtered} chunks filtered, expected {expected.chunks}")
    if expected.fallback:
        client.require(summary["fallbacks"][expected.fallback] > 0, f"{expected.fallback} not among {summary['fallbacks']}")


def compare(name, way, native, scratch):
    native_done, native_contents = native
    connector, settings = WAYS[way]
    # Everything is deferred, as quick as the disk here may be; what is stored is compared, and comes to native's bytes.
    settings = {"TIDELANE_MODE": "async", "TIDELANE_DEFLATE": "zlib", **settings}
    folder = scratch / name / way.replace(" ", "_")
    folder.mkdir()
    done, summary = client.run_plugin(command(name, folder), scratch, connector, settings)
    client.require(done.rc == 0, f"exit status {done.rc}\n{done.output[-3000:]}")
    client.require(done.output == native_done.output, f"it printed\n{done.output}natively\n{native_done.output}")
    found = contents(folder, scratch)
    client.require(found.keys() == native_contents.keys(), f"objects differ: {found.keys() ^ native_contents.keys()}")
    for item, about in native_contents.items():
        client.require(found[item] == about, f"{item}: natively {about}, under the plugin {found[item]}")
    judge(PROGRAMS[name], summary)
    closes = summary["counters"]["closes_deferred"]
    client.require(closes > 0 or name != "loop" or way == "wait", "no close was deferred")
    return summary


def main():
    if importlib.util.find_spec("h5py") is None:
        print("skipped: this Python has no h5py (`make setup-python` installs it)")
        sys.exit(client.SKIPPED)
    print(f"{'program':10} {'way':12} objects    deferred        sync  fallbacks")
    with tempfile.TemporaryDirectory(prefix="h5py.") as scratch:
        scratch = pathlib.Path(scratch)
        for name in PROGRAMS:
            native = natively(name, scratch)
            for way in WAYS:
                try:
                    summary = compare(name, way, native, scratch)
                except client.ClientError as error:
                    raise client.ClientError(f"{name} ({way}): {error}") from None
                reasons = {reason: count for reason, count in summary["fallbacks"].items() if count}
                print(
                    f"{name:10} {way:12} {len(native[1]):7} {summary['counters']['bytes_deferred']:11} "
                    f"{summary['counters']['bytes_sync']:11}  {reasons or ''}",
                    flush=True,
                )


if __name__ == "__main__":
    client.main_of(main)
