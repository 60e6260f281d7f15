#!/usr/bin/env python3
"""Checks who includes whom under src/.

A room (a folder of src/) includes itself and rooms of lower rank, never another room of its own rank. The ranks are the
TIDELANE_RANK_<n> lists of CMakeLists.txt. A folder of a room is a floor, named in its TIDELANE_FLOORS_<room> list from the
lowest to the highest: it includes itself, lower floors and what its room may include; what lies in the room's own folder
is above all of them. HDF5's and MPI's headers are included by h5/ alone; every other room gets
them through "h5/hdf5.h", and the rooms below h5/ not at all.
"""

import pathlib
import re
import sys

REPO = pathlib.Path(__file__).resolve().parents[2]
SWITCHES = "extent/test_hooks.h"
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
FOREIGN = re.compile(r"^(hdf5|hdf5_hl|H5\w*|mpi)\.h$")


def read_ranks(cmake):
    ranks = {}
    for rank, rooms in re.findall(r"^set\(TIDELANE_RANK_(\d+)\s+([^)]*)\)", cmake, re.M):
        for room in rooms.split():
            ranks[room] = int(rank)
    return ranks


def read_floors(cmake):
    """{room: its floors, the lowest first}"""
    return {room: floors.split() for room, floors in re.findall(r"^set\(TIDELANE_FLOORS_(\w+)\s+([^)]*)\)", cmake, re.M)}


def problem_of_floors(path, target, floors):
    """Why a file at `path` (room/..., without src/) may not include `target` of its own room, or None."""
    room, *inside = path.split("/")[:-1]
    other_room, *other = target.split("/")[:-1]
    listed = floors.get(room, [])
    if inside and inside[0] not in listed:
        return f"'{inside[0]}' is no floor of {room}: TIDELANE_FLOORS_{room} in CMakeLists.txt"
    if not inside or other_room != room or other[:1] == inside[:1]:
        return None
    if not other:
        return f"{room}/ itself is above its floors"
    if other[0] not in listed or listed.index(other[0]) > listed.index(inside[0]):
        return f"{room}/{other[0]} is above {room}/{inside[0]}"
    return None


def problem_of(room, bracket, target, ranks):
    """Why a file of `room` may not include `target`, or None."""
    if FOREIGN.match(target):
        return None if room == "h5" else "only h5/ includes HDF5 or MPI headers; use \"h5/hdf5.h\""
    if bracket == "<":
        return None
    other = target.split("/")[0]
    if "/" not in target:
        return "name the room: #include \"room/file.h\""
    if other not in ranks:
        return f"'{other}' is no room of CMakeLists.txt"
    if other == room or ranks[other] < ranks[room]:
        return None
    return f"{room} has rank {ranks[room]}, {other} has rank {ranks[other]}"


def check(repo):
    cmake = (repo / "CMakeLists.txt").read_text()
    ranks, floors = read_ranks(cmake), read_floors(cmake)
    problems = []
    for path in sorted((repo / "src").rglob("*")):
        if path.suffix not in {".h", ".cc", ".c"}:
            continue
        name = path.relative_to(repo)
        room = name.parts[1]
        if len(name.parts) < 3 or room not in ranks:
            problems.append(f"{name}: belongs to no room of CMakeLists.txt")
            continue
        inside = path.relative_to(repo / "src").as_posix()
        if len(name.parts) > 3 and (why := problem_of_floors(inside, inside, floors)):
            problems.append(f"{name}: {why}")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                why = problem_of(room, match[1], match[2], ranks)
                if path.suffix == ".h" and match[2] == SWITCHES:
                    why = "only sources may: those alone are compiled once more for negative controls (TidelaneRooms.cmake)"
                if not why and match[1] == '"':
                    why = problem_of_floors(inside, match[2], floors)
                if why:
                    problems.append(f"{name}:{number}: includes {match[2]}: {why}")
    return problems


def main():
    problems = check(REPO)
    print("\n".join(problems), file=sys.stderr) if problems else None
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
