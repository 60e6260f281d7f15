"""What a random program that is to be killed says of its commits: for tests/journal/kill_random.py, in the words of tests/stress/commit_log.h.

    ["begin", k]  ["done", k, [names]]  ["creating", name]  ["created", name]

Natively it shows the states, too: with `images` all files are flushed and copied at each begin, into a folder k.
Invariant: a "done" is said only of what docs/survive.md calls a commit: a flush of the file, or its last close.
"""

import json
import os
import pathlib
import shutil

import h5py


class Library:
    """What the commits of a library's programs are."""

    MAY_COMMIT = {"create", "open", "close", "flush", "second", "copy", "external", "virtual", "chunks", "fork"}

    def __init__(self, program):
        self.program = program

    def path(self, operation):
        return self.program.path

    def may_commit(self, operation):
        return operation[0] in self.MAY_COMMIT

    def is_commit(self, operation):
        return operation[0] in ("flush", "close")

    def creates(self, operation):
        return operation[0] == "create"

    def flush(self):
        if self.program.file is not None:
            self.program.file.flush()


class H5py(Library):
    def path(self, operation):
        return self.program.path(operation[1])

    def is_commit(self, operation):
        return super().is_commit(operation) and operation[1] in self.program.writable

    def flush(self):
        for slot, file in self.program.files.items():
            if slot in self.program.writable:
                file.flush()


class LowLevel(Library):
    def is_commit(self, operation):
        return operation[0] == "close" or (operation[0] == "flush" and operation[2] == "file")

    def flush(self):
        if self.program.file is not None:
            h5py.h5f.flush(self.program.file)


class Tables(Library):
    def may_commit(self, operation):
        return True  # it asks where chunks lie to read them past HDF5

    def is_commit(self, operation):
        return super().is_commit(operation) and self.program.writable


LIBRARIES = {"h5py": H5py, "lowlevel": LowLevel, "tables": Tables}


class Commits:
    def __init__(self, library, program, report, images):
        self.library, self.program, self.images, self.state = LIBRARIES[library](program), program, images, 0
        self.fd = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        program.copy_as_is = lambda path, model: None  # nobody else may see a file that is not closed

    def say(self, *words):
        line = (json.dumps(words) + "\n").encode()
        if os.write(self.fd, line) != len(line):
            raise OSError("the report")

    def name(self, operation):
        return pathlib.Path(self.library.path(operation)).name

    def begin(self):
        self.state += 1
        if self.images:
            self.library.flush()
            folder = pathlib.Path(self.images, str(self.state))
            folder.mkdir()
            for path in pathlib.Path(self.program.folder).iterdir():
                shutil.copy(path, folder)
        self.say("begin", self.state)

    def do(self, operation):
        if self.library.may_commit(operation):
            self.begin()
        if self.library.creates(operation):
            self.say("creating", self.name(operation))
        commits = self.library.is_commit(operation)
        self.program.do(operation)  # Skip: nothing was done, and nothing said
        if commits:
            self.say("done", self.state, [self.name(operation)])
        if self.library.creates(operation):
            self.say("created", self.name(operation))

    def finish(self, bits):
        self.begin()
        self.program.finish(bits)
