"""The file itself: plain when it is closed, marked while its log has something, its last commit after a kill."""

import pathlib

import common
import pytest
from conftest import BAD_FLAGS, COMMITTED


def test_a_closed_file_is_one_plain_file(folder):
    folder.run("""
        with h5py.File("a.h5", "w") as file:
            file["data"] = np.arange(9.0)
            file.flush()
            file["data"][:] = 3
            file.flush()
            file["data"][:] = 4
        """)
    assert folder.names() == ["a.h5"] and not folder.marked() and folder.values() == [4.0] * 9


def test_log_and_mark_are_there_while_it_is_open(folder):
    folder.run("""
        import shutil
        file = h5py.File("a.h5", "w")
        file["data"] = np.ones(9)
        file.flush()
        file["data"][:] = 3
        file.flush()
        assert os.path.exists("a.h5-wal.0")
        shutil.copy("a.h5", "copy")
        file.close()
        """)
    assert common.superblock(folder / "copy")[0] and folder.names() == ["a.h5", "copy"]


def test_a_new_segment_has_all_of_its_4096_bytes(left_by):
    for name in common.segments(left_by().path):
        assert (left_by() / name).stat().st_size >= 4096


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_stock_hdf5_refuses_a_marked_file(left_by, mode):
    folder = left_by()
    before = folder.bytes()
    done = folder.run(f"h5py.File('a.h5', '{mode}')", native=True, rc=1)
    assert BAD_FLAGS in done.err and folder.bytes() == before


@pytest.mark.parametrize("lists", ["{}", "{'libver': 'latest'}"])
def test_h5clear_cannot_clear_the_mark(left_by, lists):
    folder = left_by(lists)
    before = folder.bytes()
    common.run([common.HDF5 / "bin" / "h5clear", "-s", folder / "a.h5"], common.native_env())
    assert folder.bytes() == before and BAD_FLAGS in folder.values()


@pytest.mark.parametrize("version", [0, 2, 3])
def test_every_version_of_the_superblock_is_marked_and_recovered(left_by, version):
    lists = {0: "{'libver': 'earliest'}", 2: "{'libver': ('v108', 'v108')}", 3: "{'libver': 'latest'}"}[version]
    folder = left_by(lists)
    head = (folder / "a.h5").read_bytes()[:64]
    assert head[8] == version and head[20 if version < 2 else 11] & 0x80
    assert BAD_FLAGS in folder.values()
    assert folder.recover("a.h5").out.startswith("recovered ")
    assert folder.names() == ["a.h5"] and folder.values() == COMMITTED
    head = (folder / "a.h5").read_bytes()[:64]
    assert head[20 if version < 2 else 11] & 0x80 == 0
    assert version < 3 or head[11] == 0, "HDF5's own flags are cleared, too: it would refuse the file for them"


def test_the_mark_holds_the_segments_id(left_by):
    folder = left_by()
    mark, found = common.superblock(folder / "a.h5")
    header = (folder / "a.h5-wal.0").read_bytes()[:64]
    assert mark and header[:8] == b"\x89TDL\r\n\x1a\n" and header[16:24] == found.to_bytes(8, "little")


def test_a_user_block_stays_as_it_is(left_by):
    folder = left_by("{'userblock_size': 1024}")
    path = folder / "a.h5"
    words = b"the user's own words" * 50
    path.write_bytes(words[:1000] + path.read_bytes()[1000:])
    assert folder.marked() and BAD_FLAGS in folder.values()
    assert folder.seen() == COMMITTED
    folder.recover("a.h5")
    assert folder.values() == COMMITTED and path.read_bytes()[:1000] == words[:1000]


def test_stock_hdf5_works_on_a_recovered_file(left_by):
    folder = left_by()
    folder.recover("a.h5")
    folder.run("with h5py.File('a.h5', 'r+') as file: file['more'] = np.arange(5.0); file['data'][5] = 0", native=True)
    assert folder.values(data="more") == [0, 1, 2, 3, 4] and folder.values()[4:7] == [7, 0, 7]


def test_killed_before_its_first_commit_a_new_file_is_empty(folder):
    folder.killed("file = h5py.File('a.h5', 'w'); file['data'] = np.ones(1 << 20); kill()")
    folder.recover("a.h5", rc=None)
    data = (folder / "a.h5").read_bytes()
    assert data == b"" or b"\x89HDF" not in data
    assert set(folder.names()) == {"a.h5"}


def test_killed_before_its_first_commit_an_older_file_is_as_it_was(folder):
    folder.run("h5py.File('a.h5', 'w')['data'] = np.ones(100)", native=True)
    folder.killed("""
        file = h5py.File("a.h5", "r+")
        file["data"][:] = 9
        file["more"] = np.ones(1 << 18)
        file["data"].flush()
        kill()
        """)
    folder.recover("a.h5")
    assert folder.values() == [1.0] * 100 and folder.names() == ["a.h5"]
    assert "more" in folder.run("try: h5py.File('a.h5')['more']\nexcept KeyError as error: print(error)", native=True).out


def test_a_file_that_is_created_anew_is_not_recovered(left_by):
    folder = left_by()
    folder.run("h5py.File('a.h5', 'w')['data'] = np.zeros(3)")
    assert folder.values() == [0, 0, 0] and folder.names() == ["a.h5"]


def test_what_is_new_goes_straight_to_the_file(folder):
    """So a program that only adds has next to nothing in its log."""
    folder.killed("""
        file = h5py.File("a.h5", "w")
        file.flush()
        file["data"] = np.ones(1 << 20)
        file.flush()
        kill()
        """)
    assert sum((folder / name).stat().st_size for name in common.segments(folder.path)) < 1 << 20
    folder.recover("a.h5")
    assert folder.values() == [1.0] * (1 << 20)


def test_what_a_commit_has_is_not_overwritten_in_the_file(left_by):
    folder = left_by()
    data = (folder / "a.h5").read_bytes()
    assert bytes(8) + b"\x22\x40" not in data and data.count(b"\0\0\0\0\0\0\x22\x40") < 10, "nines are in the file"


def test_a_file_that_was_not_committed_for_a_second_is_moved_out_of_its_log(folder):
    folder.run("""
        import shutil
        file = h5py.File("a.h5", "w")
        file["data"] = np.ones(9)
        file.flush()
        file["data"][:] = 3
        file.flush()
        for turn in range(100):
            time.sleep(0.1)
            shutil.copy("a.h5", "copy.h5")
            if not open("a.h5", "rb").read(64)[20] & 0x80: break
        else: raise SystemExit("it is still marked")
        """)
    assert folder.values("copy.h5") == [3.0] * 9


def test_a_large_log_is_moved_while_the_program_goes_on(folder):
    folder.killed("""
        file = h5py.File("a.h5", "w")
        data = file.create_dataset("data", data=np.zeros(2 << 20))
        file.flush()
        for turn in range(1, 9):
            data[:] = turn
            file.flush()
        size = sum(os.path.getsize(name) for name in os.listdir(".") if "wal" in name)
        assert size < 3 * (64 << 20), size
        kill()
        """)
    folder.recover("a.h5")
    assert set(folder.values()) == {8.0}


def test_the_program_sees_no_difference(folder):
    folder.run("""
        file = h5py.File("a.h5", "w")
        data = file.create_dataset("data", data=np.zeros(1000))
        for turn in range(20):
            data[turn * 50 : turn * 50 + 60] = turn + 1
            if turn % 3 == 0: file.flush()
            assert data[turn * 50] == turn + 1 and data[max(0, turn * 50 - 1)] == max(1, turn)
        assert list(file) == ["data"]
        """)


def test_without_the_setting_nothing_is_different(plain):
    plain.run("""
        file = h5py.File("a.h5", "w")
        file["data"] = np.ones(9); file.flush(); file["data"][:] = 2; file.flush()
        assert os.listdir(".") == ["a.h5"] and not open("a.h5", "rb").read(64)[20] & 0x80
        """, journal="off")  # fmt: skip


def test_a_file_that_has_no_bytes_is_no_old_data(plain):
    pathlib.Path(plain / "a.h5").touch()
    plain.run("with h5py.File('a.h5', 'a') as file: file['data'] = np.ones(3)")
    assert plain.values() == [1, 1, 1] and plain.names() == ["a.h5"]
