"""Names: a file that is created anew, replaced, deleted, renamed, linked or copied while its data wait in the tier is never changed by what waits there of an older one, and keeps its own."""

import contextlib
import os
import shutil
import time

import pytest
from conftest import refused

HOW_CREATED = {"tier": {}, "plugin": {"tier": False}, "stock": {"native": True}}


@pytest.fixture(params=list(HOW_CREATED))
def created(request):
    return HOW_CREATED[request.param]


@pytest.fixture(params=["with its marker", "without", "marker gone"])
def moved(request):
    """Moves a file, and its marker or not."""

    def move(there, old, new):
        there.path(old).rename(there.path(new))
        marker = there.path(f"{old}-tier")
        if request.param == "with its marker":
            marker.rename(there.path(f"{new}-tier"))
        elif request.param == "marker gone":
            marker.unlink()

    move.told = request.param != "with its marker"  # who looks must be told where the tier is
    return move


def test_a_file_waits_and_is_seen_with_the_plugin_alone(there):
    there.make()
    assert refused(there.stock()) and refused(there.stock(mode="r+"))
    assert there.seen() == 3 and there.seen(tier=True) == 3
    there.must_drain()
    assert there.stock() == 3


def test_created_anew(there, created):
    there.make(commit=9)
    there.make(commit=2, **created)
    assert there.seen() == 2
    there.must_drain()
    assert there.stock() == 2


def test_created_anew_and_killed_before_its_first_commit(there):
    there.make(commit=5)
    there.make(commit=1, leave="now")
    assert not isinstance(there.stock(), int) and not isinstance(there.seen(), int)
    there.drain()
    assert not isinstance(there.stock(), int) and there.entries() == []


def test_replaced_by_a_plain_file(there):
    there.make(commit=9)
    there.make("b.h5", 2, native=True)
    os.replace(there.path("b.h5"), there.path())
    data = there.path().read_bytes()
    assert there.seen() == there.stock() == 2
    there.must_drain_all()
    assert there.path().read_bytes() == data


def test_replaced_by_another_that_waits(there, moved):
    there.make(commit=9)
    there.make("b.h5", 2)
    there.path("a.h5-tier").unlink()
    moved(there, "b.h5", "a.h5")
    assert there.seen(tier=moved.told) == 2
    there.must_drain_all()
    assert there.stock() == 2 and not there.path("b.h5").exists()


def test_copied_over_by_a_plain_file(there):
    """The same file on disk, with other bytes: a shell's cp."""
    there.make(commit=9)
    there.make("b.h5", 2, native=True)
    data = there.path("b.h5").read_bytes()
    there.path().write_bytes(data)
    assert there.seen() == there.stock() == 2
    there.must_drain()
    assert there.path().read_bytes() == data


@pytest.mark.parametrize("opened", [False, True], ids=["", "open elsewhere"])
def test_deleted_while_a_mover_with_a_rate_has_it(there, opened):
    """It would be at it for minutes, or waits for who has it open, which is told after a second. Nobody but the mover knows that it was deleted, and not moved elsewhere: a drain gives it time."""
    for turn in range(20):
        name = f"{turn}.h5"
        there.own.mkdir(exist_ok=True, mode=0o700)
        mover = there.start(words=[500])
        there.make(name)
        time.sleep(0.2)
        with open(there.path(name), "r+b") if opened else contextlib.nullcontext():
            there.path(name).unlink()
            time.sleep(1.8 if opened else 0)
        if mover.poll() is None:
            break  # it was handed the file before it had waited for one in vain
        there.must_drain_all()
    done = there.tool("drain", there.data)
    assert done.rc == 0, done.words()
    assert there.drained()
    there.end(mover)


@pytest.mark.parametrize("data", [b"", b"no HDF5 file\n" * 1000], ids=["nothing", "other bytes"])
def test_overwritten_by_what_is_no_hdf5_file(there, data):
    there.make(commit=9)
    there.path().write_bytes(data)
    there.must_drain()
    assert there.path().read_bytes() == data


def test_deleted(there):
    there.make()
    there.path().unlink()
    there.must_drain_all()
    assert not there.path().exists()


def test_deleted_and_made_anew_with_the_same_inode_number(there, created):
    for turn in range(4):
        there.make(commit=9)
        there.path().unlink()
        there.make(commit=2, **created)
        assert there.seen() == 2, turn
        there.must_drain_all()
        assert there.stock() == 2, turn


def test_renamed(there, moved):
    there.make()
    moved(there, "a.h5", "b.h5")
    assert refused(there.stock("b.h5"))
    assert there.seen("b.h5", tier=moved.told) == 3
    there.must_drain()
    assert there.stock("b.h5") == 3 and not there.path("a.h5").exists()


def test_renamed_and_opened_for_writing(there, moved):
    there.make()
    moved(there, "a.h5", "b.h5")
    there.make("b.h5", 4, go_on=True)
    assert there.seen("b.h5", tier=moved.told) == 7
    there.must_drain()
    assert there.stock("b.h5") == 7


def test_renamed_twice_and_back(there, moved):
    there.make()
    moved(there, "a.h5", "b.h5")
    if not there.path("b.h5-tier").exists():
        there.path("b.h5").rename(there.path("a.h5"))
    else:
        moved(there, "b.h5", "a.h5")
    assert there.seen(tier=moved.told) == 3
    there.must_drain()
    assert there.stock() == 3


def test_renamed_and_another_made_under_the_old_name(there, moved, created):
    there.make(commit=9)
    moved(there, "a.h5", "b.h5")
    there.make(commit=2, **created)
    assert (there.seen("a.h5", tier=moved.told), there.seen("b.h5", tier=moved.told)) == (2, 9)
    there.must_drain()
    assert (there.stock("a.h5"), there.stock("b.h5")) == (2, 9)


def test_two_that_wait_change_names(there, moved):
    there.make(commit=9)
    there.make("b.h5", 2)
    moved(there, "a.h5", "c.h5")
    moved(there, "b.h5", "a.h5")
    if there.path("c.h5-tier").exists():
        moved(there, "c.h5", "b.h5")
    else:
        there.path("c.h5").rename(there.path("b.h5"))
    assert (there.seen("a.h5", tier=moved.told), there.seen("b.h5", tier=moved.told)) == (2, 9)
    there.must_drain()
    assert (there.stock("a.h5"), there.stock("b.h5")) == (2, 9)


def test_moved_into_another_folder(there, moved):
    """It is seen there, and a program that opens it for writing brings it there; a mover alone may not find it."""
    (there.data / "below").mkdir()
    there.make()
    moved(there, "a.h5", "below/a.h5")
    assert refused(there.stock("below/a.h5")) and there.seen("below/a.h5", tier=moved.told) == 3
    there.drain()
    assert there.seen("below/a.h5", tier=moved.told) == 3
    assert there.stock("below/a.h5") == 3 or refused(there.stock("below/a.h5"))
    there.make("below/a.h5", 4, go_on=True)
    there.must_drain()
    assert there.stock("below/a.h5") == 7


def test_its_folder_is_renamed(there):
    (there.data / "old").mkdir()
    there.make("old/a.h5")
    there.path("old").rename(there.path("new"))
    assert there.seen("new/a.h5") == 3
    there.drain()
    assert there.seen("new/a.h5") == 3
    assert not there.path("old").exists()


def test_a_hard_link_is_made(there):
    there.make()
    os.link(there.path(), there.path("b.h5"))
    assert there.seen("a.h5") == 3
    assert there.seen("b.h5") == 3 or refused(there.seen("b.h5"))
    there.must_drain()
    assert there.stock("a.h5") == there.stock("b.h5") == 3


def test_a_hard_link_is_made_and_the_first_name_deleted(there):
    there.make()
    os.link(there.path(), there.path("b.h5"))
    there.path().unlink()
    assert there.seen("b.h5", tier=True) == 3
    there.must_drain()
    assert there.stock("b.h5") == 3 and not there.path().exists()


@pytest.mark.parametrize("marker", [True, False])
def test_a_copy_is_never_older_data_and_is_nobodys(there, marker):
    there.make()
    shutil.copy(there.path(), there.path("b.h5"))
    if marker:
        shutil.copy(there.path("a.h5-tier"), there.path("b.h5-tier"))
    data = there.path("b.h5").read_bytes()
    assert there.seen("b.h5") == 3 or refused(there.seen("b.h5"))
    assert refused(there.stock("b.h5")) and there.seen("a.h5") == 3
    there.drain()
    assert there.stock("a.h5") == 3 and there.entries() == []
    assert there.path("b.h5").read_bytes() == data
    assert refused(there.stock("b.h5")) and refused(there.seen("b.h5"))


@pytest.mark.parametrize("marker", [True, False])
def test_a_copy_that_is_opened_for_writing_leaves_the_first_alone(there, marker):
    there.make()
    shutil.copy(there.path(), there.path("b.h5"))
    if marker:
        shutil.copy(there.path("a.h5-tier"), there.path("b.h5-tier"))
    assert there.seen("b.h5", "r+", tier=True) == 3 or refused(there.seen("b.h5", "r+"))
    assert there.seen("a.h5") == 3
    there.drain()
    assert there.stock("a.h5") == 3


def test_a_copy_takes_the_place_of_the_first(there):
    there.make()
    shutil.copy(there.path(), there.path("b.h5"))
    os.replace(there.path("b.h5"), there.path())
    assert there.seen() == 3 or refused(there.seen())
    there.drain()
    assert there.stock() == 3 or refused(there.stock())


def test_an_old_copy_is_put_back_after_it_was_changed(there):
    """A backup of a file that waited is no excuse to apply what waits now."""
    there.make(commit=5)
    backup = there.path().read_bytes()
    there.make(commit=4, go_on=True)
    there.path().write_bytes(backup)
    assert there.seen() in (5, 9) or refused(there.seen())
    there.drain()
    assert there.stock() in (5, 9) or refused(there.stock())


def test_by_a_symbolic_link(there):
    there.make("real.h5")
    os.symlink("real.h5", there.path("link.h5"))
    assert there.seen("link.h5") == 3
    there.make("link.h5", 4, go_on=True)
    assert there.seen("real.h5") == there.seen("link.h5") == 7
    there.must_drain()
    assert there.stock("real.h5") == 7 and there.path("link.h5").is_symlink()
