"""What is not journalled: counted with its reason, refused where a journal is required; and what is odd about files that are."""

import os

import common
import pytest
from conftest import as_root

WRITE = "file = h5py.File('a.h5', 'a'); data = file.create_dataset(f'data{len(file) or str()}', data=np.ones(9)); file.flush(); data[:] = 7; file.flush()\n"
NO_LOG = "assert not [name for name in os.listdir('.') if '-wal.' in name], os.listdir('.')\n"


def not_journalled(folder, reason, code, **settings):
    """It works as without a journal, and is counted; with journal_required it fails, and says why."""
    assert folder.summary(code, **settings)["fallbacks"].get(reason, 0) >= 1
    done = folder.run(code, rc=1, TIDELANE_JOURNAL_REQUIRED="on", **settings)
    assert "cannot journal (" in done.err, done.words()


def test_files_with_hard_links(folder):
    folder.run("h5py.File('a.h5', 'w')['old'] = 1", native=True)
    os.link(folder / "a.h5", folder / "b.h5")
    not_journalled(folder, "journal_links", WRITE + NO_LOG)


@as_root
def test_folders_that_are_not_writable(folder):
    folder.run("h5py.File('a.h5', 'w')['old'] = 1", native=True)
    folder.show_to_others()
    (folder / "a.h5").chmod(0o666)
    done = folder.run(WRITE + NO_LOG, as_nobody=True, TIDELANE_SUMMARY="1")
    assert "journal_folder" in done.err
    done = folder.run(WRITE + NO_LOG, as_nobody=True, rc=1, TIDELANE_JOURNAL_REQUIRED="on")
    assert "journal (" in done.err and common.segments(folder.path) == []


def test_names_that_are_too_long_for_a_logs(folder):
    name = "n" * 252
    code = f"file = h5py.File({name!r}, 'w'); file['data'] = 1; file.flush(); file['data'][()] = 2; file.flush()\n"
    not_journalled(folder, "journal_folder", code)


def test_where_there_are_no_file_locks(folder, compiled):
    library = compiled("no_locks.c", "-shared", "-fPIC", "-ldl")
    code = WRITE.replace("'a'", "'w'") + NO_LOG
    assert folder.summary(code, LD_PRELOAD=str(library))["fallbacks"].get("journal_locks", 0) >= 1
    folder.run(code, rc=1, TIDELANE_JOURNAL_REQUIRED="on", LD_PRELOAD=str(library))  # that is known when it is written


def test_published_files(folder):
    not_journalled(folder, "journal_publish", WRITE.replace("'a'", "'w'") + NO_LOG, TIDELANE_PUBLISH="atomic")


def test_files_for_swmr_readers(folder):
    code = """
        file = h5py.File("a.h5", "w", libver="latest")
        data = file.create_dataset("data", (10,), "f8", maxshape=(None,), chunks=(10,))
        file.swmr_mode = True
        for turn in range(5):
            data.resize((10 * turn + 20,)); data[:] = turn; data.flush()
            assert set(h5py.File("a.h5", "r", swmr=True)["data"][:]) == {float(turn)}
        """
    assert folder.summary(code)["fallbacks"].get("journal_swmr", 0) >= 1
    assert set(folder.values()) == {4.0} and folder.names() == ["a.h5"]
    assert "journal (" in folder.run(code, rc=1, TIDELANE_JOURNAL_REQUIRED="on").err


def test_files_whose_descriptor_the_program_asks_for(folder):
    code = WRITE.replace("'a'", "'w'") + """
fd = file.id.get_vfd_handle()
assert os.fstat(fd).st_ino == os.stat("a.h5").st_ino
assert not open("a.h5", "rb").read(64)[20] & 0x80
file["data"][:] = 3
file.flush()
"""  # fmt: skip
    assert folder.summary(code + NO_LOG + "file.close()")["fallbacks"].get("journal_handle", 0) >= 1
    assert folder.values() == [3.0] * 9
    (folder / "a.h5").unlink()
    folder.killed(code + "kill()")
    assert folder.values() == [3.0] * 9, "it was ended: the file itself has it"
    (folder / "a.h5").unlink()
    assert "journal" in folder.run(code, rc=1, TIDELANE_JOURNAL_REQUIRED="on").err


@pytest.mark.parametrize("driver", ["core", "family", "split", "stdio"])
def test_files_of_other_drivers(folder, driver):
    name = "a%d.h5" if driver == "family" else "a.h5"
    code = f"""
        file = h5py.File({name!r}, "w", driver={driver!r})
        file["data"] = np.arange(9.0); file.flush(); file["data"][:] = 5; file.flush(); file.close()
        assert not [name for name in os.listdir(".") if "-wal." in name]
        """
    not_journalled(folder, "driver", code)


def test_external_raw_files_are_as_natively(folder):
    folder.killed("""
        file = h5py.File("a.h5", "w")
        data = file.create_dataset("data", shape=(100,), dtype="f8", external=[("raw.bin", 0, 800)])
        data[:] = 1; file.flush(); data[:] = 2; data.flush()
        kill()
        """)
    assert not [name for name in folder.names() if name.startswith("raw.bin-wal")]
    folder.recover("a.h5")
    assert set(folder.run("print(*h5py.File('a.h5')['data'][:])", native=True).out.split()) <= {"1.0", "2.0"}
    assert os.path.getsize(folder / "raw.bin") == 800


def test_each_file_of_a_virtual_dataset_is_its_own_last_commit(folder):
    folder.killed("""
        parts = [h5py.File(f"part{n}.h5", "w") for n in range(2)]
        for part in parts: part["data"] = np.ones(10); part.flush()
        layout = h5py.VirtualLayout((2, 10), "f8")
        for n in range(2): layout[n] = h5py.VirtualSource(f"part{n}.h5", "data", (10,))
        whole = h5py.File("a.h5", "w"); whole.create_virtual_dataset("data", layout); whole.flush()
        parts[0]["data"][:] = 2; parts[0].flush()
        parts[1]["data"][:] = 3
        kill()
        """)
    folder.recover(folder.path)
    assert folder.values() == [[2.0] * 10, [1.0] * 10]


def test_a_file_behind_an_external_link_is_its_own_last_commit(folder):
    folder.killed("""
        other = h5py.File("b.h5", "w"); other["data"] = np.ones(10); other.flush()
        file = h5py.File("a.h5", "w"); file["data"] = h5py.ExternalLink("b.h5", "data"); file.flush()
        file["data"][:] = 2
        file.flush()
        kill()
        """)
    folder.recover(folder.path)
    assert set(folder.values("b.h5")) <= {1.0, 2.0}


def test_a_forked_child_reads_it_and_what_it_writes_fails(folder):
    folder.run("""
        file = h5py.File("a.h5", "w")
        data = file.create_dataset("data", data=np.ones(10)); file.flush(); data[:] = 2; file.flush()
        data[:] = 3
        child = os.fork()
        if child == 0:
            status = 0 if data[:].tolist() == [3.0] * 10 else 10
            try:
                data[:] = 4
                file.flush()
                status = 11
            except (OSError, RuntimeError): pass
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        data[5:] = 6
        file.close()
        """)
    assert folder.values() == [3.0] * 5 + [6.0] * 5 and folder.names() == ["a.h5"]


def test_a_child_that_only_reads_closes_without_an_error(folder):
    done = folder.run("""
        file = h5py.File("a.h5", "w")
        file["data"] = np.ones(10); file.flush(); file["data"][:] = 2; file.flush()
        child = os.fork()
        if child == 0:
            same = file["data"][:].tolist() == [2.0] * 10
            file.close()
            os._exit(0 if same else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        file["data"][:] = 3
        file.close()
        """)
    assert "tidelane" not in done.err, done.err
    assert folder.values() == [3.0] * 10 and folder.names() == ["a.h5"]


def test_a_child_that_outlives_its_parent_keeps_nobody_from_the_file(folder):
    done = folder.killed("""
        file = h5py.File("a.h5", "w")
        data = file.create_dataset("data", data=np.ones(10)); file.flush(); data[:] = 2; file.flush()
        child = os.fork()
        if child == 0:
            os.closerange(0, 3)
            time.sleep(60)
            os._exit(0)
        print(child, flush=True)
        kill()
        """)
    child = int(done.out)
    os.kill(child, 0)  # it lives
    assert folder.recover("a.h5").out.startswith("recovered")
    os.kill(child, 9)
    assert folder.values() == [2.0] * 10


def test_each_fallback_is_in_the_summary_for_people(folder):
    done = folder.run(WRITE.replace("'a'", "'w'") + "file.id.get_vfd_handle()", TIDELANE_SUMMARY="1")
    assert "journal_handle" in done.err


def test_required_says_nothing_where_the_journal_is_off(plain):
    plain.run("h5py.File('a.h5', 'w')['old'] = 1", native=True)
    os.link(plain / "a.h5", plain / "b.h5")
    plain.run("h5py.File('a.h5', 'r+')['new'] = 1", journal="off", TIDELANE_JOURNAL_REQUIRED="on")
