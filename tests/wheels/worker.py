"""Runs programs of one library in this process, and looks at what other processes' programs left.

    worker.py LIBRARY --mode MODE --folder F --seeds A-B [--ops FILE]      runs them
    worker.py LIBRARY --folder F --seeds N --commits FILE [--images D]     one of them that says what it commits, to be killed (commits.py)
    worker.py LIBRARY --check F ...                                        compares what they left; has no plugin

For each program a line `begin SEED`, and then `ok SEED ...` or `wrong SEED {what and where}`, so that after a crash the last
`begin` says whose it was. Its operations are in F/SEED/operations, one a line, each written before it is done.
A program that does not end is ended: the place where it stood is printed.
"""

import argparse
import faulthandler
import importlib
import json
import pathlib
import pickle
import random
import sys
import time
import traceback
import warnings

from commits import Commits
from program import Skip, Wrong

LIMIT_S = 60  # for one program
LOCKED_S = 30  # for other processes' deferred files


def describe(error):
    place = traceback.extract_tb(error.__traceback__)[-1]
    kind = "differs" if isinstance(error, Wrong) else type(error).__name__
    return {"kind": kind, "what": str(error)[:600], "where": f"{pathlib.Path(place.filename).name}:{place.lineno}"}


def operations_of(program, rng):
    for _ in range(rng.randint(*program.LENGTH)):
        operation = program.draw(rng)
        if operation is not None:
            yield json.loads(json.dumps(operation))  # as it will be when it is repeated


def run_to_be_killed(args, make, seed):
    """One program in the folder itself, which says what it commits; whoever kills it looks at its files."""
    program, rng = make(args.folder, args.mode), random.Random(seed)
    commits = Commits(args.library, program, args.commits, args.images)
    for operation in operations_of(program, rng):
        try:
            commits.do(operation)
        except Skip:
            pass
    commits.finish(seed)


def run(make, seed, folder, mode, given):
    """One program; returns what was wrong, or None, and how many operations applied."""
    folder.mkdir(parents=True)
    rng = random.Random(seed)
    program, done, applied = make(folder, mode), 0, 0
    trouble = None
    with open(folder / "operations", "w", buffering=1) as kept:
        try:
            for operation in given if given is not None else operations_of(program, rng):
                kept.write(json.dumps(operation) + "\n")
                done += 1
                try:
                    program.do(operation)
                    applied += 1
                except Skip:
                    pass
            program.finish(seed)
        except Exception as error:  # whatever the library raises is to be judged against native
            trouble = {**describe(error), "operation": done}
    (folder / "left").write_bytes(pickle.dumps(program.left))
    return trouble, applied


def look_at(make, folder):
    """What is wrong with what a program left, or None."""
    if not (folder / "left").exists():
        return None
    for path, model in pickle.loads((folder / "left").read_bytes()):
        try:
            make.verify_file(path, pickle.loads(model))
        except Exception as error:
            return {**describe(error), "left": pathlib.Path(path).name}
    return None


def guarded(seed, body):
    print(f"begin {seed}", flush=True)
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    begin = time.monotonic()
    trouble, note = body()
    faulthandler.cancel_dump_traceback_later()
    if trouble:
        print(f"wrong {seed} {json.dumps(trouble)}", flush=True)
    else:
        print(f"ok {seed} {note} {time.monotonic() - begin:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--mode", default="native")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--ops", help="a file with the operations in place of those that would be drawn")
    parser.add_argument("--commits", help="the program is to be killed: where it says what it commits")
    parser.add_argument("--images", help="a folder for each state that it commits")
    parser.add_argument("--check", nargs="*", type=pathlib.Path, default=[])
    args = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("ignore")
    make = importlib.import_module("room_" + args.library).PROGRAM
    if args.commits:
        return run_to_be_killed(args, make, int(args.seeds))
    for folder in args.check:
        for one in sorted(folder.iterdir()):
            if (one / "left").exists():
                guarded(f"{folder.name}/{one.name}", lambda: (look_at(make, one), "left"))
    if args.folder:
        given = [json.loads(line) for line in open(args.ops)] if args.ops else None
        first, _, last = args.seeds.partition("-")
        for seed in range(int(first), int(last or first) + 1):
            guarded(seed, lambda: run(make, seed, args.folder / str(seed), args.mode, given))
    print("end", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    main()
