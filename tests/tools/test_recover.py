"""`tidelane recover`: files become their last commit, what killed programs have left goes, what a program still writes stays."""

import fcntl
import json
import os
import shutil
import struct

import journalled
import pytest
from conftest import error_line

CLAIM = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 2**63 - 2, 1, 0)  # as src/publish/publication.cc claims a hidden file
SET_OWNED = 37  # F_OFD_SETLK


def test_what_nobody_writes_is_removed(tidelane):
    below = tidelane.data / "below"
    below.mkdir()
    left, deep, kept = tidelane.data / ".x.h5.unpublished", below / ".y.h5.unpublished", tidelane.data / "z.h5.unpublished"
    for path in (left, deep, kept, tidelane.data / "x.h5", tidelane.data / ".x.h5"):
        path.write_text("bytes")
    looked = tidelane("recover", "--dry-run", tidelane.data)
    assert looked.returncode == 0 and f"left behind: {left} (5 B)" in looked.stdout and left.exists()
    done = tidelane("recover", tidelane.data)
    assert done.returncode == 0 and f"removed {left} (5 B)" in done.stdout and done.stderr == ""
    assert sorted(path.name for path in tidelane.data.iterdir()) == [".x.h5", "below", "x.h5", "z.h5.unpublished"]
    assert deep.exists()
    assert str(deep) in tidelane("recover", "-r", tidelane.data).stdout and not deep.exists()
    assert "nothing was left behind" in tidelane("recover", "-r", tidelane.data).stdout


def test_what_a_program_writes_stays(tidelane):
    path = tidelane.data / ".x.h5.unpublished"
    with open(path, "w") as file:
        fcntl.fcntl(file, SET_OWNED, CLAIM)
        done = tidelane("recover", tidelane.data)
        assert done.returncode == 0 and f"in use: {path}" in done.stdout and path.exists()
        done = tidelane("recover", path)
        assert done.returncode == 1 and f"in use: {path}" in done.stderr and done.stdout == "" and path.exists()
    assert f"removed {path}" in tidelane("recover", tidelane.data).stdout


def test_mistakes_are_told(tidelane):
    done = tidelane("recover", tidelane.data / "missing")
    assert done.returncode == 2 and "no such file or folder" in done.stderr
    (tidelane.data / ".x.h5.unpublished").mkdir()
    assert tidelane("recover", tidelane.data).returncode == 1


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_a_killed_file_becomes_its_last_commit(tidelane, libver):
    path = journalled.killed(tidelane.data / "a.h5", libver)
    assert "bad flag value for superblock" in journalled.read(path)
    looked = tidelane("recover", "-n", tidelane.data)
    assert looked.returncode == 0 and looked.stdout == f"to be recovered: {path} (commit 1, 80 B)\n"
    assert journalled.log_of(path).exists()
    done = tidelane("recover", path)
    assert done.returncode == 0 and done.stdout == f"recovered {path} (commit 1, 80 B)\n" and done.stderr == ""
    assert [entry.name for entry in tidelane.data.iterdir()] == ["a.h5"]
    assert json.loads(journalled.read(path)) == journalled.COMMITTED
    assert tidelane("recover", path).stdout == f"nothing to recover: {path}\n"
    assert tidelane("recover", tidelane.data).stdout == "nothing was left behind\n"


def test_who_names_a_log_means_its_file(tidelane):
    path = journalled.killed(tidelane.data / "a.h5")
    log = journalled.log_of(path)
    state = tidelane("status", log)
    assert state.returncode == 0 and state.stdout.startswith("to be recovered") and f"{path} (" in state.stdout, state
    assert tidelane("recover", "-n", log).stdout == f"to be recovered: {path} (commit 1, 80 B)\n" and log.exists()
    done = tidelane("recover", log)
    assert done.returncode == 0 and done.stdout == f"recovered {path} (commit 1, 80 B)\n" and done.stderr == "", done
    assert not log.exists() and json.loads(journalled.read(path)) == journalled.COMMITTED
    process = journalled.being_written(path)
    assert refuses_as_in_use(tidelane("recover", log), path)
    process.communicate("\n", timeout=60)


def test_all_files_of_a_folder(tidelane):
    below = tidelane.data / "below"
    below.mkdir()
    paths = [journalled.killed(folder / name) for folder in (tidelane.data, below) for name in ("a.h5", "b.h5")]
    link = tidelane.data / "link.h5"
    link.symlink_to(below / "a.h5")
    (tidelane.data / "text").write_text("no HDF5 file")
    done = tidelane("recover", tidelane.data)
    assert done.stdout.splitlines() == [f"recovered {path} (commit 1, 80 B)" for path in paths[:2]] and done.stderr == ""
    assert tidelane("recover", link).stdout == f"recovered {link} (commit 1, 80 B)\n"
    assert tidelane("recover", "-r", tidelane.data).stdout == f"recovered {paths[3]} (commit 1, 80 B)\n"
    for path in paths:
        assert json.loads(journalled.read(path)) == journalled.COMMITTED
    done = tidelane("recover", tidelane.data / "text")
    assert done.returncode == 1 and "no HDF5 file" in done.stderr


def test_a_file_that_was_never_committed_is_empty(tidelane):
    path = journalled.never_committed(tidelane.data / "a.h5")
    assert "recovered, it would be empty" in tidelane("recover", "-n", path).stdout
    assert tidelane("recover", path).stdout == f"{path}: never committed; it is empty now\n"
    assert path.stat().st_size == 0


def refuses_as_in_use(done, path):
    return done.returncode == 1 and f"in use: {path} (" in done.stderr and done.stdout == ""


def test_what_is_in_use_is_left_alone(tidelane):
    path = tidelane.data / "a.h5"
    process = journalled.being_written(path)
    for words in ([], ["-n"], ["--without-log"]):
        done = tidelane("recover", *words, path)
        assert refuses_as_in_use(done, path), done
    done = tidelane("recover", tidelane.data)
    assert done.returncode == 0 and done.stdout.startswith(f"in use: {path} (") and done.stderr == "", done
    other = journalled.killed(tidelane.data / "b.h5")
    done = tidelane("recover", path, other)  # the other one is recovered all the same
    assert done.returncode == 1 and f"in use: {path} (" in done.stderr and done.stdout.startswith(f"recovered {other}"), done
    process.communicate("\n", timeout=60)
    with open(path, "rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)  # as HDF5 locks a file that it reads
        assert refuses_as_in_use(tidelane("recover", path), path)
    plain = tidelane.data / "plain.h5"
    journalled.append(plain)
    with open(plain, "rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)  # no journal, and nobody knows what it is going to be
        assert refuses_as_in_use(tidelane("recover", plain), plain)
    assert tidelane("recover", path).stdout.startswith(f"recovered {path}")


def test_a_file_that_was_renamed_without_its_log(tidelane):
    old, new = journalled.killed(tidelane.data / "old.h5"), tidelane.data / "new.h5"
    log = journalled.log_of(old)
    old.rename(new)
    done = tidelane("recover", tidelane.data)
    assert done.returncode == 1 and f"{log}: a log of {old}, of no file here" in done.stdout
    assert f"cannot find new.h5-wal.0, the log that is needed to recover '{new}'" in done.stderr
    assert f"tidelane recover --log {log} {new}" in done.stderr
    assert tidelane("recover", "--without-log", new).returncode == 1  # there is something better
    # Another one of the old name sets it aside.
    journalled.killed(old)
    assert f"recovered {old}" in tidelane("recover", old).stdout
    (aside,) = tidelane.data.glob("old.h5-wal.0.*")
    assert f"{aside}: a log of {old}, not of {old} as it is" in tidelane("recover", tidelane.data).stdout
    done = tidelane("recover", "--log", aside, new)
    assert done.stdout == f"recovered {new} (commit 1, 80 B)\n" and not aside.exists()
    assert json.loads(journalled.read(new)) == journalled.COMMITTED


def test_a_log_that_another_file_needs_is_not_used(tidelane):
    path, copy = journalled.killed(tidelane.data / "a.h5"), tidelane.data / "copy.h5"
    shutil.copy(path, copy)
    done = tidelane("recover", "--log", journalled.log_of(path), copy)
    assert done.returncode == 1 and f"{path} needs this log" in done.stderr
    assert "--log" not in tidelane("recover", copy).stderr
    shutil.copy(journalled.log_of(path), journalled.log_of(copy))
    assert tidelane("recover", tidelane.data).stdout.count("recovered") == 2
    assert journalled.read(path) == journalled.read(copy)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_a_log_that_is_lost(tidelane, libver):
    path = journalled.killed(tidelane.data / "a.h5", libver)
    done = tidelane("recover", "--without-log", path)
    assert done.returncode == 1 and "its log is there" in done.stderr
    journalled.log_of(path).unlink()
    words = f"cannot find a.h5-wal.0, the log that is needed to recover '{path}'"
    done = tidelane("recover", path)
    assert done.returncode == 1 and words in done.stderr and done.stdout == ""
    for mode in ("r", "r+", "a"):
        assert words in journalled.read(path, mode, plugin=True)
    bytes_before = path.read_bytes()
    assert "content may be torn" in tidelane("recover", "-n", "--without-log", path).stdout
    assert path.read_bytes() == bytes_before
    done = tidelane("recover", "--without-log", path)
    assert done.returncode == 0 and f"mark cleared, without a log: {path} (" in done.stdout and "content may be torn" in done.stdout
    assert set(json.loads(journalled.read(path))) <= {1.0, 7.0, 9.0}
    assert tidelane("recover", "--without-log", path).stdout == f"nothing to recover: {path}\n"


def damage(path, at):
    damaged = bytearray(path.read_bytes())
    damaged[at] ^= 0xFF
    path.write_bytes(damaged)


@pytest.mark.parametrize("at", [100, 4096], ids=["header", "older_commit"])
def test_a_log_that_is_damaged(tidelane, at):
    path = journalled.killed(tidelane.data / "a.h5", commits=2)
    log = journalled.log_of(path)
    damage(log, at)
    done = tidelane("recover", path)
    words = f"cannot use a.h5-wal.0, a damaged log, to recover '{path}'"
    assert done.returncode == 1 and words in done.stderr
    for mode in ("r", "r+"):
        assert words in journalled.read(path, mode, plugin=True)
    assert "mark cleared" in tidelane("recover", "--without-log", path).stdout
    what = "no log that can be read" if at == 100 else f"a log of {path}"
    assert f"{log}: {what}, not of {path} as it is" in tidelane("recover", tidelane.data).stdout


def test_a_file_that_is_shorter_than_its_log_knows(tidelane):
    path = journalled.killed(tidelane.data / "a.h5")
    os.truncate(path, path.stat().st_size - 80_000)
    words = "it is shorter than its log knows it"
    assert "log unusable" in tidelane("status", path).stdout and words in tidelane("status", path).stdout
    for dry in ([], ["-n"]):
        done = tidelane("recover", *dry, path)
        assert done.returncode == 1 and words in done.stderr and done.stdout == "", done
    assert words in journalled.read(path, "r", plugin=True)
    assert f"mark cleared, without a log: {path} (" in tidelane("recover", "--without-log", path).stdout


def test_a_torn_commit_was_none(tidelane):
    path = journalled.killed(tidelane.data / "a.h5")
    damage(journalled.log_of(path), 4096)
    assert tidelane("recover", path).stdout == f"recovered {path} (the commit before its log, 0 B)\n"
    assert set(json.loads(journalled.read(path))) == {1.0}


def test_what_a_kill_of_the_recovery_leaves_is_removed(tidelane):
    path = journalled.killed(tidelane.data / "a.h5")
    log = journalled.log_of(path)
    kept = log.read_bytes()
    assert "recovered" in tidelane("recover", path).stdout
    log.write_bytes(kept)
    assert f"left behind: {log} (" in tidelane("recover", "-n", tidelane.data).stdout and log.exists()
    assert f"removed {log} (" in tidelane("recover", tidelane.data).stdout and not log.exists()
    # A later state of the file has nothing to do with it.
    log.write_bytes(kept)
    journalled.append(path)
    assert f"{log}: a log of {path}, not of {path} as it is" in tidelane("recover", tidelane.data).stdout
    assert f"{log}: a log of {path}" in tidelane("recover", path).stdout and log.read_bytes() == kept


@pytest.mark.parametrize(
    "words, said",
    [
        (["--log", "x", "--without-log", "a.h5"], "one or the other"),
        (["--log", "x"], "of one FILE"),
        (["--without-log"], "of which FILE"),
        (["--without-log", "data"], "data is a folder"),
        (["--log", "x", "data"], "data is a folder"),
    ],
)
def test_what_is_done_by_hand_is_for_files(tidelane, words, said):
    assert said in error_line(tidelane("recover", *words))


def test_logs_of_no_use_are_removed_by_the_next_writer(tidelane):
    path = journalled.killed(tidelane.data / "a.h5")
    log = journalled.log_of(path)
    kept = log.read_bytes()
    for left, aside in ((kept, 0), (b"", 0), (b"damaged", 1), (b"damaged again", 2)):
        assert "recovered" in tidelane("recover", path).stdout
        log.write_bytes(left)
        journalled.killed(path, mode="r+")
        assert len(list(tidelane.data.glob("a.h5-wal.0.*"))) == aside
        assert log.stat().st_size > 4096
