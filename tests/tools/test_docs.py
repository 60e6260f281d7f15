"""docs/tool.md can be run: every command in it does what it says, on the programs that it names."""

import os
import re
import shutil
import sys

import h5py
import numpy as np
from conftest import REPO, TOOL

PAGE = REPO / "docs" / "tool.md"


def commands():
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.S | re.M):
        for line in block.splitlines():
            yield re.sub(r"\s+#.*", "", line)


def particles(path):
    """What the queries ask."""
    random = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        for group in ("/", "/step2"):
            for name in ("Energy", "x", "y"):
                file.create_dataset(f"{group}/{name}", data=random.exponential(2, 10000), chunks=(1000,), compression="gzip")
        events = np.zeros(100, [("kind", "S8"), ("p", [("x", "f8"), ("y", "f8")])])
        events["kind"], events["p"]["x"] = np.array([b"tau", b"muon"])[np.arange(100) % 2], random.random(100)
        file["events"] = events


def test_every_command_runs(tidelane):
    programs = tidelane.folder / "bin"
    programs.mkdir()
    for name in ("python", "python3"):
        python = programs / name  # a link would leave its virtual environment
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
    particles(tidelane.folder / "run.h5")
    (programs / "tidelane").symlink_to(TOOL)
    script = tidelane.folder / "my_script.py"
    script.write_text(tidelane.writer.read_text().replace("sys.argv[1], int(sys.argv[2])", "'data', 2").replace("len(sys.argv) > 3", "0"))
    simulation = tidelane.folder / "my_simulation"
    simulation.write_text(f"#!{sys.executable}\n{script.read_text()}")
    simulation.chmod(0o755)
    env = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }  # fmt: skip
    ran = 0
    for command in commands():
        if "mpirun" in command and shutil.which("mpirun") is None:
            continue
        done = tidelane("-c", command, tool="/bin/bash", **env)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        ran += 1
    assert ran >= 10
    for made in ("run.html", "run.json", "run.trace", "perfetto.json", "hits.csv", "hits.h5", "hits.arrow"):
        assert (tidelane.folder / made).stat().st_size > 0, made


def test_the_statuses_are_those_of_the_program(tidelane):
    said = dict(re.findall(r"^  (\d[\d, ]*?|others) {2,}(.*)$", tidelane("--help").stdout.split("Exit status:")[1], re.M))
    written = dict(re.findall(r"^\| (\d[\d, ]*|others) \| (.*) \|$", PAGE.read_text(), re.M))
    assert said.keys() == written.keys()
