"""publish="atomic" from Python: what an exception leaves is not published, and the old file stays."""

import textwrap

HEAD = """
import tidelane
tidelane.enable(publish="atomic", mode="async")
import h5py, numpy as np, os, sys
"""
OLD = """
import h5py, os
with h5py.File("x.h5", "w") as file: file["old"] = 1
"""
LOOK = """
import h5py, os
assert sorted(name for name in os.listdir(".") if name.endswith(".h5")) == ["x.h5"], os.listdir(".")
with h5py.File("x.h5") as file: print(*file)
"""
WRITE = "file['new'] = np.arange(100_000)\n"


def left(program, code, rc=0, **how):
    """What the file of that name holds after `code`."""
    program(OLD, native=True)
    done = program(HEAD + textwrap.dedent(code), rc=rc, env={}, **how)
    return program(LOOK, native=True).stdout.strip(), done.stderr


def test_a_file_that_is_closed_is_published(program):
    found, errors = left(program, """
        with h5py.File("x.h5", "w") as file:
            file["new"] = np.arange(100_000)
            assert os.listdir(".").count("x.h5") == 1 and ".x.h5.unpublished" in os.listdir(".")
        assert ".x.h5.unpublished" not in os.listdir(".")
        counters = tidelane.stats()["counters"]
        assert counters["files_published"] == 1 and counters["bytes_deferred"] > 400_000 and counters["lane_busy_ns"] > 0
        """)  # fmt: skip
    assert found == "new" and errors == ""


def test_an_exception_that_leaves_a_file_keeps_the_old_one(program):
    found, errors = left(program, """
        try:
            with h5py.File("x.h5", "w") as file:
                file["new"] = np.arange(100_000)
                raise KeyError("half")
        except KeyError:
            pass
        """)  # fmt: skip
    assert found == "old" and "x.h5 is not published" in errors and "KeyError" in errors
    assert not program(LOOK, native=True).stderr


def test_an_end_that_was_meant_publishes(program):
    for code in ("sys.exit(0)", "os.mkdir('d'); os.chdir('d')"):
        assert left(program, f"with h5py.File('x.h5', 'w') as file:\n    {WRITE}    {code}")[0] == "new", code
    found, errors = left(program, """
        def steps():
            with h5py.File("x.h5", "w") as file:
                file["new"] = np.arange(100_000)
                yield 1
        generator = steps()
        next(generator)
        generator.close()
        """)  # fmt: skip
    assert found == "new" and errors == ""


def test_an_exception_in_another_folder_keeps_the_old_one(program):
    found, errors = left(program, """
        with h5py.File("x.h5", "w") as file:
            file["new"] = np.arange(100_000)
            os.mkdir("e")
            os.chdir("e")
            1 / 0
        """, rc=1)  # fmt: skip
    assert found == "old" and "is not published" in errors


def test_an_exception_that_leaves_a_reader_changes_nothing(program):
    found, _ = left(program, """
        with h5py.File("x.h5", "w") as file:
            file["new"] = np.arange(100_000)
            try:
                with h5py.File("x.h5", "r") as reader: raise KeyError(*reader)
            except KeyError as error: assert error.args == ("new",)
        """)  # fmt: skip
    assert found == "new"


def test_an_interpreter_that_ends_by_an_error_publishes_nothing(program):
    for end, rc in (("1 / 0", 1), ("sys.exit(3)", 3), ("sys.exit('words')", 1), ("os._exit(0)", 0)):
        found, errors = left(program, f"file = h5py.File('x.h5', 'w'); {WRITE}{end}", rc=rc)
        assert found == "old" and ("x.h5 is not published" in errors) == (end != "os._exit(0)"), (end, errors)
    for end in ("", "sys.exit()", "sys.exit(0)"):
        assert left(program, f"file = h5py.File('x.h5', 'w'); {WRITE}{end}")[0] == "new", end


def test_a_file_by_its_driver_has_the_setting(program):
    program(OLD, native=True)
    program("""
        import tidelane, h5py, os
        with h5py.File("x.h5", "w", driver="tidelane", publish="atomic") as file:
            file["new"] = 2
            assert ".x.h5.unpublished" in os.listdir(".")
        with h5py.File("y.h5", "w", driver="tidelane") as file: assert "y.h5" in os.listdir(".")
        os.remove("y.h5")
        """, env={})  # fmt: skip
    assert program(LOOK, native=True).stdout.strip() == "new"


def test_a_file_that_is_written_in_place_is_told_of(program):
    found, errors = left(program, """
        os.link("x.h5", "second")
        with h5py.File("x.h5", "w") as file: file["new"] = 1
        assert os.stat("second").st_ino == os.stat("x.h5").st_ino
        """)  # fmt: skip
    assert found == "new" and "x.h5 is not published atomically" in errors and "publish_linked" in errors


def test_append_creates_one_file(program):
    found, _ = left(program, """
        os.remove("x.h5")
        with h5py.File("x.h5", "a") as file:
            with h5py.File("x.h5", "a") as again:
                again["new"] = np.arange(100_000)
            assert (file["new"][...] == np.arange(100_000)).all()
        """)  # fmt: skip
    assert found == "new"
