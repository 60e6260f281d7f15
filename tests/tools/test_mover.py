"""A mover that is started by hand: files that programs close go home by it, one for each tier, and it may be killed."""

import os
import pathlib
import signal
import time

import h5py
import numpy
import pytest

SECONDS = 30


def waits(condition):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def mover(tidelane):
    """Has it in a tier of its own, and ends it."""
    tier = tidelane.folder / "tier"
    tier.mkdir()
    process = tidelane.start("mover", "--tier", tier, "--idle", "0", "--tier-rate", "20M", "--tier-nice", "15")
    waits(lambda: (tier / f"tidelane-{os.geteuid()}" / "mover.socket").exists() or process.poll() is not None)
    yield tier, process
    process.kill()
    process.communicate()


def write(tidelane, tier, **env):
    done = tidelane.run("--close", "tier", "--tier", tier, "--quiet", steps=2, TIDELANE_TIER_DRAINED="on", **env)
    assert done.returncode == 0, done.stderr
    return sorted(tidelane.data.glob("*.h5"))


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


def test_there_is_one_for_a_tier(tidelane, mover):
    tier, _ = mover
    done = tidelane("mover", "--tier", tier, "--idle", "0")
    assert done.returncode == 1 and done.stderr.strip().endswith("a mover is there already")


def test_interrupted_it_leaves_what_it_had(tidelane, mover):
    tier, process = mover
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS) == -signal.SIGINT
    files = write(tidelane, tier)
    drained = tidelane("drain", *files, TIDELANE_TIER=str(tier))
    assert drained.returncode == 0, drained.stderr
    assert not any(map(has_marker, files))


def test_it_ends_by_itself(tidelane):
    (tidelane.folder / "other").mkdir()
    process = tidelane.start("mover", "--tier", tidelane.folder / "other", "--idle", "0.3")
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, err) == (0, "", "")
