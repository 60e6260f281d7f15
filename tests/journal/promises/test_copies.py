"""Copies, names and logs: a marked file without its log is an error, a log that is not the file's is never applied."""

import os
import shutil
import subprocess

import common
import pytest
from conftest import BAD_FLAGS, COMMITTED, PLUGIN, Folder


def cannot_find(name, segment="wal.0"):
    return f"cannot find {name}-{segment}, the log that is needed to recover"


def all_refuse(folder, name, words):
    for mode in ("r", "r+", "a"):
        assert words in folder.seen(name, mode), mode
    assert words in folder.recover(name, rc=1).err


def test_a_copy_without_its_log_is_an_error_that_names_it(left_by):
    folder = left_by()
    shutil.copy(folder / "a.h5", folder / "b.h5")
    before = folder.bytes()
    all_refuse(folder, "b.h5", cannot_find("b.h5"))
    assert BAD_FLAGS in folder.values("b.h5") and folder.bytes() == before
    assert folder.status("b.h5")["b.h5"]["state"] == "log_missing"


def test_a_rename_without_its_log_is_an_error_that_names_it(left_by):
    folder = left_by()
    (folder / "a.h5").rename(folder / "b.h5")
    before = folder.bytes()
    all_refuse(folder, "b.h5", cannot_find("b.h5"))
    assert folder.bytes() == before


def test_a_move_into_another_folder_without_its_log_is_an_error(left):
    (left / "below").mkdir()
    (left / "a.h5").rename(left / "below" / "a.h5")
    all_refuse(left, "below/a.h5", cannot_find("a.h5"))


TWO_SEGMENTS = """
def number(path, at): return int.from_bytes(open(path, "rb").read(at + 8)[at:], "little")
file = h5py.File("a.h5", "w")
parts = [file.create_dataset(f"part{i}", data=np.zeros(1 << 20)) for i in range(10)]  # more than a segment has when it is moved
data = file.create_dataset("data", data=np.zeros(1 << 10))
file.flush()
for turn in range(1, 600):
    parts[turn % 10][:] = turn
    data[:] = turn
    file.flush()
    if not os.path.exists("a.h5-wal.1"): continue
    data[:10] = 1000 + turn
    file.flush()
    try:
        first, later = sorted(["a.h5-wal.0", "a.h5-wal.1"], key=lambda name: number(name, 24))
        if number("a.h5", 40) & 0xFFFF == number(first, 16) & 0xFFFF and number(first, 1544) == number(later, 16):
            print(turn, first[-1], flush=True)
            kill()
    except FileNotFoundError: pass  # it was moved meanwhile
"""


@pytest.fixture(scope="session")
def killed_while_moved(tmp_path_factory):
    """Killed while one segment is moved, and the other one has what was committed since."""
    folder = Folder(tmp_path_factory.mktemp("segments"))
    done = folder.run(TWO_SEGMENTS, rc=-9, TIDELANE_MODE="async")
    turn, folder.first = done.out.split()
    folder.values_then = [1000.0 + int(turn)] * 10 + [float(turn)] * ((1 << 10) - 10)
    assert common.segments(folder.path) == ["a.h5-wal.0", "a.h5-wal.1"] and folder.marked()
    return folder


@pytest.fixture
def two_segments(plain, killed_while_moved):
    shutil.copytree(killed_while_moved.path, plain.path, dirs_exist_ok=True)
    plain.first, plain.values_then = killed_while_moved.first, killed_while_moved.values_then
    return plain


def test_two_segments_are_one_log(two_segments):
    two_segments.recover("a.h5")
    assert two_segments.values() == two_segments.values_then and two_segments.names() == ["a.h5"]


@pytest.mark.parametrize("missing", ["0", "1"])
def test_a_copy_with_one_of_two_segments_is_an_error_that_names_the_other(two_segments, missing):
    folder = two_segments
    (folder / f"a.h5-wal.{missing}").unlink()
    before = folder.bytes()
    all_refuse(folder, "a.h5", "a.h5-wal.")  # the one that is missing, or that the one that is there does not fit
    assert folder.bytes() == before and BAD_FLAGS in folder.values()


def test_a_copy_with_its_log_is_as_good_as_the_file(left_by):
    folder = left_by()
    for name in ("a.h5", "a.h5-wal.0"):
        shutil.copy(folder / name, folder / name.replace("a.h5", "b.h5"))
    assert folder.seen("b.h5") == COMMITTED
    for name in ("a.h5", "b.h5"):
        folder.recover(name)
        assert folder.values(name) == COMMITTED
    assert folder.names() == ["a.h5", "b.h5"]


def test_a_file_that_was_moved_with_its_log_is_recovered_there(left_by):
    folder = left_by()
    (folder / "below").mkdir()
    (folder / "a.h5").rename(folder / "below/c.h5")
    (folder / "a.h5-wal.0").rename(folder / "below/c.h5-wal.0")
    assert folder.seen("below/c.h5", "r+") == COMMITTED and folder.values("below/c.h5") == COMMITTED
    assert os.listdir(folder / "below") == ["c.h5"]


def test_the_log_where_it_was_is_used_by_hand(left_by):
    folder = left_by()
    (folder / "a.h5").rename(folder / "b.h5")
    done = folder.recover("--log", folder / "a.h5-wal.0", folder / "b.h5")
    assert done.out.startswith("recovered") and folder.values("b.h5") == COMMITTED and folder.names() == ["b.h5"]


def test_a_log_that_its_own_file_needs_is_not_used_for_another(left):
    shutil.copy(left / "a.h5", left / "b.h5")
    before = left.bytes()
    done = left.recover("--log", left / "a.h5-wal.0", left / "b.h5", rc=1)
    assert "needs this log" in done.err and left.bytes() == before


def test_a_lost_log_is_given_up_by_hand_alone(left_by):
    folder = left_by()
    assert "its log is there" in folder.recover("--without-log", "a.h5", rc=1).err
    (folder / "a.h5-wal.0").unlink()
    assert "content may be torn" in folder.recover("--without-log", "a.h5").out
    assert set(folder.values()) <= {1.0, 7.0, 9.0} and folder.names() == ["a.h5"]
    size = (folder / "a.h5").stat().st_size
    assert folder.run("print(h5py.File('a.h5').id.get_filesize())", native=True).out == f"{size}\n", "the file's size is in the superblock"


def test_a_log_that_does_not_fit_is_set_aside_and_named(left_by):
    folder = left_by()
    log = (folder / "a.h5-wal.0").read_bytes()
    segment_id = int.from_bytes(log[16:24], "little")
    (folder / "a.h5").unlink()
    done = folder.run("""
        file = h5py.File("a.h5", "w")
        file["data"] = np.zeros(10); file.flush(); file["data"][:] = 4; file.flush()
        file.close()
        """)  # fmt: skip
    aside = f"a.h5-wal.0.{segment_id:016x}"
    others = [name for name in folder.names() if name != "a.h5"]
    assert others == [aside] and aside in done.err
    assert (folder / aside).read_bytes() == log and folder.values() == [4.0] * 10


def test_what_was_set_aside_is_found_for_its_file(left):
    (left / "a.h5").rename(left / "b.h5")
    left.run("file = h5py.File('a.h5', 'w'); file['data'] = np.zeros(10); file.flush(); file['data'][:] = 4; file.flush(); file.close()")
    (aside,) = left.path.glob("a.h5-wal.0.*")
    left.recover("--log", aside, left / "b.h5")
    assert left.values("b.h5") == COMMITTED and left.values() == [4.0] * 10


def test_a_log_beside_an_unmarked_file_is_never_applied(left):
    log = (left / "a.h5-wal.0").read_bytes()
    left.recover("a.h5")
    left.run("with h5py.File('a.h5', 'r+') as file: file['data'][:] = 5", native=True)
    (left / "a.h5-wal.0").write_bytes(log)
    assert left.seen() == [5.0] * 100000 and left.seen(mode="r+") == [5.0] * 100000
    left.recover("a.h5", rc=None)
    assert left.values() == [5.0] * 100000


def test_an_older_copy_put_back_beside_a_later_log_is_noticed(left):
    old = (left / "a.h5").read_bytes()
    left.recover("a.h5")
    left.killed("""
        file = h5py.File("a.h5", "r+")
        file["data"][:] = 2; file.flush(); file["data"][:] = 3; file.flush()
        kill()
        """)  # fmt: skip
    (left / "a.h5").write_bytes(old)
    before = left.bytes()
    all_refuse(left, "a.h5", "a.h5-wal.0, the log of another file")
    assert BAD_FLAGS in left.values() and left.bytes() == before


def test_a_file_that_was_cut_short_is_refused(left):
    path = left / "a.h5"
    os.truncate(path, path.stat().st_size // 2)
    before = left.bytes()
    left.recover("a.h5", rc=1)
    assert left.bytes() == before and isinstance(left.seen(), str)


@pytest.mark.parametrize("place", ["header", "older commit", "cut"])
def test_a_damaged_log_is_an_error_and_nothing_is_changed(plain, place):
    plain.killed("""
        file = h5py.File("a.h5", "w")
        data = file.create_dataset("data", data=np.ones(100000)); file.flush()
        for turn in range(3): data[turn] = 7; file.flush()
        kill()
        """)  # fmt: skip
    log = plain / "a.h5-wal.0"
    damaged = bytearray(log.read_bytes())
    damaged[100 if place == "header" else 4096] ^= 255
    log.write_bytes(damaged if place != "cut" else log.read_bytes()[:4100])
    before = plain.bytes()
    all_refuse(plain, "a.h5", "a damaged log")
    assert plain.bytes() == before and plain.status("a.h5")["a.h5"]["state"] == "log_unusable"


def test_the_torn_tail_of_a_commit_is_none(left):
    log = left / "a.h5-wal.0"
    damaged = bytearray(log.read_bytes())
    damaged[4096] ^= 255  # of the newest and only commit
    log.write_bytes(damaged)
    left.recover("a.h5")
    assert left.values() == [1.0] * 100000


def test_a_reader_refuses_a_newer_version_by_name(left):
    log = left / "a.h5-wal.0"
    header = bytearray(log.read_bytes())
    header[8:12] = (2).to_bytes(4, "little")
    header[12:16] = bytes(4)
    import log as by_document

    header[12:16] = by_document.crc32c(bytes(header[:512])).to_bytes(4, "little")
    log.write_bytes(header)
    done = left.recover("a.h5", rc=1)
    assert "a log of format 2, of a newer Tidelane" in done.err and BAD_FLAGS in left.values()


@pytest.mark.parametrize("link", ["symbolic", "relative", "of a folder"])
def test_the_log_lies_where_a_symbolic_link_leads(folder, link):
    (folder / "real").mkdir()
    if link == "of a folder":
        (folder / "way").symlink_to("real")
        opened = "way/a.h5"
    else:
        opened = "link.h5"
        (folder / opened).symlink_to("real/a.h5" if link == "relative" else folder / "real/a.h5")
    folder.killed(f"""
        file = h5py.File({opened!r}, "w")
        file["data"] = np.ones(9); file.flush(); file["data"][:] = 7; file.flush(); file["data"][:] = 9
        kill()
        """)  # fmt: skip
    assert sorted(os.listdir(folder / "real")) == ["a.h5", "a.h5-wal.0"]
    assert folder.seen(opened) == [7.0] * 9 and folder.seen("real/a.h5") == [7.0] * 9
    folder.recover(opened)
    assert os.listdir(folder / "real") == ["a.h5"] and folder.values("real/a.h5") == [7.0] * 9


def test_recover_needs_no_hdf5(left):
    needed = subprocess.run(["ldd", PLUGIN.tool], capture_output=True, text=True, timeout=60).stdout
    assert "libhdf5" not in needed
