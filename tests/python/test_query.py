"""Queries of h5py's datasets, against NumPy: `tidelane.query` and `tidelane.columns`."""

import textwrap

import pytest
from conftest import ASYNC

HEAD = """
import tidelane.auto, tidelane, h5py, numpy as np, os
def same(query, mask, **values):
    \"\"\"Everything that a query gives is what NumPy finds in the mask and in arrays.\"\"\"
    mask = np.asarray(mask)
    found = query.mask()
    assert found.dtype == bool and found.shape == mask.shape and (found == mask).all(), query
    assert query.count() == mask.sum() and query.shape == mask.shape, query
    assert sum(block.hits for block in query) == mask.sum()
    if mask.shape:
        where, expected = query.where(), np.nonzero(mask)
        assert type(where) is tuple and len(where) == len(expected)
        assert all(one.dtype == np.int64 and np.array_equal(one, other) for one, other in zip(where, expected)), query
    for name, value in values.items():
        read = query.read(name)[name]
        assert read.dtype == value.dtype.newbyteorder("=") and np.array_equal(read, value[mask], equal_nan=value.dtype.kind == "f"), (query, name)
def refused(kind, words, what):
    try: what()
    except kind as error: assert all(word in str(error) for word in words), error
    else: raise SystemExit(f"it was not refused: {words}")
"""


@pytest.fixture
def h5(program):
    def run(code, native=False, **how):
        head = HEAD.replace("import tidelane.auto, ", "import ") if native else HEAD
        return program(head + textwrap.dedent(code), native=native, **how)

    return run


@pytest.mark.parametrize("native", [False, True])
def test_every_type_and_layout(h5, native):
    h5(
        """
        random = np.random.default_rng(1)
        layouts = [{}, {"chunks": (7, 100)}, {"chunks": (20, 30), "compression": "gzip", "shuffle": True}]
        with h5py.File("out.h5", "w") as file:
            for number, name in enumerate("? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 >i2 >u8 >f4 >f8 g".split()):
                data = random.integers(-100, 100, (41, 307)).astype(name)
                if data.dtype.kind == "f":
                    data[3, ::5], data[4, ::7], data[5, ::9] = np.nan, np.inf, -np.inf
                shape = {0: (41, 307), 1: (41 * 307,), 2: (1, 307, 1, 41)}[number % 3]
                layout = layouts[number % 3] if len(shape) == 2 else layouts[0] if len(shape) == 4 else [{}, {"chunks": (1000,)}][number % 2]
                data = data.reshape(shape)
                other = random.random(shape)
                group = file.create_group(name)
                group.create_dataset("x", data=data, **layout)
                group["y"] = other
                with np.errstate(invalid="ignore"):
                    same(tidelane.query(group, "x > 3"), data > 3, x=data, y=other)
                    same(tidelane.query(group, "not x <= 3 or y < 0.1"), ~(data <= 3) | (other < 0.1), x=data)
                    same(tidelane.query(group, "0 <= x < 50 and y between 0.2 and 0.9"),
                         (data >= 0) & (data < 50) & (other >= 0.2) & (other <= 0.9), y=other)
                    same(tidelane.query(group, "x == 1 || x != 1"), np.ones(shape, bool))
                    same(tidelane.query(group["x"], "x in (1, 5, 200)"), np.isin(data, [1, 5, 200]), value=data)
                    c = tidelane.columns(group)
                    same(tidelane.query(group, (c.x >= 2) & ~c.y.between(0.5, 1)), (data >= 2) & ~((other >= 0.5) & (other <= 1)), x=data)
                    if data.dtype.kind == "f":
                        same(tidelane.query(group, "isnan(x)"), np.isnan(data))
                        same(tidelane.query(group, ~c.x.isnan() & (c.x < np.inf)), data < np.inf)
        """,
        native=native,
    )


def test_constants_are_compared_as_numpy_compares_them(h5):
    h5("""
        floats = np.array([0.1, 0.1 + 1e-9, 16777216, np.nan, -0.0], "f4")
        wholes = np.array([2**53, 2**53 + 1, -(2**63), 2**63 - 1, 0], "i8")
        large = np.array([2**63, 2**64 - 1, 2**53 + 1, 0, 1], "u8")
        with h5py.File("out.h5", "w") as file:
            file["f"], file["i"], file["u"] = floats, wholes, large
            c = tidelane.columns(file)
            for value in 0.1, np.float32(0.1), np.float64(0.1), 16777217, np.int64(16777217), np.float16(0.1), -0.0, np.longdouble(0.1), float("nan"):
                same(tidelane.query(file, c.f == value), floats == value, f=floats)
                same(tidelane.query(file, c.f < value), floats < value)
                same(tidelane.query(file, (c.f == value) | (c.f == 0.1)), (floats == value) | (floats == 0.1))
                same(tidelane.query(file, (c.f >= value) | (c.f == np.float64(7))), floats >= value)
            same(tidelane.query(file, "f == 0.1"), floats == 0.1)
            for value in 2**53 + 1, 2**53, -(2**63), 2**63 - 1, np.int64(2**53 + 1):
                same(tidelane.query(file, c.i == value), wholes == value, i=wholes)
            for value in 2**63, 2**64 - 1, 2**53 + 1, np.uint64(2**63):
                same(tidelane.query(file, c.u >= value), large >= value, u=large)
            same(tidelane.query(file, f"i == {2**70} or u > -1"), np.ones(5, bool))
            same(tidelane.query(file, c.u > 1.5), large >= 2)
            same(tidelane.query(file, c.i > 2**53 + 0.0), wholes > 2**53)         # what NumPy gets wrong: it makes doubles of them
            for values in [1, 2**53], np.array([2**53 + 1, 0]), {5}, [], [0.0, 2.5]:
                same(tidelane.query(file, c.i.isin(values)), np.isin(wholes, np.array(list(values), "i8" if len(values) < 2 or values[-1] != 2.5 else "f8")))
        """)


@pytest.mark.parametrize("native", [False, True])
def test_fields_strings_and_enumerations(h5, native):
    h5(
        """
        def data_of(n):
            records = np.zeros(n, [("energy", "f4"), ("pos", [("x", "f8"), ("y.z", "i2")]), ("name", "S5"), ("ok", "?"), ("odd name", "i8")])
            records["energy"], records["odd name"] = np.arange(n) / 8, np.arange(n) - 40
            records["pos"]["x"], records["pos"]["y.z"] = -np.arange(n), np.arange(n) % 7
            records["name"], records["ok"] = np.array([b"ab", b"abc", b"", b"zzzzz"])[np.arange(n) % 4], np.arange(n) % 3 == 0
            return records
        data = data_of(5000)
        states = h5py.enum_dtype({"off": 0, "on": 1, "it's broken": -3}, "i2")
        with h5py.File("out.h5", "w") as file:
            file.create_dataset("run/events", data=data, chunks=(900,), compression="gzip")
            events = file["run/events"]
            for target, prefix in (events, ""), (file["run"], "events."), (file, "run/events."), (file, "/run/events."):
                same(tidelane.query(target, f"{prefix}energy > 3"), data["energy"] > 3, **{prefix + "energy": data["energy"]})
                same(tidelane.query(target, f"{prefix}pos.x <= -7 and {prefix}pos.y.z == 3"), (data["pos"]["x"] <= -7) & (data["pos"]["y.z"] == 3),
                     **{prefix + "pos.y.z": data["pos"]["y.z"]})
                same(tidelane.query(target, f"{prefix}name == 'abc' or `{prefix}odd name` = 2"), (data["name"] == b"abc") | (data["odd name"] == 2),
                     **{prefix + "name": data["name"]})
                c = tidelane.columns(target)
                same(tidelane.query(target, c[prefix + "ok"] & (c[prefix + "odd name"] < 0)), data["ok"] & (data["odd name"] < 0),
                     **{prefix + "ok": data["ok"]})
            assert tidelane.query(events, "energy < 1").to_pandas("name", "energy")["name"].tolist()[:4] == ["ab", "abc", "", "zzzzz"]
            words = np.array([b"x'y", b'a"b', b"back\\\\slash", b"new\\nline", "\\u00e4".encode(), b"", b"plain"])
            file["fixed"], file["free"] = words, np.array([word.decode() for word in words], object)
            c = tidelane.columns(file)
            for word in words:
                for value in word, word.decode(), np.bytes_(word), np.str_(word.decode()):
                    same(tidelane.query(file, c.fixed == value), words == word, fixed=words)
                    same(tidelane.query(file, c.free == value), words == word)
                assert tidelane.query(file, c.free == word).read()["free"].tolist() == [word]
            same(tidelane.query(file, c.fixed > b"b"), words > b"b")
            same(tidelane.query(file, c.free.isin(["plain", ""])), np.isin(words, [b"plain", b""]))
            same(tidelane.query(file, c.free.isin([])), words == b"no")
            padded = h5py.h5t.C_S1.copy()
            padded.set_size(6), padded.set_strpad(h5py.h5t.STR_SPACEPAD)
            low = h5py.h5d.create(file.id, b"padded", padded, h5py.h5s.create_simple((2,)))
            low.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"ab", b"abcdef"], "S6"))
            same(tidelane.query(file, "padded == 'ab'"), [True, False], padded=file["padded"][:])
            state = np.array([0, 1, -3, 1], "i2")
            file.create_dataset("state", data=state, dtype=states)
            same(tidelane.query(file, "state == 'on'"), state == 1)
            same(tidelane.query(file, "state in ('off', \\"it's broken\\") and 'on' != state"), state != 1)
            same(tidelane.query(file, tidelane.columns(file).state == "it's broken"), state == -3)
            same(tidelane.query(file, "state == 'on' and state >= 0"), state == 1)
            refused(ValueError, ["'state'", "'of'", "'off'"], lambda: tidelane.query(file, "state == 'of'"))
            complexes = np.arange(5) * 1j
            file["z"], file["n"] = complexes, np.arange(5)
            file.create_dataset("v", (5,), "(3,)i4")[...] = np.arange(15).reshape(5, 3)
            file["a"] = np.array([(i, [i, -i]) for i in range(5)], [("n", "i4"), ("pair", "f4", (2,))])
            read = tidelane.query(file, "n > 2").read("z", "n", "v")       # what cannot be compared can be read
            assert np.array_equal(read["z"], complexes[3:]) and read["v"].tolist() == [[9, 10, 11], [12, 13, 14]]
            assert tidelane.query(file, "a.n > 3").read("a.pair", "a")["a.pair"].tolist() == [[4, -4]]
            assert tidelane.query(file, "n > 9").read("v", "z", "a")["v"].shape == (0, 3)
        """,
        native=native,
    )


def test_what_is_not_stored_yet_is_found(h5, program):
    """Storage stands still: what a query finds it finds in memory."""
    h5(
        """
        with h5py.File("out.h5", "w") as file:
            old = np.zeros((300, 1000), "f4")
            for name, layout in ("plain", {}), ("packed", {"chunks": (100, 1000), "compression": "gzip"}), ("cached", {"chunks": (10, 10)}):
                file.create_dataset(name, data=old, **layout)
            file.flush()
            tidelane.wait(file)
            open("gate", "w").close()
            new = np.random.default_rng(2).random((300, 1000)).astype("f4")
            for name in "plain", "packed":
                file[name][...] = new
            file["cached"][:5, :5] = new[:5, :5]
            query = tidelane.query(file, "plain > 0.5")
            same(query, new > 0.5, plain=new)
            same(tidelane.query(file, "packed > 0.5 and plain < 0.9"), (new > 0.5) & (new < 0.9), packed=new)
            assert tidelane.query(file, "cached > 0.5").count() == (new[:5, :5] > 0.5).sum()
            file["plain"][0] = 2
            assert query.count() == (new[1:] > 0.5).sum() + 1000      # each answer is of what there is now
            os.unlink("gate")
        """,
        gated=True,
        env={**ASYNC, "TIDELANE_ARENA": "256M"},
    )


def test_nothing_a_scalar_and_what_cannot_be(h5):
    h5("""
        file = h5py.File("out.h5", "w")
        for shape in (0,), (3, 0), (0, 4, 2):
            name = f"empty{len(shape)}"
            empty = file.create_dataset(name, shape, "f8")
            same(tidelane.query(empty, "value > 1"), np.zeros(shape, bool), value=np.zeros(shape))
            assert len(tidelane.query(empty, "value > 1").to_pandas()) == 0
        file["scalar"], file["other"], file["x"], file["word"] = 5.0, -1, np.arange(10), np.array([b"a"] * 10)
        same(tidelane.query(file, "scalar > 4 and other < 0"), True)
        same(tidelane.query(file["scalar"], "value > 5"), False)
        refused(ValueError, ["scalar", "count"], tidelane.query(file, "scalar > 4").where)
        assert tidelane.query(file, "scalar > 4").read("scalar", "other") == {"scalar": [5.0], "other": [-1]}
        file["null"] = h5py.Empty("f4")
        refused(ValueError, ["'/null'", "out.h5", "null"], lambda: tidelane.query(file, "null > 1"))
        file["refs"] = np.array([file["x"].ref] * 10, h5py.ref_dtype)
        refused(ValueError, ["'refs'", "references"], lambda: tidelane.query(file, "refs == 1"))
        refused(ValueError, ["word"], lambda: tidelane.query(file, "word == 3"))
        refused(ValueError, ["'x'"], lambda: tidelane.query(file, "x == 'a'"))
        refused(ValueError, ["shape", "'scalar'", "'x'"], lambda: tidelane.query(file, "x > 1 and scalar > 1"))
        query = tidelane.query(file, "x > 7")
        refused(ValueError, ["(10,)", "()", "'/scalar'"], lambda: query.read("scalar"))
        refused(KeyError, ["'y'", "'x'", "out.h5"], lambda: query.read("y"))
        for text in "x >", "x > > 3", "x > 1 and", "sin(x) > 1", "x > 1)", "", "'a' < 3":
            refused(ValueError, ["at character"], lambda: tidelane.query(file, text))
        refused(ValueError, ["null character"], lambda: tidelane.query(file, "word == '\\0'"))
        refused(KeyError, ["out.h5", "no column 'Scalar'", "did you mean 'scalar'"], lambda: tidelane.query(file, "Scalar > 1"))
        refused(KeyError, ["'nested/x'", "there are", "'x'"], lambda: tidelane.query(file, "nested/x > 1"))
        refused(KeyError, ["dataset '/x' of 'out.h5'", "'y'", "'x', 'value'"], lambda: tidelane.query(file["x"], "y > 1"))
        for wrong in 5, "out.h5", [file["x"]], None, {"x": 3}, {"x": file}:
            refused(TypeError, ["dataset"], lambda: tidelane.query(wrong, "x > 1"))
        refused(TypeError, ["text", "int"], lambda: tidelane.query(file, 5))
        same(tidelane.query({"E": file["x"], "w": file["word"]}, "E > 3 and w == 'a'"), np.arange(10) > 3)
        c = tidelane.columns(file)
        iterator = tidelane.query(file, "x >= 0").blocks()
        next(iterator)
        file.close()
        for call in query.count, query.where, query.mask, query.read, lambda: tidelane.query(file, "x > 1"), lambda: tidelane.columns(file):
            refused(ValueError, ["closed"], call)
        iterator.close()
        """)


def test_positions_in_a_row_are_a_few_boxes(h5):
    h5("""
        import math
        from tidelane import _query_sources
        for shape in (), (5,), (3, 4), (2, 3, 4), (1, 1, 7), (3, 1, 2, 2):
            array = np.arange(math.prod(shape)).reshape(shape)
            for first in range(array.size):
                for count in range(1, array.size - first + 1):
                    parts = [array[box].ravel() for box in _query_sources.boxes(shape, first, count)]
                    assert np.array_equal(np.concatenate(parts), np.arange(first, first + count)) and len(parts) <= max(1, 2 * len(shape) - 1)
        words = np.array([b"a", b"bb", b"ccc", b""])[np.random.default_rng(6).integers(0, 4, (50, 30, 8))]
        with h5py.File("out.h5", "w") as file:
            file["fixed"], file["free"] = words, words.astype(object)
            same(tidelane.query(file, "fixed >= 'b' and free != 'ccc'"), (words >= b"b") & (words != b"ccc"), fixed=words, free=words.astype(object))
        """)


def test_results_larger_than_what_is_reserved_at_once(h5):
    h5(
        """
        import ctypes
        from tidelane import _query_found
        _query_found.PART_BYTES = 4096
        found = _query_found.Found(np.int64, 2000)
        for first in range(0, 1400, 200):
            part = np.arange(first, first + 200)
            ctypes.memmove(found.room(200), part.ctypes.data, part.nbytes)
        assert len(found._parts) == 4 and np.array_equal(found.array(), np.arange(1400))
        with h5py.File("out.h5", "w") as file:
            data = np.random.default_rng(2).integers(0, 100, 400_000).astype("i2")
            file["x"], file["y"] = data, data.astype("f8")
            same(tidelane.query(file, "x >= 50"), data >= 50, x=data, y=data.astype("f8"))
            read = tidelane.query(file, "x == 7").read("y", "x", "y")
            assert list(read) == ["y", "x"] and (read["y"] == 7).all() and read["y"].flags.owndata
        """
    )


def test_columns_and_operators(h5):
    h5("""
        with h5py.File("out.h5", "w") as file:
            x, y, flag = np.arange(-50, 50), np.arange(100) / 7, np.arange(100) % 3 == 0
            file["x"], file["g/y"], file["odd `name`, and"], file["and"], file["flag"] = x, y, y, x, flag
            c = tidelane.columns(file)
            assert {"x", "flag"} <= set(dir(c)) and "odd `name`, and" in repr(c)
            for condition, mask in [
                (c.x > 3, x > 3), (3 < c.x, x > 3), (c["g/y"] <= 2.5, y <= 2.5), (~(c.x == 0) & (c.x != 1), (x != 0) & (x != 1)),
                ((c.x < -10) | (c["odd `name`, and"] > 10) & (c["and"] < 45), (x < -10) | (y > 10) & (x < 45)),
                (c.x.between(-5, np.int16(5)), (x >= -5) & (x <= 5)), (c.x.isin(np.arange(3)), np.isin(x, [0, 1, 2])),
                (c.flag, flag), (~c.flag & (c.x > 0), ~flag & (x > 0)), (c.flag == False, ~flag), (c.flag != np.True_, ~flag),
            ]:
                same(tidelane.query(file, condition), mask)
                if "True" not in str(condition): same(tidelane.query(file, str(condition)), mask)
            for wrong in (lambda: (c.x > 1) and (c.x < 3), lambda: 0 < c.x < 3, lambda: not c.x, lambda: bool(c.x)):
                refused(TypeError, ["&", "|", "~", "parentheses"], wrong)
            refused(TypeError, ["parentheses"], lambda: (c.x > 1) & 3)
            refused(TypeError, ["constants"], lambda: c.x == c.flag)
            for wrong in (lambda: c.x > None, lambda: c.x > x, lambda: c.x == 1j, lambda: c.x.isin([None]), lambda: c.x < np.datetime64("2020")):
                refused(TypeError, ["column is compared with"], wrong)
            refused(TypeError, ["'x'", "truth"], lambda: tidelane.query(file, c.x & c.flag))
            refused(AttributeError, ["no column 'X'", "did you mean 'x'"], lambda: c.X)
            refused(KeyError, ["no column 'g/z'"], lambda: c["g/z"])
            assert not hasattr(c, "nothing_of_that_name")
        """)


def test_blocks_progress_and_explanation(h5):
    h5("""
        import resource
        with h5py.File("out.h5", "w") as file:
            data = np.random.default_rng(3).random((2000, 2500))
            file.create_dataset("x", data=data, chunks=(50, 2500), compression="lzf")
            file.create_dataset("y", data=np.arange(data.size, dtype="i4").reshape(data.shape))
            told = []
            query = tidelane.query(file, "x > 0.999", progress=lambda done, total: told.append((done, total)))
            before, positions = 0, []
            for block in query.blocks("x", "y"):
                assert block.first >= before and block.elements < data.size // 2 and block.hits == len(block["x"]) == len(block.positions)
                before = block.first + block.elements
                assert np.array_equal(block.positions, block["y"]) and np.array_equal(np.flatnonzero(block.mask()) + block.first, block.positions)
                assert (data[block.where()] == block["x"]).all()
                positions.append(block.positions)
            assert len(positions) > 2 and np.array_equal(np.concatenate(positions), np.flatnonzero(data > 0.999))
            assert told == sorted(told) and told[-1] == (data.size, data.size) and len(told) > 2, told
            said = query.explain()
            assert said["elements"] == data.size and said["shape"] == [2000, 2500] and said["scanned"]["hits"] == (data > 0.999).sum(), said
            assert all(word in str(said) for word in ("x > 0.999", "2000 x 2500", "5,000,000", "chunked", "lzf", "out.h5")), str(said)
            assert str(tidelane.query(file, "x > 2").explain()) and "0.999" in repr(query) and "out.h5" in repr(query)
            def stop(done, total): raise RuntimeError("enough")
            stopped = tidelane.query(file, "x > 0", progress=stop)
            refused(RuntimeError, ["enough"], stopped.count)
            large = file.create_dataset("large", (1 << 25,), "f4", chunks=(1 << 18,), fillvalue=1)
            query = tidelane.query(large, "large > 0")                    # every element: a block at a time is in memory
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            assert sum(len(block["large"]) for block in query.blocks("large")) == 1 << 25
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 48 << 10, "KiB; the dataset has 128 MiB"
            for block in query.blocks(): break
            frame = tidelane.query(file, "x > 0.9999").to_pandas("y", "x")
            mask = data > 0.9999
            assert list(frame.columns) == ["y", "x"] and frame.index.names == ["dim_0", "dim_1"]
            assert np.array_equal(frame["y"], np.flatnonzero(mask)) and frame.index.tolist() == [tuple(at) for at in np.argwhere(mask)]
        """)


# As good as endless, and of nothing that is stored.
ENDLESS = """
file = h5py.File("out.h5", "w")
endless = file.create_dataset("endless", (1 << 42,), "f4", chunks=(1 << 20,), fillvalue=1)
file["x"] = np.arange(1000)
"""


def test_ctrl_c_is_heard(h5):
    h5(
        ENDLESS
        + """
import signal, threading, time
query = tidelane.query(endless, "value > 2")
for call in query.count, query.where, query.read, lambda: list(query):
    at = []
    def interrupt():
        time.sleep(0.2)
        at.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    sender = threading.Thread(target=interrupt)
    sender.start()
    try: call()
    except KeyboardInterrupt: print(f"heard after {time.monotonic() - at[0]:.3f} s")
    else: raise SystemExit("not interrupted")
    assert time.monotonic() - at[0] < 2                               # a tenth of a second on a machine of one's own
    sender.join()
    assert tidelane.query(file, "x > 990").count() == 9
file.close()
""",
        timeout=40,
    )


def test_an_interrupt_while_a_query_is_opened_leaves_nothing_open(h5):
    h5("""
        from tidelane import _query_calls, _query_h5py
        class Interrupted:
            def __enter__(self): h5py._objects.phil.acquire()
            def __exit__(self, *_):
                h5py._objects.phil.release()
                raise KeyboardInterrupt
        with h5py.File("out.h5", "w") as file:
            x = file.create_dataset("x", data=np.arange(10))
            before = h5py.h5i.get_ref(x.id)
            column = _query_calls.ScanColumn("x", x.id.id, "")
            scan = _query_calls.Scan(_query_h5py.library(), "x > 3", [column], 0)
            assert h5py.h5i.get_ref(x.id) == before + 1
            scan.close()
            refused(KeyboardInterrupt, [], lambda: _query_calls.Scan(_query_h5py.library()._replace(lock=Interrupted), "x > 3", [column], 0))
            assert h5py.h5i.get_ref(x.id) == before
        """)


def test_other_threads_use_h5py_meanwhile(h5):
    h5(
        ENDLESS
        + """
import concurrent.futures, threading
data = np.random.default_rng(4).random((64, 4000))
file.create_dataset("packed", data=data, chunks=(8, 4000), compression="gzip")
class Enough(Exception): pass
done = threading.Event()
def told(*_):
    if done.is_set(): raise Enough
def endlessly():
    try: tidelane.query(endless, "value > 2", progress=told).count()
    except Enough: return True
def work(i):
    for k in range(10):
        limit = (i + k) / 20
        assert tidelane.query(file, f"packed > {limit}").count() == (data > limit).sum()
        assert np.array_equal(file["packed"][i], data[i])
    return i
with concurrent.futures.ThreadPoolExecutor(5) as pool:
    long = pool.submit(endlessly)
    assert sorted(pool.map(work, range(4))) == list(range(4)) and not long.done()
    done.set()
    assert long.result()
file.close()
""",
        timeout=60,
    )
