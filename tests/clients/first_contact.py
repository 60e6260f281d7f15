#!/usr/bin/env python3
"""What a person sees who makes the usual mistakes with HDF5's own tools: a typo in a variable, a plugin path that is wrong, a
summary that cannot be written, files and folders that are missing or read-only.

Our mistakes are one line that names them; everybody else's are told in native's words, byte by byte. Nothing is silent, and
nothing crashes.

Needs TIDELANE_TEST_PLUGIN_DIR and TIDELANE_HDF5_ROOT, and h5py (to make the files, natively).
"""

import importlib.util
import os
import pathlib
import re
import shutil
import sys
import tempfile

import client

TYPOS = [
    ({"TIDELANE_CLOZE": "deferred"}, "TIDELANE_CLOSE"),
    ({"TIDELANE_CLOSE": "defered"}, "the nearest is deferred"),
    ({"TIDELANE_LANES": "many"}, "TIDELANE_LANES"),
    ({"TIDELANE_ARENA": "64 apples"}, "TIDELANE_ARENA"),
    ({"TIDELANE_CONFIG": "/nowhere/run.conf"}, "/nowhere/run.conf"),
    ({"HDF5_VOL_CONNECTOR": "tidelane close=defered"}, "the nearest is deferred"),
    ({"HDF5_VOL_CONNECTOR": "async under_vol=0;under_info={};close=defered"}, "the nearest is deferred"),
]
MISSING = [
    ["h5dump", "missing.h5"],
    ["h5ls", "missing.h5"],
    ["h5stat", "missing.h5"],
    ["h5diff", "missing.h5", "objects.h5"],
    ["h5repack", "missing.h5", "out.h5"],
    ["h5copy", "-i", "missing.h5", "-o", "out.h5", "-s", "/groups", "-d", "/groups"],
    ["h5repack", "objects.h5", "no_such_folder/out.h5"],
]
READ_ONLY = [
    ["h5dump", "-H", "locked/objects.h5"],
    ["h5ls", "-r", "locked/objects.h5"],
    ["h5repack", "objects.h5", "locked/out.h5"],
    ["h5repack", "objects.h5", "locked/objects.h5"],
    ["h5copy", "-i", "objects.h5", "-o", "locked/objects.h5", "-s", "/groups", "-d", "/again"],
    ["h5mkgrp", "locked/objects.h5", "/new"],
]


def words(command):
    return [client.hdf5_program(command[0]), *command[1:]]


def run_with(command, folder, settings):
    """Like client.run_plugin, for runs that end before they could leave a summary."""
    env = client.native_environment()
    env.update({"HDF5_PLUGIN_PATH": str(client.plugin_dir()), "HDF5_VOL_CONNECTOR": "tidelane", **settings})
    done = client.run(command, env, folder)
    client.require(done.rc >= 0, f"{settings}: {command} ended with signal {-done.rc}\n{done.output[-2000:]}")
    return done


def typos(folder):
    for settings, named in TYPOS:
        done = run_with(words(["h5repack", "objects.h5", "out.h5"]), folder, settings)
        ours = [line for line in done.output.splitlines() if "tidelane" in line]
        client.require(done.rc != 0, f"{settings}: h5repack went on")
        client.require(not (folder / "out.h5").exists(), f"{settings}: a file was written all the same")
        client.require(len(ours) == 1 and named in ours[0], f"{settings}: not one line with {named!r}\n{done.output}")
        client.require(len(done.output.splitlines()) <= 3, f"{settings}: more than a person reads\n{done.output}")
        print(f"  {ours[0]}", flush=True)


def wrong_plugin_path(folder):
    """HDF5 speaks, not we: we are not there. It must not be silent."""
    done = run_with(words(["h5dump", "-H", "objects.h5"]), folder, {"HDF5_PLUGIN_PATH": "/nowhere"})
    client.require("HDF5_PLUGIN_PATH" in done.output or "/nowhere" in done.output, f"not a word\n{done.output[:3000]}")
    print("  a wrong HDF5_PLUGIN_PATH: HDF5 says so", flush=True)


def unwritable_summary(folder):
    native = client.run_native(words(["h5dump", "objects.h5"]), folder)
    for where in ("/nowhere/summary.json", str(folder)):
        done = run_with(words(["h5dump", "objects.h5"]), folder, {"TIDELANE_SUMMARY": where})
        ours = re.findall("tidelane: .*\n", done.output)  # amid a line of what the tool had not flushed yet
        client.require(done.rc == native.rc, f"{where}: status {done.rc}")
        client.require(len(ours) == 1 and "TIDELANE_SUMMARY" in ours[0] and where in ours[0], f"{where}: {ours}")
        client.require(done.output.replace(ours[0], "") == native.output, f"{where}: the tool's own output is another")
        print(f"  {ours[0].rstrip()}", flush=True)


def as_native(commands, folder, wrap):
    for command in commands:
        native = client.run_native(wrap(words(command)), folder)
        done = run_with(wrap(words(command)), folder, {})
        what = " ".join(command)
        client.require(native.output or native.rc == 0, f"{what}: says nothing natively")
        client.require(done.rc == native.rc, f"{what}: status {done.rc}, natively {native.rc}\n{done.output[-2000:]}")
        client.require(done.output == native.output, f"{what}\nnatively:\n{native.output}\nunder the plugin:\n{done.output}")
        print(f"  status {native.rc}, {len(native.output):6} characters  {what}", flush=True)


def read_only_wrapper(folder):
    """How to run a command that may not write under locked/: None where this machine knows no way."""
    locked = folder / "locked"
    locked.mkdir()
    shutil.copy(folder / "objects.h5", locked)
    if os.geteuid() != 0:
        (locked / "objects.h5").chmod(0o444)
        locked.chmod(0o555)
        return lambda command: command
    # Permissions are nothing to root: a mount of the process's own is.
    script = 'mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'

    def wrap(command):
        return ["unshare", "-m", "sh", "-c", script, str(locked), *command]

    return wrap if client.run_native(wrap(["true"]), folder).rc == 0 else None


def main():
    if importlib.util.find_spec("h5py") is None:
        print("skipped: this Python has no h5py to make the files with (`make setup-python` installs it)")
        sys.exit(client.SKIPPED)
    with tempfile.TemporaryDirectory(prefix="first_contact.") as scratch:
        folder = pathlib.Path(scratch)
        maker = pathlib.Path(__file__).with_name("make_files.py")
        made = client.run_native([sys.executable, "-B", maker, folder], folder)
        client.require(made.rc == 0, f"the files could not be made\n{made.output}")
        print("mistakes with our settings")
        typos(folder)
        wrong_plugin_path(folder)
        unwritable_summary(folder)
        print("what is not there")
        as_native(MISSING, folder, lambda command: command)
        print("what may not be written")
        wrap = read_only_wrapper(folder)
        if wrap is None:
            print("  left out: root, and mount namespaces are not allowed here")
        else:
            as_native(READ_ONLY, folder, wrap)
        (folder / "locked").chmod(0o755)


if __name__ == "__main__":
    client.main_of(main)
