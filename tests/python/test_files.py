"""Waiting, flushing, phases, warnings and reports, with the files of each library."""

import textwrap

import pytest
from conftest import ASYNC

LIBRARIES = {
    "h5py's low level": "import h5py; low = h5py.File('out.h5', 'w'); file = low.id; part = low.create_dataset('x', data=data).id",
    "h5py": "import h5py; file = h5py.File('out.h5', 'w'); part = file.create_dataset('x', data=data, chunks=(1 << 15,), compression='gzip')",
    "h5netcdf": "import h5netcdf; file = h5netcdf.File('out.h5', 'w'); file.dimensions = {'d': len(data)}; "
    "part = file.create_variable('x', ('d',), data=data)",
    "netCDF4": "import netCDF4; file = netCDF4.Dataset('out.h5', 'w'); file.createDimension('d', len(data)); "
    "part = file.createVariable('x', 'i8', ('d',)); file.sync(); close_gate(); part[:] = data",
    "tables": "import tables; file = tables.open_file('out.h5', 'w'); part = file.create_carray('/', 'x', obj=data)",
    "pandas": "import pandas; file = pandas.HDFStore('out.h5', 'w'); file['x'] = pandas.Series(data); part = file",
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_wait_and_flush(program, library):
    """While storage stands still nothing is stored and nobody waits; afterwards wait and flush come to an end."""
    program(
        f"""
        import tidelane.auto, tidelane, numpy as np, os
        def close_gate(): open("gate", "w").close()
        {"" if library == "netCDF4" else "close_gate()"}
        data = np.random.default_rng(1).integers(0, 1 << 40, 1 << 18)
        {LIBRARIES[library]}
        for how in (lambda: tidelane.wait(part, timeout=0.2), lambda: tidelane.flush(file, timeout=0.2)):
            try: how()
            except TimeoutError: pass
            else: raise SystemExit("stored through a closed gate")
        os.unlink("gate")
        tidelane.flush(part)
        tidelane.wait(file), tidelane.wait("out.h5"), tidelane.wait()
        size = os.path.getsize("out.h5")
        counters = tidelane.stats()["counters"]
        assert counters["bytes_deferred"] >= len(data) * 4 and counters["lane_busy_ns"] > 0, counters
        assert size >= counters["bytes_written"] // 2 and counters["bytes_sync"] == 0, (size, counters)
        file.close()
        """,
        gated=True,
    )


def test_ctrl_c_during_a_wait_leaves_everything_whole(program):
    program.gate.touch()
    program(
        """
        import tidelane.auto, tidelane, asyncio, h5py, numpy as np, os, signal, threading, time
        file = h5py.File("out.h5", "w")
        file["x"] = np.arange(1 << 18)
        def phase():
            with tidelane.phase(file): pass
        for call in (tidelane.wait, lambda: tidelane.flush(file), phase, lambda: asyncio.run(tidelane.wait_async(file))):
            begin = time.monotonic()
            try:
                threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                call()
            except KeyboardInterrupt: print("interrupted after", time.monotonic() - begin)
            else: raise SystemExit("not interrupted")
            assert time.monotonic() - begin < 30
        file["y"] = np.arange(1 << 18)
        os.unlink("gate")
        file.close()
        with h5py.File("out.h5") as file:
            assert (file["x"][:] == np.arange(1 << 18)).all() and (file["y"][:] == file["x"][:]).all()
        """,
        gated=True,
    )


def test_other_threads_and_tasks_run_during_a_wait(program):
    program.gate.touch()
    program(
        """
        import tidelane.auto, tidelane, h5py, numpy as np, os, asyncio, threading
        file = h5py.File("out.h5", "w")
        file["x"] = np.arange(1 << 18)
        threading.Timer(0.3, os.unlink, ["gate"]).start()  # runs only if the wait lets go
        tidelane.wait(file)

        async def main():
            open("gate", "w").close()
            file["y"] = np.arange(1 << 18)
            waiting = asyncio.create_task(tidelane.wait_async(file))
            for _ in range(20):
                await asyncio.sleep(0.01)
            assert not waiting.done()
            cancelled = asyncio.create_task(tidelane.wait_async())
            await asyncio.sleep(0.05)
            cancelled.cancel()
            os.unlink("gate")
            await waiting

        asyncio.run(main())
        """,
        gated=True,
    )


def test_what_cannot_be_stored_is_an_error_and_is_kept(program):
    program.gate.touch()
    program(
        """
        import tidelane.auto, tidelane, h5py, numpy as np, os
        file = h5py.File("out.h5", "w")
        file["x"] = np.arange(1 << 18)
        open("gate.broken", "w").close()
        os.unlink("gate")
        for call in (lambda: tidelane.wait(file), lambda: tidelane.flush(file)):
            try: call()
            except OSError as error: assert error.errno == 5 and "out.h5" in str(error), error
            else: raise SystemExit("no error")
        os.unlink("gate.broken")
        tidelane.flush(file)
        file.close()
        assert (h5py.File("out.h5")["x"][:] == np.arange(1 << 18)).all()
        """,
        gated=True,
    )


@pytest.mark.parametrize("layout, address", [("chunks=(1 << 15,)", "get_chunk_info(0).byte_offset"), ("", "get_offset()")])
def test_who_asks_for_an_address_finds_the_bytes_there(program, layout, address):
    """PyTables reads what Blosc2 compressed by opening the file itself, where HDF5 says that the chunk is."""
    program(
        f"""
        import tidelane.auto, h5py, numpy as np, os, subprocess
        data = np.arange(1 << 15)
        file = h5py.File("out.h5", "w")
        dataset = file.create_dataset("x", shape=data.shape, dtype=data.dtype, {layout})
        file.flush()
        later = subprocess.Popen(["sh", "-c", "sleep 0.5; rm gate"])
        open("gate", "w").close()
        dataset[:] = data
        address = dataset.id.{address}
        with open("out.h5", "rb") as plain:
            assert os.pread(plain.fileno(), data.nbytes, address) == data.tobytes()
        assert not os.path.exists("gate")  # it waited
        later.wait()
        """,
        gated=True,
    )


def test_a_wait_is_for_the_file_wherever_it_is(program):
    """Not for what its path leads to by then: it said that what was still pending was stored."""
    program(
        """
        import tidelane.auto, tidelane, h5py, numpy as np, os
        os.mkdir("elsewhere")
        file = h5py.File("out.h5", "w")
        open("gate", "w").close()
        file["x"] = np.arange(1 << 18)
        def pending():
            try: tidelane.wait(file, timeout=0.1)
            except TimeoutError: return True
        assert pending()
        os.chdir("elsewhere")
        assert pending()
        os.chdir("..")
        os.rename("out.h5", "elsewhere/other.h5")
        assert pending()
        open("out.h5", "w").close()
        assert pending()
        os.unlink("gate")
        tidelane.wait(file)
        assert os.path.getsize("elsewhere/other.h5") >= 8 << 18
        """,
        gated=True,
    )


def test_another_copy_of_hdf5_reads_what_is_still_on_its_way(program):
    """The first had closed the file, and opened it again: its lock was held against the second."""
    program(
        """
        import tidelane.auto, tidelane, h5py, tables, numpy as np, subprocess
        with h5py.File("out.h5", "w") as file:
            file["x"] = np.arange(1 << 10)
            file.flush()
            open("gate", "w").close()
            file["y"] = np.arange(1 << 18)
        with h5py.File("out.h5") as again:
            assert again["x"][5] == 5
            later = subprocess.Popen(["sh", "-c", "sleep 0.5; rm gate"])  # PyTables lets no other thread run
            with tables.open_file("out.h5") as other:
                assert (other.root.y[:] == np.arange(1 << 18)).all()
            assert tidelane.stats()["counters"]["closes_deferred"] == 1
        later.wait()
        """,
        env={**ASYNC, "TIDELANE_CLOSE": "deferred"},
        gated=True,
    )


def test_who_maps_a_dataset_sees_what_is_written_later(program):
    program(
        """
        import tidelane.auto, tidelane, h5py, numpy as np
        file = h5py.File("out.h5", "w")
        dataset = file.create_dataset("x", data=np.zeros(1 << 17))
        mapped = np.memmap("out.h5", "f8", "r", dataset.id.get_offset(), dataset.shape)
        for value in range(1, 20):
            dataset[:] = value
            assert mapped[1000] == value
        assert tidelane.stats()["fallbacks"]["handle_handed_out"] == 1
        """,
        env={**ASYNC, "TIDELANE_LINGER": "50000"},
    )


def test_a_wait_enters_no_other_librarys_hdf5(program):
    """netCDF4's has no lock: the thread that uses it may be inside, and has to wait itself for what it compresses."""
    program(
        """
        import tidelane.auto, tidelane, h5py, netCDF4, numpy as np, os, threading
        written, go_on, failures = threading.Event(), threading.Event(), []
        def other():
            try:
                with netCDF4.Dataset("other.nc", "w") as file:
                    file.createDimension("x", 1 << 18)
                    part = file.createVariable("part", "i8", ("x",), zlib=True, chunksizes=(1 << 15,))
                    file.sync()
                    open("gate", "w").close()
                    part[:] = np.arange(1 << 18)
                    written.set()
                    go_on.wait(60)
                    tidelane.wait(file)
            except BaseException as error: failures.append(error)
            written.set()
        thread = threading.Thread(target=other)
        with h5py.File("out.h5", "w") as file:
            packed = file.create_dataset("packed", data=np.arange(1 << 18), chunks=(1 << 15,), compression="gzip")
            thread.start()
            written.wait(60)
            os.unlink("gate")
            tidelane.wait(file)
            for target in ("other.nc", None):
                try: tidelane.wait(target)
                except OSError as error: assert "other.nc" in str(error) and "thread" in str(error), error
                else: raise SystemExit("it entered netCDF4's HDF5, or forgot its chunks")
            go_on.set()
            thread.join()
            tidelane.wait()
        assert not failures, failures
        counters = tidelane.stats()["counters"]
        assert counters["chunks_filtered_by_lanes"] + counters["chunks_filtered_by_caller"] >= 16, counters
        assert (netCDF4.Dataset("other.nc")["part"][:] == np.arange(1 << 18)).all()
        """,
        env={**ASYNC, "TIDELANE_LANES": "1"},
        gated=True,
    )


@pytest.mark.parametrize("beside", ["a_thread_that_called_hdf5", "a_thread", "none"])
def test_a_fork_enters_an_hdf5_without_a_lock_only_where_nobody_can_be_inside(program, beside):
    """Another thread inside it would be disturbed. What is not in the file at the fork is the parent's, which loses nothing.
    Threads that have never called HDF5, as every program with numpy has them, do not count: the child sees everything."""
    called = beside == "a_thread_that_called_hdf5"
    program(
        f"""
        import tidelane.auto, tidelane, netCDF4, numpy as np, os, threading
        values = np.random.default_rng(1).integers(0, 99, (64, 128, 128)).astype("i4")
        go_on, held, ready = threading.Event(), [], threading.Event()
        netCDF4.Dataset("first.nc", "w").close()
        def other():
            if {called}: netCDF4.Dataset("first.nc").close()
            ready.set()
            go_on.wait(60)
            try: tidelane.wait("out.nc")
            except OSError as error: held.append(str(error))
        thread = threading.Thread(target=other)
        with netCDF4.Dataset("out.nc", "w") as file:
            for name, size in zip("tyx", values.shape): file.createDimension(name, size)
            packed = file.createVariable("packed", "i4", ("t", "y", "x"), zlib=True, complevel=9, chunksizes=(1, 128, 128))
            file.sync()
            if {beside != "none"}: thread.start(), ready.wait(60)
            packed[:] = values
            child = os.fork()
            if child == 0: os._exit(0 if {called} or (packed[:] == values).all() else 1)
            assert os.waitpid(child, 0)[1] == 0
            if {beside == "none"}: thread.start()
            go_on.set()
            thread.join()
            assert ({called} and len(held) == 1 and "thread" in held[0]) or (not {called} and not held), held
            assert (packed[:] == values).all()
        assert (netCDF4.Dataset("out.nc")["packed"][:] == values).all()
        counters = tidelane.stats()["counters"]
        assert counters["chunks_filtered_by_lanes"] + counters["chunks_filtered_by_caller"] >= 64, counters
        """,
        env=ASYNC,
    )


def test_another_thread_waits_for_chunks_of_h5py(program):
    """h5py's HDF5 has no lock, either, but h5py has."""
    program(
        """
        import tidelane.auto, tidelane, h5py, numpy as np, threading
        with h5py.File("out.h5", "w") as file:
            file.create_dataset("packed", data=np.arange(1 << 18), chunks=(1 << 15,), compression="gzip")
            failures = []
            def wait():
                try: tidelane.wait(file), tidelane.wait()
                except BaseException as error: failures.append(error)
            thread = threading.Thread(target=wait)
            thread.start()
            thread.join()
            assert not failures, failures
        """
    )


def test_a_file_that_is_opened_again_is_read_again(program):
    """xarray keeps a file open that somebody copies another one over, and opens it once more."""
    code = """
        import h5py, numpy as np, shutil
        for name, value in (("one.h5", 1.0), ("two.h5", 2.0)):
            with h5py.File(name, "w") as file: file["x"] = np.full(50, value)
        one = h5py.File("one.h5")
        assert one["x"][:].max() == 1
        shutil.copy("two.h5", "one.h5")
        print(h5py.File("one.h5")["x"][:].max())
        """
    env = {**ASYNC, "TIDELANE_READAHEAD": "on"}
    assert program("import tidelane.auto\n" + textwrap.dedent(code), env=env).stdout == program(code, native=True).stdout == "2.0\n"


def test_phase(program):
    program(
        """
        import tidelane.auto, tidelane, h5py, numpy as np
        file = h5py.File("out.h5", "w")
        with tidelane.phase(file, name="checkpoint") as phase:
            file["x"] = np.arange(1 << 18)
        assert phase.asynchronous_bytes > 1 << 20 and phase.seconds > phase.waited_seconds, phase
        assert "checkpoint" in repr(phase)
        assert tidelane.stats()["counters"]["bytes_written"] > 1 << 20  # stored
        try:
            with tidelane.phase(file): raise KeyError("mine")
        except KeyError: pass
        """
    )


NATIVE = {
    "core": "h5py.File('core.h5', 'w', driver='core')",
    "file object": "h5py.File(io.BytesIO(), 'w')",
    "swmr": "f = h5py.File('swmr.h5', 'w', libver='latest'); f.swmr_mode = True",
    "tables": "import tables; tables.open_file('mem.h5', 'w', driver='H5FD_CORE')",
    "netCDF4": "import netCDF4; netCDF4.Dataset('mem.nc', 'w', diskless=True)",
}


@pytest.mark.parametrize("kind", NATIVE)
def test_files_that_run_natively_are_told_of_once(program, kind):
    (program.folder / "script.py").write_text(
        f"import tidelane.auto, h5py, io\nx = [0]\n{NATIVE[kind]}\nfor x[0] in range(100): pass\n"
        f"h5py.File('captured.h5', 'w').close()\n"
    )
    import sys

    done = program("", command=[sys.executable, "-B", "script.py"])
    assert done.stderr.count("TidelaneWarning") == 1, done.stderr
    assert "script.py:3: TidelaneWarning" in done.stderr and "runs natively" in done.stderr, done.stderr


def test_stats_and_report(program):
    import json
    import os
    import pathlib

    import jsonschema

    done = program(
        """
        import tidelane, json, pickle
        tidelane.enable(timeline=True)
        import h5py, numpy as np
        with h5py.File("out.h5", "w") as file: file["x"] = np.arange(1 << 18)
        report = pickle.loads(pickle.dumps(tidelane.report()))
        assert "<svg" in report._repr_svg_() and ">lane " in report.svg and "<pre>" in report._repr_html_()
        print("JSON" + json.dumps(report.stats))
        """
    )
    table, _, text = done.stdout.partition("JSON")
    assert "asynchronous" in table and "1 file opened" in table
    schema = pathlib.Path(os.environ["TIDELANE_TEST_SOURCE_DIR"], "docs/summary.schema.json")
    jsonschema.validate(json.loads(text), json.loads(schema.read_text()))


def test_a_notebook_gets_the_timeline_unasked(program):
    done = program(
        """
        import sys, types
        sys.modules["ipykernel"] = types.ModuleType("ipykernel")  # how a notebook is known
        import tidelane.auto, tidelane
        import h5py, numpy as np
        with h5py.File("out.h5", "w") as file: file["x"] = np.arange(1 << 18)
        report = tidelane.report()
        assert report.svg in report._repr_html_() and ">lane " in report.svg
        assert report.stats["counters"]["bytes_deferred"] > 1 << 20 and report.stats["counters"]["lane_busy_ns"] > 0
        """
    )
    assert done.stdout == ""


def test_several_hdf5_in_one_process(program):
    program(
        """
        import tidelane.auto, tidelane, numpy as np
        import h5py, netCDF4, tables
        data = np.arange(1 << 17)
        h = h5py.File("h.h5", "w"); h["x"] = data
        n = netCDF4.Dataset("n.nc", "w"); n.createDimension("d", len(data)); n.createVariable("x", "i8", ("d",))[:] = data
        t = tables.open_file("t.h5", "w"); t.create_array("/", "x", data)
        from tidelane import _plugin
        assert _plugin.loaded().libraries() == 3, _plugin.loaded().libraries()
        for file in (h, n, t):
            tidelane.flush(file)
        for file in (h, n, t):
            file.close()
        for name in ("h.h5", "n.nc", "t.h5"):  # each reads what another wrote
            with h5py.File(name) as file: assert (file["x"][:] == data).all()
            with tables.open_file(name) as file: assert (file.root.x[:] == data).all()
        counters = tidelane.stats()["counters"]
        assert counters["bytes_deferred"] >= 3 * data.nbytes and counters["bytes_sync"] == 0, counters
        """
    )


VISIT = """
import h5py, numpy
with h5py.File("target.h5", "w") as file:
    file["x"] = numpy.arange(20)
with h5py.File("linking.h5", "w") as linking:
    linking["link"] = h5py.ExternalLink("target.h5", "/")
    group = linking["link"]
    group["more"] = numpy.arange(5)  # HDF5 has not written what it visits
    seen = []
    group.visititems(lambda name, item: seen.append((name, item.file.filename)))
    assert [name for name, _ in seen] == ["more", "x"], seen
    group.file.flush()
    del group
with h5py.File("target.h5", "r+") as file:
    file["y"] = file["x"][3:]
with h5py.File("target.h5", "r") as file:
    assert sorted(file) == ["more", "x", "y"]
"""


def test_a_callback_lets_go_of_the_file_that_is_visited_natively(program):
    program(VISIT, native=True)


@pytest.mark.parametrize("settings", [{}, {"TIDELANE_JOURNAL": "process"}, {"TIDELANE_PUBLISH": "atomic"}])
def test_a_callback_lets_go_of_the_file_that_is_visited(program, settings):
    """Of a group behind an external link h5py asks for the file's identifier, and closes it, inside the visit."""
    program("import tidelane.auto" + VISIT, env={**ASYNC, **settings})
