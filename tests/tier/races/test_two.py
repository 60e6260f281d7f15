"""Two programs on one file, in turn and at once; readers while the file is brought; other versions of HDF5, and HDF5 without file locks."""

import contextlib
import json
import subprocess
import sys
import time

import common
import pytest
from conftest import BUILT, refused

H5PY = """
import sys, h5py, numpy as np
path, mode, k = sys.argv[1], sys.argv[2], int(sys.argv[3])
driver = sys.argv[4] if len(sys.argv) > 4 else None
with h5py.File(path, mode, driver=driver) as file:
    if mode != "r":
        file.attrs["k"] = k
        file.require_dataset("x", (5000,), "f8")[...] = k
    print(int(file.attrs["k"]), sorted(set(file["x"][()].tolist())))
"""
NO_LOCKS = {"HDF5_USE_FILE_LOCKING": "FALSE"}


def wheel(env, path, mode, k=0, *driver):
    """The HDF5 of an h5py wheel writes or reads a file of one number."""
    return common.run([sys.executable, "-B", "-c", H5PY, path, mode, k, *driver], env, timeout=60)


def begun(there, words, env):
    return subprocess.Popen([str(word) for word in (BUILT.writer, *words)], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/")


@pytest.mark.parametrize("mover", [False, True], ids=["no mover", "movers"])
def test_in_turn(there, mover):
    there.make(commit=3, mover=mover)
    for turn in range(1, 6):
        there.make(commit=3, go_on=True, mover=mover, latest=turn % 2 == 0)
        assert there.seen(mover=mover) == 3 + 3 * turn
    there.must_drain()
    assert there.stock() == 18


def counters(summary):
    return json.loads(summary.read_text())["counters"]


@pytest.mark.parametrize("locks", [{}, NO_LOCKS], ids=["locks", "no locks"])
def test_who_opens_it_again_goes_on_with_the_log(there, locks):
    """Nothing comes home meanwhile, and one entry has all of it."""
    summary = there.root / "summary.json"
    there.make(commit=3, env=locks)
    before, entries = there.path().read_bytes(), there.entries()
    for turn in range(1, 6):
        there.make(commit=3, go_on=True, env=locks | {"TIDELANE_SUMMARY": summary})
        assert counters(summary)["logs_continued"] == 1 and counters(summary)["files_recovered"] == 0
        assert there.path().read_bytes() == before and there.entries() == entries
        assert there.seen(env=locks) == 3 + 3 * turn
        assert refused(there.stock())
    there.must_drain()
    assert there.stock() == 18


def test_who_opens_it_again_does_not_wait_for_the_mover(there):
    """Whose rate lets him bring the file home in ten minutes; the next one goes on, and so does the mover, when the program has ended."""
    summary = there.root / "summary.json"
    large = ("--rows", "20", "--state", "300000")
    there.make(commit=3, words=large)
    size = sum((there.own / name).stat().st_size for name in there.entries())
    there.start(words=[size // 600])
    for turn in range(1, 4):
        time.sleep(0.1)
        there.make(commit=3, go_on=True, words=large, env={"TIDELANE_SUMMARY": summary})
        assert counters(summary)["logs_continued"] == 1
        assert there.seen(words=large) == 3 + 3 * turn
    there.must_drain()
    assert there.stock(words=large) == 12


@pytest.mark.parametrize("reader", [False, True], ids=["alone", "with a reader"])
def test_without_a_lease_the_mover_is_told(there, reader):
    """Who has the file open to read keeps a mover from a lease; and a writer, without locks, asks him all the same."""
    summary = there.root / "summary.json"
    there.make(commit=9, env=NO_LOCKS)
    with open(there.path(), "rb") if reader else contextlib.nullcontext():
        there.start(words=[500])
        time.sleep(0.3)
        there.make(commit=3, go_on=True, env=NO_LOCKS | {"TIDELANE_SUMMARY": summary})
        assert counters(summary)["logs_continued"] == 1
    there.must_drain()
    assert there.stock() == 12


@pytest.mark.parametrize("how", ["power", "no tier", "another tier", "no marker", "renamed"])
def test_who_cannot_go_on_brings_it_home_first(there, how):
    summary = there.root / "summary.json"
    there.make(commit=3)
    env, tier = {"TIDELANE_SUMMARY": summary}, True
    if how == "power":
        env["TIDELANE_JOURNAL"] = "power"
    elif how == "no tier":
        tier = False
    elif how == "another tier":
        (there.root / "other").mkdir()
        env["TIDELANE_TIER"] = there.root / "other"
    elif how == "no marker":
        there.path("a.h5-tier").unlink()
    else:
        there.path().rename(there.path("b.h5"))
    name = "b.h5" if how == "renamed" else "a.h5"
    there.make(name, commit=3, go_on=True, tier=tier, env=env)
    assert (counters(summary)["logs_continued"], counters(summary)["files_recovered"]) == (0, 1)
    assert there.seen(name, env={key: env[key] for key in env if key == "TIDELANE_TIER"}) == 6
    there.tool("drain", there.data, *[there.root / "other"] * (how == "another tier"))
    there.must_drain()
    assert there.stock(name) == 6


@pytest.mark.parametrize("first", ["tier", "plugin", "stock"])
@pytest.mark.parametrize("then", ["tier", "plugin", "stock"])
def test_in_turn_by_different_ways(there, first, then):
    ways = {"tier": {}, "plugin": {"tier": False}, "stock": {"native": True}}
    there.make(commit=4, **ways[first])
    if then == "stock" and not there.drained():
        there.must_drain()
    there.make(commit=4, go_on=True, **ways[then])
    assert there.seen() == 8
    there.must_drain()
    assert there.stock() == 8


def test_the_other_is_kept_out_while_one_has_it_open(there):
    words = ["--file", there.path(), "--report", there.root / "report", "--steps", "6", "--rows", "20", "--state", "3000", "--pause", "100"]
    first = begun(there, words, there.env())
    until = time.monotonic() + 20
    while not (there.root / "report").exists() or "done" not in (there.root / "report").read_text():
        assert time.monotonic() < until
        time.sleep(0.01)
    answers = [there.seen(mode="r+", tier=True), there.seen(mode="r"), there.stock(), there.stock(mode="r+")]
    assert first.wait(timeout=60) == 0, first.stderr.read()
    assert all(refused(answer) for answer in answers), answers
    assert there.seen() == 7
    there.must_drain()
    assert there.stock() == 7


AGAIN = """
import os, sys, time, h5py
def opened(path, mode):
    while not os.path.exists(sys.argv[2]):
        try: return h5py.File(path, mode)
        except OSError as error:
            if mode == "r": return None
            if "errno = 11" not in str(error): raise
        time.sleep(0.002)
"""
REOPENS = """
for k in range(1, 41):
    file = opened(sys.argv[1], "r+")
    if file is None: sys.exit("no time")
    with file:
        file["x"][...] = k
        file.attrs["k"] = k
    time.sleep(0.02 if k % 10 else 1)  # now and then a mover comes to its end, and HDF5 without the plugin sees the file
"""
READS = """
seen, last = 0, 0
while not os.path.exists(sys.argv[2]):
    file = opened(sys.argv[1], "r")
    if file is None: continue
    with file: found = {int(file.attrs["k"]), *file["x"][()].tolist()}
    if len(found) != 1 or max(found) < last: print("wrong", found, last, flush=True)
    seen, last = seen + 1, max(found)
    time.sleep(0.003)
print(seen)
"""


def test_readers_while_a_program_closes_and_opens_and_movers_run(there):
    """Each sees a whole commit, never an older one than before, or is refused."""
    wheel(there.env(), there.path(), "w", 0)
    envs = [there.env(mover=True), there.env(tier=False), common.native_env()]
    words = [str(there.path()), str(there.root / "stop")]
    programs = [
        subprocess.Popen([sys.executable, "-B", "-c", AGAIN + code, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for code, env in zip((REOPENS, READS, READS), envs)
    ]
    try:
        programs[0].wait(timeout=60)
    finally:
        (there.root / "stop").touch()
    told = [program.communicate(timeout=30) for program in programs]
    assert programs[0].returncode == 0, told
    assert all("wrong" not in out and int(out.split()[-1]) > 0 for out, _ in told[1:]), told
    assert wheel(there.env(), there.path(), "r").out.startswith("40 [40.0]")
    there.must_drain()
    assert wheel(common.native_env(), there.path(), "r").out.startswith("40 [40.0]")


def test_a_wheels_hdf5_and_another_one(there):
    path = there.path()
    assert wheel(there.env(), path, "w", 1).out.startswith("1 [1.0]")
    assert wheel(common.native_env(), path, "r").rc != 0
    assert wheel(there.env(tier=False), path, "r").out.startswith("1 [1.0]")
    assert wheel(there.env(), path, "a", 2).out.startswith("2 [2.0]")
    there.must_drain()
    assert wheel(common.native_env(), path, "r").out.startswith("2 [2.0]")
    there.make("b.h5", 5)
    assert wheel(there.env(tier=False), there.path("b.h5"), "r").rc != 0  # it has no "x"; but it was opened
    assert there.seen("b.h5") == 5


@pytest.mark.parametrize("driver", ["core", "stdio"])
def test_another_driver_finds_it_at_its_place(there, driver):
    """It knows no tier: the file is brought home first."""
    path = there.path()
    assert wheel(there.env(), path, "w", 1).out.startswith("1 [1.0]")
    assert wheel(there.env(tier=False), path, "r", 0, driver).out.startswith("1 [1.0]")
    assert wheel(common.native_env(), path, "r").out.startswith("1 [1.0]") and there.drained()


def test_without_file_locks_in_turn(there):
    there.make(commit=4, env=NO_LOCKS)
    assert there.seen(env=NO_LOCKS) == there.seen() == 4
    there.make(commit=3, go_on=True, env=NO_LOCKS)
    assert there.seen() == 7
    there.must_drain()
    assert there.stock() == 7


def test_without_file_locks_a_writer_comes_while_a_mover_stands_still(there, stop):
    """Nobody is kept out by locks that are off; so the plugin itself keeps its writers and movers apart."""
    there.make(commit=9, env=NO_LOCKS)
    mover = there.stopped(*stop)
    words = ["--file", there.path(), "--report", "/dev/null", "--continue", "--steps", "3", "--rows", "20", "--state", "3000"]
    writer = begun(there, words, there.env(settings=NO_LOCKS))
    time.sleep(0.4)
    there.goes_on(mover)
    assert writer.wait(timeout=30) == 0, writer.stderr.read()
    assert there.seen() == 13
    there.must_drain()
    assert there.stock() == 13


def test_a_reader_that_has_it_open_while_it_is_brought(there):
    """Who opened it before the mover came reads the same to its end."""
    path = there.path()
    wheel(there.env(), path, "w", 1)
    code = """
import sys, h5py
with h5py.File(sys.argv[1], "r") as file:
    first = file["x"][:10].tolist()
    print("ready", flush=True)
    sys.stdin.readline()
    rest = file["x"][()].tolist()
    print(sorted(set(first + rest)), int(file.attrs["k"]))
"""
    reader = subprocess.Popen([sys.executable, "-B", "-c", code, str(path)], env=there.env(tier=False), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert reader.stdout.readline() == "ready\n"
    mover = there.start()
    time.sleep(1)
    out, _ = reader.communicate("\n", timeout=30)
    assert out == "[1.0] 1\n"
    there.end(mover)
    there.must_drain()
    assert wheel(common.native_env(), path, "r").out.startswith("1 [1.0]")


OTHER_DRIVERS = """
import sys
import h5py, numpy
path, driver, mode = sys.argv[1:]
for step in range(30):
    with h5py.File(path, "w") as file:
        file["x"] = numpy.full(50000, step)
    with h5py.File(path, mode, driver=driver) as file:
        assert file["x"][-1] == step
"""


@pytest.mark.parametrize("driver", ["core", "stdio"])
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_another_driver_finds_the_file_at_its_place(there, driver, mode):
    """Which knows no tier, in the program that has just closed it: a mover is coming, is at it, or has just ended."""
    done = common.run([sys.executable, "-c", OTHER_DRIVERS, there.path(), driver, mode], there.env(mover=True), timeout=60)
    assert done.rc == 0, done.words()


RENAMED = """
import os, sys
import h5py, numpy
path, driver, mode = sys.argv[1:]
for step in range(10):
    with h5py.File(path, "w") as file:
        file["x"] = numpy.full(50000, step)
    os.rename(path, path + ".new")
    with h5py.File(path + ".new", mode, driver=driver) as file:
        assert file["x"][-1] == step
"""


@pytest.mark.parametrize("driver", ["core", "stdio"])
@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("mover", [False, True])
def test_another_driver_finds_a_renamed_file_at_its_place(there, driver, mode, mover):
    """The marker is beside the name that it had."""
    done = common.run([sys.executable, "-c", RENAMED, there.path(), driver, mode], there.env(mover=mover), timeout=60)
    assert done.rc == 0, done.words()


CHILDREN = """
import os, sys
import h5py, numpy
with h5py.File(sys.argv[1], "w") as file:
    file["x"] = numpy.arange(200000)
    file.flush()
    child = os.fork()
    if child == 0:
        wrong = int(file["x"][77]) != 77
        try:
            file.close()
        except Exception as error:
            print(error)
            wrong = True
        os._exit(int(wrong))
    ended = os.waitpid(child, 0)[1]
    file["x"][...] = 2 * numpy.arange(200000)
sys.exit(ended != 0)
"""


def test_a_child_of_fork_reads_and_closes(there):
    done = common.run([sys.executable, "-c", CHILDREN, there.path()], there.env(), timeout=60)
    assert done.rc == 0, done.words()
