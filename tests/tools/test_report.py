"""`tidelane report` and `tidelane trace`: what runs left, of one process and of several, whole and damaged."""

import json
import re
import subprocess
import sys

import pytest
from conftest import STEP_BYTES, error_line


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """Two processes' summaries and timelines, as the plugin wrote them."""
    from conftest import Tool

    tool = Tool(tmp_path_factory.mktemp("left"))
    patterns = {"summary": tool.folder / "run-%p.json", "trace": tool.folder / "run-%p.trace"}
    shown = tool("run", "-q", "--", sys.executable, "-c", "import os; print(os.environ['HDF5_PLUGIN_PATH'])")
    env = tool.environment(HDF5_PLUGIN_PATH=shown.stdout.strip(), HDF5_VOL_CONNECTOR="tidelane", TIDELANE_MODE="async")
    env |= {f"TIDELANE_{name.upper()}": str(path) for name, path in patterns.items()}
    for _ in range(2):
        subprocess.run([str(word) for word in tool.program(2)], env=env, check=True, timeout=60, stdout=subprocess.DEVNULL)
    summaries, traces = sorted(tool.folder.glob("run-*.json")), sorted(tool.folder.glob("run-*.trace"))
    assert len(summaries) == len(traces) == 2
    return summaries, traces


def test_one_process(tidelane, left):
    done = tidelane("report", left[0][0])
    assert done.returncode == 0 and done.stderr == ""
    pid = left[0][0].stem.removeprefix("run-")
    assert f", process {pid}: 2 files opened, 0 errors" in done.stdout
    assert re.search(r"asynchronous +8\.0 MiB", done.stdout)
    # The timeline is found by the name in the summary.
    assert re.search(rf"{pid} main thread +write +\d+ +[0-9.]+ +8\.0 MiB", done.stdout)
    assert re.search(rf"{pid} lane \d+ +pwrite", done.stdout)


def test_two_processes_have_a_sum_and_a_line_each(tidelane, left):
    done = tidelane("report", *left[0])
    assert ", 2 processes: 4 files opened" in done.stdout
    assert re.search(r"asynchronous +16\.0 MiB", done.stdout)
    for path in left[0]:
        pid = path.stem.removeprefix("run-")
        assert re.search(rf"^ +- +{pid} +[0-9.]+ s +8\.0 MiB +0 B ", done.stdout, re.M)


def test_a_timeline_that_was_moved_with_its_summary_is_found(tidelane, left):
    for path in (left[0][0], left[1][0]):
        text = path.read_text().replace(str(path.parent), "/gone")
        (tidelane.folder / path.name).write_text(text)
    assert re.search(r"lane \d+ +pwrite", tidelane("report", left[0][0].name).stdout)


def test_the_page_of_two_processes(tidelane, left):
    assert tidelane("report", "--html", "two.html", *left[0]).returncode == 0
    page = (tidelane.folder / "two.html").read_text()
    run = json.loads(re.search(r'id="run">(.*?)</script>', page, re.S)[1])
    assert len(run["processes"]) == 2 and len({track["pid"] for track in run["timeline"]["tracks"]}) == 2
    assert run["sum"]["counters"]["bytes_deferred"] >= 4 * STEP_BYTES
    assert "2 processes: 4 files opened" in page  # without a script


def test_fallbacks_problems_and_advice_are_shown(tidelane, left):
    summary = json.loads(left[0][0].read_text())
    summary["written"]["synchronous"]["reasons"].append(
        {"reason": "mode_sync", "text": "the setting mode=sync", "unit": "file", "count": 3, "bytes": 5 << 20}
    )
    summary["fallbacks"]["mode_sync"] = 3
    summary["problems"] |= {"first": "no <room>", "not_stored": {"count": 40, "files": ["a.h5", "b.h5"]}}
    summary["advice"] = [{"rule": "close_waits", "text": "close waited 9.0 s: TIDELANE_CLOSE=deferred hides it"}]
    summary["settings"] = []  # no timeline
    (tidelane.folder / "run.json").write_text(json.dumps(summary))
    text = tidelane("report", "run.json").stdout
    assert re.search(r"fell back +5\.0 MiB, 3 files: the setting mode=sync \(mode_sync\)", text)
    assert re.search(r"not stored +2 files: a\.h5, b\.h5", text)
    assert "first error   no <room>" in text and "TIDELANE_CLOSE=deferred hides it" in text
    page = tidelane("report", "--html", "-", "run.json").stdout
    assert "no <room>" not in page and "no \\u003croom>" in page


def test_two_processes_say_the_same_advice_once(tidelane, left):
    for name in ("a", "b"):
        summary = json.loads(left[0][0].read_text())
        summary["advice"] = [{"rule": "close_waits", "text": f"advice of {name}"}]
        (tidelane.folder / f"{name}.json").write_text(json.dumps(summary))
    text = tidelane("report", "a.json", "b.json").stdout
    assert "advice of a (so in 2 of 2 processes)" in text and "advice of b" not in text


def test_epochs_are_shown_with_what_was_expected_of_them(tidelane):
    tidelane.run("--summary", "run.json", steps=6)
    given = json.loads((tidelane.folder / "run.json").read_text())["model"]
    assert given["epochs"] >= 2 and given["asynchronous"] >= 2
    text = tidelane("report", "run.json").stdout
    line = re.search(r"^  epochs +(.*)$", text, re.M)[1]
    assert line.startswith(f"{given['epochs']}, {given['asynchronous']} of them asynchronous")
    assert ("expected within" in line) == (given["forecasts"] > 0)
    rows = re.findall(r"^ +(\d+) +([0-9.]+ \w+) (\w+) +([0-9.]+) s", text, re.M)
    assert [int(row[0]) for row in rows] == [epoch["epoch"] for epoch in given["decisions"]]
    for row, epoch in zip(rows, given["decisions"], strict=True):
        assert row[2] == epoch["mode"] and abs(float(row[3]) - epoch["seconds"]) < 0.001
    page = tidelane("report", "--html", "-", "run.json").stdout
    run = json.loads(re.search(r'id="run">(.*?)</script>', page, re.S)[1])
    # Told as they were read: nothing is lost between the run and the page.
    assert run["sum"]["model"] == run["processes"][0]["summary"]["model"] == given


def test_epochs_of_several_processes_are_added_up(tidelane, left):
    given = [json.loads(path.read_text())["model"] for path in left[0]]
    epochs = sum(model["epochs"] for model in given)
    assert epochs > 0
    assert re.search(rf"^  epochs +{epochs}, ", tidelane("report", *left[0]).stdout, re.M)


def test_unknown_keys_and_missing_ones_are_no_trouble(tidelane, left):
    summary = json.loads(left[0][0].read_text())
    summary |= {"new": {"deep": [1, None]}, "advice": "none", "overlap": None, "model": {"epochs": 1, "decisions": [4, {"expected": 1}], "storages": 5}, "settings": [3, {"name": 4}]}
    summary["counters"] = {"bytes_deferred": -1, "unheard_of": 1e300, "errors": "many"}
    (tidelane.folder / "run.json").write_text(json.dumps(summary))
    done = tidelane("report", "run.json")
    assert done.returncode == 0 and "asynchronous  0 B" in done.stdout


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "is not JSON"),
        (b'{"schema_version": 1, "counters"', "is not JSON"),
        (b"\x89HDF\r\n\x1a\n" + bytes(range(256)), "is not JSON"),
        (b"[1, 2]", "no schema_version"),
        (b'{"schema_version": "1"}', "no schema_version"),
        (b'{"schema_version": 1}', "no counters"),
        (b'{"schema_version": 7, "tidelane": {"version": "9.1"}}', "use the tidelane of version '9.1'"),
        (b'{"traceEvents": []}', "is a timeline, not a summary"),
        (b"[" * 100000, "is not JSON"),
    ],
)
def test_what_is_no_summary_is_said_in_a_line(tidelane, content, said):
    (tidelane.folder / "run.json").write_bytes(content)
    line = error_line(tidelane("report", "run.json"))
    assert line.startswith("tidelane report: run.json: ") and said in line


def test_what_cannot_be_read_or_written_is_named(tidelane, left):
    assert "none.json: cannot be read: No such file" in error_line(tidelane("report", "none.json"))
    assert "cannot be read: Is a directory" in error_line(tidelane("report", "."))
    assert "/nonexistent/x.html" in error_line(tidelane("report", "--html", "/nonexistent/x.html", left[0][0]))
    assert "none.trace" in error_line(tidelane("report", left[0][0], "--trace", "none.trace"))


def test_a_trace_for_perfetto(tidelane, left):
    done = tidelane("trace", *left[1], "-o", "out.json")
    assert done.returncode == 0 and "out.json: " in done.stderr and done.stdout == ""
    events = json.loads((tidelane.folder / "out.json").read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    given = [event for path in left[1] for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    assert len(spans) == len(given)
    assert sum(span["args"]["bytes"] for span in spans) == sum(span["args"].get("bytes", 0) for span in given)
    assert min(span["ts"] for span in spans) == 0
    names = {(event["pid"], event["args"]["name"]) for event in events if event["name"] == "thread_name"}
    for path in left[1]:
        pid = int(path.stem.removeprefix("run-"))
        tracks = {name for of, name in names if of == pid}
        assert "main thread" in tracks and any(name.startswith("lane ") for name in tracks)  # whichever lane was quicker
        waiting = [event["args"]["bytes"] for event in events if event["ph"] == "C" and event["pid"] == pid]
        assert max(waiting) >= 1 << 20 and waiting[-1] < 1 << 16
    assert json.loads(tidelane("trace", *left[1]).stdout)["traceEvents"] == events


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "no timeline"),
        (b'{"traceEvents":[\n{"ph":"X"', "no timeline"),
        (b'{"schema_version": 1}', "is a summary, not a timeline"),
        (b'{"traceEvents": 3}', "no timeline"),
    ],
)
def test_what_is_no_timeline_is_said_in_a_line(tidelane, content, said):
    (tidelane.folder / "run.trace").write_bytes(content)
    line = error_line(tidelane("trace", "run.trace", "-o", "out.json"))
    assert "run.trace: " in line and said in line
    assert not (tidelane.folder / "out.json").exists()


def test_strange_events_are_left_out(tidelane):
    events = [{"ph": "X", "ts": "soon", "dur": -5, "name": 3}, {"ph": "X", "name": "write", "ts": 1e300, "dur": 1e300}]
    events += [{"ph": "X", "name": "write", "ts": 5, "dur": 2, "pid": 1, "tid": 1, "args": {"bytes": 9}}, 3, None]
    (tidelane.folder / "run.trace").write_text(json.dumps({"traceEvents": events, "otherData": {"lost_spans": 12}}))
    done = tidelane("trace", "run.trace")
    assert done.returncode == 0
    assert json.loads(done.stdout)["otherData"]["lost_spans"] == 12


def test_a_long_timeline_becomes_a_small_page(tidelane, left):
    events = [
        {"ph": "X", "name": "pwrite" if i % 2 else "gap read", "ts": i * 10, "dur": 4, "pid": 1, "tid": 2, "args": {"bytes": 1}}
        for i in range(120_000)
    ]
    (tidelane.folder / "run.trace").write_text(json.dumps({"traceEvents": events}))
    assert tidelane("report", "--html", "long.html", "--trace", "run.trace", left[0][0]).returncode == 0
    assert (tidelane.folder / "long.html").stat().st_size < 4 << 20
