"""The papers' workloads work: each writes the same natively and under Tidelane, with and without an event set, and reads back
natively what Tidelane wrote.

    apps_test.py BUILD

That outputs are equal h5diff says, that bytes were deferred Tidelane's counters.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from harness import (  # noqa: E402  (found by the line above)
    DemoError,
    Places,
    native_environment,
    require_equal,
    run,
    tidelane_environment,
)

places = None
# Options that write, where FOLDER is the one to write to, the bytes that must be deferred, and what reads them back.
APPS = {
    "amr": (["--folder=FOLDER", "--cells=32", "--box=16", "--time-steps=6", "--plot-each=2", "--compute-us=3000"], 9 << 20, None),
    "earthquake": (["--folder=FOLDER", "--nx=32", "--ny=24", "--nz=16", "--checkpoints=3", "--compute-us=3000"], 900_000, None),
    "loader": (["--file=FOLDER/samples.h5", "--samples=40", "--bytes=8192", "--batch=7", "--chunked", "--write"], 300_000, "--write"),
    "micro": (["--file=FOLDER/micro.h5", "--bytes=65536", "--attributes=16", "--groups=4"], 1_300_000, ""),
    "series": (["--folder=FOLDER", "--bytes=65536", "--steps=3", "--write"], 1_500_000, "--write"),
    "writes": (["--file=FOLDER/writes.h5", "--pattern=planes", "--bytes=4096", "--writes=64", "--shuffled"], 260_000, None),
}


class AppsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="apps."))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def report(self, app, options, env, ranks=1):
        result = self.folder / "report.json"
        command = [places.program(app), *options, f"--json={result}"]
        if ranks > 1:
            env = {**env, "OMPI_MCA_rmaps_base_oversubscribe": "1"}
            command = ["mpirun.mpich", "-np", str(ranks), places.program(f"{app}_mpich"), *command[1:]]
        run(command, env)
        report = json.loads(result.read_text())
        self.assertEqual((report["app"], report["ranks"]), (app, ranks))
        self.assertLessEqual(report["io_us"] + report["compute_us"], report["total_us"])
        self.assertGreaterEqual(report["io_us"], sum(report["waits_us"]) - 1)
        return report

    def compare(self, app, *more, ranks=1):
        options, deferred, reads = APPS[app]
        sides = {}
        for side in ("native", "tidelane"):
            folder = self.folder / side
            folder.mkdir()
            summaries = self.folder / "summary"
            summaries.mkdir(exist_ok=True)
            env = native_environment()
            if side == "tidelane":
                env = tidelane_environment(places, mode="async", summary=f"{summaries}/summary-%p.json")
            here = [option.replace("FOLDER", str(folder)) for option in options]
            sides[side] = self.report(app, [*here, *more], env, ranks)
            if side == "tidelane":
                found = [json.loads(path.read_text())["counters"] for path in summaries.glob("summary-*.json")]
                self.assertEqual(len(found), ranks)
                self.assertGreaterEqual(sum(counters["bytes_deferred"] for counters in found), deferred, app)
                self.assertEqual(sum(counters["errors"] for counters in found), 0, app)
        require_equal(places, self.folder / "native", self.folder / "tidelane", app)
        self.assertEqual(sides["native"]["bytes"], sides["tidelane"]["bytes"])
        if reads is not None:
            again = [option for option in here if option != reads] + ([] if reads else ["--read"])
            read = self.report(app, [*again, *more], native_environment(), ranks)
            self.assertGreater(read["bytes"], 0)

    def test_every_app(self):
        for app in APPS:
            for more in ([], ["--events"]):
                with self.subTest(app=app, more=more):
                    self.setUp()
                    self.compare(app, *more)

    def test_ranks_with_a_file_each_and_with_one_of_all(self):
        if not (places.bin / "series_mpich").exists():
            self.skipTest("no parallel HDF5")
        # A rank's part of an earthquake's common file is many small pieces, which MPI joins.
        ways = [("series", "--own-files"), ("amr", "--own-files"), ("earthquake", "--own-files"), ("series",), ("amr",)]
        for app, *more in [*ways, ("writes", "--independent")]:
            with self.subTest(app=app, more=more):
                self.setUp()
                self.compare(app, *more, ranks=2)

    def test_a_series_without_elements_makes_its_datasets_and_moves_nothing(self):
        options = [option.replace("FOLDER", str(self.folder)) for option in APPS["series"][0]]
        report = self.report("series", [*options, "--empty"], native_environment())
        self.assertEqual((report["bytes"], len(report["waits_us"])), (0, 3))
        listed = subprocess.run([places.tool("h5ls"), "-r", self.folder / "series.h5"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(listed.count("Dataset"), 3 * 8)

    def test_what_was_not_written_is_noticed(self):
        self.report("micro", [f"--file={self.folder}/m.h5", "--bytes=4096", "--groups=2"], native_environment())
        with open(self.folder / "m.h5", "r+b") as file:
            file.seek(-100, os.SEEK_END)
            file.write(b"\xff" * 64)
        with self.assertRaisesRegex(DemoError, "not what was written"):
            self.report("micro", [f"--file={self.folder}/m.h5", "--bytes=4096", "--groups=2", "--read"], native_environment())


if __name__ == "__main__":
    places = Places(sys.argv.pop(1))
    unittest.main()
