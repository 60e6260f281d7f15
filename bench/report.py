"""What the demo prints: one table for the simulation, one for other people's programs, and what to make of them."""

import sys

BOLD, GREEN, RED, OFF = ("\033[1m", "\033[32m", "\033[31m", "\033[0m") if sys.stdout.isatty() else ("",) * 4


def progress(what):
    """Says what is being done: on one line that is overwritten at a terminal, a line each in a log."""
    if sys.stderr.isatty():
        print(f"\r\033[K  {what} ...", end="", file=sys.stderr, flush=True)
    else:
        print(f"  {what}", file=sys.stderr, flush=True)


def progress_end():
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def seconds(value):
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def pair(row, key):
    return seconds(row["native"][key]), seconds(row["tidelane"][key])


def verdict(row):
    """Whether the row met its target, if it has one."""
    target = row.get("target")
    return None if target is None else row[target["what"]] <= target["limit"]


def mark(row, key):
    """A ratio, with a mark where there is a target for it."""
    text = f"{row[key]:.3f}"
    if row.get("target", {}).get("what") != key:
        return text
    return f"{text} {'ok' if verdict(row) else 'MISSED'}"


def print_table(head, lines):
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    for number, line in enumerate([head, *lines]):
        cells = [cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths))]
        text = "  " + "   ".join(cells)
        text = text.replace("MISSED", f"{RED}MISSED{OFF}").replace(" ok", f" {GREEN}ok{OFF}")
        print(f"{BOLD}{text}{OFF}" if number == 0 else text)


def requests(row):
    native, tidelane = row["native"]["requests"], row["tidelane"]["requests"]
    return ("", "") if native is None else (f"{native:.0f}", f"{tidelane:.0f}")


def simulation_table(storage, rows):
    head = ["", "waits", "", "ratio", "of it close", "", "total", "", "ratio", "compute", "requests", "", "deferred"]
    unit = ["", "native", "Tidelane", "", "native", "Tidelane", "native", "Tidelane", "", "ratio", "native", "Tidelane", ""]
    lines = [unit]
    for row in rows:
        lines.append(
            [
                row["case"],
                *pair(row, "waits_s"),
                mark(row, "waits_ratio"),
                *pair(row, "close_s"),
                *pair(row, "total_s"),
                mark(row, "total_ratio"),
                f"{row['compute_ratio']:.2f}" if "compute_ratio" in row else "",
                *requests(row),
                f"{row['deferred_bytes'] / 2**20:.0f} MiB",
            ]
        )
    print(f"\n{BOLD}{storage}{OFF} (seconds, median of {rows[0]['rounds']} rounds)")
    print_table(head, lines)


def clients_table(rows):
    print(f"\n{BOLD}programs nobody here wrote{OFF} (seconds; outputs equal by h5diff)")
    head = ["", "native", "Tidelane", "ratio", "requests native", "Tidelane", "deferred"]
    lines = []
    for row in rows:
        lines.append(
            [
                row["name"],
                seconds(row["native_s"]),
                seconds(row["tidelane_s"]),
                f"{row['tidelane_s'] / row['native_s']:.2f}",
                str(row["native_requests"]),
                str(row["tidelane_requests"]),
                f"{row['deferred_bytes'] / 2**20:.1f} MiB",
            ]
        )
    print_table(head, lines)


def explain():
    print(
        "\n  waits: the run without its computation, its close included. compute ratio: how much longer the same"
        "\n  computation took while lanes were writing. Every output of Tidelane was equal to the native one. On storage as"
        "\n  quick as memory part of the bytes is written directly: deferring them would only copy them once more."
        "\n\n  A file per step with a waiting close gains nothing, as it should: H5Fclose returns when the bytes are in"
        "\n  the file, so nothing is left to do during the computation. If nobody else opens a step's file at once, set"
        "\n  TIDELANE_CLOSE=deferred (the third row), or use H5Fclose_async (the last)."
    )


def show(results, out):
    """Prints everything; true when every target was met."""
    by_storage = {}
    for row in results["rows"]:
        by_storage.setdefault(row["storage"], []).append(row)
    for storage, rows in by_storage.items():
        simulation_table(storage, rows)
    if results["clients"]:
        clients_table(results["clients"])
    if results["rows"]:
        explain()
    for failure in results["failures"]:
        print(f"\n  {RED}FAILED{OFF} {failure}")
    if (out / "timeline.png").exists():
        print(f"\n  timeline: {out}/timeline.svg and .png")
    print(f"  all numbers: {out}/results.json")
    met = all(verdict(row) is not False for row in results["rows"])
    if not met:
        print(f"  {RED}a target was missed{OFF} (a busy machine does that: look at the rounds in results.json)")
    return met
