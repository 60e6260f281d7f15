"""A mover that stands still in the middle of a file (stopped before a chosen call), and what others do meanwhile.

It goes on by itself after a moment: who opens the file may have to wait for it until then.
"""

import os
import shutil
import signal
import subprocess
import threading
import time

import common
import pytest
from conftest import BUILT, EMPTY, refused

SECONDS = 0.4


def begun(there, *words, native=False):
    """A program that is not waited for."""
    return subprocess.Popen([str(word) for word in (BUILT.writer, *words)], env=common.native_env() if native else there.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/")


def ended(program):
    out, err = program.communicate(timeout=30)
    return common.Done(program.returncode, out.decode(), err.decode())


@pytest.fixture
def halfway(there, stop):
    """A file of commit 9, and a mover that stands still in it."""
    there.make(commit=9)
    there.mover = there.stopped(*stop)
    timer = threading.Timer(SECONDS, there.mover.send_signal, [signal.SIGCONT])
    timer.start()
    yield there
    timer.join()


def test_nobody_sees_half(halfway):
    """Whoever only reads is answered, or waits; what it reads is the commit."""
    answers = [halfway.stock(), halfway.seen()]
    assert answers[0] == 9 or refused(answers[0])
    assert answers[1] == 9
    halfway.goes_on(halfway.mover)
    assert halfway.stock() == 9 and halfway.drained()


def test_who_writes_waits_and_goes_on_from_the_commit(halfway):
    writer = begun(halfway, "--file", halfway.path(), "--report", "/dev/null", "--continue", "--steps", "3", "--rows", "20", "--state", "3000")
    time.sleep(SECONDS)
    halfway.goes_on(halfway.mover)
    done = ended(writer)
    assert done.rc == 0, done.words()
    assert halfway.seen() == 13
    halfway.must_drain()
    assert halfway.stock() == 13


def test_who_creates_anew_waits_or_is_refused(halfway):
    writer = begun(halfway, "--file", halfway.path(), "--report", "/dev/null", "--steps", "1", "--rows", "20", "--state", "3000")
    time.sleep(SECONDS)
    halfway.goes_on(halfway.mover)
    done = ended(writer)
    halfway.must_drain()
    assert halfway.stock() == (2 if done.rc == 0 else 9), done.words()
    assert done.rc == 0, done.words()


def test_stock_creates_anew_or_is_refused(halfway):
    """HDF5 cuts a file before it asks for its lock: who is refused has destroyed it all the same, as when a program has it open."""
    done = halfway.make(commit=2, native=True, rc=None)
    halfway.goes_on(halfway.mover)
    halfway.must_drain()
    for answer in (halfway.stock(), halfway.seen(tier=True)):
        assert answer == 2 if done.rc == 0 else answer in (9, EMPTY) or refused(answer) and "not that of" not in answer


def test_replaced_meanwhile(halfway):
    halfway.make("b.h5", 2, native=True)
    data = halfway.path("b.h5").read_bytes()
    os.replace(halfway.path("b.h5"), halfway.path())
    assert halfway.stock() == halfway.seen() == 2
    halfway.goes_on(halfway.mover)
    assert halfway.path().read_bytes() == data
    halfway.must_drain_all()
    assert halfway.path().read_bytes() == data


def test_replaced_meanwhile_by_another_that_waits(halfway):
    halfway.make("b.h5", 2)
    os.replace(halfway.path("b.h5"), halfway.path())
    os.replace(halfway.path("b.h5-tier"), halfway.path("a.h5-tier"))
    assert halfway.stock() == 2 or refused(halfway.stock())
    assert halfway.seen(tier=True) == 2
    halfway.goes_on(halfway.mover)
    assert halfway.seen(tier=True) == 2
    halfway.must_drain_all()
    assert halfway.stock() == 2


def test_deleted_meanwhile(halfway):
    halfway.path().unlink()
    halfway.goes_on(halfway.mover)
    assert not halfway.path().exists()
    halfway.must_drain_all()


def test_renamed_meanwhile(halfway):
    halfway.path().rename(halfway.path("b.h5"))
    assert halfway.seen("b.h5", tier=True) == 9
    halfway.goes_on(halfway.mover)
    assert halfway.seen("b.h5", tier=True) == 9
    halfway.must_drain()
    assert halfway.stock("b.h5") == 9 and not halfway.path().exists()


def test_renamed_meanwhile_and_another_made(halfway):
    halfway.path().rename(halfway.path("b.h5"))
    halfway.make(commit=2)
    assert (halfway.seen(tier=True), halfway.seen("b.h5", tier=True)) == (2, 9)
    halfway.goes_on(halfway.mover)
    halfway.must_drain()
    assert (halfway.stock(), halfway.stock("b.h5")) == (2, 9)


def test_copied_meanwhile(halfway):
    """A copy is the commit, or refused, whatever the mover had done of it."""
    shutil.copy(halfway.path(), halfway.path("b.h5"))
    data = halfway.path("b.h5").read_bytes()
    for answer in (halfway.stock("b.h5"), halfway.seen("b.h5", tier=True)):
        assert answer == 9 or refused(answer)
    halfway.goes_on(halfway.mover)
    assert halfway.path("b.h5").read_bytes() == data
    for answer in (halfway.stock("b.h5"), halfway.seen("b.h5", tier=True)):
        assert answer == 9 or refused(answer)


def test_killed_and_a_second_mover(halfway):
    """A second one beside the first does not touch the file; when the first is killed, the next brings it."""
    second = halfway.start()
    time.sleep(0.1)
    assert halfway.stock() == 9 or refused(halfway.stock())
    halfway.mover.kill()
    halfway.mover.wait()
    assert halfway.seen() == 9
    halfway.end(second)
    halfway.must_drain()
    assert halfway.stock() == 9


def test_an_opener_with_its_own_mover(halfway):
    """The plugin may start another mover while one stands still: the file is brought once."""
    assert halfway.seen(mover=True) == 9
    halfway.goes_on(halfway.mover)
    halfway.must_drain()
    assert halfway.stock() == 9


def test_what_waits_is_empty_when_nothing_was_committed(there):
    there.make(commit=1, leave="now")
    assert there.stock() == EMPTY or refused(there.stock())
    there.drain()
    assert there.stock() == EMPTY or refused(there.stock())
