"""The papers' figures: what is measured comes back from its CSV, claims are judged, the page is filled; and one figure is run.

    papers_test.py BUILD
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from harness import Throttle  # noqa: E402  (found by the line above)
from papers import FIGURES  # noqa: E402
from papers.figure import Panel, judged, read_csv, write_csv  # noqa: E402
from papers.page import block, refresh  # noqa: E402

PAGE = HERE.parents[1] / "docs" / "papers.md"
build = None


def weak(*bandwidths):
    """Panels as of Figure 3: a rank, two and four."""
    panels = [Panel("VPIC-IO"), Panel("BD-CATS-IO")]
    for panel in panels:
        for ranks, (native, tidelane) in zip((1, 2, 4), bandwidths):
            panel.add(ranks, "HDF5", [native, native * 2, native / 2])
            panel.add(ranks, "Tidelane", [tidelane])
    return panels


class FiguresTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="papers.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def reproduce(self, *arguments):
        command = [sys.executable, "-B", str(HERE.parent / "reproduce.py"), f"--build={build}", f"--out={self.folder}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)

    def test_what_is_written_comes_back(self):
        given = weak((100, 1000), (110, 2000), (111, 4000))
        write_csv(self.folder / "x.csv", given)
        self.assertEqual(read_csv(self.folder / "x.csv"), given)

    def test_claims_agree_or_differ(self):
        figure = FIGURES["model-3"]
        saturated = judged(figure, weak((100, 1000), (110, 2000), (111, 4000)))
        self.assertEqual([agrees for _, _, agrees in saturated[:3]], [True, True, True])
        self.assertIn("4.0 times for 4 times the ranks", saturated[1][1])
        contrary = judged(figure, weak((100, 100), (200, 100), (400, 100)))
        self.assertEqual([agrees for _, _, agrees in contrary[:3]], [False, False, False])

    def test_what_was_not_run_is_no_claim(self):
        for figure in FIGURES.values():
            for _, here, agrees in judged(figure, []):
                self.assertEqual((here, agrees), ("not run", None), figure.key)

    def test_every_figure_has_its_place_on_the_page(self):
        page = PAGE.read_text()
        filled = refresh(page, {key: f"numbers of {key}" for key in FIGURES})
        for key in FIGURES:
            self.assertEqual(filled.count(f"numbers of {key}\n"), 1, key)
        self.assertEqual(refresh(filled, {}), filled)

    def test_a_block_says_where_the_paper_differs(self):
        text = block(FIGURES["model-3"], weak((100, 100), (200, 100), (400, 100)), "")
        self.assertIn("**differs**", text)
        self.assertIn("| VPIC-IO | 4 | 400 | 100 |", text)

    def test_a_figure_is_run(self):
        if Throttle.missing():
            self.skipTest("no FUSE")
        if not (pathlib.Path(build) / "bin" / "throttle").exists():
            self.skipTest("the throttle was not built")
        done = self.reproduce("--quick", "merging-4", "scale-5")
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        self.assertEqual(read_csv(self.folder / "merging-4.csv")[0].series(), ["HDF5, no sieve buffer", "HDF5", "Tidelane"])
        sync = read_csv(self.folder / "scale-5.csv")[0]
        self.assertLess(sync.value(32, "synchronous"), sync.value(8192, "synchronous"))
        page = self.folder / "page.md"
        page.write_text(PAGE.read_text())
        self.assertEqual(self.reproduce(f"--markdown={page}").returncode, 0)
        self.assertIn("1 KiB, against a request for each write", page.read_text())

    def test_what_does_not_exist_is_named(self):
        done = self.reproduce("model-33")
        self.assertEqual(done.returncode, 2)
        self.assertIn("model-33", done.stderr)


if __name__ == "__main__":
    build = sys.argv.pop(1)
    unittest.main()
