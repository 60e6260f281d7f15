"""`tidelane query`: what it prints and writes is what NumPy finds in what h5py reads; and it ends when it is told to."""

import csv
import io
import os
import pty
import re
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest
from conftest import TOOL, error_line

COUNT = 40_000  # more than is given at once
SHAPE = (20, 40, 50)


def own_hdf5():
    """The libhdf5 inside this Python's h5py."""
    with open("/proc/self/maps") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps if "libhdf5" in line}
    return next(path for path in sorted(paths) if "_hl" not in path)


LIBRARIES = {"built": os.environ.get("TIDELANE_TEST_HDF5_LIBRARY", ""), "wheel": own_hdf5()}
LIBRARY = LIBRARIES["built"] or LIBRARIES["wheel"]


def columns():
    random = np.random.default_rng(7)
    whole = random.integers(-100, 100, COUNT)
    words = np.array(["alpha", "β, γ", 'say "x"', "two\nlines", ""], dtype=object)[random.integers(0, 5, COUNT)]
    made = {f"i{size}": whole.astype(f"i{size}") for size in (1, 2, 4, 8)}
    made |= {f"u{size}": abs(whole).astype(f"u{size}") for size in (1, 2, 4, 8)}
    made |= {f"f{size}": random.normal(0, 50, COUNT).astype(f"f{size}") for size in (2, 4, 8)}
    made["big_i4"], made["big_f8"] = whole.astype(">i4"), random.normal(0, 1, COUNT).astype(">f8")
    made["long"] = random.normal(0, 1, COUNT).astype("longdouble")
    made["large"] = np.uint64(2**64 - 1) - abs(whole).astype("u8")
    made["ok"] = random.random(COUNT) < 0.5
    made["fixed"] = np.array([word.encode()[:6] for word in words], "S6")
    made["words"] = words
    made["f8"][:3] = np.nan, np.inf, -0.0
    return made


COLUMNS = columns()


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("query") / "run.h5"
    with h5py.File(path, "w") as file:
        for name, values in COLUMNS.items():
            kind = h5py.string_dtype() if values.dtype == object else None
            file.create_dataset(name, data=values, dtype=kind, chunks=(3000,) if name[0] in "fw" else None, compression="gzip" if name == "f4" else None)
        file["level"] = np.arange(COUNT) % 3
        file["level"].attrs["unit"] = "none"
        state = h5py.enum_dtype({"off": -1, "on": 1, "idle": 2}, "i2")
        file.create_dataset("state", data=np.array([-1, 1, 2, 1] * (COUNT // 4)), dtype=state)
        grid = np.random.default_rng(1).random(SHAPE)
        file.create_dataset("deep/er/grid", data=grid, chunks=(7, 11, 13), compression="gzip", shuffle=True)
        file.create_dataset("deep/er/mask", data=grid > 0.5)
        file["single"], file["empty"], file["few"] = 4.5, np.zeros(0), np.arange(10)
        record = np.dtype([("id", "<u8"), ("at", [("x", "<f8"), ("y", ">f4")]), ("tag", "S4"), ("a.b", "i4"), ("word", h5py.string_dtype())])
        events = np.zeros(5000, record)
        events["id"], events["at"]["x"], events["at"]["y"] = np.arange(5000), np.arange(5000) / 7, np.arange(5000) / 3
        events["tag"], events["a.b"], events["word"] = np.array([b"tau", b"mu"])[np.arange(5000) % 2], np.arange(5000) % 10, [f"w{i % 11}" for i in range(5000)]
        file.create_dataset("events", data=events, chunks=(700,))
        file["gone"] = h5py.SoftLink("/nowhere")
    return path


@pytest.fixture
def query(tidelane):
    def run(*words, library=None, **env):
        return tidelane("query", "--hdf5", library or LIBRARY, *words, **env)

    run.folder = tidelane.folder
    return run


def rows_of(done):
    assert done.returncode == 0 and done.stderr == "", done
    header, *rows = csv.reader(io.StringIO(done.stdout, newline=""))
    return header, rows


def same_text(values, texts):
    """Whether CSV's texts are the values, to the last bit."""
    values = np.asarray(values)
    if values.dtype == bool:
        return [str(value) for value in values.tolist()] == texts
    if values.dtype.kind in "iu":
        return [str(value) for value in values.tolist()] == texts
    if values.dtype.kind == "S":
        return [value.decode() for value in values] == texts
    if values.dtype == object:
        return list(values) == texts
    return np.array_equal(values, np.array(texts).astype(values.dtype.newbyteorder("=")), equal_nan=True)


@pytest.mark.parametrize("library", [name for name in LIBRARIES if LIBRARIES[name]])
def test_csv_of_every_type_reads_back_the_same(query, source, library):
    found = np.flatnonzero((COLUMNS["i4"] > 0) & (COLUMNS["f4"] < 60))
    done = query(source, "i4 > 0 and f4 < 60", "--csv", "--columns", ",".join(COLUMNS), library=LIBRARIES[library])
    header, rows = rows_of(done)
    assert header[:3] == ["index", "f4", "i4"] and sorted(header[1:]) == sorted(COLUMNS) and len(rows) > 16384
    for name, texts in zip(header, map(list, zip(*rows))):
        assert same_text(found if name == "index" else COLUMNS[name][found], texts), name


def test_strings_in_the_table_are_one_line(query, source):
    done = query(source, "words == 'two\\nlines'", "-n", "2")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["index", "words"] and lines[1].endswith("  two\\nlines"), done
    assert lines[3] == f"{np.sum(COLUMNS['words'] == 'two' + chr(10) + 'lines')} hits in {COUNT} elements, of which the first 2 are shown"


def test_the_table_has_the_first_hits_and_their_number(query, source):
    found = np.flatnonzero(COLUMNS["i1"] == 5)
    done = query(source, "i1 == 5", "--columns", "f8,ok")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 22, done
    for line, at in zip(lines[1:], found[:20]):
        assert line.split() == [str(at), "5", repr(COLUMNS["f8"][at].item()), str(bool(COLUMNS["ok"][at]))]
    assert lines[-1] == f"{len(found)} hits in {COUNT} elements, of which the first 20 are shown"
    assert len({len(line) for line in lines[:15] if line.endswith("True")}) == 1  # one below the other
    everything = query(source, "i1 == 5", "-n", "0").stdout.splitlines()
    assert [int(line.split()[0]) for line in everything[1:-1]] == found.tolist()
    assert query(source, "i1 == 111").stdout == f"no hits in {COUNT} elements\n"


def test_a_long_table_comes_as_it_is_found(query, source):
    lines = query(source, "level >= 0", "-n", "0").stdout.splitlines()
    assert len(lines) == COUNT + 2 and lines[-1] == f"{COUNT} hits in {COUNT} elements"
    assert lines[COUNT].split() == [str(COUNT - 1), str((COUNT - 1) % 3)]


def test_count(query, source):
    done = query(source, "f8 > 1.5 and (i2 < 3 or not ok == True)", "--count")
    expected = np.sum((COLUMNS["f8"] > 1.5) & ((COLUMNS["i2"] < 3) | ~COLUMNS["ok"]))
    assert done.stdout == f"{expected}\n" and done.stderr == "" and done.returncode == 0
    assert query(source, "big_f8 between 0 and 0.5", "--count").stdout == f"{np.sum((COLUMNS['big_f8'] >= 0) & (COLUMNS['big_f8'] <= 0.5))}\n"
    assert query(source, "state == 1", "--count").stdout == f"{COUNT // 2}\n"
    assert query(source, "single > 4", "--count").stdout == "1\n"
    assert query(source, "empty > 4", "--count").stdout == "0\n"
    assert query(source, "-inf < few", "--count").stdout == "10\n"


def test_a_scalar_has_no_index(query, source):
    assert query(source, "single > 4").stdout == "single\n   4.5\n1 hit in 1 element\n"
    assert query(source, "single > 4", "--csv").stdout == "single\n4.5\n"


def test_coordinates_in_a_group(query, source):
    with h5py.File(source) as file:
        grid = file["deep/er/grid"][:]
    expected = np.argwhere(grid > 0.99).tolist()
    for words in (["-g", "deep/er"], ["--group", "/deep/er/"]):
        header, rows = rows_of(query(source, "grid > 0.99", *words, "--csv", "-c", "mask"))
        assert header == ["index0", "index1", "index2", "grid", "mask"]
        assert [[int(text) for text in row[:3]] for row in rows] == expected
    assert rows_of(query(source, "deep/er/grid > 0.99", "--csv"))[1] == [row[:4] for row in rows]


def test_fields_of_a_compound(query, source):
    done = query(source, "id < 4000 and at.x > 500 and tag == 'mu'", "-d", "events", "-c", "a.b,at.y", "-c", "word", "--csv")
    header, rows = rows_of(done)
    found = [i for i in range(4000) if i / 7 > 500 and i % 2 == 1]
    assert header == ["index", "at.x", "id", "tag", "a.b", "at.y", "word"]
    assert [row[0] for row in rows] == [str(i) for i in found]
    for row, i in zip(rows, found):
        assert row[1:5] == [repr(i / 7), str(i), "mu", str(i % 10)] and np.float32(row[5]) == np.float32(i / 3) and row[6] == f"w{i % 11}"
    assert query(source, "`a.b` == 3", "-d", "/events", "--count").stdout == "500\n"
    assert query(source, "word in ('w1', 'w2')", "-d", "/events", "--count").stdout == "910\n"
    assert query(source, "grid < 0", "-d", "/deep/er/grid", "--count").stdout == "0\n"


def written(query, source, *words, library=None):
    done = query(source, *words, library=library)
    assert done.returncode == 0 and done.stderr == "" and re.fullmatch(r"(\d+|no) hits? in \d+ elements?\n", done.stdout), done
    assert not [name for name in os.listdir(query.folder) if name.startswith("out.h5.")]
    return h5py.File(query.folder / "out.h5")


@pytest.mark.parametrize("library", [name for name in LIBRARIES if LIBRARIES[name]])
def test_a_new_file_has_all_hits(query, source, library):
    names = [name for name in COLUMNS if name != "u1"] + ["state"]
    text = "u1 >= 10 and words != ''"
    found = np.flatnonzero((COLUMNS["u1"] >= 10) & (COLUMNS["words"] != ""))
    with written(query, source, text, "-o", "out.h5", "-c", ",".join(names), library=LIBRARIES[library]) as file, h5py.File(source) as before:
        assert dict(file.attrs) == {"query": text, "source": str(source)}
        assert sorted(file) == sorted([*names, "u1", "coordinates"])
        assert file["coordinates"].dtype == np.uint64 and np.array_equal(file["coordinates"][:], found[:, None])
        for name in [*names, "u1"]:
            values, original = file[name], before[name]
            assert values.maxshape == (None,) and values.chunks and values.attrs["dataset"] == f"/{name}", name
            assert values.dtype == original.dtype.newbyteorder("=") and h5py.check_dtype(enum=values.dtype) == h5py.check_dtype(enum=original.dtype), name
            expected = original[:][found]
            assert all(values[:] == expected) if values.dtype == object else values[:].tobytes() == expected.astype(values.dtype).tobytes(), name


def test_a_new_file_of_fields_and_places(query, source):
    with written(query, source, "at.x < 3", "-o", "out.h5", "-d", "events", "-c", "word,id") as file:
        assert file["coordinates"].shape == (21, 1) and file["at.x"].attrs["field"] == "at.x" and file["at.x"].attrs["dataset"] == "/events"
        assert file["word"].asstr()[:].tolist() == [f"w{i % 11}" for i in range(21)]
    assert error_line(query(source, "grid > 2", "-g", "deep/er", "-o", "out.h5")) == "tidelane query: out.h5 exists already: --force replaces it"
    with h5py.File(query.folder / "out.h5") as file:
        assert "at.x" in file
    with written(query, source, "deep/er/grid > 2", "-o", "out.h5", "--force") as file:
        assert file["coordinates"].shape == (0, 3) and file["deep/er/grid"].shape == (0,)


def test_it_does_not_write_over_what_it_reads(query, source):
    before = source.read_bytes()
    assert "is the file that is asked" in error_line(query(source, "i4 > 0", "-o", source, "--force"))
    assert source.read_bytes() == before
    assert "No such file" in error_line(query(source, "i4 > 0", "-o", "none/out.h5"))


@pytest.mark.parametrize(
    "words, said",
    [
        (["Level == 1"], "there is no dataset 'Level'; the nearest is level"),
        (["grid > 1"], "there is no dataset 'grid'; /deep/er/grid is there: --group /deep/er"),
        (["word == 'a'"], "there is no dataset 'word'; the nearest is words"),
        (["tag == 'mu'"], "there is no dataset 'tag'; /events has such a field: --dataset /events"),
        (["deep/re/grid > 1"], "there is no dataset 'deep/re/grid'; /deep/er/grid is there: --group /deep/er"),
        (["deep/err/gird > 1"], "there is no dataset 'deep/err/gird'; the nearest is er"),
        (["`no such thing` > 1"], "the file has big_f8, big_i4, deep"),
        (["gone > 1"], "'gone' cannot be opened: /gone leads to nothing that is there"),
        (["deep > 1"], "'deep' is no dataset"),
        (["events > 1"], "'events' is a compound dataset: --dataset /events asks its fields: id, at.x, at.y, tag"),
        (["few > 1 and level > 1"], "different shapes: 'few' has (10), 'level' has (40000)"),
        (["words > 1"], "cannot compare column 'words': strings cannot be compared with a number"),
        (["grid > 1", "-g", "deep/eer"], "there is no group 'deep/eer'; the nearest is er"),
        (["grid > 1", "-g", "few"], "few is no group: --dataset few"),
        (["idd > 1", "-d", "events"], "there is no field 'idd'; the nearest is id"),
        (["at > 1", "-d", "events"], "'at' is a compound: name one of its fields, such as at.x"),
        (["id > 1", "-d", "event"], "there is no dataset 'event'; the nearest is events"),
        (["id > 1", "-d", "deep"], "deep is no dataset: --group deep"),
        (["id > 1", "-d", "few"], "/few has no fields: ask for 'few'"),
        (["level > 1", "-c", "lvl"], "there is no dataset 'lvl'; the nearest is level"),
    ],
)
def test_what_is_not_there_comes_with_what_is(query, source, words, said):
    assert said in error_line(query(source, *words))


@pytest.mark.parametrize(
    "text, place, reason",
    [
        ("level > 1 and", 14, "at character 14"),
        ("level >> 1", 8, "at character 8"),
        ("`β` > 1 ) and level > 2", 9, "there is no '(' for this ')'"),
        (" or ".join(["level > 1"] * 40) + " or or level > 2", None, "at character"),
    ],
)
def test_a_caret_shows_where_the_query_is_wrong(query, source, text, place, reason):
    done = query(source, text)
    said, line, caret = done.stderr.splitlines()
    assert done.returncode == 2 and done.stdout == "" and reason in said, done
    if place is not None:
        assert line == "  " + text and caret == " " * (place + 1) + "^"
    else:
        assert len(line) < 100 and line[len(caret) - 1 :].startswith("or level > 2") and caret.strip() == "^"


def test_files_that_are_none(query, source):
    (query.folder / "run.h5").write_bytes(b"no HDF5")
    assert error_line(query("ran.h5", "x > 1")) == "tidelane query: ran.h5: no such file; the nearest is run.h5"
    assert error_line(query("run.h5", "x > 1")) == "tidelane query: run.h5 is no HDF5 file"
    assert error_line(query(".", "x > 1")) == "tidelane query: . is a folder"
    with h5py.File(query.folder / "locked.h5", "w", libver="latest") as file:
        file["x"] = np.arange(5)
        file.flush()
        assert "locked.h5 is locked: a program has it open for writing" in error_line(query("locked.h5", "x > 1"))


def test_an_hdf5_or_plugin_that_is_not_fit(tidelane, source):
    (tidelane.folder / "libhdf5.so").write_bytes(b"no library")
    assert "libhdf5.so (as given) cannot load the plugin; tidelane check --hdf5 libhdf5.so says more" in error_line(tidelane("query", source, "i4 > 0", "--hdf5", "libhdf5.so"), 1)
    assert "no HDF5 that is fit: nowhere does not exist" in error_line(tidelane("query", source, "i4 > 0", "--hdf5", "nowhere"), 1)
    nothing = {"PATH": "/nonexistent", "HDF5_ROOT": "/nonexistent"}
    assert "no HDF5 that is fit: /nonexistent does not exist" in error_line(tidelane("query", source, "i4 > 0", **nothing), 1)
    assert "libtidelane.so" in error_line(tidelane("query", source, "i4 > 0", "--plugins", "/nonexistent"), 1)


def test_explain(query, source):
    done = query(source, "f4 > 1 and level < 2", "--explain")
    lines = dict(line.split(None, 1) for line in done.stdout.splitlines() if not line.startswith("column"))
    assert lines["elements"].startswith(f"{COUNT}, in ") and lines["query"] == "f4 > 1 and level < 2" and lines["strategy"] == "scan", done
    assert "f4: float32, dataset '/f4'" in done.stdout and "chunked (deflate)" in done.stdout and "hits" not in done.stdout
    counted = query(source, "f4 > 1 and level < 2", "--explain", "--count").stdout
    assert f"looked at {COUNT} elements" in counted and f"hits      {np.sum((COLUMNS['f4'] > 1) & (np.arange(COUNT) % 3 < 2))}\n" in counted


def expect_ends(source, *words, reader, has):
    """A reader that has enough ends the program without a word, a full disk with one."""
    command = [TOOL, "query", "--hdf5", LIBRARY, source, "level >= 0", *words]
    done = subprocess.run(["bash", "-c", f'"$@" | {reader}; echo ${{PIPESTATUS[0]}}', "piped", *command], capture_output=True, text=True, timeout=60)
    assert done.stderr == "" and done.stdout == f"{has}\n141\n"
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and "No space left" in done.stderr
    return done.stderr


def test_a_reader_that_has_enough(source):
    expect_ends(source, "--csv", reader="head -1", has="index,level")


@pytest.fixture
def endless(tidelane):
    """What takes an hour to look at, and no space."""
    with h5py.File(tidelane.folder / "endless.h5", "w") as file:
        file.create_dataset("x", (1 << 44,), "u1")
    return tidelane.folder / "endless.h5"


def begin(tidelane, *words, **streams):
    return subprocess.Popen(
        [TOOL, "query", "--hdf5", LIBRARY, "endless.h5", *words], cwd=tidelane.folder, env=tidelane.environment(), start_new_session=True,
        stdin=subprocess.DEVNULL, **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | streams),
    )  # fmt: skip


def until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def new_file(tidelane):
    return [path for path in tidelane.folder.glob("out.h5*") if path.stat().st_size > 0]


@pytest.mark.parametrize("how", ["terminal", "kill", "terminate", "early"])
def test_an_interrupt_ends_it_at_once_and_leaves_nothing(tidelane, endless, how):
    before = sorted(os.listdir(tidelane.folder))
    process = begin(tidelane, "x == 0", "-o", "out.h5")
    until(lambda: len(os.listdir(tidelane.folder)) > len(before))
    if how != "early":
        until(lambda: new_file(tidelane))
    begun = time.monotonic()
    if how in ("terminal", "early"):
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGINT if how == "kill" else signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - begun < 2  # on a busy machine
    assert process.returncode == (143 if how == "terminate" else 130) and out == "" and err == ""
    assert sorted(os.listdir(tidelane.folder)) == before


def test_a_file_that_has_come_meanwhile_stays(tidelane):
    with h5py.File(tidelane.folder / "endless.h5", "w") as file:
        file.create_dataset("x", (1 << 31,), "u1")
    process = begin(tidelane, "x == 1", "-o", "out.h5")
    until(lambda: list(tidelane.folder.glob("out.h5.*")))
    (tidelane.folder / "out.h5").write_text("somebody's")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and err == "tidelane query: out.h5: File exists\n"
    assert (tidelane.folder / "out.h5").read_text() == "somebody's" and not list(tidelane.folder.glob("out.h5.*"))


def test_a_terminal_shows_how_far_it_is(tidelane, endless):
    terminal, other = pty.openpty()
    process = begin(tidelane, "x == 1", "--count", stderr=other)
    os.close(other)
    seen = b""
    while b" left" not in seen:
        seen += os.read(terminal, 4096)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    os.close(terminal)
    assert process.returncode == 130 and b"elements/s, " in seen and b"query [" in seen


def test_memory_does_not_grow_with_the_hits(tidelane):
    def most(count):
        with h5py.File(tidelane.folder / "endless.h5", "w") as file:
            file.create_dataset("x", (count,), "f8")
        process = begin(tidelane, "x == 0", "-o", "out.h5", "--force")
        process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        assert status == 0, process.stderr.read()
        with h5py.File(tidelane.folder / "out.h5") as file:
            places = file["coordinates"]
            assert places.shape == (count, 1) and places[count // 2, 0] == count // 2 and places[-1, 0] == count - 1
        return usage.ru_maxrss >> 10

    little = most(1 << 10)
    assert most(1 << 24) < little + 64 + 48  # MiB: what may wait to be written, and blocks; of 256 MiB
