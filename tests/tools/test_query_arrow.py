"""`tidelane query --arrow`: what readers of Arrow get is what NumPy finds in what h5py reads. Read by arrow_reader.py."""

import os
import struct
import subprocess

import arrow_reader
import h5py
import numpy as np
import pytest
from conftest import TOOL, error_line
from test_query import COLUMNS, COUNT, LIBRARIES, LIBRARY, SHAPE, begin, expect_ends, query, source  # noqa: F401

WITHOUT = "built without Arrow" in subprocess.run([TOOL, "query", "/nonexistent", "x > 1", "--arrow"], capture_output=True, text=True).stderr
HEADERS = os.path.exists("/usr/include/flatbuffers/flatbuffers.h")  # where they are, the program has it
pytestmark = pytest.mark.skipif(WITHOUT and not HEADERS, reason="flatbuffers' headers were missing")

KINDS = {"f2": "half", "f4": "float", "f8": "double", "b1": "truth", "S6": "text", "O": "text"}
KINDS |= {f"{letter}{size}": f"{word}{8 * size}" for letter, word in (("i", "int"), ("u", "uint")) for size in (1, 2, 4, 8)}


def stream(path, *words, library=None):
    done = subprocess.run([TOOL, "query", "--hdf5", library or LIBRARY, path, *words, "--arrow"], capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stderr == b"", done
    return done.stdout


def same(values, found):
    values = np.asarray(values)
    if values.dtype.kind in "SO":
        return [value.decode() if isinstance(value, bytes) else value for value in values] == found
    return values.astype(values.dtype.newbyteorder("=")).tobytes() == np.array(found, values.dtype.newbyteorder("=")).tobytes()


@pytest.mark.parametrize("library", [name for name in LIBRARIES if LIBRARIES[name]])
def test_a_stream_of_every_type(source, library):  # noqa: F811
    names = [name for name in COLUMNS if name != "long"]
    found = np.flatnonzero((COLUMNS["i4"] > 0) & (COLUMNS["f4"] < 60))
    data = stream(source, "i4 > 0 and f4 < 60", "-c", ",".join([*names, "state"]), library=LIBRARIES[library])
    fields, batches = arrow_reader.tables_of(data)
    kinds = {name: KINDS[COLUMNS[name].dtype.str.lstrip("<>|=")] for name in names} | {"index": "uint64", "state": "int16"}
    assert dict(fields) == kinds and fields[0] == ("index", "uint64") and len(fields) == len(kinds)
    columns = arrow_reader.columns_of(data)
    assert same(found.astype("u8"), columns["index"])
    assert all(same(COLUMNS[name][found], columns[name]) for name in names)
    assert columns["state"] == np.array([-1, 1, 2, 1] * (COUNT // 4))[found].tolist()


def test_a_file_of_many_batches(query, source):  # noqa: F811
    with h5py.File(query.folder / "large.h5", "w") as file:
        file["index"] = np.arange(150_001)
        file["text"] = np.array([b"%d" % i for i in range(150_001)], "S40")
        file["third"] = np.arange(150_001) % 3 == 0
    done = query("large.h5", "index != 77", "-c", "text,third", "--arrow", "-o", "out.h5")
    assert done.stdout == "150000 hits in 150001 elements\n" and done.returncode == 0, done
    fields, batches = arrow_reader.tables_of((query.folder / "out.h5").read_bytes())
    assert fields == [("index_", "uint64"), ("index", "int64"), ("text", "text"), ("third", "truth")], "two columns of one name"
    assert len(batches) >= 3 and max(len(batch[0]) for batch in batches) < 100_000
    expected = [i for i in range(150_001) if i != 77]
    assert [sum(parts, []) for parts in zip(*batches)] == [expected, expected, [str(i) for i in expected], [i % 3 == 0 for i in expected]]
    assert "out.h5 exists already" in error_line(query("large.h5", "index == 7", "--arrow", "-o", "out.h5"))
    assert query("large.h5", "index == 7", "--arrow", "-o", "out.h5", "--force").returncode == 0
    assert arrow_reader.columns_of((query.folder / "out.h5").read_bytes()) == {"index_": [7], "index": [7]}


def test_places_in_a_grid_fields_and_nothing(source):  # noqa: F811
    with h5py.File(source) as file:
        grid = file["deep/er/grid"][:]
    columns = arrow_reader.columns_of(stream(source, "deep/er/grid > 0.9", "-o", "-"))
    assert np.array_equal(np.array([columns[f"index{d}"] for d in range(len(SHAPE))]).T, np.argwhere(grid > 0.9))
    assert columns["deep/er/grid"] == grid[grid > 0.9].tolist()
    events = arrow_reader.columns_of(stream(source, "id < 30 and tag == 'mu'", "-d", "events", "-c", "word,at.y"))
    assert events["word"] == [f"w{i % 11}" for i in range(1, 30, 2)] and events["tag"] == ["mu"] * 15
    assert same((np.arange(1, 30, 2) / 3).astype("f4"), events["at.y"])
    assert arrow_reader.columns_of(stream(source, "single > 4")) == {"single": [4.5]}
    assert arrow_reader.tables_of(stream(source, "i4 > 1000")) == ([("index", "uint64"), ("i4", "int32")], [])


def test_numbers_that_arrow_has_otherwise(query):  # noqa: F811
    kind = h5py.h5t.IEEE_F16LE.copy()
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_ebias(127)
    bits = np.array([0x3F80, 0xC000, 0x7F80, 0x0001, 0x8000], "u2")  # 1, -2, infinity, a very small one, -0
    with h5py.File(query.folder / "brain.h5", "w") as file:
        file.create_dataset("n", data=np.arange(5))
        h5py.h5d.create(file.id, b"b", kind, h5py.h5s.create_simple((5,))).write(h5py.h5s.ALL, h5py.h5s.ALL, bits, mtype=kind)
    columns = arrow_reader.columns_of(stream(query.folder / "brain.h5", "n >= 0", "-c", "b"))
    assert [struct.unpack("<I", struct.pack("<f", value))[0] for value in columns["b"]] == (bits.astype("u4") << 16).tolist()


@pytest.mark.parametrize("text", [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xe0\x80\x80", b"\xf4\x90\x80\x80", b"\xc3"])
def test_text_that_is_none(query, text):  # noqa: F811
    with h5py.File(query.folder / "text.h5", "w") as file:
        file["a"] = np.array([b"fine \xf4\x8f\xbf\xbf \xed\x9f\xbf"] * 3 + [b"not " + text])
    assert "column 'a' has a string that is no UTF-8, as Arrow's are: 'not \\x" in error_line(query("text.h5", "a != ''", "--arrow", "-o", "o"), 1)
    assert arrow_reader.columns_of(stream(query.folder / "text.h5", "a < 'g'")) == {"index": [0, 1, 2], "a": ["fine \U0010ffff \ud7ff"] * 3}


def test_what_cannot_be_written(query, source):  # noqa: F811
    assert "column 'long': Arrow has no long doubles" in error_line(query(source, "long > 0", "--arrow"), 1)
    assert error_line(query(source, "long > 0", "--arrow", "-o", "out.arrow"), 1) and not os.path.exists(query.folder / "out.arrow")
    told = expect_ends(source, "-c", "f8,i8,u8,words", "--arrow", reader="head -c 100 | wc -c", has="100")
    assert "stdout cannot be written to: No space left" in told


def test_memory_does_not_grow_with_the_stream(tidelane):
    def most(count):
        with h5py.File(tidelane.folder / "endless.h5", "w") as file:
            file.create_dataset("x", (count,), "f8")
        process = begin(tidelane, "x == 0", "--arrow", text=False)
        size = 0
        while part := process.stdout.read(1 << 20):
            size += len(part)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        assert status == 0, process.stderr.read()
        assert 16 * count < size < 17 * count + 4096
        return usage.ru_maxrss >> 10

    little = most(1 << 10)
    assert most(1 << 23) < little + 64  # MiB; of 128

