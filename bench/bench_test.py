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
from cases import CASES, query  # noqa: E402  (found by the line above)
from harness import DemoError  # noqa: E402

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
            self.assertIn(case["title"], done.stdout)
            if key == "query":  # its sides are the packages that there are
                continue
            sides = OWN_SIDES.get(key, ["native", "Tidelane", "pass_through"])
            self.assertEqual(case["sides"], sides, key)
            for row in case["rows"]:
                for side in sides[1:]:
                    self.assertTrue(any(row["against_base"][side].values()), f"{key}: {row['labels']}")
        for row in cases["memory"]["rows"]:
            self.assertGreater(row["sides"]["Tidelane"]["deferred_mib"]["median"], 0)

    def test_queries_are_asked_in_every_way_that_there_is(self):
        done = bench(self.folder, "query", "--tiny", "--rounds=1", "--data", "indexed", "gzip")
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        case = self.results()["cases"]["query"]
        self.assertEqual(case["sides"], [way[0] for way in query.available()])
        self.assertEqual(len(case["rows"]), 3 * (2 + 2))
        for side in case["sides"]:
            self.assertTrue(any(row["sides"][side]["cpu"] for row in case["rows"]), side)
        for row in case["rows"]:
            of_decoding = row["sides"]["Tidelane"]["of_decoding"]
            self.assertEqual(of_decoding is not None, "gzip" in row["labels"]["data"] and row["labels"]["asked for"] == "count")
        for _, _, form, packages in query.WAYS:
            for package in packages if query.versions_of(form, packages) else ():
                self.assertIn(package, case["notes"])

    def test_a_wrong_answer_is_noticed(self):
        query.require_right({"digest": [3, 5], "cpu": 1}, [3, 5], "count")
        with self.assertRaises(DemoError):
            query.require_right({"digest": [3, 6], "cpu": 1}, [3, 5], "count")

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
