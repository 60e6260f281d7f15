"""The program `tidelane` that comes with the package, as the command of that name."""

from __future__ import annotations

import os
import sys

from ._plugin import FOLDER


def main() -> None:
    program = FOLDER / "tidelane"
    os.execv(program, ["tidelane", *sys.argv[1:]])
