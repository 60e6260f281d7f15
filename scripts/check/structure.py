#!/usr/bin/env python3
"""Checks what lines of code do not show: how much state a class has, who defines what, and who needs whom in a circle.

    members and methods   of a class at most 40 each: functions that are short because they share fields are not simple
    definitions           a function is defined in the room whose header declares it
    circles               a header with the sources that define its functions is a part; no part needs itself by way of others

What stands against a rule is in structure.json, with its number or its names. That list only shrinks: who makes a class
smaller, or takes a part out of a circle, writes the new number there (`--fix` does), and nobody can go back.
"""

import argparse
import collections
import json
import pathlib
import sys

import symbols

REPO = pathlib.Path(__file__).resolve().parents[2]
EXCEPTIONS = pathlib.Path(__file__).with_suffix(".json")
MOST = 40
# HDF5's own interface, declared anew for builds without its headers: tables and entry points that HDF5 has laid down.
FOREIGN_HEADER = "src/h5/declarations.h"


def room_of(path):
    return path.split("/")[1]


def large_classes(found):
    """{class: [members, methods]} of those above a limit."""
    sizes = {}
    for name in found.members.keys() | found.methods.keys():
        size = [len(found.members.get(name, ())), len(found.methods.get(name, ()))]
        if max(size) > MOST:
            sizes[name] = size
    return sizes


def defined_elsewhere(found):
    """["function: header, file"] of what no file of the declaring room defines."""
    strays = []
    for function, headers in found.declared.items():
        files = found.defined.get(function, set())
        for header in headers - {FOREIGN_HEADER}:
            if files and all(room_of(file) != room_of(header) for file in files):
                strays.append(f"{function.removeprefix('::')}: {header}, {min(files)}")
    return sorted(strays)


def parts(texts, found):
    """{file: the part it belongs to}: a source is with the header of its name, else with the one it defines most of."""
    owners = collections.defaultdict(collections.Counter)
    for function, headers in found.declared.items():
        for file in found.defined.get(function, ()):
            if len(headers) == 1 and FOREIGN_HEADER not in headers:
                owners[file][min(headers)] += 1
    of = {}
    for file in texts:
        own = file.removesuffix(".cc") + ".h"
        if file.endswith(".h") or own in texts:
            of[file] = own if file.endswith(".cc") else file
        else:
            of[file] = owners[file].most_common(1)[0][0] if owners[file] else file
    return of


def needs(texts, of):
    edges = {part: set() for part in of.values()}
    for file, text in texts.items():
        edges[of[file]] |= {of[target] for target in symbols.includes(text) if target in of} - {of[file]}
    return edges


def circles(edges):
    """The strongly connected components of more than one part (Tarjan), each sorted."""
    index, low, stack, found = {}, {}, [], []

    def visit(part):
        index[part] = low[part] = len(index)
        stack.append(part)
        for other in edges[part]:
            if other not in index:
                visit(other)
            if other in stack:
                low[part] = min(low[part], low[other])
        if low[part] == index[part]:
            at = stack.index(part)
            circle = sorted(stack[at:])
            del stack[at:]
            if len(circle) > 1:
                found.append(circle)

    sys.setrecursionlimit(10_000)
    for part in sorted(edges):
        if part not in index:
            visit(part)
    return sorted(found)


def measure(repo):
    texts = symbols.sources(repo)
    found = symbols.read(repo, [name for name in texts if name != FOREIGN_HEADER])
    return {
        "classes": dict(sorted(large_classes(found).items())),
        "definitions": defined_elsewhere(found),
        "circles": circles(needs(texts, parts(texts, found))),
    }


def problems_of(now, allowed):
    """What is worse than the list says, and what the list says in vain."""
    problems = []
    for name, size in now["classes"].items():
        most = [max(limit, MOST) for limit in allowed["classes"].get(name, [0, 0])]
        if any(is_now > limit for is_now, limit in zip(size, most)):
            problems.append(f"{name} has {size[0]} members and {size[1]} methods; at most {most[0]} and {most[1]}: split its state")
    for stray in now["definitions"]:
        if stray not in allowed["definitions"]:
            problems.append(f"{stray}: defined outside the room that declares it")
    known = [set(circle) for circle in allowed["circles"]]
    for circle in now["circles"]:
        if not any(set(circle) <= one for one in known):
            problems.append("a circle: " + ", ".join(circle))
    if not problems and now != allowed:
        problems.append(f"better than {EXCEPTIONS.name} says: write it there with scripts/check/structure.py --fix")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true", help="write what is better now into the list")
    fix = parser.parse_args().fix
    now, allowed = measure(REPO), json.loads(EXCEPTIONS.read_text())
    problems = problems_of(now, allowed)
    if fix and all(problem.startswith("better") for problem in problems):
        EXCEPTIONS.write_text(json.dumps(now, indent=2) + "\n")
        return 0
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
