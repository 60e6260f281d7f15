"""`tidelane predict`: the model's equations, from earlier runs or from a measurement."""

import json
import re
import sys

import pytest


def predicted(tidelane, *words, **env):
    done = tidelane("predict", "--json", *words, **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def judge(forecast, compute):
    """The equations hold, whatever the rates were."""
    io, overhead = forecast["io"]["seconds"], forecast["overhead_seconds"]
    assert forecast["async_epoch"]["seconds"] == pytest.approx(max(compute, io) + overhead)
    for epoch in (forecast["sync_epoch"], forecast["async_epoch"], forecast["io"]):
        assert 0 <= epoch["low"] <= epoch["seconds"] <= epoch["high"]
    assert 0 < forecast["gain_low"] <= forecast["gain"] <= forecast["gain_high"]
    expected = "async" if forecast["gain_low"] > 1 else "sync" if forecast["gain_high"] < 1 else "either"
    assert forecast["mode"] == expected
    assert forecast["gain"] == pytest.approx(forecast["sync_epoch"]["seconds"] / forecast["async_epoch"]["seconds"])


def test_by_a_measurement(tidelane):
    forecast = predicted(tidelane, "--measure", "-s", "256M", "-c", "0.25", "-d", tidelane.folder)
    judge(forecast, 0.25)
    assert "just now" in forecast["basis"] and list(tidelane.folder.glob("tidelane-check*")) == []


def test_reads_by_a_measurement(tidelane):
    forecast = predicted(tidelane, "--read", "--measure", "-s", "256M", "-c", "0.25", "-d", tidelane.folder)
    judge(forecast, 0.25)
    assert forecast["basis"].startswith("reads measured") and list(tidelane.folder.glob("tidelane-check*")) == []
    done = tidelane("predict", "-r", "--measure", "-s", "64M", "-c", "1s")
    assert re.search(r"^64\.0 MiB read a phase and rank", done.stdout) and ", copying " in done.stdout


# Reads files of 4 MiB, each in four reads, and computes after each.
READER = """
import sys, time, h5py
for step in range(4):
    with h5py.File(f"{sys.argv[1]}/{step}.h5") as file:
        for name in "abcd":
            file[name][...]
    time.sleep(0.02)
"""


def test_reads_by_an_earlier_run(tidelane):
    h5py, numpy = pytest.importorskip("h5py"), pytest.importorskip("numpy")
    for step in range(4):
        with h5py.File(tidelane.data / f"{step}.h5", "w") as file:
            for name in "abcd":
                file[name] = numpy.full(1 << 17, step, "f8")
    reader = tidelane.folder / "reader.py"
    reader.write_text(READER)
    history = tidelane.folder / "history"
    run = ["run", "--summary", "run.json", "--history", history, "--", sys.executable, "-B", reader, tidelane.data]
    done = tidelane(*run)
    assert done.returncode == 0, done.stderr
    model = json.loads((tidelane.folder / "run.json").read_text())["model"]
    assert model["reads"]["epochs"] >= 4 and model["epochs"] == 0
    (storage,) = model["storages"]
    assert any(storage["reads"][who] for who in ("sync", "lanes"))
    assert re.search(r"^  read epochs +[0-9]+, ", done.stderr, re.M)
    assert re.search(r"^\S+ \S+ +read by (the program|lanes) +[0-9.]+ \w+ +(linear|linear-log|time) ", tidelane("report", "run.json").stdout, re.M)
    forecast = predicted(tidelane, "--read", "-s", "4M", "-c", "0.1", "-d", tidelane.data, "--history", history)
    judge(forecast, 0.1)
    assert "1 earlier run on" in forecast["basis"]
    # Of writes that run knew nothing.
    assert "just now" in predicted(tidelane, "-s", "4M", "-c", "0.1", "-d", tidelane.data, "--history", history)["basis"]


def test_ranks_share_what_was_measured_with_one(tidelane):
    one = predicted(tidelane, "--measure", "-s", "64M", "-c", "0")
    many = predicted(tidelane, "--measure", "-s", "64M", "-c", "0", "-n", "1000")
    assert many["io"]["seconds"] > 20 * one["io"]["seconds"]


def test_no_history_is_no_trouble(tidelane):
    forecast = predicted(tidelane, "-s", "16M", "-c", "20ms", "--history", "/nonexistent")
    judge(forecast, 0.02)


def test_in_words(tidelane):
    done = tidelane("predict", "--measure", "-s", "64M", "-c", "1s", "--epochs", "3")
    assert done.returncode == 0
    assert re.search(r"^64\.0 MiB a phase and rank, 1 rank, 1\.000 s of computation", done.stdout)
    assert re.search(r"^  sync +[0-9.]+ s +\+- [0-9.]+ +[0-9.]+ s", done.stdout, re.M)
    assert re.search(r"^(async|either mode|sync)", done.stdout, re.M)
