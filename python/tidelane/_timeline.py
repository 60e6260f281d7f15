"""The timeline as a picture: a row a thread, time to the right, a colour a kind of work. Standard library only."""

from __future__ import annotations

import html
from typing import Any, Optional

WIDTH, LEFT, ROW, GAP, HEAD = 900, 110, 18, 6, 26
PROGRAM = {
    "write": ("#4c78a8", "write call"),
    "write through": ("#e45756", "synchronous write"),
    "read": ("#72b7b2", "read"),
}
LANE = ("#54a24b", "a lane stores")
WAIT = ("#f58518", "the program waits")


def _style(name: str, on_lane: bool) -> tuple[str, str]:
    if on_lane:
        return LANE
    return PROGRAM.get(name, WAIT)


def _columns(spans: list[tuple[float, float]], begin: float, scale: float) -> list[tuple[int, int]]:
    """Spans as ranges of pixels, neighbours joined: a picture stays small however many there are."""
    ranges: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        first, last = int((start - begin) * scale), max(int((end - begin) * scale), int((start - begin) * scale) + 1)
        if ranges and first <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(last, ranges[-1][1]))
        else:
            ranges.append((first, last))
    return ranges


def _row(y: int, label: str, spans: list[dict[str, Any]], begin: float, scale: float) -> list[str]:
    lines = [f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{html.escape(label)}</text>']
    kinds: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for span in spans:
        style = _style(span["name"], label.startswith("lane"))
        kinds.setdefault(style, []).append((span["ts"], span["ts"] + span["dur"]))
    for (colour, meaning), times in kinds.items():
        for first, last in _columns(times, begin, scale):
            lines.append(
                f'<rect x="{LEFT + first}" y="{y}" width="{last - first}" height="{ROW}" fill="{colour}">'
                f"<title>{meaning}</title></rect>"
            )
    return lines


def _legend(y: int) -> list[str]:
    lines, x = [], LEFT
    for colour, meaning in (*PROGRAM.values(), WAIT, LANE):
        lines.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour}"/>')
        lines.append(f'<text x="{x + 17}" y="{y + 11}">{meaning}</text>')
        x += 40 + 7 * len(meaning)
    return lines


def svg(events: list[dict[str, Any]]) -> Optional[str]:
    """A Chrome trace's events as SVG; None where none was recorded."""
    spans = [event for event in events if event.get("ph") == "X"]
    if not spans:
        return None
    names = {event["tid"]: event["args"]["name"] for event in events if event.get("name") == "thread_name"}
    begin = min(span["ts"] for span in spans)
    end = max(span["ts"] + span["dur"] for span in spans)
    scale = (WIDTH - LEFT - 10) / max(end - begin, 1.0)
    threads = sorted({span["tid"] for span in spans}, key=lambda tid: (tid in names, names.get(tid, ""), tid))
    height = HEAD + len(threads) * (ROW + GAP) + 30
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<text x="{LEFT}" y="16">Tidelane: {(end - begin) / 1e6:.3f} s</text>',
    ]
    for number, tid in enumerate(threads):
        label = names.get(tid, f"thread {tid}")
        lines += _row(HEAD + number * (ROW + GAP), label, [span for span in spans if span["tid"] == tid], begin, scale)
    lines += _legend(height - 20)
    return "\n".join([*lines, "</svg>"])
