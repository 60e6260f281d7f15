"""`tidelane run`: the program's own words and status stay, what happened is said, and nothing is left behind."""

import json
import os
import re
import shutil
import signal
import stat
import sys

import jsonschema
import pytest
from conftest import STEP_BYTES, error_line

PLUGINS = os.environ["TIDELANE_TEST_PLUGIN_DIR"]
SHOW = "import os; print(os.environ['HDF5_PLUGIN_PATH']); print(os.environ['HDF5_VOL_CONNECTOR'])"


def shown(tidelane, *options, **env):
    """What a program finds in its environment: the plugin path and the connector."""
    return tidelane("run", "-q", *options, "--", sys.executable, "-c", SHOW, **env).stdout.splitlines()


def table_of(done):
    """The lines of the summary by their labels."""
    return dict(re.findall(r"^  (\w[\w ]*?)  +(.*)$", done.stderr, re.M))


def test_the_program_runs_and_the_summary_is_said(tidelane):
    done = tidelane("run", "--mode", "async", "--", *tidelane.program(3, 5))
    assert done.returncode == 5
    assert done.stdout == "the program's own words\n"
    table = table_of(done)
    assert table["asynchronous"].startswith("12.0 MiB in ")
    assert table["synchronous"] == "0 B in 0 writes"
    assert re.match(r"tidelane [0-9.]+, process \d+: 3 files opened, 0 errors", done.stderr)
    assert list(tidelane.temporary.iterdir()) == []
    assert len(list(tidelane.data.iterdir())) == 3


def test_without_the_dashes_the_program_is_found_too(tidelane):
    done = tidelane("run", "--mode=async", *tidelane.program(1))
    assert done.returncode == 0 and "4.0 MiB" in table_of(done)["asynchronous"]


def test_quiet_says_nothing(tidelane):
    done = tidelane.run("-q", "--summary", "run.json")
    assert done.stderr == "" and (tidelane.folder / "run.json").exists()


def test_the_json_is_what_the_schema_says(tidelane, schema):
    done = tidelane.run("--summary", "run.json", "--close", "deferred")
    summary = json.loads((tidelane.folder / "run.json").read_text())
    jsonschema.validate(summary, schema)
    assert summary["counters"]["bytes_deferred"] >= 3 * STEP_BYTES
    assert summary["counters"]["lane_busy_ns"] > 0
    assert summary["counters"]["closes_deferred"] >= 1
    assert "settings" in table_of(done)


def test_a_summary_that_the_environment_asks_for_is_written_there(tidelane):
    tidelane.run(TIDELANE_SUMMARY="own-%p.json")
    (written,) = tidelane.folder.glob("own-*.json")
    assert written.stem == f"own-{json.loads(written.read_text())['tidelane']['pid']}"


def test_the_environment_is_added_to(tidelane):
    assert shown(tidelane) == [f"{PLUGINS}:/usr/local/hdf5/lib/plugin", "tidelane"]
    assert shown(tidelane, HDF5_PLUGIN_PATH="/a:/b")[0] == f"{PLUGINS}:/a:/b"
    assert shown(tidelane, HDF5_PLUGIN_PATH=f"{PLUGINS}:/b")[0] == f"{PLUGINS}:/b"
    own = "async under_vol=0;under_info={};arena=64M"
    assert shown(tidelane, HDF5_VOL_CONNECTOR=own)[1] == own


def test_options_win_over_the_connectors_text(tidelane):
    connector = "tidelane close=wait;arena=64M"
    assert shown(tidelane, "--close", "deferred", HDF5_VOL_CONNECTOR=connector)[1] == "tidelane arena=64M"
    done = tidelane.run("--close", "deferred", "--summary", "run.json", HDF5_VOL_CONNECTOR=connector)
    settings = json.loads((tidelane.folder / "run.json").read_text())["settings"]
    values = {setting["name"]: setting["value"] for setting in settings}
    assert done.returncode == 0 and values["close"] == "deferred" and values["arena"] == "64M"


def test_another_connector_is_replaced_and_said(tidelane):
    done = tidelane.run(HDF5_VOL_CONNECTOR="rest")
    assert "said 'rest'" in done.stderr and "12.0 MiB" in table_of(done)["asynchronous"]


def test_wrong_settings_start_nothing(tidelane):
    assert "the nearest is deferred" in error_line(tidelane.run("--close", "deferrd"), 125)
    assert "the nearest is TIDELANE_LANES" in error_line(tidelane.run(TIDELANE_LANE="2"), 125)
    assert "missing.conf" in error_line(tidelane.run("--config", "missing.conf"), 125)
    assert "no libtidelane.so in /tmp" in error_line(tidelane.run("--plugins", "/tmp"), 125)
    assert list(tidelane.data.iterdir()) == []


@pytest.mark.parametrize(
    "what, said",
    [
        ("damaged", "cannot understand the history"),
        ("empty", "cannot understand the history"),
        ("newer", "cannot read a newer Tidelane's history"),
        ("a file", "Not a directory"),
        ("read-only home", None),
    ],
)
def test_a_history_of_no_use_is_a_line_at_most_and_the_files_are_whole(tidelane, what, said):
    """In a read-only home nothing is said: nobody asked for a history there."""
    h5py = pytest.importorskip("h5py")
    history, env = tidelane.folder / "history", {}
    if what == "a file":
        history.write_text("no folder")
    elif what == "read-only home":
        env = {"XDG_STATE_HOME": "/proc"}  # where root makes no folder, either
    else:
        tidelane.run("-q", "--history", history)
        (kept,) = history.glob("*.json")
        text = kept.read_text()
        text = {"damaged": text[: len(text) // 2], "empty": "", "newer": text.replace('"version": 2', '"version": 99')}[what]
        kept.write_text(text)
    done = tidelane.run("-q", *(() if env else ("--history", history)), **env)
    assert (done.returncode, done.stdout) == (0, "the program's own words\n")
    assert len(done.stderr.splitlines()) == (said is not None) and (said or "") in done.stderr
    files = sorted(tidelane.data.iterdir())
    assert len(files) in (3, 6)
    for path in files:
        with h5py.File(path) as file:
            step = int(path.stem.split("-")[1])
            assert all((file[name][...] == step).all() for name in "abcd")
    if what in ("damaged", "empty"):
        assert json.loads(kept.read_text())["runs"] == 1
    if what == "newer":
        assert kept.read_text() == text


def test_what_cannot_be_run_has_the_shells_statuses(tidelane):
    assert "No such file" in error_line(tidelane("run", "--", "/nonexistent"), 127)
    assert "Permission denied" in error_line(tidelane("run", "--", str(tidelane.writer)), 126)
    assert list(tidelane.temporary.iterdir()) == []


def test_a_program_without_hdf5_is_told_of(tidelane):
    done = tidelane("run", "--", "true")
    assert done.returncode == 0
    assert "nothing was asynchronous" in done.stderr and "not linked to a shared libhdf5" in done.stderr


def test_a_program_that_is_not_captured_is_told_why(tidelane):
    code = "import h5py, numpy\nwith h5py.File('core.h5', 'w', driver='core') as f: f['a'] = numpy.zeros(100)"
    done = tidelane("run", "--", sys.executable, "-c", code)
    assert "(driver)" in done.stderr and "no file was opened through it" in done.stderr


def test_a_signal_of_the_program_ends_us_too(tidelane):
    done = tidelane("run", "--", "sh", "-c", "kill -KILL $$")
    assert done.returncode == -signal.SIGKILL
    assert "ended by signal 9" in done.stderr
    assert list(tidelane.temporary.iterdir()) == []


def test_signals_are_passed_on(tidelane):
    code = "trap 'echo told; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    process = tidelane.start("run", "--", "sh", "-c", code)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert (out, process.returncode) == ("told\n", 7)


def test_several_processes_are_summed(tidelane, schema):
    program = " ".join(str(word) for word in tidelane.program(2))
    done = tidelane(
        "run", "--mode=async", "--summary=run.json", "--trace=run.trace", "--", "sh", "-c", f"{program} & {program} & wait"
    )
    assert ", 2 processes: 4 files opened" in done.stderr
    assert table_of(done)["asynchronous"].startswith("16.0 MiB")
    written = list(tidelane.folder.glob("run-*.json"))
    assert len(written) == 2
    for path in written:
        jsonschema.validate(json.loads(path.read_text()), schema)
    pids = {event["pid"] for event in json.loads((tidelane.folder / "run.trace").read_text())["traceEvents"]}
    assert len(pids) == 2


def launch(tidelane, rank, size):
    return tidelane.start(
        "run", "--mode=async", "--", *tidelane.program(2),
        OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_LOCAL_SIZE=str(size),
    )  # fmt: skip


def test_the_last_rank_tells_for_all(tidelane):
    ended = [process.communicate(timeout=60) for process in [launch(tidelane, rank, 3) for rank in range(3)]]
    told = [err for _, err in ended if err]
    assert len(told) == 1
    assert ", 3 processes of ranks 0 to 2: 6 files opened" in told[0]
    assert list(tidelane.temporary.iterdir()) == []


def test_nodes_do_not_write_over_each_other(tidelane):
    env = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "1", "OMPI_COMM_WORLD_SIZE": "3"}
    done = tidelane.run("--html", "run.html", "--summary", "run.json", **env)
    assert done.returncode == 0
    for extension in ("html", "json"):
        assert (tidelane.folder / f"run-{os.uname().nodename}.{extension}").exists()


def test_a_ranks_own_script_tells_for_itself(tidelane):
    """Its parent has the rank too, and may start us twice: waiting for the other ranks would never end."""
    code = 'for i in 1 2; do "$@" || exit 1; done'
    words = [os.environ["TIDELANE_TEST_TOOL"], "run", "--mode=async", "--", *tidelane.program(1)]
    done = tidelane(
        "-c", code, "sh", *words, tool="/bin/sh", OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_LOCAL_SIZE="4"
    )
    assert done.stderr.count("1 file opened") == 2


def test_folders_of_launchers_that_are_gone_are_removed(tidelane):
    old = tidelane.temporary / f"tidelane-{os.getuid()}-999999999-1"
    old.mkdir(mode=0o700)
    others = {tidelane.temporary / "tidelane-notes", tidelane.temporary / f"tidelane-{os.getuid()}-my-notes"}
    others.add(tidelane.temporary / f"tidelane-{os.getuid()}-2024-1")  # the user's own, by its permissions
    for other in others:
        other.mkdir(mode=0o755)
        (other / "precious").write_text("keep me")
    tidelane("run", "-q", "--", "true")
    assert set(tidelane.temporary.iterdir()) == others
    assert all((other / "precious").exists() for other in others)


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun on this machine")
@pytest.mark.parametrize("inside", [True, False])
def test_mpirun_in_both_orders(tidelane, inside):
    launcher = ["mpirun", "-n", "2"]
    if "Open MPI" in tidelane("--version", tool="mpirun").stdout:
        launcher += ["--oversubscribe"] + (["--allow-run-as-root"] if os.getuid() == 0 else [])
    own = ["run", "--mode=async", "--"]
    if inside:
        done = tidelane(*own, *launcher, *tidelane.program(2))
    else:
        tool = os.environ["TIDELANE_TEST_TOOL"]
        done = tidelane(*launcher[1:], tool, *own, *tidelane.program(2), tool=launcher[0])
    assert done.returncode == 0, done.stderr
    assert re.search(r", 2 processes.*: 4 files opened", done.stderr), done.stderr
    assert table_of(done)["asynchronous"].startswith("16.0 MiB")


def run_text(page):
    return re.search(r'<script type="application/json" id="run">(.*?)</script>', page, re.S)[1]


def test_the_page_needs_nothing_else(tidelane):
    evil = "</script><img src=x>"
    done = tidelane("run", "--mode=async", "--html", "run.html", "--", *tidelane.program(3, 0, evil))
    assert done.returncode == 0
    page = (tidelane.folder / "run.html").read_text()
    assert evil not in page and page.count("</script>") == 2
    frame = page.replace(run_text(page), "")
    for fetch in ("src=", "url(", "@import", "fetch(", "XMLHttpRequest", "import(", "WebSocket"):
        assert fetch not in frame, fetch
    assert re.findall(r"href=.*?>", frame) == ['href="data:,">']
    assert set(re.findall(r"https?://[^\s\"'<)]+", page)) <= {"http://www.w3.org/2000/svg"}
    run = json.loads(run_text(page))
    assert run["command"].endswith(evil)
    assert run["sum"]["counters"]["bytes_deferred"] >= 3 * STEP_BYTES
    tracks = {track["name"]: track for track in run["timeline"]["tracks"]}
    lanes = [track["lane"] for name, track in tracks.items() if name.startswith("lane ")]
    assert "main thread" in tracks and lanes and all(lanes)
    kinds = run["timeline"]["kinds"]
    stored = sum(
        sum(track["spans"][i + 3] for i in range(0, len(track["spans"]), 5) if kinds[track["spans"][i]] == "pwrite")
        for track in tracks.values()
    )
    assert stored >= 3 * STEP_BYTES
    waiting = run["timeline"]["waiting"]  # what was overwritten before it was stored stays counted
    assert waiting[-1] < 1 << 16 and max(waiting) >= 1 << 20


def test_an_installation_can_be_moved(tidelane):
    """The plugin is found beside the program, whatever the layout."""
    for layout in ("lib/tidelane", "lib/x86_64-linux-gnu/tidelane", "lib/python3.9/site-packages/tidelane/plugin", "bin"):
        prefix = tidelane.folder / layout.replace("/", "-") / "moved"
        (prefix / "bin").mkdir(parents=True)
        (prefix / layout).mkdir(parents=True, exist_ok=True)
        shutil.copy(os.environ["TIDELANE_TEST_TOOL"], prefix / "bin" / "tidelane")
        shutil.copy(os.path.join(PLUGINS, "libtidelane.so"), prefix / layout)
        done = tidelane("run", "-q", "--", sys.executable, "-c", SHOW, tool=prefix / "bin" / "tidelane")
        assert done.stdout.startswith(f"{prefix / layout}:"), done


def test_what_processes_leave_is_for_their_user_only(tidelane):
    code = "import os, stat; print(oct(stat.S_IMODE(os.stat(os.path.dirname(os.environ['TIDELANE_SUMMARY'])).st_mode)))"
    assert tidelane("run", "-q", "--", sys.executable, "-c", code).stdout.strip() == oct(stat.S_IRWXU)
