#!/usr/bin/env python3
"""Makes a failing stress run shorter.

    minimise.py [--status 10] -- build/release/tests/stress --seed 7 --ops 5000 ...

Runs the command again and again with ever more operations left out (--drop), as long as it still
ends with the same status, and prints the command that is left and its operations. Every operation
draws from a generator of its own, so leaving some out disturbs the others little.
"""

import argparse
import subprocess
import sys


def runs_of(numbers):
    """[1, 2, 3, 7] as "1-3,7"."""
    text, i = [], 0
    while i < len(numbers):
        j = i
        while j + 1 < len(numbers) and numbers[j + 1] == numbers[j] + 1:
            j += 1
        text.append(f"{numbers[i]}-{numbers[j]}" if j > i else str(numbers[i]))
        i = j + 1
    return ",".join(text)


class Minimiser:
    def __init__(self, command, status, timeout):
        self.command, self.status, self.timeout = command, status, timeout
        self.runs = 0

    def fails(self, ops, keep):
        kept = set(keep)
        drop = runs_of([i for i in range(ops) if i not in kept])
        command = self.command + ["--ops", str(ops)] + (["--drop", drop] if drop else [])
        self.runs += 1
        try:
            rc = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                timeout=self.timeout).returncode
        except subprocess.TimeoutExpired:
            rc = 124
        return rc == self.status

    def shorten(self, ops):
        """The smallest number of operations that still fails, to within a few."""
        low, high = 1, ops
        while low < high:
            middle = (low + high) // 2
            if self.fails(middle, range(middle)):
                high = middle
            else:
                low = middle + 1
        return high

    def reduce(self, ops):
        keep, size = list(range(ops)), max(1, ops // 2)
        while True:
            changed, at = False, 0
            while at < len(keep):
                candidate = keep[:at] + keep[at + size:]
                if self.fails(ops, candidate):
                    keep, changed = candidate, True
                else:
                    at += size
            if size == 1 and not changed:
                return keep
            size = max(1, size // 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--status", type=int, default=10)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    command, ops = list(args.command), 20000
    if "--ops" in command:
        at = command.index("--ops")
        ops = int(command[at + 1])
        del command[at:at + 2]
    minimiser = Minimiser(command, args.status, args.timeout)
    if not minimiser.fails(ops, range(ops)):
        sys.exit(f"the command does not end with status {args.status}")
    ops = minimiser.shorten(ops)
    keep = minimiser.reduce(ops)
    kept = set(keep)
    drop = runs_of([i for i in range(ops) if i not in kept])
    print(f"{len(keep)} operations left after {minimiser.runs} runs:")
    print(" ".join(command + ["--ops", str(ops), "--drop", drop]))
    subprocess.run(command + ["--ops", str(ops), "--drop", drop, "--verbose"], check=False)


if __name__ == "__main__":
    main()
