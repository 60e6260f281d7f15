"""A tier that somebody else has had his hands on: nothing of it is used, nothing outside of it is changed, and nothing hangs."""

import os
import pathlib
import shutil

import common
import pytest
from conftest import as_root, refused

NOBODY = 65534


def is_plain(there, commit=3):
    """The file was written as without a tier."""
    there.make(commit=commit)
    assert there.stock() == commit and there.seen(tier=True) == commit
    assert there.beside() == []


@pytest.fixture
def victim(there):
    """A file that no entry may change."""
    path = there.data / "victim"
    path.write_bytes(b"precious" * 1000)
    yield path
    assert path.read_bytes() == b"precious" * 1000


def test_the_tier_is_a_symbolic_link(there):
    elsewhere = there.root / "elsewhere"
    elsewhere.mkdir()
    os.symlink(elsewhere, there.own)
    is_plain(there)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o1777])
def test_others_may_write_into_the_tier(there, mode):
    there.own.mkdir()
    there.own.chmod(mode)
    there.make()
    if not there.beside():
        assert there.stock() == 3
        return
    assert there.own.stat().st_mode & 0o077 == 0  # or it was made private before it was used
    there.must_drain()
    assert there.stock() == 3


@as_root
def test_the_tier_is_somebody_elses(there):
    there.own.mkdir(mode=0o700)
    os.chown(there.own, NOBODY, NOBODY)
    is_plain(there)
    assert list(there.own.iterdir()) == []


def test_the_tier_is_a_file(there):
    there.own.write_bytes(b"")
    is_plain(there)


def test_the_tiers_folder_is_missing(there):
    there.tier.rmdir()
    there.make()
    assert there.seen(tier=True) == 3
    if there.beside():
        there.must_drain()
    assert there.stock() == 3


@as_root
def test_a_mover_of_somebody_elses_tier(there, victim):
    """Run by hand on a folder that another user has prepared, it changes nothing."""
    there.make(commit=9)
    os.chown(there.own, NOBODY, NOBODY)
    before = there.path().read_bytes()
    assert there.drain() is not None
    assert there.path().read_bytes() == before


GARBAGE = [b"", b"\0" * 100, b"tidelane tier 1\n", b"tidelane tier 1\ndevice 1\ninode 1\npath /\n", b"tidelane tier 1\ndevice x\ninode -1\npath\n", b"\xff" * 5000, b"tidelane tier 99\n" + b"a" * 70000]


@pytest.mark.parametrize("number", range(len(GARBAGE)))
def test_entries_of_garbage(there, victim, number):
    """They stop no other file, whatever is in them."""
    there.make(commit=9)
    for name in ("0123456789abcdef.file", "x.file", "0123456789abcdef-wal.0", "fedcba9876543210-wal.1", ".file", "zz"):
        (there.own / name).write_bytes(GARBAGE[number])
    (there.own / "0123456789abcdee.file").mkdir()
    assert there.seen() == 9
    assert there.drain() is not None
    assert there.stock() == 9
    there.make("b.h5", 2)
    assert there.seen("b.h5") == 2
    there.drain()
    assert there.stock("b.h5") == 2


def test_an_entry_that_names_another_file(there, victim):
    """Its inode and its path are the victim's; the log is a real one."""
    there.make(commit=9)
    (entry,) = there.own.glob("*.file")
    about = victim.stat()
    entry.write_text(f"tidelane tier 1\ndevice {about.st_dev}\ninode {about.st_ino}\npath {victim}\n")
    assert there.drain() is not None


def test_an_entry_that_names_a_link_to_another_file(there, victim):
    there.make(commit=9)
    there.path().unlink()
    os.symlink(victim, there.path())
    assert there.drain() is not None
    assert there.path().is_symlink()


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_the_files_name_is_no_file_any_more(there, kind):
    there.make(commit=9)
    there.path().unlink()
    if kind == "pipe":
        os.mkfifo(there.path())
    elif kind == "folder":
        there.path().mkdir()
    else:
        os.symlink("/dev/zero", there.path())
    assert there.drain(patience=20) is not None


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
@pytest.mark.parametrize("what", ["marker", "entry", "log"])
def test_parts_that_are_no_files(there, victim, what, kind):
    """In place of a marker, an entry or a log lies a pipe, a folder or a link: the file is refused, or right; and nothing waits for it."""
    there.make(commit=9)
    (path,) = {"marker": there.data.glob("*-tier"), "entry": there.own.glob("*.file"), "log": there.own.glob("*-wal.0")}[what]
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(victim)
    answer = there.seen()
    assert answer == 9 or (refused(answer) and "hung" not in answer)
    assert there.drain(patience=20) is not None
    assert there.stock() == 9 or refused(there.stock())


@pytest.mark.parametrize("where", [0, 100, 512, 1024, 5000, 40000, -1])
@pytest.mark.parametrize("what", ["zeros", "cut", "other bytes"])
def test_a_log_that_was_damaged(there, what, where):
    """It is refused; or it is one of its commits, as the log keeps two headers. Never anything between."""
    there.make(commit=9)
    (log,) = there.own.glob("*-wal.0")
    data = bytearray(log.read_bytes())
    at = where if where >= 0 else len(data) - 600
    if what == "cut":
        del data[at:]
    else:
        data[at : at + 300] = bytes(300) if what == "zeros" else b"\xa5" * 300
    log.write_bytes(data)
    answers = [there.seen()]
    assert there.drain() is not None
    answers += [there.stock(), there.seen()]
    assert all((isinstance(answer, int) and answer > 0) or "not that of" not in str(answer) for answer in answers), answers
    assert all(answer in (9, 8) or refused(answer) for answer in answers), answers


def test_the_log_of_another_file(there):
    there.make(commit=9)
    there.make("b.h5", 2)
    logs = {there.path(name): there.own / (entry.stem + "-wal.0") for entry in there.own.glob("*.file") for name in ("a.h5", "b.h5") if str(there.path(name)) in entry.read_text()}
    first, second = logs[there.path("a.h5")], logs[there.path("b.h5")]
    first.rename(there.own / "t")
    second.rename(first)
    (there.own / "t").rename(second)
    assert refused(there.seen("a.h5")) and refused(there.seen("b.h5"))
    assert there.drain() is not None
    for name, commit in (("a.h5", 9), ("b.h5", 2)):
        assert there.stock(name) == commit or refused(there.stock(name))


def test_the_tier_is_lost(there):
    """A machine that was started anew: the file is refused, never old data or part of it."""
    there.make(commit=4)
    there.must_drain()
    there.make(commit=4, go_on=True)
    shutil.rmtree(there.own)
    for answer in (there.stock(), there.seen(), there.seen(mode="r+"), there.seen(tier=True)):
        assert refused(answer)
    there.own.mkdir(mode=0o700)
    assert there.drain() is not None
    assert refused(there.stock()) and refused(there.seen())
    there.make(commit=2)
    assert there.seen() == 2
    there.drain()
    assert there.stock() == 2


@pytest.mark.parametrize("marker", [b"", b"garbage", b"\0" * 5000, None], ids=["empty", "garbage", "zeros", "of another file"])
def test_a_marker_beside_a_plain_file(there, marker):
    """It says nothing of a file that does not say so itself."""
    there.make("b.h5", 9)
    there.make(commit=3, tier=False)
    there.path("a.h5-tier").write_bytes(there.path("b.h5-tier").read_bytes() if marker is None else marker)
    assert there.seen() == there.stock() == 3
    there.make(commit=2, go_on=True)
    assert there.seen() == 5
    there.drain()
    assert (there.stock("a.h5"), there.stock("b.h5")) == (5, 9)


@as_root
def test_a_marker_that_leads_to_somebody_elses_tier(there):
    """Who may write beside a file that waits cannot make it another one."""
    there.make(commit=9)
    there.make("b.h5", 2)
    trap = there.root / "trap"
    shutil.copytree(there.own, trap)
    for path in (trap, *trap.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    marker = there.path("a.h5-tier")
    text = marker.read_text().replace(str(there.own), str(trap))
    marker.unlink()
    marker.write_text(text)
    answer = there.seen()
    assert answer == 9 or refused(answer)
    before = common.snapshot(trap)
    assert there.seen(mode="r+") == 9 or refused(there.seen())
    assert common.snapshot(trap) == before
    there.drain()
    assert there.stock() == 9 or refused(there.stock())


def test_nothing_is_followed_out_of_a_read_only_folder(there):
    """A folder where no marker can be made: the file is written as without a tier, or refused; not half."""
    below = there.data / "below"
    below.mkdir()
    there.make("below/a.h5", 3, tier=False)
    pathlib.Path(there.path("below/a.h5-tier")).mkdir()
    done = there.make("below/a.h5", 2, go_on=True, rc=None)
    assert done.rc is not None
    assert there.seen("below/a.h5") in (3, 5), done.words()
    there.drain()
    assert there.stock("below/a.h5") in (3, 5)
