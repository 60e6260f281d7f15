"""What happened so far: as a dictionary, as a table, and in a notebook as a picture."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Optional

from . import _enable, _plugin


def stats() -> dict[str, Any]:
    """The summary of this process as it is now; docs/summary.schema.json describes every key."""
    return _plugin.current().summary()


def _spans() -> list[dict[str, Any]]:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="tidelane.") as folder:
        path = os.path.join(folder, "timeline.json")
        _plugin.current().write_timeline(path)
        with open(path) as file:
            return json.load(file)["traceEvents"]


class Report:
    """The summary at one moment. `stats`, `table` and `svg` are what it shows; it may be pickled."""

    def __init__(self) -> None:
        self.stats: dict[str, Any] = stats()
        self.table: str = _plugin.current().table()
        from . import _timeline

        self.svg: Optional[str] = _timeline.svg(_spans())

    def __repr__(self) -> str:
        return self.table.rstrip("\n")

    def _repr_svg_(self) -> Optional[str]:
        return self.svg

    def _repr_html_(self) -> str:
        picture = self.svg or "<p>No timeline: tidelane.enable(timeline=True) records one.</p>"
        import html

        return f"<div>{picture}<pre>{html.escape(self.table)}</pre></div>"


def report() -> Report:
    """What happened so far. A notebook shows it with the timeline, a prompt as a table; in a script it prints the table."""
    made = Report()
    if not _enable.in_notebook() and not hasattr(sys, "ps1"):
        print(made)
    return made
