#!/usr/bin/env python3
"""Runs one of HDF5's own test programs natively and under the plugin, and compares how they end and each named result.

    hdf5_tests.py PROGRAM [--modes default,async,...] [--native-if-needed] [--keep FOLDER]

With --native-if-needed a run under the plugin that ends without a failure is believed, to save the native one.

Needs TIDELANE_TEST_PLUGIN_DIR, TIDELANE_HDF5_ROOT and TIDELANE_HDF5_TESTS (what scripts/setup/hdf5-tests.sh made). Every run
has an empty folder of its own. A program or a named result that fails natively, too, is no failure. What differs by design
is in BY_DESIGN, with its reason; a line there that nothing needs any more is a failure, so that the table only shrinks.
"""

import argparse
import collections
import os
import pathlib
import re
import shutil
import tempfile

import client

MODES = {
    "default": {},
    "async": {"TIDELANE_MODE": "async"},
}
SECONDS = 500  # the longest take two minutes natively on a busy machine

# (program, named result): why it may end otherwise than natively.
BY_DESIGN = {
    ("vol", "Async VOL props"): "asserts that the connector in use says it is not asynchronous",
    ("select_io_dset", "H5Pget_no_selection_io_cause()"): "one case wants HDF5's sieve buffer, which our driver does without",
}

# Settings that a program needs to count what it counts natively, with the reason.
SETTINGS = {
    # Reading chunks past HDF5 begins with the question how the dataset was made, which loads its object header. The program
    # wants no more in the metadata cache than HDF5's own read takes.
    "cache_tagging": {"TIDELANE_PARALLEL_READS": "off"},
}

# What a program wants from its environment, as HDF5's own scripts give it.
ENVIRONMENT = {
    "external_env": {"HDF5_EXTFILE_PREFIX": "${ORIGIN}"},
    "vds_env": {"HDF5_VDS_PREFIX": "${ORIGIN}/tmp_vds_env"},
    "links_env": {"HDF5_EXT_PREFIX": ".:tmp_links_env"},
}
HALVES = {"flush1": "flush2"}  # the second looks at what the first, which ends without a close, has left
NEEDS_PLUGINS = ("filter_plugin", "vfd_plugin", "vol_plugin")

# One result: the words before it may run over several lines ("Testing", then what the library had to say).
NAMED = re.compile(r"^\s*Testing\s+(.+?)\s*?(PASSED|\*FAILED\*|-SKIP-)\s*$")
HEADING = re.compile(r"^Testing\s+-- (.+)$")


def named_results(output):
    """How often each named result ended how: {(name, result): count}."""
    found = collections.Counter()
    for line in output.splitlines():
        if named := NAMED.match(line):
            found[named[1], named[2]] += 1
        elif heading := HEADING.match(line):
            found[heading[1].strip(), "began"] += 1
    return found


class Tests:
    """The compiled programs, and the folder with the files they read."""

    def __init__(self):
        self.tree = pathlib.Path(os.environ.get("TIDELANE_HDF5_TESTS", "/nowhere"))
        source = self.tree / "source"
        self.source = pathlib.Path(source.read_text().strip()) if source.exists() else None

    def program(self, name):
        path = self.tree / "bin" / name
        if self.source is None or not path.exists():
            print(f"skipped: no {path} (scripts/setup/hdf5-tests.sh compiles it for an HDF5 that was built here)")
            raise SystemExit(client.SKIPPED)
        return path

    def prepare(self, name, folder):
        """What is to lie beside the program: HDF5's files are read there, or through $srcdir."""
        test = self.source / ("hl/test" if name.startswith("hl_") else "test")
        shutil.copytree(test / "testfiles", folder / "testfiles")
        reader = self.tree / "bin" / "accum_swmr_reader"
        if reader.exists():
            shutil.copy(reader, folder)
        # Prefixes of ${ORIGIN} mean the program's own folder, so each run has a copy.
        shutil.copy(self.program(name), folder)
        if name in HALVES:
            shutil.copy(self.program(HALVES[name]), folder)

    def settings(self, name, folder, plugins):
        settings = {"srcdir": str(folder), "HDF5_ALARM_SECONDS": "3600", **ENVIRONMENT.get(name, {})}
        folders = [plugins] if plugins else []
        if name in NEEDS_PLUGINS:
            folders.append(str(self.tree / "plugins"))
        if folders:
            settings["HDF5_PLUGIN_PATH"] = ":".join(folders)
        return settings


def run(tests, name, settings, plugins=None):
    """All halves of a program in one new folder: (exit statuses, output)."""
    with tempfile.TemporaryDirectory(prefix="hdf5.") as temporary:
        folder = pathlib.Path(temporary)
        tests.prepare(name, folder)
        statuses, output = [], ""
        for part in filter(None, (name, HALVES.get(name))):
            env = {**client.native_environment(), **tests.settings(name, folder, plugins), **settings}
            done = client.run([folder / part], env, folder, SECONDS)
            statuses.append(done.rc)
            output += done.output
        return statuses, output


def differences(name, native, under):
    """What ended worse under the plugin than natively, less what BY_DESIGN excuses."""
    wrong, used = [], set()
    for key in sorted(set(native) | set(under)):
        if native[key] == under[key]:
            continue
        if (name, key[0]) in BY_DESIGN:
            used.add((name, key[0]))
        else:
            wrong.append(f"{key[0]}: {key[1]} {native[key]} times natively, {under[key]} times under the plugin")
    stale = [what for what in BY_DESIGN if what[0] == name and what not in used]
    return wrong, stale


def around(output, lines=60):
    """The part of the output that tells most: what stands around the first failure, and the end."""
    all_lines = output.splitlines()
    first = next((i for i, line in enumerate(all_lines) if "FAILED" in line or "***" in line), None)
    head = all_lines[max(0, first - 10):first + lines] if first is not None else []
    return "\n".join(head + ["[...]"] + all_lines[-lines:])


def excused(name):
    return any(program == name for program, _ in BY_DESIGN)


def under_plugin(tests, args, mode):
    """One run under the plugin: (exit statuses, output)."""
    with tempfile.TemporaryDirectory(prefix="history.") as history:
        settings = {**MODES[mode], **SETTINGS.get(args.program, {}), "HDF5_VOL_CONNECTOR": "tidelane", "TIDELANE_HISTORY": history}
        statuses, output = run(tests, args.program, settings, str(client.plugin_dir()))
    keep(args, mode, output)
    return statuses, output


def keep(args, mode, output):
    if args.keep:
        (pathlib.Path(args.keep) / f"{args.program}.{mode}.txt").write_text(output)


class Native:
    """The native run, made when it is first asked for."""

    def __init__(self, tests, args):
        self.tests, self.args, self.done = tests, args, None

    def results(self):
        if self.done is None:
            statuses, output = run(self.tests, self.args.program, {})
            keep(self.args, "native", output)
            if any(statuses):
                print(f"natively it ends with {statuses}\n{around(output)}")
            self.done = statuses, named_results(output)
        return self.done


def judge(native, args, mode, statuses, output):
    name, results = args.program, named_results(output)
    if args.native_if_needed and not any(statuses) and not any(result == "*FAILED*" for _, result in results):
        print(f"{name}, {mode}: {sum(results.values())} named results, no failure", flush=True)
        return
    native_statuses, expected = native.results()
    wrong, stale = differences(name, expected, results)
    if statuses != native_statuses and (wrong or not excused(name)):
        wrong.append(f"exit status {statuses}, natively {native_statuses}")
    wrong += [f"{what}: nothing needs this line of BY_DESIGN any more" for what in stale]
    client.require(not wrong, f"{name}, {mode}:\n  " + "\n  ".join(wrong) + "\n" + around(output))
    print(f"{name}, {mode}: {sum(expected.values())} named results as natively, exit status {statuses}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--modes", default="default,async")
    parser.add_argument("--native-if-needed", action="store_true")
    parser.add_argument("--keep", help="a folder for what the programs print")
    args = parser.parse_args()
    tests = Tests()
    tests.program(args.program)
    native, failed = Native(tests, args), []
    for mode in args.modes.split(","):
        try:
            judge(native, args, mode, *under_plugin(tests, args, mode))
        except client.ClientError as error:
            print(f"FAILED: {error}", flush=True)
            failed.append(mode)
    client.require(not failed, f"{args.program} under the plugin: {failed}")


if __name__ == "__main__":
    client.main_of(main)
