"""Tables from results.json: on a terminal, and as Markdown between the markers of docs/performance.md."""

import re

from comparison import TIDELANE
from report import BOLD, OFF, print_table


def number(found, column, with_range=False):
    if found is None:
        return ""
    text = column["format"].format(found["median"])
    low, high = (column["format"].format(found[end]) for end in ("low", "high"))
    return f"{text} ({low}–{high})" if with_range and low != high else text


def verdict(row, side, key):
    """' ok', ' MISSED', or nothing where there is no target."""
    for target in row["targets"]:
        if target["key"] == key and side == judged(row):
            return " ok" if target["met"] else " MISSED"
    return ""


def judged(row):
    return TIDELANE if TIDELANE in row["sides"] else next(iter(row["against_base"]))


def metric_columns(case):
    """(label and side, cell of a row) for each number of each side."""
    base, *others = case["sides"]
    shown = {"all": case["sides"], "base": [base], "Tidelane": [TIDELANE] if TIDELANE in case["sides"] else [], "none": []}
    for metric in case["columns"]["metrics"]:
        for side in shown[metric["shown"]]:

            def cell(row, metric=metric, side=side):
                return number(row["sides"][side][metric["key"]], metric) + verdict(row, side, metric["key"])

            yield (metric, "" if metric["shown"] != "all" else side), cell
    for derived in case["columns"]["derived"]:
        for side in others if derived.get("shown", True) else ():

            def cell(row, derived=derived, side=side):
                found = row["against_base"][side][derived["key"]]
                return number(found, derived, with_range=True) + verdict(row, side, derived["key"])

            yield (derived, "" if len(others) == 1 else side), cell


def label_of(column, side):
    """A column's label, with its target where the side is the one that has it."""
    text = column["label"]
    if side in ("", TIDELANE) and column.get("most") is not None:
        text += f" (≤ {column['most']:g})"
    if side in ("", TIDELANE) and column.get("least") is not None:
        text += f" (≥ {column['least']:g})"
    return text


def table_of(case):
    """Heads (label, side) and lines, all text; columns where no row has anything are left out."""
    labels = list(case["rows"][0]["labels"])
    columns = [((label, ""), lambda row, label=label: row["labels"][label]) for label in labels]
    columns += [((label_of(*head), head[1]), cell) for head, cell in metric_columns(case)]
    cells = [[cell(row) for _, cell in columns] for row in case["rows"]]
    kept = [i for i in range(len(columns)) if i < len(labels) or any(line[i] for line in cells)]
    return [columns[i][0] for i in kept], [[line[i] for i in kept] for line in cells]


def print_case(case):
    """The label of a column stands once, above the sides that it is given for."""
    heads, lines = table_of(case)
    plain = [column["label"] for column in case["columns"]["metrics"] + case["columns"]["derived"]]
    above, before = [], None
    for label, side in heads:
        base = next((known for known in plain if label.startswith(known)), label)
        above.append("" if side and base == before else base if side else label)
        before = base
    print_table(above, [[side for _, side in heads], *lines])


def show(results):
    """Prints everything; true when every target was met."""
    met = True
    for case in results["cases"].values():
        print(f"\n{BOLD}{case['title']}{OFF}")
        if case["rows"]:
            print_case(case)
        if case.get("notes"):
            print(f"  {case['notes']}")
        for failure in case["failures"]:
            print(f"  FAILED: {failure}")
        met = met and all(target["met"] for row in case["rows"] for target in row["targets"])
    print(
        "\n  medians; in brackets the lowest and the highest of the rounds. Numbers against native are of the same round."
        "\n  Every output was equal to the native one by h5diff, and Tidelane's counters showed that bytes were deferred."
    )
    if not met:
        print("  a target was missed (a busy machine does that: look at the rounds in the results)")
    return met


def markdown_table(case):
    heads, lines = table_of(case)
    head = [f"{label}, {side}" if side else label for label, side in heads]
    out = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in out).replace(" MISSED", " **missed**").replace(" ok", " ✓")


def machine_text(results):
    machine, versions = results["machine"], results["versions"]
    busy = machine["load_before"] > machine["cores"] / 2
    return (
        f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gib']:.0f} GiB of memory, Linux {machine['kernel']},"
        f" disk: {machine['disk']}; HDF5 {versions['hdf5']}, Tidelane {versions['tidelane']} ({versions['commit']});"
        f" {results['options']['rounds']} rounds, {results['date']}, load before {machine['load_before']:.1f}."
        + (" **The machine was busy with other work: times are noisy, counts are not.**" if busy else "")
    )


def refresh(page, results):
    """The page's text with what stands between its markers, <!-- bench:KEY --> and <!-- /bench -->, made anew."""

    def block(match):
        key = match[1]
        if key == "machine":
            text = machine_text(results)
        elif key in results["cases"] and results["cases"][key]["rows"]:
            case = results["cases"][key]
            text = f"{case['text']}\n\n{markdown_table(case)}" + (f"\n\n{case['notes']}" if case.get("notes") else "")
        else:
            return match[0]
        return f"<!-- bench:{key} -->\n{text}\n<!-- /bench -->"

    return re.sub(r"<!-- bench:(\w+) -->\n.*?<!-- /bench -->", block, page, flags=re.DOTALL)


