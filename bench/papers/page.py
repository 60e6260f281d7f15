"""docs/papers.md: between its markers, <!-- papers:KEY --> and <!-- /papers -->, each figure's claims and numbers, paper and here."""

import re

from papers.figure import judged

MARKS = {True: "✓", False: "**differs**", None: ""}


def number(value):
    if value is None:
        return ""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def table(head, lines):
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])


def claims_table(figure, panels):
    lines = [[claim.what, claim.paper, here, MARKS[agrees]] for claim, here, agrees in judged(figure, panels)]
    return table(["", "paper", "here", ""], lines)


def numbers_table(figure, panels):
    named = len(panels) > 1
    series = list(dict.fromkeys(name for panel in panels for name in panel.series()))
    lines = []
    for panel in panels:
        for x in panel.xs():
            if any(panel.value(x, name) is not None for name in series):
                lines.append([*([panel.name] if named else []), x, *(number(panel.value(x, name)) for name in series)])
    return table([*([""] if named else []), figure.x, *(f"{name}" for name in series)], lines)


def block(figure, panels, picture):
    parts = [f"*{figure.paper}.* {figure.scaled}", claims_table(figure, panels)]
    if picture:
        parts.append(f"![{figure.title}]({picture})")
    parts += [f"{figure.y[0].upper()}{figure.y[1:]}, medians:", numbers_table(figure, panels)]
    return "\n\n".join(parts)


def refresh(text, blocks):
    """The page's text with what is known put between its markers; the rest stays."""

    def put(match):
        return f"<!-- papers:{match[1]} -->\n{blocks[match[1]]}\n<!-- /papers -->" if match[1] in blocks else match[0]

    return re.sub(r"<!-- papers:([\w-]+) -->\n.*?<!-- /papers -->", put, text, flags=re.DOTALL)
