#!/usr/bin/env python3
"""Runs a file of tests: run_tests.py <tidelane> <C compiler> <test file> [pytest options]."""

import importlib.util
import os
import sys


def main():
    for module in ("pytest", "h5py", "jsonschema"):
        if importlib.util.find_spec(module) is None:
            print(f"skipped: this Python has no {module} (`make setup-python` installs it)")
            return 77
    import pytest

    os.environ["TIDELANE_TEST_TOOL"], os.environ["TIDELANE_TEST_CC"] = sys.argv[1:3]
    return pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[3:]])


if __name__ == "__main__":
    sys.exit(main())
