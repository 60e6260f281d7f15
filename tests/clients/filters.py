#!/usr/bin/env python3
"""Filters that are not HDF5's own (LZF, LZ4, zstd, bitshuffle, Blosc, Blosc2), from the wheels of h5py and hdf5plugin.

What lanes decode and encode must be what HDF5 reads natively, wherever the filter comes from: registered by Python, or found by
HDF5 in HDF5_PLUGIN_PATH. Each chunk must have been decoded by us, some of them by lanes, and encoded, but for Blosc2's. A damaged chunk and a filter that is not
there give native's error, and are counted.

Needs TIDELANE_TEST_PLUGIN_DIR, and h5py and hdf5plugin in this Python.
"""

import importlib.util
import pathlib
import sys
import tempfile

import client

PROGRAM = pathlib.Path(__file__).resolve().parent / "filters_program.py"
FILTERS, LINES, CHUNKS = 16, 36, 7 * 8  # datasets of either shape have so many chunks
LZF, BLOSC2 = 2, 2  # of these


def command(what, path):
    return [sys.executable, "-B", PROGRAM, what, path]


def natively(what, path, plugins=""):
    env = {**client.native_environment(), **({"HDF5_PLUGIN_PATH": str(plugins)} if plugins else {})}
    done = client.run(command(what, path), env, path.parent)
    client.require(done.rc == 0, f"{what} fails natively:\n{done.output[-3000:]}")
    return done.output


def compare(what, path, expected, settings=None, plugins=""):
    """Runs it under the plugin; what it prints must be `expected`. Returns the summary."""
    ours = client.plugin_dir()
    done, summary = client.run_plugin(
        command(what, path), path.parent, settings=settings, plugins=f"{ours}:{plugins}" if plugins else ours
    )
    client.require(done.rc == 0, f"{what} {settings}: exit status {done.rc}\n{done.output[-3000:]}")
    differing = [pair for pair in zip(expected.splitlines(), done.output.splitlines()) if pair[0] != pair[1]]
    client.require(done.output == expected, f"{what} {settings}: natively and under the plugin:\n{differing[:3]}")
    return summary


def decoded(summary):
    return summary["counters"]["chunks_by_callers"] + summary["counters"]["chunks_by_lanes"]


def expect_decoded(way, summary, datasets):
    expected = datasets * (LINES + CHUNKS)
    by_lanes, fallbacks = summary["counters"]["chunks_by_lanes"], summary["fallbacks"]
    client.require(decoded(summary) == expected, f"{way}: {decoded(summary)} of {expected} chunks decoded; {fallbacks}")
    client.require(by_lanes > 0, f"{way}: no lane decoded a chunk")
    client.require(fallbacks["read_filter"] == 2 * (FILTERS - datasets), f"{way}: {fallbacks}")
    print(f"{way:20} {decoded(summary):5} chunks, {by_lanes} by lanes")


def whole_files(folder, wheel):
    path = folder / "native.h5"
    natively("write", path)
    expected = natively("read", path)
    for way, settings in {"as it comes": {}, "four lanes": {"TIDELANE_LANES": "4"}}.items():
        expect_decoded(way, compare("read", path, expected, settings), FILTERS)
    expect_decoded("found by HDF5", compare("read_plain", path, natively("read_plain", path, wheel), plugins=wheel), FILTERS)
    expect_decoded("not installed", compare("read_plain", path, natively("read_plain", path, client.plugin_dir())), LZF)
    blosc = compare("read", path, expected, {"BLOSC_CLEVEL": "1", "BLOSC_NTHREADS": "2"})
    expect_decoded("Blosc's own settings", blosc, FILTERS - 7)
    off = compare("read", path, expected, {"TIDELANE_PARALLEL_READS": "off"})
    client.require(decoded(off) == 0, "chunks decoded, though it was turned off")
    return expected


def written(folder, expected):
    for way, chunks in {"off": 0, "on": (FILTERS - BLOSC2) * (LINES + CHUNKS)}.items():
        path = folder / f"ours_{way}.h5"
        summary = compare("write", path, "", {"TIDELANE_MODE": "async", "TIDELANE_PARALLEL_WRITES": way})
        client.require(natively("read", path) == expected, f"{way}: what was written reads otherwise natively")
        counters = summary["counters"]
        filtered = counters["chunks_filtered_by_lanes"] + counters["chunks_filtered_by_caller"]
        client.require(filtered == chunks, f"{way}: {filtered} of {chunks} chunks filtered; {summary['fallbacks']}")
        client.require(counters["bytes_deferred"] > 0, f"{way}: nothing was deferred")
        print(f"{'writing, ' + way:20} {filtered:5} chunks, {counters['chunks_filtered_by_lanes']} by lanes")


def damaged(folder):
    path = folder / "native.h5"
    natively("damage", path)
    expected = natively("read_damaged", path)
    failures = expected.count("filter returned failure")
    client.require(failures >= FILTERS, f"only {failures} datasets are damaged:\n{expected}")
    summary = compare("read_damaged", path, expected)
    counted = summary["fallbacks"]["read_failed"]
    client.require(counted >= failures, f"{counted} of {failures} failures counted")
    print(f"{'damaged':20} {failures} datasets, {counted} reads given to HDF5")


def main():
    wheel = importlib.util.find_spec("hdf5plugin")
    if importlib.util.find_spec("h5py") is None or wheel is None:
        print("skipped: this Python has no h5py or no hdf5plugin (`make setup-python` installs them)")
        sys.exit(client.SKIPPED)
    with tempfile.TemporaryDirectory(prefix="filters.") as scratch:
        folder = pathlib.Path(scratch)
        expected = whole_files(folder, pathlib.Path(wheel.origin).parent / "plugins")
        written(folder, expected)
        damaged(folder)


if __name__ == "__main__":
    client.main_of(main)
