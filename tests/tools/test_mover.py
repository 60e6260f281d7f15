"""A mover that is started by hand: files that programs close go home by it, one for each tier, and it may be killed."""

import contextlib
import os
import pathlib
import signal
import sys
import time

import h5py
import numpy
import pytest

SECONDS = 30
PLUGINS = os.environ["TIDELANE_TEST_PLUGIN_DIR"]


def waits(condition):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextlib.contextmanager
def started(tidelane, rate="20M", streams=2):
    """Has it in a tier of its own, and ends it."""
    tier = tidelane.folder / "tier"
    tier.mkdir()
    process = tidelane.start("mover", "--tier", tier, "--idle", "0", "--tier-rate", rate, "--tier-nice", "15", "--tier-streams", streams)
    waits(lambda: (tier / f"tidelane-{os.geteuid()}" / "mover.socket").exists() or process.poll() is not None)
    yield tier, process
    process.kill()
    process.communicate()


@pytest.fixture
def mover(tidelane):
    with started(tidelane) as both:
        yield both


def write(tidelane, tier):
    """Files of 4 MiB that wait in the tier when the program has ended."""
    env = {"TIDELANE_CLOSE": "tier", "TIDELANE_TIER": str(tier), "TIDELANE_TIER_DRAINED": "on"}
    _, *words = tidelane.program(2)
    done = tidelane(*words, tool=sys.executable, HDF5_PLUGIN_PATH=PLUGINS, HDF5_VOL_CONNECTOR="tidelane", **env)
    assert done.returncode == 0, done.stderr
    files = sorted(tidelane.data.glob("*.h5"))
    assert len(files) == 2 and any(map(has_marker, files))
    return files


def has_marker(path):
    return pathlib.Path(f"{path}-tier").exists()


def test_it_brings_what_programs_close(tidelane, mover):
    tier, process = mover
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == 15
    files = write(tidelane, tier)
    waits(lambda: not any(map(has_marker, files)))
    assert process.poll() is None
    for path in files:
        with h5py.File(path) as file:
            assert numpy.array_equal(file["a"], numpy.full(1 << 17, int(path.stem[-1]), "f8"))


@pytest.mark.parametrize("streams, at_once", [(1, 1), (2, 2)])
def test_so_many_files_at_once(tidelane, streams, at_once):
    def begun(files):
        return [path for path in files if has_marker(path) and path.stat().st_blocks * 512 > 1 << 20]

    with started(tidelane, rate="2M", streams=streams) as (tier, _):
        files = write(tidelane, tier)
        most = 0
        while any(map(has_marker, files)) and most < 2:
            most = max(most, len(begun(files)))
            time.sleep(0.02)
    assert most == at_once


def test_there_is_one_for_a_tier(tidelane, mover):
    tier, _ = mover
    done = tidelane("mover", "--tier", tier, "--idle", "0")
    assert done.returncode == 1 and done.stderr.strip().endswith("a mover is there already")


def test_interrupted_it_leaves_what_it_had(tidelane):
    with started(tidelane, rate="1M") as (tier, process):
        files = write(tidelane, tier)
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == -signal.SIGINT
        assert all(map(has_marker, files))
    drained = tidelane("drain", *files, TIDELANE_TIER=str(tier))
    assert drained.returncode == 0, drained.stderr
    assert not any(map(has_marker, files))


def test_who_ends_it_finds_no_spare_segments(tidelane, mover):
    tier, process = mover
    files = write(tidelane, tier)
    waits(lambda: not any(map(has_marker, files)))
    folder = tier / f"tidelane-{os.geteuid()}"
    assert list(folder.glob("spare.*"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(SECONDS) == -signal.SIGTERM
    assert [path.name for path in folder.iterdir()] == ["mover.lock"]


def test_it_ends_by_itself(tidelane):
    (tidelane.folder / "other").mkdir()
    process = tidelane.start("mover", "--tier", tidelane.folder / "other", "--idle", "0.3")
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, err) == (0, "", "")
