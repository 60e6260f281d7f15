"""A disk that becomes full: the error is the flush's (or the write's), nothing that was committed is lost, and once there is room again it goes on."""

import os
import subprocess

import pytest
from conftest import Folder, as_root

pytestmark = as_root
BEGIN = """
def fill():
    with open("ballast", "ab", buffering=0) as ballast:
        try:
            for size in (65536, 4096, 512, 1):
                try:
                    while True: ballast.write(bytes(size))
                except OSError: pass
        finally: pass
def fails(call):
    try: call()
    except (OSError, RuntimeError, SystemError) as error:
        print("failed:", error); return
    raise SystemExit(f"{call} succeeded on a full disk")
file = h5py.File("a.h5", "w")
data = file.create_dataset("data", data=np.ones(50000))
file.flush()
fill()
"""
ROOM = "os.unlink('ballast')\n"


@pytest.fixture(params=["process", "power"])
def disk(request, tmp_path):
    """A small disk."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {done.stderr}")
    yield Folder(place, request.param)
    subprocess.run(["umount", "-l", place], check=True, timeout=60)


def killed(disk, code, **settings):
    return disk.killed(code, **{"TIDELANE_MODE": "async"} | settings)


def recovered(disk):
    (disk / "ballast").unlink(missing_ok=True)
    disk.recover("a.h5")
    assert disk.names() == ["a.h5"]
    return set(disk.values())


def test_a_flush_that_has_no_room_fails_and_the_commit_before_stays(disk):
    done = killed(disk, BEGIN + "data[:] = 2\nfails(file.flush)\nkill()")
    assert "failed" in done.out and recovered(disk) == {1.0}


def test_it_fails_again_as_long_as_there_is_no_room(disk):
    killed(disk, BEGIN + "data[:] = 2\nfor turn in range(3): fails(file.flush)\nkill()")
    assert recovered(disk) == {1.0}


def test_once_there_is_room_the_flush_commits(disk):
    killed(disk, BEGIN + "data[:] = 2\nfails(file.flush)\n" + ROOM + "file.flush()\ndata[:] = 3\nkill()")
    assert recovered(disk) == {2.0}


def test_commits_of_before_and_after_are_whole(disk):
    killed(disk, BEGIN + ROOM + "data[:10] = 5\nfile.flush()\nfill()\ndata[:] = 2\nfails(file.flush)\n" + ROOM + "file.attrs['more'] = 1\nfile.flush()\nkill()")
    assert recovered(disk) == {2.0}


def test_a_close_that_has_no_room_fails_and_the_commit_before_stays(disk):
    killed(disk, BEGIN + "data[:] = 2\nfails(file.close)\nkill()")
    assert recovered(disk) == {1.0}


def test_a_close_that_failed_is_made_again(disk):
    disk.run(BEGIN + "data[:] = 2\nfails(file.flush)\n" + ROOM + "file.close()", TIDELANE_MODE="async")
    assert disk.names() == ["a.h5"] and set(disk.values()) == {2.0}


def test_the_end_of_the_program_without_room_loses_no_commit(disk):
    disk.run(BEGIN + "data[:] = 2\nkeep = file", rc=None, TIDELANE_MODE="async")
    assert recovered(disk) == {1.0}


def test_a_write_that_has_no_room_is_told(disk):
    killed(disk, BEGIN + "def write(): data[:] = 2; file.flush()\nfails(write)\nkill()", TIDELANE_MODE="sync")
    assert recovered(disk) == {1.0}


def test_new_bytes_that_have_no_room_lose_no_commit(disk):
    killed(disk, BEGIN + "def more(): file['more'] = np.ones(50000); file.flush()\nfails(more)\nkill()")
    assert recovered(disk) == {1.0}


def test_a_file_size_limit_is_a_full_disk(tmp_path):
    (tmp_path / "data").mkdir()
    folder = Folder(tmp_path / "data")
    folder.killed("""
        import resource
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        file = h5py.File("a.h5", "w")
        data = file.create_dataset("data", data=np.ones(50000)); file.flush()
        data[:10] = 5; file.flush()
        limit = os.path.getsize("a.h5-wal.0") + 5000
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try: data[:] = 2; file.flush()
        except (OSError, RuntimeError): pass
        else: raise SystemExit("it was written")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        kill()
        """)
    folder.recover("a.h5")
    assert folder.values() == [5.0] * 10 + [1.0] * 49990 and os.listdir(folder.path) == ["a.h5"]
