"""`tidelane recover`: what killed programs have left goes, what a program still writes stays."""

import fcntl
import os
import struct

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
    assert f"removed {path}" in tidelane("recover", tidelane.data).stdout


def test_mistakes_are_told(tidelane):
    done = tidelane("recover", tidelane.data / "missing")
    assert done.returncode == 2 and "no folder" in done.stderr
    (tidelane.data / ".x.h5.unpublished").mkdir()
    assert tidelane("recover", tidelane.data).returncode == 1
