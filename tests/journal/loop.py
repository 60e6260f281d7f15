#!/usr/bin/env python3
"""Power failures of a real file system, by hand and as root: a program is killed on a loop-mounted one, and what its block device has by then is mounted anew.

    sudo loop.py --plugin DIR --seeds 1-4 --points 20 [--mkfs 'mkfs.ext4 -q -F'] [--options data=writeback]
    sudo loop.py --seeds 1-4 --native --control

Nothing is synced or unmounted before the image is copied: what the file system had in memory alone is lost, as at a power failure, and the copy's own journal is replayed by its mount. Unlike
replay.py it knows how one kernel's file system orders things; that the device itself loses what it was not told to flush needs dm-log-writes or dm-flakey, which it does not use.
States are recovered and compared as power.py does it. Exit status: as there.
"""

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys

import kill
import power
from common import Unfit, native_env, run, scratch


def must(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def mounted(image, folder, options=""):
    folder.mkdir(exist_ok=True)
    must("mount", "-o", "loop" + (f",{options}" if options else ""), image, folder)
    try:
        yield folder
    finally:
        must("umount", folder)


class Failures:
    def __init__(self, tools, program, work):
        self.tools, self.args, self.program, self.work = tools, tools.args, program, work
        self.image, self.empty = work / "image", work / "empty"
        with open(self.empty, "wb") as file:
            file.truncate(self.args.size << 20)
        must(*self.args.mkfs.split(), self.empty)

    def state(self, at):
        """What is found after a kill before the at-th call, and what may be; and the number of calls."""
        story = power.Story(self.tools, self.program, self.work, "loop")
        report, count, copy = self.work / "report", self.work / "count", self.work / "copy"
        count.unlink(missing_ok=True)
        shutil.copyfile(self.empty, self.image)
        with mounted(self.image, self.work / "mounted", self.args.options) as folder:
            data = folder / "data"
            data.mkdir()
            os.sync()
            env = native_env() if self.args.native else self.tools.plugin.env(self.program.settings, self.args.journal)
            command = self.program.command(data, report)
            done = run([*command, "--fsync"] if self.args.native else command, env | self.tools.built.kill_env(data, at, count=count), self.work, 60)
            shutil.copyfile(self.image, copy)  # before anything is written back
        with mounted(copy, self.work / "mounted", self.args.options) as folder:
            files = {path.name: path.read_bytes() for path in (folder / "data").iterdir()}
        for line in report.read_text().splitlines() if report.exists() else []:
            word, name, *rest = json.loads(line)
            story.told[name].take(word, rest)
        for told in story.told.values():
            told.ended(done.rc == 0)
        return power.State(files, story.allowed(), f"{self.program.kind} {self.program.seed}: at call {at}"), int.from_bytes(count.read_bytes(), "little")


def main():
    parser = power.parser(__doc__)
    parser.add_argument("--points", type=int, default=20, help="failures of each program")
    parser.add_argument("--mkfs", default="mkfs.ext4 -q -F -b 4096", help="makes the file system in a file")
    parser.add_argument("--options", default="", help="of the mount")
    parser.add_argument("--size", type=int, default=32, help="MiB")
    args = power.understood(parser.parse_args())
    try:
        tools = power.Tools(args)
    except Unfit as reason:
        sys.exit(f"loop.py: {reason}")
    with scratch(args.dir, "loop.") as work:
        (work / "check").mkdir()
        checker = power.Checker(tools, work / "check")
        for seed in args.seeds:
            program = kill.Program(seed, args, tools.built)
            failures = Failures(tools, program, work)
            whole, calls = failures.state(None)
            checker.add(whole)
            for at in sorted(random.Random(seed).sample(range(1, calls + 1), min(calls, args.points))):
                checker.add(failures.state(at)[0])
        checker.flush()
    sys.exit(power.tell(args, checker.counts, checker.wrong))


if __name__ == "__main__":
    main()
