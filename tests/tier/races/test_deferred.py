"""close=tier_deferred: closes return before the tier has the file; it soon follows, and the mover goes on from there."""

import json
import signal
import subprocess
import sys

import common
import pytest
from conftest import EMPTY

STEPS = 5
# A compressed file a step; with "flush" a part of it is flushed first. Then it ends, or kills itself before anything of HDF5 is called again.
PROGRAM = """
import os, signal, sys
import h5py, numpy
folder, form, end = sys.argv[1:]
for step in range(%d):
    with h5py.File(f"{folder}/{step}.h5", "w") as file:
        data = file.create_dataset("x", (512, 1024), "i8", chunks=(64, 1024), compression="gzip" if form == "gzip" else None)
        if end == "flushed":
            data[:64] = step
            file.flush()
        data[...] = numpy.arange(512 * 1024).reshape(512, 1024) // 3 + step
    print("closed", step, flush=True)
if end != "ends":
    os.kill(os.getpid(), signal.SIGKILL)
""" % STEPS
READ = """
import json, sys
import h5py, numpy
def state(path):
    try:
        with h5py.File(path) as file:
            found, step = file["x"][...], int(path[-4])
            whole = (found == numpy.arange(512 * 1024).reshape(512, 1024) // 3 + step).all()
            return "whole" if whole else "flushed" if (found[:64] == step).all() and not found[64:].any() else "wrong"
    except OSError as error:
        return str(error)
print(json.dumps([state(path) for path in sys.argv[1:]]))
"""


def states(there, env):
    files = [str(there.path(f"{step}.h5")) for step in range(STEPS)]
    done = subprocess.run([sys.executable, "-c", READ, *files], env=env, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def run(there, form, end):
    summary = there.root / "summary.json"
    env = there.env(mover=True) | {"TIDELANE_CLOSE": "tier_deferred", "TIDELANE_MODE": "async", "TIDELANE_SUMMARY": summary}
    done = common.run([sys.executable, "-c", PROGRAM, there.data, form, end], env, timeout=60)
    assert done.rc == (0 if end == "ends" else -signal.SIGKILL) and done.out.count("closed") == STEPS, done.words()
    return json.loads(summary.read_text())["counters"] if end == "ends" else {}


@pytest.mark.parametrize("form", ["plain", "gzip"])
def test_closes_return_before_the_tier_has_the_file(there, form):
    counted = run(there, form, "ends")
    assert counted["closes_in_tier"] == STEPS
    # On a busy machine lanes may be done before one of the closes.
    assert 0 < counted["closes_deferred"] <= STEPS
    assert (counted["closes_late"] > 0) == (form == "gzip")
    assert states(there, there.env(tier=False)) == ["whole"] * STEPS
    there.must_drain()
    assert states(there, common.native_env()) == ["whole"] * STEPS


@pytest.mark.parametrize("form", ["plain", "gzip"])
@pytest.mark.parametrize("end", ["created", "flushed"])
def test_a_kill_leaves_the_last_flush_or_all(there, form, end):
    run(there, form, end)
    found = states(there, there.env(tier=False))
    assert not {"wrong"} & set(found), found
    if end == "flushed":
        assert set(found) <= {"whole", "flushed"}, found
    there.kill_movers()
    there.drain()
    assert there.plugin.recover(there.data).rc == 0
    again = states(there, common.native_env())
    assert [state if state in ("whole", "flushed") else EMPTY for state in again] == [state if state in ("whole", "flushed") else EMPTY for state in found]
