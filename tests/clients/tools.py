#!/usr/bin/env python3
"""HDF5's command line tools under the plugin: what they print and what they write is what they print and write natively.

Tools that read must print the same text, byte by byte. Tools that write must write files in which h5diff finds no difference
and of which h5dump prints the same text; most of what they wrote must have been deferred.

Needs TIDELANE_TEST_PLUGIN_DIR and TIDELANE_HDF5_ROOT, and h5py (to make the files, natively).
"""

import dataclasses
import importlib.util
import pathlib
import shutil
import sys
import tempfile

import client

# Everything is deferred, as quick as the disk here may be; and what is compressed comes to native's bytes.
ASYNC = {"TIDELANE_MODE": "async", "TIDELANE_DEFLATE": "zlib"}
DEFERRED = {**ASYNC, "TIDELANE_CLOSE": "deferred", "TIDELANE_FLUSH": "deferred"}
SMALL_ARENA = {**DEFERRED, "TIDELANE_ARENA": "1M"}
WAYS = {"wait": ASYNC, "deferred": DEFERRED, "small arena": SMALL_ARENA}
TOOLS = ("h5dump", "h5ls", "h5diff", "h5stat", "h5repack", "h5copy", "h5mkgrp")

READERS = [
    *(["h5dump", name] for name in ("objects.h5", "links.h5", "block.h5", "virtual.h5")),
    ["h5dump", "-p", "-H", "objects.h5"],
    ["h5dump", "-d", "/big/compressed", "-s", "10,20", "-c", "30,40", "objects.h5"],
    ["h5dump", "-B", "block.h5"],
    *(["h5ls", "-r", "-v", name] for name in ("objects.h5", "links.h5", "block.h5", "virtual.h5")),
    ["h5ls", "-r", "-v", "--follow-symlinks", "links.h5"],
    ["h5ls", "-d", "virtual.h5/all"],
    ["h5stat", "objects.h5"],
    ["h5stat", "block.h5"],
    ["h5diff", "-v", "objects.h5", "changed.h5"],
    ["h5diff", "-v", "block.h5", "virtual.h5"],
    ["h5diff", "-v", "--follow-symlinks", "links.h5", "links.h5"],
    ["h5dump", "no_such_file.h5"],
]


@dataclasses.dataclass
class Writer:
    """A tool that writes `out.h5`; `start` is the file that it changes, if it does not make a new one."""

    command: list
    deferred_share: float = 0.5  # of the size of out.h5
    start: str = ""


WRITERS = [
    Writer(["h5repack", "objects.h5", "out.h5"]),
    Writer(["h5repack", "-f", "GZIP=1", "-l", "CHUNK=64x128", "objects.h5", "out.h5"]),
    Writer(["h5repack", "-f", "NONE", "-l", "CONTI", "objects.h5", "out.h5"]),
    Writer(["h5repack", "-L", "objects.h5", "out.h5"]),
    Writer(["h5repack", "-S", "PAGE", "-G", "4096", "objects.h5", "out.h5"]),
    Writer(["h5repack", "--merge", "links.h5", "out.h5"]),
    Writer(["h5repack", "block.h5", "out.h5"]),
    Writer(["h5copy", "-i", "objects.h5", "-o", "out.h5", "-s", "/groups", "-d", "/copy"]),
    Writer(["h5copy", "-p", "-f", "ref", "-i", "objects.h5", "-o", "out.h5", "-s", "/groups/g0002", "-d", "/deep/er"]),
    Writer(["h5copy", "-f", "ext", "-i", "links.h5", "-o", "out.h5", "-s", "/far", "-d", "/here"]),
    Writer(["h5copy", "-i", "block.h5", "-o", "out.h5", "-s", "/packed", "-d", "/packed"], 0.001, "objects.h5"),
    Writer(["h5mkgrp", "-p", "out.h5", "/a/b/c", "/d/e"]),
]


def words(command):
    return [client.hdf5_program(command[0]), *command[1:]]


def reading(folder):
    print("tools that read")
    for command in READERS:
        native = client.run_native(words(command), folder)
        readable = "no_such_file.h5" not in command
        client.require(not readable or native.output, f"{command} printed nothing natively")
        for name, settings in WAYS.items():
            done, summary = client.run_plugin(words(command), folder, settings=settings)
            what = f"{' '.join(command)} ({name})"
            client.require(done.rc == native.rc, f"{what}: status {done.rc}, natively {native.rc}\n{done.output[-2000:]}")
            client.require(done.output == native.output, f"{what}: prints otherwise\n{first_difference(native, done)}")
            opened = summary["counters"]["files_opened"]
            client.require(opened > 0 or not readable, f"{what}: no file was opened through the plugin")
            client.require(summary["counters"]["errors"] == 0, f"{what}: errors counted")
        print(f"  {len(native.output):9} characters, status {native.rc}  {' '.join(command)}", flush=True)


def first_difference(native, done):
    for number, (one, other) in enumerate(zip(native.output.splitlines(), done.output.splitlines()), 1):
        if one != other:
            return f"line {number}: natively {one!r}, under the plugin {other!r}"
    return f"{len(native.output)} characters natively, {len(done.output)} under the plugin"


def prepare(writer, files, scratch, side):
    """A folder of its own for each run, with all files in it under the names they have natively."""
    folder = scratch / side
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(files, folder)
    if writer.start:
        shutil.copy(folder / writer.start, folder / "out.h5")
    return folder


def dump(folder):
    return client.run_native(words(["h5dump", "out.h5"]), folder)


def same_file(native, native_dump, under, what):
    """No difference for h5diff, and the same text for h5dump (which sees attributes' order, links and types as well)."""
    diff = client.run_native([*words(["h5diff"]), native / "out.h5", under / "out.h5"], native)
    client.require(diff.rc == 0, f"{what}: h5diff finds a difference\n{diff.output[-2000:]}")
    under_dump = dump(under)
    client.require(native_dump.rc == under_dump.rc, f"{what}: h5dump ends with {under_dump.rc}, not {native_dump.rc}")
    same_text = native_dump.output == under_dump.output
    client.require(same_text, f"{what}: h5dump\n{first_difference(native_dump, under_dump)}")


def writing(files, scratch):
    print("tools that write")
    for writer in WRITERS:
        native_folder = prepare(writer, files, scratch, "native")
        native = client.run_native(words(writer.command), native_folder)
        client.require(native.rc == 0, f"{writer.command} fails natively\n{native.output[-2000:]}")
        native_dump = dump(native_folder)
        for name, settings in WAYS.items():
            what = f"{' '.join(writer.command)} ({name})"
            folder = prepare(writer, files, scratch, "plugin")
            done, summary = client.run_plugin(words(writer.command), folder, settings=settings)
            client.require(done.rc == 0, f"{what}: status {done.rc}\n{done.output[-2000:]}")
            client.require(done.output == native.output, f"{what}: prints otherwise\n{first_difference(native, done)}")
            same_file(native_folder, native_dump, folder, what)
            counters = summary["counters"]
            size = (folder / "out.h5").stat().st_size
            client.require(counters["errors"] == 0, f"{what}: errors counted")
            client.require(
                counters["bytes_deferred"] >= writer.deferred_share * size,
                f"{what}: {counters['bytes_deferred']} of {size} bytes were deferred; {summary['fallbacks']}",
            )
        print(f"  {size:9} bytes, {counters['bytes_deferred']:9} deferred  {' '.join(writer.command)}", flush=True)


def main():
    if importlib.util.find_spec("h5py") is None:
        print("skipped: this Python has no h5py to make the files with (`make setup-python` installs it)")
        sys.exit(client.SKIPPED)
    for tool in TOOLS:
        client.hdf5_program(tool)
    with tempfile.TemporaryDirectory(prefix="tools.") as scratch:
        scratch = pathlib.Path(scratch)
        files = scratch / "files"
        files.mkdir()
        maker = pathlib.Path(__file__).with_name("make_files.py")
        made = client.run_native([sys.executable, "-B", maker, files], scratch)
        client.require(made.rc == 0, f"the files could not be made\n{made.output}")
        reading(files)
        writing(files, scratch)


if __name__ == "__main__":
    client.main_of(main)
