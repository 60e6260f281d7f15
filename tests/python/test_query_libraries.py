"""Queries of netCDF4's, h5netcdf's, xarray's and PyTables' files, and tables of pandas and Arrow."""

import textwrap

import pytest
from conftest import ASYNC, HERE, SITE
from test_query import HEAD


@pytest.fixture
def libraries(program):
    def run(code, native=False, **how):
        head = HEAD.replace("h5py, ", "").replace("import tidelane.auto, ", "import " if native else "import tidelane.auto, ")
        return program(head + textwrap.dedent(code), native=native, **how)

    return run


@pytest.mark.parametrize("native", [False, True])
def test_netcdf4(libraries, native):
    libraries(
        """
        import netCDF4
        data, flat = np.random.default_rng(1).random((30, 40)).astype("f4"), np.arange(30, dtype="i2")
        file = netCDF4.Dataset("out.nc", "w")
        for name, size in ("t", None), ("x", 40): file.createDimension(name, size)
        file.createVariable("v", "f4", ("t", "x"), compression="zlib")
        group = file.createGroup("g").createGroup("h")
        state = file.createEnumType("i1", "state", {"off": 0, "on": 1})
        for name, kind in ("t", "i2"), ("x", "i4"), ("s", str), ("state", state), ("twice", "i2"): group.createVariable(name, kind, ("t",))
        refused(KeyError, ["out.nc", "'w'", "'v'"], lambda: tidelane.query(file, "w > 1"))
        assert tidelane.query(file, "v > 1").count() == 0                 # defined, and not made yet
        file["v"][:], group["t"][:], group["x"][:] = data, flat, -flat     # x: no coordinate variable of its dimension
        group["s"][:], group["state"][:] = np.array([f"s{i}" for i in flat], object), flat % 2
        same(tidelane.query(file, "v > 0.5 and v < 0.75"), (data > 0.5) & (data < 0.75), v=data)
        same(tidelane.query(file, "g/h/t > 3 and g/h/x > -20"), (flat > 3) & (flat < 20), **{"g/h/t": flat})
        same(tidelane.query(group, "state == 'on' and s != 's1' and /g/h/t >= 0"), (flat % 2 == 1) & (flat != 1), t=flat)
        assert tidelane.query(group["s"], "s == 's7'").read()["s"].tolist() == ["s7"]
        same(tidelane.query(file["v"], tidelane.columns(file).v >= 0.5), data >= 0.5)
        group["twice"].scale_factor = 2.0
        group["twice"][:] = flat * 2
        refused(ValueError, ["'/g/h/twice'", "out.nc", "scale_factor", "raw=True"], lambda: tidelane.query(group, "twice > 3"))
        same(tidelane.query(group, "twice > 3", raw=True), flat > 3, t=flat)
        assert (group["twice"][:] == flat * 2).all()                       # scaled as before
        filled = file.createVariable("filled", "f4", ("x",), fill_value=-1.0)
        nans = file.createVariable("nans", "f4", ("x",), fill_value=np.nan)
        filled[:5], nans[:5] = 1, 1
        refused(ValueError, ["_FillValue", "'/filled'"], lambda: tidelane.query(file, "filled < 0"))
        same(tidelane.query(file, "nans < 2"), np.arange(40) < 5)
        filled.set_auto_maskandscale(False)
        same(tidelane.query(file, "filled < 0"), np.arange(40) >= 5)
        late = file.createVariable("late", "i4", ("t",))
        late[:10] = 1
        file["v"][40] = 0
        refused(ValueError, ["late", "(10,)", "(41,)"], lambda: tidelane.query(file, "late == 1").where())
        query = tidelane.query(file, "v > 0.5")
        file.close()
        for call in query.count, lambda: tidelane.query(file, "v > 1"): refused(ValueError, ["closed"], call)
        with netCDF4.Dataset("classic.nc", "w", format="NETCDF3_CLASSIC") as classic:
            classic.createDimension("x", 5)
            refused(ValueError, ["'/x'", "NETCDF3"], lambda: tidelane.query(classic.createVariable("x", "i4", ("x",)), "x > 1"))
        """,
        native=native,
    )


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_xarray(libraries, engine):
    libraries(
        f"""
        import xarray as xr
        engine = {engine!r}
        """
        + """
        random = np.random.default_rng(2)
        data = xr.Dataset({"t": (("time", "y", "x"), random.random((12, 20, 30)).astype("f4")), "n": ("time", np.arange(12)), "ok": ("time", np.arange(12) % 2 == 0),
                           "packed": ("time", np.arange(12.0)), "other": ("z", np.arange(3))},
                          coords={"time": np.arange("2020-01-01", "2020-01-13", dtype="M8[D]").astype("M8[ns]"), "lat": ("y", np.arange(20.0))})
        data.to_netcdf("out.nc", engine=engine, encoding={"packed": {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1}})
        def lazy(variable): return not variable._in_memory
        with xr.open_dataset("out.nc", engine=engine) as file:
            hits = tidelane.where(file, "n > 3 and ok == True")
            assert lazy(file.variables["t"]) and lazy(file.variables["n"]) and lazy(hits.variables["t"])
            xr.testing.assert_identical(hits.load(), data.isel(time=[4, 6, 8, 10]))
            points = tidelane.where(file, "t > 0.99")
            assert lazy(file.variables["t"]) and lazy(points.variables["t"])
            at = np.nonzero(data.t.values > 0.99)
            expected = data.isel({dim: xr.DataArray(places, dims="points") for dim, places in zip(data.t.dims, at)})
            xr.testing.assert_identical(points.load(), expected)
            assert points.t.dtype == "f4" and points.sizes["points"] == len(at[0]) and points.lat.dims == ("points",)
        with xr.open_dataset("out.nc", engine=engine) as file:
            for found in (tidelane.where(file.t, "t > 0.99", dim="hit"), tidelane.where(file["t"], "value > 0.99", dim="hit")):
                xr.testing.assert_identical(found.load(), expected.t.rename(points="hit"))
            c = tidelane.columns(file)
            assert tidelane.query(file, (c.n >= 2) & (c.n != 7)).count() == 9
            assert lazy(file.variables["n"])
            refused(ValueError, ["'packed'", "decoded", "raw=True", "out.nc"], lambda: tidelane.where(file, "packed > 3"))
            assert tidelane.where(file, "packed >= 20", raw=True).packed.values.tolist() == [10, 11]
            refused(KeyError, ["out.nc", "'T'", "'t'"], lambda: tidelane.where(file, "T > 1"))
            refused(ValueError, ["dim"], lambda: tidelane.where(file, "t > 0.99", dim="time"))
            refused(ValueError, ["shape"], lambda: tidelane.where(file, "t > 0.99 and n > 1"))
            for other in file.isel(time=slice(1, 5)), file.isel(time=slice(None, None, -1)), file.transpose(), file * 2, file.copy(deep=True).load():
                refused(ValueError, ["'t'", "not as it lies in a file"], lambda: tidelane.where(other, "t > 0.5"))
            refused(ValueError, ["'time'", "not as it lies"], lambda: tidelane.where(file, "time > 3"))
            file.t.load()
            refused(ValueError, ["'t'", "loaded"], lambda: tidelane.where(file, "t > 0.5"))
        """
    )


def test_pytables(libraries):
    """As PyTables answers, where it answers right."""
    libraries("""
        import tables, warnings
        class Row(tables.IsDescription):
            i, f, d, s, b, u = tables.Int64Col(), tables.Float32Col(), tables.Float64Col(), tables.StringCol(4), tables.BoolCol(), tables.UInt64Col()
            e = tables.EnumCol({"red": 3, "blue": 4}, "red", "int32")
            w = tables.Time64Col()
            class n(tables.IsDescription): x = tables.Int16Col()
        random = np.random.default_rng(5)
        file = tables.open_file("out.h5", "w")
        table = file.create_table("/g", "t", Row, createparents=True, filters=tables.Filters(1, "zlib"))
        rows = np.zeros(30_000, table.dtype)
        for name in "if": rows[name] = random.integers(-50, 50, len(rows))
        rows["d"], rows["s"], rows["b"] = random.random(len(rows)), random.choice([b"a", b"bb", b"cccc"], len(rows)), random.random(len(rows)) < 0.5
        rows["u"], rows["n"]["x"], rows["e"] = 2**63 + np.arange(len(rows), dtype="u8"), np.arange(len(rows)) % 100, 3 + np.arange(len(rows)) % 2
        rows["w"] = np.arange(len(rows)) / 7
        table.append(rows)
        table.flush()
        limit, low, wanted = 7, np.float32(0.25), "bb"
        i = 5                                                              # columns go before variables of that name
        warnings.simplefilter("error")
        conditions = {"i > limit": None, "(i > 3) & (d < low)": None, "~(i == 3) | (s == wanted)": None, "s == b'a'": None, "s != 'a'": None, "b": None,
                      "~b & (f >= -2.5)": None, "b == True": None, "3 < i": None, "d > 0.1": None, "f == 16777217": None, "i < 0 ": None,
                      "(d >= 0.5) | (d < .25) | (i == -50)": None, "(i > most) & (f == single)": {"most": np.int64(2), "single": np.array(9.0, "f4")},
                      "i > d": {"i": table.cols.f, "d": -3.5}}
        for condition, condvars in conditions.items():
            expected = table.read_where(condition, condvars)
            found = tidelane.read_where(table, condition, condvars)
            assert found.dtype == expected.dtype and np.array_equal(found, expected), condition
            assert np.array_equal(tidelane.get_where_list(table, condition, condvars), table.get_where_list(condition, condvars, sort=True)), condition
            for how in {"start": 100, "stop": 20_000}, {"start": 7, "stop": 9000, "step": 13}, {"start": -500}, {"stop": -1, "step": 2}, {"start": 50, "stop": 20}:
                expected = table.read_where(condition, condvars, "s", **how)
                assert np.array_equal(tidelane.read_where(table, condition, condvars, "s", **how), expected), (condition, how)
        assert np.array_equal(tidelane.read_where(table, "(c > m) & (q == 3)", {"c": table.cols.d, "m": 0.5, "q": table.cols.n.x}, field="n/x"),
                              rows["n"]["x"][(rows["d"] > 0.5) & (rows["n"]["x"] == 3)])
        # what this leaves to PyTables, its errors included, and says once
        warnings.simplefilter("always")
        for condition, words in ("i * 2 > 50", "arithmetic"), ("sqrt(d) > 0.5", "function"), ("i > f", "one column"), ("d != d", "one column"), ("w > 5", "time64"):
            with warnings.catch_warnings(record=True) as told:
                for _ in range(2):
                    assert np.array_equal(tidelane.read_where(table, condition), table.read_where(condition)), condition
                assert np.array_equal(tidelane.get_where_list(table, condition), table.get_where_list(condition)), condition
            assert len(told) <= 1 and all(issubclass(one.category, tidelane.TidelaneWarning) and words in str(one.message) for one in told), told
        warnings.simplefilter("ignore")
        for condition, kind in ("0 < i < 3", TypeError), ("nothing > 3", NameError), ("i >", SyntaxError), ("i == 'a'", NotImplementedError), ("i > 3 and b", (TypeError, ValueError)):
            for call in tidelane.read_where, tidelane.get_where_list, type(table).read_where:
                refused(kind, [], lambda: call(table, condition))
        # rows in PyTables' buffers: its own queries do not see them, a query of ours does
        row = table.row
        for _ in range(5): row["i"] = 1000; row.append()
        assert len(tidelane.read_where(table, "i == 1000")) == 0
        assert tidelane.query(table, "i == 1000").count() == 5
        same(tidelane.query(file, "g/t.n.x == 3 and g/t.b == True"), np.r_[(rows["n"]["x"] == 3) & rows["b"], [False] * 5])
        same(tidelane.query(file.root.g, "t.e == 'blue'"), np.r_[rows["e"] == 4, [False] * 5])
        refused(ValueError, ["'w'", "time"], lambda: tidelane.query(table, "w > 5"))
        cube = random.random((20, 30, 4))
        for array in file.create_array("/", "a", cube), file.create_carray("/", "c", obj=cube), file.create_earray("/", "x", obj=cube):
            same(tidelane.query(array, f"value > 0.5 and {array.name} < 0.75"), (cube > 0.5) & (cube < 0.75), value=cube)
        same(tidelane.query(file, "a > 0.5 or /c < 0.1"), (cube > 0.5) | (cube < 0.1), a=cube)
        assert np.array_equal(tidelane.query(table, "d > 0.9").read("s", "u")["s"], rows["s"][rows["d"] > 0.9])
        refused(KeyError, ["'/g/t'", "out.h5", "'I'", "did you mean 'i'"], lambda: tidelane.query(table, "I > 1"))
        query = tidelane.query(table, "i > 1")
        file.close()
        for call in query.count, lambda: tidelane.query(table, "i > 1"): refused(ValueError, ["closed"], call)
        """)


WRONG = """
import tables
def table_of(file, name, data, *indexed):
    table = file.create_table("/", name, data)
    for column in indexed: table.cols._f_col(column).create_csindex()
    table.flush()
    return table
file = tables.open_file("out.h5", "w")
"""


def test_nan_in_row_0_hides_no_rows(libraries):
    libraries(
        WRONG
        + """
data = np.zeros(20_000, [("x", "f8"), ("y", "f4")])
data["x"], data["y"] = np.arange(20_000) % 1000, np.arange(20_000) % 77
for rows in [0], [0, 1, 2], range(0, 20_000, 3): 
    data["x"][rows] = np.nan
    table = table_of(file, f"t{len(rows)}", data, "x", "y")
    for condition, mask in ("x > 990", data["x"] > 990), ("x == 5", data["x"] == 5), ("x < 3", data["x"] < 3), ("(x >= 7) & (y == 7)", (data["x"] >= 7) & (data["y"] == 7)):
        assert np.array_equal(tidelane.get_where_list(table, condition), np.flatnonzero(mask)), condition
        same(tidelane.query(table, condition), mask)
    same(tidelane.query(table, "isnan(x)"), np.isnan(data["x"]))
"""
    )


def test_or_of_two_columns_finds_the_rows_of_both(libraries):
    libraries(
        WRONG
        + """
data = np.zeros(50_000, [("a", "i4"), ("b", "f8"), ("c", "i8")])
random = np.random.default_rng(7)
data["a"], data["b"], data["c"] = random.integers(0, 1000, 50_000), random.random(50_000), np.arange(50_000)
for name, indexed in ("none", []), ("one", ["a"]), ("two", ["a", "b"]):
    table = table_of(file, name, data, *indexed)
    for condition, mask in [("(a == 3) | (b > 0.999)", (data["a"] == 3) | (data["b"] > 0.999)), ("(a < 2) | (c < 10)", (data["a"] < 2) | (data["c"] < 10)),
                            ("((a == 1) | (a == 2)) & (b < 0.5)", np.isin(data["a"], [1, 2]) & (data["b"] < 0.5)), ("~(a < 998) | (b < 0.001)", (data["a"] >= 998) | (data["b"] < 0.001))]:
        assert np.array_equal(tidelane.get_where_list(table, condition), np.flatnonzero(mask)), (name, condition)
        assert np.array_equal(tidelane.read_where(table, condition), data[mask]), (name, condition)
"""
    )


def test_no_row_is_missing_and_whole_numbers_are_exact(libraries):
    libraries(
        WRONG
        + """
data = np.zeros(30_000, [("u", "u8"), ("i", "i8"), ("x", "f8")])
data["u"] = 2**64 - 1 - np.arange(30_000, dtype="u8")
data["i"], data["x"] = 2**53 + np.arange(30_000), np.sort(np.random.default_rng(8).random(30_000))
table = table_of(file, "t", data, "i", "x")
value, i = 2**64 - 7, 0
for condition, mask in [("u == value", data["u"] == 2**64 - 7), (f"u > {2**64 - 5}", data["u"] > 2**64 - 5), (f"(u >= {2**63}) & (i < {2**53 + 9})", data["i"] < 2**53 + 9),
                        (f"i == {2**53 + 1}", data["i"] == 2**53 + 1), ("u < 1", np.zeros(30_000, bool)), ("x >= 0.0", np.ones(30_000, bool)),
                        (f"i <= {2**53}.0", data["i"] == 2**53)]:
    assert np.array_equal(tidelane.get_where_list(table, condition), np.flatnonzero(mask)), condition
    assert np.array_equal(tidelane.read_where(table, condition), data[mask]), condition
table.append(data[:100])
table.flush()                                                              # rows that an index does not know yet
same(tidelane.query(table, f"u >= {2**64 - 100}"), np.r_[np.arange(30_000) < 100, [True] * 100])
"""
    )


def test_interrupted_queries_of_libraries_without_a_lock(libraries):
    libraries("""
        import netCDF4, signal, threading, time
        file = netCDF4.Dataset("out.nc", "w")
        file.createDimension("x", 1 << 42)
        v = file.createVariable("v", "f4", ("x",), chunksizes=(1 << 20,), fill_value=np.nan)
        query = tidelane.query(file, "v > 2")
        turns, at = [], []
        def others():
            for _ in range(20): turns.append(time.sleep(0.01))
            at.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=others).start()
        try: query.count()
        except KeyboardInterrupt: pass
        else: raise SystemExit("not interrupted")
        assert time.monotonic() - at[0] < 2 and len(turns) == 20
        file.close()
        """, timeout=40)  # fmt: skip


ARROW = """
import h5py
data = np.zeros(300_000, [("x", "f8"), ("k", ">i4"), ("s", "S3"), ("ok", "?")])
data["x"], data["k"], data["s"], data["ok"] = np.random.default_rng(9).random(300_000), np.arange(300_000), b"abc", True
with h5py.File("out.h5", "w") as file:
    file.create_dataset("t", data=data, chunks=(30_000,))
    reader = tidelane.query(file["t"], "x > 0.9").to_arrow("k", "x", "s", "ok")
    table = reader.read_all()
    hits = data[data["x"] > 0.9]
    assert table.column_names == ["k", "x", "s", "ok"] and table["k"].to_pylist() == hits["k"].tolist()
    assert table["x"].to_pylist() == hits["x"].tolist() and set(table["s"].to_pylist()) == {"abc"} and table["ok"].to_pylist() == hits["ok"].tolist()
    none = tidelane.query(file["t"], "x > 2").to_arrow().read_all()
    assert none.num_rows == 0 and none.column_names == ["x"]
"""


def test_arrow(libraries):
    """With a stand-in for pyarrow, which has of it what is used here."""
    libraries(ARROW, env={**ASYNC, "PYTHONPATH": f"{SITE}:{HERE}/standins/arrow"})


def test_pandas(libraries):
    libraries("""
        import h5py, pandas
        with h5py.File("out.h5", "w") as file:
            frame = pandas.DataFrame({"x": np.arange(1000) / 8, "k": np.arange(1000) % 7})
            for name in frame: file[name] = frame[name].to_numpy()
            file["text"] = np.array([f"row {i}" for i in range(1000)], object)
            found = tidelane.query(file, "x > 100 and k == 3").to_pandas("x", "k", "text")
            expected = frame[(frame.x > 100) & (frame.k == 3)]
            pandas.testing.assert_frame_equal(found[["x", "k"]], expected, check_index_type=False)
            assert found.text.tolist() == [f"row {i}" for i in expected.index]
            assert pandas.DataFrame(tidelane.query(file, "k == 3").read("x", "text")).shape == ((frame.k == 3).sum(), 2)
        """, env=ASYNC)  # fmt: skip
