"""What the tests of the program share: a clean environment, runs that always end, programs that use HDF5."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
TOOL = os.environ["TIDELANE_TEST_TOOL"]
CC = os.environ["TIDELANE_TEST_CC"]

# Writes `steps` files of 4 MiB into a folder, and computes between them.
WRITER = """
import os, sys, time
import h5py, numpy
folder, steps = sys.argv[1], int(sys.argv[2])
status = int(sys.argv[3]) if len(sys.argv) > 3 else 0
for step in range(steps):
    with h5py.File(os.path.join(folder, f"{os.getpid()}-{step}.h5"), "w") as file:
        for name in "abcd":
            file[name] = numpy.full(1 << 17, step, "f8")
    time.sleep(0.02)
print("the program's own words")
sys.exit(status)
"""
STEP_BYTES = 4 << 20


def clean_environment(**more):
    """Nothing that changes how HDF5, Tidelane or a launcher works."""
    prefixes = ("TIDELANE_", "HDF5_", "OMPI_", "PMI", "SLURM_", "MV2_", "PALS_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    env.pop("LD_PRELOAD", None)
    return env | more


class Tool:
    def __init__(self, folder):
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.writer = folder / "writer.py"
        self.writer.write_text(WRITER)
        self.data = folder / "data"
        self.data.mkdir()

    def environment(self, **more):
        return clean_environment(TMPDIR=str(self.temporary), **more)

    def start(self, *words, tool=TOOL, **env):
        return subprocess.Popen(
            [str(word) for word in (tool, *words)], cwd=self.folder, env=self.environment(**env),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __call__(self, *words, tool=TOOL, **env):
        process = self.start(*words, tool=tool, **env)
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def program(self, steps=3, *more):
        return [sys.executable, "-B", self.writer, self.data, steps, *more]

    def run(self, *options, steps=3, **env):
        """A run in which everything is asynchronous, however quick the storage."""
        return self("run", "--mode", "async", *options, "--", *self.program(steps), **env)


@pytest.fixture
def tidelane(tmp_path):
    return Tool(tmp_path)


@pytest.fixture
def schema():
    return json.loads((REPO / "docs" / "summary.schema.json").read_text())


def error_line(done, status=2):
    """The one line of a run that was refused."""
    assert done.returncode == status, done
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and done.stdout == "", done
    return lines[0]
