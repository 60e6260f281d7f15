#!/usr/bin/env python3
"""Test suites of the libraries themselves, natively and under the plugin in the same run, compared by the name of each test.

    suites.py SUITE [--way WAY ...] [--select EXPRESSION]      SUITE: h5py, h5py_oldest, h5netcdf, netCDF4, tables,
    tables_quick, xarray, pandas, together

The bar is native's own results, test by test; bytes must have been deferred and lanes busy. `together` has three copies of
HDF5 in one process. With deferred closes h5py's suite is run for information: tests that look at a file from outside right
after its close (its size, another process) may rightly see it before it is whole. So is publish=atomic: tests that look at a file's
name before its close find none.

Needs TIDELANE_TEST_PLUGIN_DIR, the libraries and pytest in this Python, and for netCDF4 a network (its wheel has no tests).
"""

import argparse
import collections
import dataclasses
import importlib.metadata
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))
import client  # noqa: E402

ASYNC = {"TIDELANE_MODE": "async"}  # everything is deferred, as quick as the disk here may be
DEFERRED = {**ASYNC, "TIDELANE_CLOSE": "deferred", "TIDELANE_FLUSH": "deferred"}
WAYS = {  # name: connector, settings, must it equal native?
    "wait": ("tidelane", ASYNC, True),
    "default": ("tidelane", {}, True),
    "async": ("async under_vol=0;under_info={}", ASYNC, True),
    "deferred": ("tidelane", DEFERRED, False),
    "atomic": ("tidelane", {**ASYNC, "TIDELANE_PUBLISH": "atomic"}, False),
    "journal": ("tidelane", {**ASYNC, "TIDELANE_JOURNAL": "process"}, True),
    "power": ("tidelane", {**ASYNC, "TIDELANE_JOURNAL": "power"}, True),
}
DEFERRED_AT_LEAST = 1 << 20
TIME_LIMIT = 1500
KEPT = pathlib.Path(os.environ.get("TIDELANE_TEST_SOURCE_DIR", "."), "build/python-suites")
TABLES = pathlib.Path(__file__).with_name("tables_suite.py")
HDF5_BACKENDS = "netcdf4 or h5netcdf or netCDF4 or NetCDF4 or H5NetCDF or hdf5"


@dataclasses.dataclass
class Suite:
    modules: list  # pytest's --pyargs
    tests_at_least: int  # fewer, and the suite was not found
    select: str = ""  # pytest's -k
    libraries: tuple = ("h5py",)
    sdist: str = ""  # where the tests are if not in the wheel: a folder of the source package
    runner: object = None  # a script that is run in pytest's place
    packages: tuple = ()  # what pip installs into an environment of its own: other versions than the one here has


SUITES = {
    "h5py": Suite(["h5py"], 500),
    # The oldest wheels with an HDF5 that Tidelane serves: 1.14.2.
    "h5py_oldest": Suite(["h5py"], 500, packages=("h5py==3.10.0", "numpy<2", "pytest")),
    "h5netcdf": Suite(["h5netcdf"], 200, libraries=("h5netcdf", "netCDF4")),
    "tables_quick": Suite(["tables.tests.test_carray", "tables.tests.test_array"], 200, libraries=("tables",)),
    "tables": Suite([], 5000, libraries=("tables",), runner=TABLES),
    "xarray": Suite(["xarray.tests.test_backends"], 500, HDF5_BACKENDS, ("xarray", "netCDF4", "h5netcdf")),
    "pandas": Suite(["pandas.tests.io.pytables"], 150, libraries=("pandas", "tables")),
    "netCDF4": Suite(["netCDF4"], 50, libraries=("netCDF4",), sdist="test"),
    "together": Suite(["h5netcdf", "tables.tests.test_carray", "tables.tests.test_basics", "pandas.tests.io.pytables.test_put"], 300,
                      libraries=("h5netcdf", "tables", "pandas", "netCDF4")),
}  # fmt: skip


def outcome_of(case):
    for tag in ("failure", "error", "skipped"):
        if case.find(tag) is not None:
            return {"failure": "failed", "error": "error", "skipped": "skipped"}[tag]
    return "passed"


def outcomes(report):
    """By name. Tests outside of a package may share one: they are numbered."""
    found, seen = {}, collections.Counter()
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('file')}:{case.get('classname')}.{case.get('name')}"
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name} ({seen[name]})"] = (outcome_of(case), case)
    return found


def source_tests(library, folder):
    """The tests of a library whose wheel has none. pip asks its build for requirements before it hands over the sources; an
    empty include folder answers that."""
    kept = KEPT / f"tests_of_{library}"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as scratch:
            include = pathlib.Path(scratch, "include")
            include.mkdir()
            (include / "netcdf.h").write_text("nc_inq_compound\n")
            version = importlib.metadata.version(library)
            done = subprocess.run(
                [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", library, f"{library}=={version}"],
                cwd=scratch, env={**os.environ, "NETCDF4_INCDIR": str(include), "USE_NCCONFIG": "0",
                                  "HDF5_DIR": os.environ.get("TIDELANE_HDF5_ROOT", "/usr")},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
            archives = list(pathlib.Path(scratch).glob("*.tar.gz"))
            if not archives:
                print(f"skipped: the sources of {library} {version} cannot be had here\n{done.stdout[-1000:]}")
                sys.exit(client.SKIPPED)
            with tarfile.open(archives[0]) as archive:
                archive.extractall(pathlib.Path(scratch, "sources"))
            (found,) = pathlib.Path(scratch, "sources").glob(f"*/{folder}")
            shutil.copytree(found, kept, ignore=shutil.ignore_patterns("__init__.py"))  # scripts beside each other, no package
    return [str(path) for path in sorted(kept.glob("test_*.py"))]


def with_packages(suite):
    """Goes on in the suite's own environment, which is made at the first time and kept."""
    folder = KEPT / "-".join(suite.packages).replace("=", "").replace("<", "")
    python = folder / "bin/python"
    if pathlib.Path(sys.prefix).resolve() == folder.resolve():
        return
    if not (folder / "made").exists():
        venv.create(folder, clear=True, with_pip=True)
        done = subprocess.run([python, "-m", "pip", "install", "-q", "--retries=1", "--timeout=20", "--only-binary=:all:", *suite.packages],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip
        if done.returncode != 0:
            print(f"skipped: no wheels of {' '.join(suite.packages)} for this Python\n{done.stdout[-1000:]}")
            sys.exit(client.SKIPPED)
        (folder / "made").touch()
    os.execv(python, [str(python), "-B", *sys.argv])


def command(suite, report, select):
    if suite.runner:
        return [sys.executable, "-B", str(suite.runner), f"--junitxml={report}"]
    words = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:warnings", "-o", "junit_family=xunit1"]
    words.append(f"--junitxml={report}")
    words += source_tests(suite.modules[0], suite.sdist) if suite.sdist else ["--pyargs", *suite.modules]
    chosen = select or suite.select
    return words + (["-k", chosen] if chosen else [])


def count(results):
    counts = collections.Counter(outcome for outcome, _ in results.values())
    return " ".join(f"{counts[name]:5} {name}" for name in ("passed", "failed", "error", "skipped"))


def differences(native, under):
    for name in sorted(native.keys() | under.keys()):
        one, other = (results.get(name, ("absent", None))[0] for results in (native, under))
        if one != other:
            yield name, one, other


def explain(case):
    return "".join((part.text or "")[-1500:] for part in case if part.tag in ("failure", "error")) if case is not None else ""


def plugin_path():
    """As tidelane.enable sets it; without netCDF4 one folder, because h5py's suite counts them."""
    spec = importlib.util.find_spec("netCDF4")
    return ":".join([str(client.plugin_dir())] + ([str(pathlib.Path(spec.origin).with_name("plugins"))] if spec else []))


def run_way(suite, way, scratch, select):
    connector, settings, _ = WAYS[way]
    report, folder = scratch / f"{way}.xml", scratch / way
    folder.mkdir()
    path = {"HDF5_PLUGIN_PATH": plugin_path()}
    done, summary = client.run_plugin(
        command(suite, report, select), folder, connector, {**settings, **path, "TMPDIR": str(folder)}, TIME_LIMIT
    )
    client.require(report.exists(), f"{way}: pytest wrote no report (status {done.rc})\n{done.output[-3000:]}")
    return outcomes(report), summary["counters"], done.seconds


def compare(suite, way, native, scratch, select):
    results, counters, seconds = run_way(suite, way, scratch, select)
    found = list(differences(native, results))
    deferred = counters["bytes_deferred"]
    print(f"{way:9} {count(results)}   {seconds:6.1f} s, {deferred:10} bytes deferred, {len(found)} differ", flush=True)
    for name, one, other in found:
        print(f"  {name}: natively {one}, here {other}\n{explain(results.get(name, ('', None))[1])}", flush=True)
    client.require(deferred >= DEFERRED_AT_LEAST or select or way == "default", "hardly anything was deferred")
    client.require(counters["lane_busy_ns"] > 0 or way == "default", "no lane ever worked")
    return found


def natively(suite, scratch, select):
    report, folder = scratch / "native.xml", scratch / "native"
    folder.mkdir()
    env = {**client.native_environment(), "TMPDIR": str(folder)}
    done = client.run(command(suite, report, select), env, folder, TIME_LIMIT)
    client.require(report.exists(), f"pytest wrote no report (status {done.rc})\n{done.output[-3000:]}")
    native = outcomes(report)
    client.require(len(native) >= suite.tests_at_least or select, f"only {len(native)} tests: not the whole suite")
    print(f"{'native':9} {count(native)}   {done.seconds:6.1f} s", flush=True)
    return native


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--select", metavar="EXPRESSION", help="pytest's -k")
    args = parser.parse_args()
    suite = SUITES[args.suite]
    if suite.packages:
        with_packages(suite)
    missing = [name for name in (*suite.libraries, "pytest") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: this Python has no {', '.join(missing)} (`make setup-python` installs them)")
        sys.exit(client.SKIPPED)
    ways = args.way or list(WAYS)
    with tempfile.TemporaryDirectory(prefix=f"{args.suite}.") as scratch:
        scratch = pathlib.Path(scratch)
        native = natively(suite, scratch, args.select)
        found = {way: compare(suite, way, native, scratch, args.select) for way in ways}
        wrong = [way for way in ways if WAYS[way][2] and found[way]]
        client.require(not wrong, f"other results than natively: {wrong}")


if __name__ == "__main__":
    client.main_of(main)
