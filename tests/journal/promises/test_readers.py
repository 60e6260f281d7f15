"""Who opens what a killed program has left: readers change nothing, writers recover, and one at a time."""

import os
import shutil
import subprocess
import sys

import common
import pytest
from conftest import BEGIN, COMMITTED, PLUGIN, as_root

BEING_WRITTEN = """
file = h5py.File("a.h5", "w")
file["data"] = np.ones(9); file.flush(); file["data"][:] = 7; file.flush(); file["data"][:] = 9
print("ready", flush=True)
sys.stdin.readline()
os._exit(0)
"""


def started(folder, code, **env):
    process = subprocess.Popen(
        [sys.executable, "-B", "-c", BEGIN + code], env=folder.env(**env), cwd=folder.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


def is_in_use(done):
    return done.rc == 1 and "in use: " in done.err


def test_a_read_only_open_sees_the_last_commit_and_changes_nothing(left_by):
    folder = left_by()
    before, times = folder.bytes(), folder.times()
    assert folder.seen() == COMMITTED
    assert folder.bytes() == before and folder.times() == times and folder.marked()


@as_root
def test_a_reader_who_may_not_write_sees_it_too(left_by):
    folder = left_by()
    folder.show_to_others()
    before, times = folder.bytes(), folder.times()
    assert folder.seen(as_nobody=True) == COMMITTED
    assert folder.bytes() == before and folder.times() == times
    folder.run(f"""
        import subprocess
        done = subprocess.run([{str(PLUGIN.tool)!r}, "recover", "a.h5"], capture_output=True, text=True)
        assert done.returncode == 1 and "ermission" in done.stderr, done
        """, as_nobody=True, native=True)  # fmt: skip
    assert folder.bytes() == before
    assert "ermission" in folder.seen(mode="r+", as_nobody=True)


def test_many_readers_see_it_at_once(left):
    reader = started(left, "file = h5py.File('a.h5'); print('ready', flush=True); sys.stdin.readline(); assert file['data'][0] == 7")
    assert left.seen() == COMMITTED
    reader.communicate("\n", timeout=60)
    assert reader.returncode == 0 and left.marked()


def test_a_reader_keeps_recoverers_away(left):
    reader = started(left, "file = h5py.File('a.h5'); print('ready', flush=True); sys.stdin.readline()")
    before = left.bytes()
    assert is_in_use(left.recover("a.h5", rc=1))
    assert "lock" in left.seen(mode="r+") and left.bytes() == before
    reader.communicate("\n", timeout=60)
    assert left.seen(mode="r+") == COMMITTED


@pytest.mark.parametrize("mode", ["r+", "a"])
def test_an_open_for_writing_recovers_it_first(left_by, mode):
    folder = left_by()
    assert folder.seen(mode=mode) == COMMITTED
    assert folder.names() == ["a.h5"] and folder.values() == COMMITTED


def test_what_a_program_writes_is_not_recovered(folder):
    writer = started(folder, BEING_WRITTEN)
    before = folder.bytes()
    assert is_in_use(folder.recover("a.h5", rc=1)) and folder.bytes() == before
    assert "lock" in folder.seen() and folder.status("a.h5")["a.h5"]["state"] == "written"
    assert "lock" in folder.seen(HDF5_USE_FILE_LOCKING="TRUE", mode="r+")
    writer.communicate("\n", timeout=60)
    assert folder.status("a.h5")["a.h5"]["state"] in ("recoverable", "plain")  # after a second it is moved out of its log
    folder.recover("a.h5")
    assert folder.values() == [7.0] * 9


def test_who_looks_without_locks_is_refused_or_sees_an_older_commit(folder):
    writer = started(folder, BEING_WRITTEN)
    done = folder.run("print(h5py.File('a.h5', locking=False)['data'][:].tolist())", native=True, rc=None)
    assert (done.rc == 1 and "bad flag value" in done.err) or set(done.out.strip(" []\n").split(", ")) <= {"1.0", "7.0"}
    writer.communicate("\n", timeout=60)


def test_two_recoverers_at_once_come_to_the_same(left_by):
    folder = left_by()
    command = [PLUGIN.tool, "recover", folder / "a.h5"]
    both = [subprocess.Popen(command, env=common.native_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    said = ["".join(process.communicate(timeout=60)) for process in both]
    recovered = [words.startswith("recovered") for words in said]
    assert recovered.count(True) == 1 and all("in use" in words or words.split()[0] in ("recovered", "nothing") for words in said), said
    assert [process.returncode for process in both] == [1 if "in use" in words else 0 for words in said]
    assert folder.names() == ["a.h5"] and folder.values() == COMMITTED


def test_a_recovery_that_is_killed_begins_again(left_by, compiled):
    shim = compiled("../kill_at.c", "-shared", "-fPIC", "-ldl", "-pthread")
    kept = left_by()
    kills = 0
    for turn in range(1, 40):
        shutil.rmtree(kept.path.parent / "again", ignore_errors=True)
        shutil.copytree(kept.path, kept.path.parent / "again")
        path = kept.path.parent / "again" / "a.h5"
        env = common.native_env() | {"LD_PRELOAD": str(shim), "KILL_AT_FOLDER": str(path.parent), "KILL_AT": str(turn)}
        first = common.run([PLUGIN.tool, "recover", path], env)
        common.run([PLUGIN.tool, "recover", path], env | {"KILL_AT": str(max(1, turn // 2))})  # killed once more, earlier
        done = PLUGIN.recover(path)
        assert done.rc == 0 and os.listdir(path.parent) == ["a.h5"], done.words()
        kept.path = path.parent
        assert kept.values() == COMMITTED
        kept.path = path.parent.parent / "data"
        if first.rc == 0:
            break
        kills += 1
    assert kills >= 5 and first.rc == 0


def test_readers_need_no_setting(left):
    before = left.bytes()
    for settings in ({}, {"TIDELANE_JOURNAL": "off"}, {"TIDELANE_JOURNAL": "power"}):
        assert left.seen(**settings) == COMMITTED
    assert left.bytes() == before
    assert left.seen(mode="r+", TIDELANE_JOURNAL="off") == COMMITTED and left.names() == ["a.h5"]


def test_is_accessible_says_what_an_open_would(left):
    code = "print(h5py.is_hdf5('a.h5'))"
    before = left.bytes()
    assert left.run(code, journal="").out == "True\n" and left.bytes() == before
    (left / "a.h5-wal.0").unlink()
    before = left.bytes()
    assert "cannot find a.h5-wal.0" in left.run(code, journal="", rc=1).err and left.bytes() == before


def test_status_says_it_and_changes_nothing(left_by):
    folder = left_by()
    shutil.copy(folder / "a.h5", folder / "copy.h5")
    folder.run("h5py.File('plain.h5', 'w')['data'] = np.ones(3)")
    before, times = folder.bytes(), folder.times()
    found = folder.status()
    assert {name: entry["state"] for name, entry in found.items()} == {"a.h5": "recoverable", "copy.h5": "log_missing", "plain.h5": "plain"}
    assert found["a.h5"]["commit"] == 1 and found["a.h5"]["logged"] >= 80
    assert folder.bytes() == before and folder.times() == times
