"""What the tests of the package share: programs that run in a process of their own, with the installed package.

Turning Tidelane on is about what happens before HDF5 is loaded, so that each test is a program. A program ends within its
time limit or the test fails: a hang is a defect.
"""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

SITE = os.environ.get("TIDELANE_TEST_SITE", "")
GATE = os.environ.get("TIDELANE_TEST_GATE_LIBRARY", "")
ASYNC = {"TIDELANE_MODE": "async"}  # everything is deferred, as quick as the disk here may be
HERE = pathlib.Path(__file__).resolve().parent
# A GPU that is not there (gpu_arrays.py), and libraries for it.
STANDINS = {"PYTHONPATH": f"{SITE}:{HERE}:{HERE / 'standins'}", "TEST_LIBCUDA": os.environ.get("TIDELANE_TEST_LIBCUDA", "")}
GPU = {**ASYNC, **STANDINS}


def environment(**settings):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TIDELANE_", "HDF5_"))}
    env["PYTHONPATH"] = SITE
    env.update(settings)
    return env


class Runner:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.gate = self.folder / "gate"

    def __call__(self, code, *, rc=0, env=ASYNC, gated=False, timeout=60, command=None, native=False):
        settings = {} if native else dict(env)
        if gated:
            settings.update({"LD_PRELOAD": GATE, "TIDELANE_TEST_GATE": str(self.gate)})
        command = command or [sys.executable, "-B", "-c", textwrap.dedent(code)]
        done = subprocess.run(
            command, env=environment(**settings), cwd=self.folder, timeout=timeout, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert rc is None or done.returncode == rc, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done


@pytest.fixture
def program(tmp_path):
    return Runner(tmp_path)
