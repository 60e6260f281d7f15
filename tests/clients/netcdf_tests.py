#!/usr/bin/env python3
"""Runs netCDF-C's own tests under the plugin; what fails there must fail natively, too.

    netcdf_tests.py [--modes default,deferred] [--select REGEX]
    netcdf_tests.py --control       the plugin with a fault: some of the tests must notice

Needs TIDELANE_TEST_PLUGIN_DIR, TIDELANE_HDF5_ROOT and TIDELANE_NETCDF_TESTS (a file with the name of the folder that
scripts/setup/netcdf-tests.sh made). Its own ctest runs them, one after another, in their own folder: some leave files for
others. What fails is run once more natively. What differs by design is in BY_DESIGN, with its reason.
"""

import argparse
import os
import pathlib
import tempfile
import xml.etree.ElementTree

import client

MODES = {
    "default": {},
    "deferred": {"TIDELANE_MODE": "async", "TIDELANE_CLOSE": "deferred", "TIDELANE_FLUSH": "deferred"},
}
SECONDS = 1200  # they take three minutes
ONE_TEST = 200
LEAST_TESTS = 150  # there are 195: fewer were not built, or ctest did not find them

# (mode, test): why it may fail. All of these go to a file past HDF5 right after its H5Fclose, which looks at no lock; whether its
# bytes are stored by then is a matter of luck, so none of them has to fail.
CLASSIC = "writes a classic file, which netCDF-C does by itself, over one of HDF5's that it has just closed"
BY_DESIGN = {
    ("deferred", "nc_test_run_inmemory"): "reads the file's bytes by itself",
    ("deferred", "nc_test4_tst_atts1"): CLASSIC,
    ("deferred", "nc_test4_tst_atts3"): CLASSIC,
    ("deferred", "nc_test4_tst_files"): CLASSIC,
    ("deferred", "nc_test4_tst_grps"): CLASSIC,
    ("deferred", "nc_test4_tst_utf8"): CLASSIC,
}


def results(report):
    """{test: (how it ended, what it printed)}, of ctest's report."""
    cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase")
    return {case.get("name"): (case.get("status"), case.findtext("system-out") or "") for case in cases}


def command(report, select):
    chosen = ["-R", select] if select else []
    return ["ctest", "--timeout", ONE_TEST, "--output-junit", report, *chosen]


def natively_failed(tree, folder, names):
    """Which of these fail natively, too."""
    if not names:
        return set()
    report = folder / "native.xml"
    client.run_native(command(report, f"^({'|'.join(names)})$"), tree, SECONDS)
    return {name for name, (status, _) in results(report).items() if status == "fail"}


def control(tree, folder):
    """Pending bytes are not read."""
    report = folder / "control.xml"
    settings = {**MODES["deferred"], "TIDELANE_BREAK": "overlay", "TIDELANE_HISTORY": str(folder)}
    broken = os.environ.get("TIDELANE_TEST_BROKEN_DIR")
    client.run_with_summaries(command(report, "^nc_test4_tst_vars"), tree, settings=settings, timeout=SECONDS, plugins=broken)
    failed = sorted(name for name, (status, _) in results(report).items() if status == "fail")
    wrong = sorted(set(failed) - natively_failed(tree, folder, failed))
    client.require(wrong, "the plugin has a fault, and no test noticed")
    print(f"a fault of the plugin is noticed by {wrong}", flush=True)


def judge(tree, folder, mode, select):
    report = folder / f"{mode}.xml"
    settings = {**MODES[mode], "TIDELANE_HISTORY": str(folder)}
    done, summaries = client.run_with_summaries(command(report, select), tree, settings=settings, timeout=SECONDS)
    client.require(report.exists(), f"{mode}: ctest left no report\n{done.output[-3000:]}")
    found = results(report)
    client.require(select or len(found) >= LEAST_TESTS, f"{mode}: only {len(found)} tests")
    deferred = sum(summary["counters"]["bytes_deferred"] for summary in summaries.values())
    client.require(mode != "deferred" or deferred > 0, f"{mode}: {len(summaries)} programs loaded the plugin, nothing was deferred")
    failed = {name for name, (status, _) in found.items() if status == "fail"}
    excused = {name for name in failed if (mode, name) in BY_DESIGN}
    native = natively_failed(tree, folder, sorted(failed - excused))
    print(
        f"{mode}: {len(found)} tests, {len(failed)} failed, {len(native)} of them natively, too, {len(excused)} by design: "
        f"{sorted(excused)}; {len(summaries)} programs, {deferred} bytes deferred",
        flush=True,
    )
    wrong = sorted(failed - excused - native)
    client.require(not wrong, f"{mode}: {wrong}\n" + "\n".join(f"-- {name}\n{found[name][1][-3000:]}" for name in wrong))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", default="default,deferred")
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--select", help="tests whose name this regular expression finds")
    args = parser.parse_args()
    name = pathlib.Path(os.environ.get("TIDELANE_NETCDF_TESTS", "/nowhere"))
    if not name.exists():
        print(f"skipped: no {name} (scripts/setup/netcdf-tests.sh compiles netCDF-C for an HDF5 that was built here)")
        raise SystemExit(client.SKIPPED)
    tree = pathlib.Path(name.read_text().strip())
    failed = []
    with tempfile.TemporaryDirectory(prefix="netcdf.") as folder:
        if args.control:
            return control(tree, pathlib.Path(folder))
        for mode in args.modes.split(","):
            try:
                judge(tree, pathlib.Path(folder), mode, args.select)
            except client.ClientError as error:
                print(f"FAILED: {error}", flush=True)
                failed.append(mode)
    client.require(not failed, f"netCDF-C's tests under the plugin: {failed}")


if __name__ == "__main__":
    client.main_of(main)
