"""PyTables' own test suite, as its own runner chooses it (pytest would also run the classes that others are built on), with a
report as pytest writes it.

    python tables_suite.py --junitxml=REPORT

Invariant: each test that was begun is in the report, also one that fails only in some subtest.
"""

import argparse
import sys
import unittest
import xml.etree.ElementTree as xml


class Outcomes(unittest.TestResult):
    """What became of each test: the worst that was said of it."""

    def __init__(self):
        super().__init__()
        self.cases = []

    def startTest(self, test):
        super().startTest(test)
        self.cases.append(["passed", test.id(), ""])

    def _note(self, outcome, test, text):
        if test.id() != (self.cases[-1][1] if self.cases else None):  # a class's or module's own set-up
            self.cases.append(["passed", test.id(), ""])
        if self.cases[-1][0] in ("passed", "skipped"):
            self.cases[-1][::2] = outcome, text

    def addSkip(self, test, reason):
        self._note("skipped", test, reason)

    def addFailure(self, test, err):
        self._note("failure", test, self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self._note("error", test, self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._note("failure", test, self._exc_info_to_string(err, test))

    def write(self, path):
        root = xml.Element("testsuite")
        for outcome, name, text in self.cases:
            case = xml.SubElement(root, "testcase", name=name)
            if outcome != "passed":
                xml.SubElement(case, outcome).text = text.encode("ascii", "replace").decode()
        xml.ElementTree(root).write(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--junitxml", required=True)
    args = parser.parse_args()
    import tables.tests.test_suite

    result = Outcomes()
    tables.tests.test_suite.suite().run(result)
    result.write(args.junitxml)
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
