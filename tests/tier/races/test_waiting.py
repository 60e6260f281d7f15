"""What keeps a mover from bringing a file home is told by `tidelane status` and `tidelane drain`, and no longer when it goes on; how fast and how nice a mover is."""

import contextlib
import fcntl
import json
import os
import pathlib
import time

import common
import pytest
from conftest import PLUGIN, as_root, refused

SOON = 10  # seconds


def told(there):
    """What `tidelane status --tier` says of a.h5."""
    done = there.tool("status", "--tier", "--json")
    assert done.rc == 0, done.words()
    (tier,) = [one for one in json.loads(done.out) if one["tier"] == str(there.own)]
    found = [one for one in tier["files"] if one["file"] == str(there.path())]
    return found[0] if found else {}


def waits(there, reason):
    """Within a while it is told, by all commands."""
    until = time.monotonic() + SOON
    while reason not in told(there).get("waiting", ""):
        assert time.monotonic() < until, told(there)
        time.sleep(0.05)
    assert 0 <= told(there)["waiting_seconds"] < 60
    line = f"waiting: {told(there)['waiting']} (since "
    assert line in there.tool("status", "--tier").out
    assert line in there.tool("status", there.path()).out
    (of_file,) = json.loads(there.tool("status", "--json", there.path()).out)
    assert of_file["waiting"] == told(there)["waiting"] and of_file["state"] == "in_tier"
    (note,) = there.own.glob("*.why")
    assert note.stat().st_mode & 0o777 == 0o600


def ends(there, mover):
    """It goes on by itself, and nothing is left of it."""
    assert there.end(mover) is not None and there.drained(), there.entries()
    assert told(there) == {} and there.stock() == 3


@as_root
def test_no_room(there, mounted):
    mounted(there.data, "64k")
    there.make()
    ballast = there.data / "ballast"
    with open(ballast, "wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(4096))
    mover = there.start()
    waits(there, "No space left on device")
    watched = common.run(["timeout", "1.2", PLUGIN.tool, "status", "--tier", "--watch"], there.env())
    assert " waiting\n" in watched.out, watched.words()
    if "/dev/shm/" not in watched.out:  # where others' files may go home meanwhile
        assert "to go" not in watched.out, watched.words()
    done = there.tool("drain", there.path())
    assert done.rc == 1 and "stays in the tier, waiting: No space left on device (since " in done.err, done.words()
    assert refused(there.stock()) and there.seen() == 3
    ballast.unlink()
    ends(there, mover)


@as_root
def test_a_read_only_file_system(there, mounted):
    """Nobody takes it for a file that is gone: what the tier has is not given up."""
    mounted(there.data, "1m")
    there.make()
    mounted.more(there.data, "1m,ro")
    mover = there.start()
    waits(there, "Read-only file system")
    there.end(mover, whole=True)
    done = there.tool("drain", "--discard", there.path())
    assert done.rc == 1 and "Read-only file system" in done.err, done.words()
    assert there.seen() == 3
    mounted.more(there.data, "1m,rw")
    ends(there, there.start())


def test_a_lock(there):
    there.make()
    with open(there.path(), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        mover = there.start()
        waits(there, "a program has the file open")
    ends(there, mover)


def test_a_file_that_is_not_there(there):
    there.make()
    elsewhere = there.root / "elsewhere.h5"
    there.path().rename(elsewhere)
    mover = there.start()
    until = time.monotonic() + SOON
    while "not at its place" not in told(there).get("waiting", ""):
        assert time.monotonic() < until
        time.sleep(0.05)
    there.end(mover, whole=True)
    assert "not at its place" in told(there)["waiting"]  # also when no mover is there
    elsewhere.rename(there.path())
    ends(there, there.start())


def test_a_damaged_log_is_kept_and_told(there):
    there.make()
    (log,) = there.own.glob("*-wal.0")
    data = log.read_bytes()
    log.write_bytes(b"\xa5" * 512 + data[512:])
    mover = there.start()
    until = time.monotonic() + SOON
    while "a damaged log" not in told(there).get("waiting", ""):
        assert time.monotonic() < until and mover.poll() is None
        time.sleep(0.05)
    there.end(mover, whole=True)
    log.write_bytes(data)
    ends(there, there.start())


HOSTILE = [b"", b"\xff" * 5000, b"tidelane tier 1\nsince x\nbytes 0\nreason a\n", b"tidelane tier 1\nsince 99999999999999999999\nbytes 0\nreason a\n"]
HOSTILE += [b"tidelane tier 1\nsince 1\nbytes 0\nreason " + text + b"\n" for text in (b"\x1b]0;owned\x07\x1b[2J", b"two\nlines\r\xc2\x9b31m", b"%s%n" + b"x" * 60000)]


@pytest.mark.parametrize("what", [*range(len(HOSTILE)), "pipe", "folder", "link"])
def test_what_somebody_wrote_there(there, what):
    """It is shown as one line of printable characters, or not at all; nothing else comes of it, and a mover removes it."""
    there.make()
    (entry,) = there.own.glob("*.file")
    victim = there.root / "victim"
    victim.write_bytes(b"tidelane tier 1\nsince 1\nbytes 0\nreason a\n")
    for name in (entry.stem, "0123456789abcdef"):
        note = there.own / f"{name}.why"
        {"pipe": os.mkfifo, "folder": os.mkdir, "link": lambda path: path.symlink_to(victim)}.get(what, lambda path: path.write_bytes(HOSTILE[what]))(note)
    (there.own / "fedcba9876543210.why~").write_bytes(b"begun")
    for words in (["status", "--tier"], ["status", there.path()], ["status", "--tier", "--json"]):
        done = there.tool(*words)
        assert done.rc == 0 and all(character == "\n" or character.isprintable() and character.isascii() for character in done.out), done.words()
    assert len(there.tool("status", there.path()).out.splitlines()) == 1
    there.drain(whole=True)
    assert there.stock() == 3 and victim.exists()
    assert [name for name in there.entries() if not (there.own / name).is_dir()] == []


# How fast, how nice.

ROWS = ["--rows", "20", "--state", "300000"]


def large(there, mover=False, env=()):
    there.make(env=env, mover=mover, words=ROWS)
    (log,) = there.own.glob("*-wal.0")
    return log.stat().st_size


def test_a_rate_limits(there):
    large(there)
    rate = 2_000_000
    began = time.monotonic()
    ends_at_rate(there, there.start(words=[rate]))
    assert time.monotonic() - began >= 0.8 * there.path().stat().st_size / rate
    assert there.stock(words=ROWS) == 3


def ends_at_rate(there, mover):
    assert there.end(mover) is not None and there.drained()


def test_who_opens_the_file_does_not_wait_for_the_rate(there):
    """It would take half an hour."""
    large(there)
    mover = there.start(words=[4000])
    time.sleep(0.5)
    assert refused(there.stock(words=ROWS))
    began = time.monotonic()
    assert there.seen(words=ROWS) == 3 and there.seen(mode="r+", words=ROWS) == 3
    assert time.monotonic() - began < SOON
    there.end(mover)


def test_a_program_says_how(there):
    """The mover that it starts has the settings on its command line, and is as nice."""
    there.make(mover=True, env={"TIDELANE_TIER_RATE": "3M", "TIDELANE_TIER_NICE": "15"})
    until = time.monotonic() + SOON
    while len(started := there.started()) != 1:  # of two that were started at once one ends
        assert started and time.monotonic() < until
        time.sleep(0.01)
    (mover,) = started
    while os.getpriority(os.PRIO_PROCESS, mover) != 15:
        assert time.monotonic() < until
        time.sleep(0.01)
    words = pathlib.Path(f"/proc/{mover}/cmdline").read_bytes().split(b"\0")
    assert words[1:5] == [os.fsencode(there.own), b"5000", str(3 << 20).encode(), b"15"]


def unset(there, *words):
    """The program tidelane, which nobody has told of the tier."""
    return common.run([PLUGIN.tool, *words], there.env(tier=False), timeout=60)


@pytest.mark.parametrize("operand", ["a.h5", ""])
def test_files_lead_to_a_tier_that_is_not_set(there, operand):
    """A job script forgets it easily, and "nothing in the tier" would be wrong."""
    there.make()
    there.make("other.h5")
    others = 0 if operand else 1
    shown = unset(there, "status", "--tier", there.data / operand)
    assert str(there.path()) in shown.out and shown.out.count("other.h5") == others, shown.words()
    done = unset(there, "drain", there.data / operand)
    assert done.rc == 0 and f"drained {there.path()}" in done.out and done.out.count("other.h5") == others, done.words()
    assert there.stock() == 3 and (there.stock("other.h5") == 3) == bool(others)


def test_a_tier_that_is_not_there_is_no_success(there):
    there.make()
    hidden = there.tier.rename(there.root / "hidden")
    done = unset(there, "drain", there.data)
    assert done.rc == 1 and f"it is in the tier {there.own} of " in done.err and str(there.path()) in done.err, done.words()
    hidden.rename(there.tier)
    assert unset(there, "drain", there.data).rc == 0 and there.stock() == 3


def test_a_folder_that_cannot_be_read(there):
    """The files beside it are brought home all the same, and it is told of: what lies below it may have files of a tier."""
    there.make()
    here = os.open(there.data, os.O_RDONLY)
    for name in [f"deep{i}" + "x" * 240 for i in range(17)]:  # longer than a path may be
        os.mkdir(name, dir_fd=here)
        here, above = os.open(name, os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(here)
    shown = there.tool("status", "--tier", there.data)
    assert shown.rc == 0 and str(there.path()) in shown.out and "cannot look for files of a tier in" in shown.err, shown.words()
    done = there.tool("drain", there.data)
    assert done.rc == 1 and f"drained {there.path()}" in done.out, done.words()
    assert "cannot look for files of a tier in" in done.err and "File name too long" in done.err, done.words()
    assert there.entries() == [] and there.stock() == 3


def test_who_only_looks_keeps_nobody_waiting(there):
    """A folder is looked at all the time (`tidelane status FOLDER`, an indexer): each look interrupts the mover for no longer than it takes, and nobody is told that a program has the file."""
    mover = there.start(words=[large(there) // 4])  # two seconds, and what the looks take
    looks, reasons = 0, []
    while there.entries() and looks < 100:
        with contextlib.suppress(OSError), open(there.path(), "rb") as file:
            file.read(64)
        reasons += there.own.glob("*.why")
        looks += 1
        time.sleep(0.1)
    assert there.end(mover) is not None and there.drained()
    assert 5 < looks < 60 and not reasons, (looks, reasons)
