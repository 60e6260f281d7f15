"""`tidelane predict`: the model's equations, from earlier runs or from a measurement."""

import json
import re

import pytest


def predicted(tidelane, *words, **env):
    done = tidelane("predict", "--json", *words, **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def judge(forecast, compute):
    """The equations hold, whatever the rates were."""
    io, overhead = forecast["io"]["seconds"], forecast["overhead_seconds"]
    assert forecast["async_epoch"]["seconds"] == pytest.approx(max(compute, io) + overhead)
    assert forecast["async_epoch_as_printed"] == pytest.approx(max(compute, io - compute) + overhead)
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
