"""`tidelane status`: what state files are in, and nothing of it changed."""

import fcntl
import json

import journalled
import pytest


def states(tidelane, *words):
    done = tidelane("status", "--json", *words)
    assert done.returncode == 0 and done.stderr == "", done
    return {entry.pop("file"): entry for entry in json.loads(done.stdout)}


@pytest.fixture
def folder(tidelane):
    """A file of each kind that lasts."""
    data = tidelane.data
    journalled.killed(data / "killed.h5")
    journalled.never_committed(data / "never.h5")
    journalled.killed(data / "lost.h5")
    journalled.log_of(data / "lost.h5").unlink()
    journalled.killed(data / "damaged.h5")
    log = journalled.log_of(data / "damaged.h5")
    log.write_bytes(b"X" + log.read_bytes()[1:])
    journalled.killed(data / "renamed.h5").rename(data / "new.h5")
    journalled.append(data / "plain.h5")
    (data / ".hidden.h5.unpublished").write_bytes(b"12345")
    (data / "text").write_text("no HDF5 file")
    return data


def test_every_state_has_a_word(tidelane, folder):
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    found = states(tidelane, folder)
    assert {path.rsplit("/", 1)[1]: entry["state"] for path, entry in found.items()} == {
        "killed.h5": "recoverable",
        "never.h5": "never_committed",
        "lost.h5": "log_missing",
        "damaged.h5": "log_unusable",
        "new.h5": "log_missing",
        "plain.h5": "plain",
        ".hidden.h5.unpublished": "unpublished",
        "renamed.h5-wal.0": "stray_log",
    }
    killed = found[str(folder / "killed.h5")]
    log = journalled.log_of(folder / "killed.h5")
    assert killed["commit"] == 1 and killed["logged"] == 80 and killed["log"] == [str(log)]
    assert killed["log_bytes"] == log.stat().st_size and 0 <= killed["log_age"] < 600
    renamed = str(journalled.log_of(folder / "renamed.h5"))
    assert found[str(folder / "new.h5")]["log"] == [renamed] and renamed in found[str(folder / "new.h5")]["reason"]
    assert found[renamed]["of"] == str(folder / "renamed.h5")
    assert "lost.h5-wal.0" in found[str(folder / "lost.h5")]["reason"]
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


def test_a_line_for_each_file(tidelane, folder):
    done = tidelane("status", folder)
    assert done.returncode == 0 and done.stderr == "" and len(done.stdout.splitlines()) == 8
    for words in (
        f"to be recovered  {folder}/killed.h5 (commit 1; ",
        f"never committed  {folder}/never.h5 (tidelane recover makes it empty)",
        f"log missing      {folder}/lost.h5 (cannot find lost.h5-wal.0",
        f"log unusable     {folder}/damaged.h5 (cannot use damaged.h5-wal.0, a damaged log",
        f"plain            {folder}/plain.h5 (",
        f"not published    {folder}/.hidden.h5.unpublished (5 B)",
        f"stray log        {folder}/renamed.h5-wal.0 (of {folder}/renamed.h5, ",
    ):
        assert words in done.stdout, words
    assert tidelane("status", folder / "text").stdout == f"no HDF5 file     {folder}/text (12 B)\n"


def test_folders_below_are_for_recursive(tidelane):
    below = tidelane.data / "below"
    below.mkdir()
    journalled.append(below / "a.h5")
    assert tidelane("status", tidelane.data).stdout == "no HDF5 file\n"
    assert list(states(tidelane, "-r", tidelane.data)) == [str(below / "a.h5")]


def test_what_a_program_writes(tidelane):
    path = tidelane.data / "a.h5"
    process = journalled.being_written(path)
    found = states(tidelane, path)
    assert found[str(path)]["state"] == "written" and found[str(path)]["log"] == [str(journalled.log_of(path))]
    assert f"being written    {path} (" in tidelane("status", path).stdout
    process.communicate("\n", timeout=60)
    assert states(tidelane, path)[str(path)]["state"] == "recoverable"
    plain = tidelane.data / "plain.h5"
    journalled.append(plain)
    with open(plain, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # it is read
        assert states(tidelane, plain)[str(plain)]["state"] == "plain"
        fcntl.flock(file, fcntl.LOCK_EX)
        assert states(tidelane, plain)[str(plain)]["state"] == "written"


def test_what_hdf5_has_left_open(tidelane):
    path = tidelane.data / "a.h5"
    journalled.killed(path, "latest", TIDELANE_JOURNAL="off")
    assert states(tidelane, path)[str(path)]["state"] == "left_open"
    assert "h5clear -s" in tidelane("status", path).stdout
