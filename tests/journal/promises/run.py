#!/usr/bin/env python3
"""Runs a file of tests: run.py <plugin folder> <tidelane> <test file> [pytest options]. Exit status 77: this Python has no pytest."""

import importlib.util
import os
import sys


def main():
    if any(importlib.util.find_spec(module) is None for module in ("pytest", "h5py")):
        print("skipped: this Python has no pytest or no h5py (`make setup-python` installs it)")
        return 77
    import pytest

    os.environ["TIDELANE_TEST_PLUGIN_DIR"], os.environ["TIDELANE_TEST_TOOL"] = sys.argv[1:3]
    return pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[3:]])


if __name__ == "__main__":
    sys.exit(main())
