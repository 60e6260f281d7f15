"""What is a commit, and what is none."""

import os

import common
import pytest
from conftest import REPO

WRITE = "file = h5py.File('a.h5', 'w'); data = file.create_dataset('data', data=np.zeros(1000)); file.flush()\n"


def recovered(folder, name="a.h5"):
    folder.recover(name)
    assert not [other for other in folder.names() if "-wal." in other]
    return folder.values(name)


def test_a_flush_that_succeeded_is_a_commit(folder):
    folder.killed(WRITE + "data[:] = 1; file.flush(); data[:] = 2; kill()")
    assert set(recovered(folder)) == {1.0}


def test_the_last_close_is_a_commit(folder):
    folder.killed(WRITE + "data[:] = 1; file.close(); kill()")
    assert folder.names() == ["a.h5"] and set(folder.values()) == {1.0}


def test_a_flush_of_a_dataset_is_no_commit(folder):
    folder.killed(WRITE + "data[:] = 1; data.flush(); kill()")
    assert set(recovered(folder)) == {0.0}


def test_a_creation_is_no_commit(folder):
    folder.killed("file = h5py.File('a.h5', 'w'); time.sleep(0.1); kill()")
    folder.recover("a.h5", rc=None)
    assert (folder / "a.h5").stat().st_size == 0 or b"\x89HDF" not in (folder / "a.h5").read_bytes()


def test_what_hdf5_writes_because_its_caches_are_full_is_no_commit(folder):
    folder.killed(WRITE + """
for n in range(400):
    group = file.create_group(f"g{n}")
    for name in "abcdefgh": group.attrs[name] = np.full(500, n)
    data[:] = n + 1
kill()
""")  # fmt: skip
    assert set(recovered(folder)) == {0.0}
    assert folder.run("print(list(h5py.File('a.h5')))", native=True).out == "['data']\n"


@pytest.mark.parametrize("flushes, last", [(2, 0.0), (3, 3.0), (5, 3.0), (6, 6.0)])
def test_every_so_many_flushes_one_commits(plain, flushes, last):
    plain.run("h5py.File('a.h5', 'w')['data'] = np.zeros(1000)")
    code = "file = h5py.File('a.h5', 'r+'); data = file['data']\n"
    plain.killed(code + "".join(f"data[:] = {n}; file.flush()\n" for n in range(1, flushes + 1)) + "kill()", TIDELANE_JOURNAL_COMMITS="3")
    assert set(recovered(plain)) == {last}


def test_the_first_flush_after_so_long_commits(plain):
    plain.run("h5py.File('a.h5', 'w')['data'] = np.zeros(1000)")
    plain.killed("""
        file = h5py.File("a.h5", "r+"); data = file["data"]
        time.sleep(0.6)
        data[:] = 1; file.flush()
        data[:] = 2; file.flush()
        kill()
        """, TIDELANE_JOURNAL_COMMITS="500ms")  # fmt: skip
    assert set(recovered(plain)) == {1.0}


def test_no_flush_no_commit_however_long_it_lasts(plain):
    plain.run("h5py.File('a.h5', 'w')['data'] = np.zeros(1000)")
    plain.killed("file = h5py.File('a.h5', 'r+'); file['data'][:] = 1; time.sleep(1.3); kill()", TIDELANE_JOURNAL_COMMITS="100ms")
    assert set(recovered(plain)) == {0.0}


def test_the_last_close_commits_whatever_journal_commits_says(plain):
    plain.killed(WRITE + "data[:] = 4; file.close(); kill()", TIDELANE_JOURNAL_COMMITS="1000")
    assert set(plain.values()) == {4.0} and plain.names() == ["a.h5"]


def test_python_commits_whatever_journal_commits_says(folder):
    code = WRITE + "import tidelane\ndata[:] = 1; file.flush(); data[:] = 2; tidelane.commit(file); data[:] = 3; file.flush(); kill()"
    folder.killed(code, TIDELANE_JOURNAL_COMMITS="1000", PYTHONPATH=str(REPO / "python"))
    assert set(recovered(folder)) == {2.0}


def test_c_commits_whatever_journal_commits_says(folder, compiled):
    program = compiled("commit.c", f"-I{REPO}/library", f"-I{REPO}/src", "-lhdf5", more=[REPO / "library/tidelane.c"])
    done = common.run([program, "a.h5"], folder.env(TIDELANE_JOURNAL_COMMITS="1000"), folder.path)
    assert done.rc == -9, done.words()
    assert set(recovered(folder)) == {2}


def test_every_librarys_flush_is_a_commit(folder):
    folder.killed("""
        import netCDF4
        file = netCDF4.Dataset("a.h5", "w")
        file.createDimension("x", 100)
        data = file.createVariable("data", "f8", ("x",))
        data[:] = 1
        file.sync()
        data[:] = 2
        kill()
        """)
    assert set(recovered(folder)) == {1.0}


def test_a_flush_waits_for_its_commit_also_where_flushes_are_deferred(folder):
    folder.killed(WRITE + "data[:] = 1; file.flush(); kill()", TIDELANE_FLUSH="deferred", TIDELANE_MODE="async", TIDELANE_LINGER="10s")
    assert set(recovered(folder)) == {1.0}


def test_after_a_deferred_close_it_is_the_last_flush_or_whole(folder):
    folder.killed(WRITE + "data[:] = 1; file.flush(); data[:] = 2; file.close(); kill()", TIDELANE_CLOSE="deferred", TIDELANE_MODE="async")
    values = set(recovered(folder))
    assert values in ({1.0}, {2.0})


def test_a_flush_through_one_handle_commits_what_another_has_written(folder):
    folder.killed(WRITE + """
other = h5py.File("a.h5", "r+")
third = other["data"]
data[:500] = 1
third[500:] = 2
other.create_group("made")
file.flush()
data[:] = 3
kill()
""")  # fmt: skip
    assert recovered(folder) == [1.0] * 500 + [2.0] * 500
    assert folder.run("print('made' in h5py.File('a.h5'))", native=True).out == "True\n"


def test_a_flush_commits_what_is_written_through_a_handle_that_outlived_its_file(folder):
    folder.killed(WRITE + """
other = h5py.File("a.h5", "r+")
low = h5py.h5d.open(h5py.h5f.open(b"a.h5", h5py.h5f.ACC_RDWR), b"data")  # its file's identifier is closed
low.write(h5py.h5s.create_simple((1000,)), h5py.h5s.ALL, np.full(1000, 5.0))
other.flush()
kill()
""")  # fmt: skip
    assert set(recovered(folder)) == {5.0}


def test_the_close_of_one_of_several_handles_is_not_the_last(folder):
    folder.killed(WRITE + "other = h5py.File('a.h5', 'r+'); data[:] = 1; other.flush(); data[:] = 2; other.close(); kill()")
    assert set(recovered(folder)) in ({1.0}, {2.0})


def test_a_file_left_open_at_the_end_is_committed_by_it(folder):
    folder.run(WRITE + "data[:] = 6; low = file.id; h5py._keep = (low, data)")
    assert folder.names() == ["a.h5"] and set(folder.values()) == {6.0}


@pytest.mark.parametrize("end", ["os._exit(3)", "os.abort()", "os.kill(os.getpid(), 15)", "os.kill(os.getpid(), 11)"])
def test_whatever_ends_the_program(plain, end):
    plain.run(WRITE + f"data[:] = 1; file.flush(); data[:] = 2; {end}", rc=None)
    assert os.path.exists(plain / "a.h5-wal.0") and set(recovered(plain)) == {1.0}


def test_who_asks_where_chunks_lie_makes_a_commit(folder):
    code = """
        file = h5py.File("a.h5", "w")
        data = file.create_dataset("data", data=np.zeros(1000), chunks=(100,)); file.flush()
        data[:] = 1; file.flush(); data[:] = 2
        info = data.id.get_chunk_info(0)
        assert not open("a.h5", "rb").read(64)[20] & 0x80
        assert np.frombuffer(open("a.h5", "rb").read()[info.byte_offset :][: info.size]).tolist() == [2.0] * 100
        """
    summary = folder.summary(code + "\n        os._exit_later = file")
    assert summary["fallbacks"]["journal_address"] >= 1
    (folder / "a.h5").unlink()
    folder.killed(code + "\n        kill()")
    assert set(recovered(folder)) == {2.0}


def test_a_commit_that_is_begun_has_all_or_nothing(folder):
    """Two datasets, an attribute and a group of one commit."""
    folder.killed(WRITE + """
for n in range(1, 6):
    data[:] = n
    file.attrs["n"] = n
    file.create_group(f"g{n}")
    file.flush()
data[:] = 9; file.attrs["n"] = 9
kill()
""")  # fmt: skip
    assert set(recovered(folder)) == {5.0}
    assert folder.run("f = h5py.File('a.h5'); print(f.attrs['n'], len(f))", native=True).out == "5 6\n"
