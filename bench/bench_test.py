"""bench.py works: every case that needs no slow storage runs, small, with a third connector, and its page can be made.

    bench_test.py BUILD

No figure is judged: on a busy machine none would mean anything. That outputs are equal and that bytes were deferred,
bench.py asserts itself, and a run with a plugin that does nothing must fail.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from cases import CASES  # noqa: E402  (found by the line above)

PAGE = HERE.parent / "docs" / "performance.md"
THIRD = "pass_through under_vol=0;under_info={};"
build = None


def bench(folder, *arguments):
    command = [sys.executable, "-B", str(HERE / "bench.py"), f"--build={build}", f"--json={folder}/results.json", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


OWN_SIDES = {"recording": ["off", "summary", "trace"], "regret": ["better fixed mode", "Tidelane"]}


class BenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="bench.")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def results(self):
        return json.loads(pathlib.Path(self.folder, "results.json").read_text())

    def test_every_case_compares_all_sides(self):
        done = bench(self.folder, "--tiny", "--rounds=1", "--storage=tmpfs", f"--connector={THIRD}")
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        cases = self.results()["cases"]
        self.assertEqual(list(cases), list(CASES))
        for key, case in cases.items():
            if "tmpfs" not in CASES[key].storages or (key == "recording" and not case["rows"]):  # valgrind is missing
                continue
            sides = OWN_SIDES.get(key, ["native", "Tidelane", "pass_through"])
            self.assertEqual(case["sides"], sides, key)
            self.assertIn(case["title"], done.stdout)
            for row in case["rows"]:
                for side in sides[1:]:
                    self.assertTrue(any(row["against_base"][side].values()), f"{key}: {row['labels']}")
        for row in cases["memory"]["rows"]:
            self.assertGreater(row["sides"]["Tidelane"]["deferred_mib"]["median"], 0)

    def test_the_page_is_made_from_results(self):
        self.assertEqual(bench(self.folder, "start", "--tiny", "--rounds=1", "--storage=tmpfs").returncode, 0)
        page = pathlib.Path(self.folder, "page.md")
        page.write_text(PAGE.read_text())
        done = bench(self.folder, f"--markdown={page}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(page.read_text(), PAGE.read_text())
        for key in CASES:
            self.assertIn(f"<!-- bench:{key} -->", page.read_text())

    def test_a_plugin_that_defers_nothing_is_noticed(self):
        done = bench(self.folder, "writes", "--tiny", "--rounds=1", "--storage=tmpfs", "--set", "mode=sync")
        self.assertEqual(done.returncode, 1)
        self.assertIn("bytes were deferred", done.stdout)

    def test_what_does_not_exist_is_named(self):
        done = bench(self.folder, "wlak")
        self.assertEqual(done.returncode, 2)
        self.assertIn("wlak", done.stderr)


if __name__ == "__main__":
    build = sys.argv.pop(1)
    unittest.main()
