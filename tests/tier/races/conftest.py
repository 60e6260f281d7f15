"""What the tests of the fast tier's promises share: files whose commit k follows from k alone (tests/journal/writer.c), seen with the plugin and with stock HDF5, and movers that are run, or stopped, by hand."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import pytest

for name in [name for name in os.environ if name.startswith("HDF5_")]:
    del os.environ[name]  # what the test itself reads, it reads without the plugin
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tiers  # noqa: E402

import common  # noqa: E402, of tests/journal, whose folder tiers.py has made known

PLUGIN = common.Plugin(None)
BUILD = os.environ.get("TIDELANE_TIER_BUILD") or os.path.join(tempfile.gettempdir(), "tidelane-tier")
BUILT = common.Built(BUILD)
ALONE = tiers.without_mover(PLUGIN, os.path.join(BUILD, "alone"))
EMPTY = "empty"
SMALL = ("--rows", "20", "--state", "3000")
ALL = "TIDELANE_TIER_ALL" in os.environ  # every stop, every way; else some of them
# Where a mover of a.h5 is stopped: its first calls on the file, those between, what makes it plain, and what tidies up.
STOPS = {
    "starts": (1, "openat64 tier"), "log": (1, "-wal.0"), "first": (1, "pwritev64 data/a.h5"), "middle": (5, "pwritev64 data/a.h5"), "cut": (1, "ftruncate"),
    "plain": (1, "pwritev64 data/a.h5 0 "), "is plain": (3, "fdatasync data/a.h5"), "log gone": (2, "unlinkat tier"), "marker": (1, "unlinkat data/a.h5-tier"),
    "entry": (1, ".file 0"),
}  # fmt: skip


def meaning(done):
    """The commit that a reader has seen, EMPTY, or what it says."""
    found = common.answer(done)
    portrait = found.get("portrait", {})
    return found.get("refused") or portrait.get("commit", EMPTY)


class There(tiers.Place):
    """A folder and a tier, and programs that work there. A name is that of a file in the folder."""

    def path(self, name="a.h5"):
        return self.data / name

    def make(self, name="a.h5", commit=3, *, tier=True, mover=False, native=False, latest=False, go_on=False, rc=0, env=(), leave="close", words=SMALL):
        """A file of a commit: created anew, or (go_on) so many more. It waits in the tier, unless tier is False or it is HDF5's own (native)."""
        words = ["--steps", str(commit - 1), *words, "--leave", leave, *["--latest"] * latest, *["--continue"] * go_on]
        where = common.native_env() if native else self.env(mover, tier)
        done = common.run([BUILT.writer, "--file", self.path(name), "--report", "/dev/null", *words], where | dict(env), timeout=60)
        assert rc is None or done.rc == rc, done.words()
        return done

    def read(self, name, env, mode, words):
        return meaning(common.run([BUILT.writer, "--read", self.path(name), "--mode", mode, *words], env, timeout=30))

    def seen(self, name="a.h5", mode="r", *, mover=False, tier=False, env=(), words=SMALL):
        """With the plugin."""
        return self.read(name, self.env(mover, tier) | dict(env), mode, words)

    def tool(self, *words):
        """The program tidelane, which knows the tier as programs do."""
        return common.run([self.plugin.tool, *words], self.env(), timeout=60)

    def stock(self, name="a.h5", mode="r", words=SMALL):
        return self.read(name, common.native_env(), mode, words)

    def must_drain(self, **more):
        """A mover to its end, and nothing is left. Movers that the plugin has started are ended first: a second one would leave the file to them."""
        self.kill_movers()
        assert self.drain(**more) in (0, -signal.SIGKILL)
        assert (self.entries(), self.beside()) == ([], [])

    def must_drain_all(self):
        """The same where a file is gone, which a mover cannot tell from one that was moved elsewhere: the tool is told to give it up."""
        self.kill_movers()
        self.drain()
        done = common.run([self.plugin.tool, "drain", "--discard", self.data], self.env(), timeout=60)
        assert done.rc == 0, done.words()
        assert (self.entries(), self.beside()) == ([], [])

    def stopped(self, at, only):
        """A mover that stands still before its call number `at` of those that the shim calls `only`."""
        mover = self.start(BUILT.kill_env(self.root, at, only=only) | {"KILL_STOP": "1"})
        until = time.monotonic() + 10
        while mover.poll() is None and state(mover.pid) not in "Tt":
            assert time.monotonic() < until, "the mover does not come so far"
            time.sleep(0.005)
        return mover

    def goes_on(self, mover):
        if mover.poll() is None:
            mover.send_signal(signal.SIGCONT)
        assert self.end(mover) in (0, -signal.SIGKILL)


def state(process):
    return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def refused(answer):
    return isinstance(answer, str) and answer != EMPTY


@pytest.fixture
def there(tmp_path):
    place = There(tmp_path / "counted", PLUGIN, ALONE)
    yield place
    place.kill_movers()


@pytest.fixture
def mounted(there, request):
    """Mounts a small file system over one of the two folders."""
    mounts = []

    def mount(folder, size):
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, timeout=20)
        if done.returncode != 0:
            pytest.skip("cannot mount here")
        mounts.append(folder)

    def more(folder, size):
        subprocess.run(["mount", "-o", f"remount,size={size}", folder], check=True, timeout=20)

    mount.more = more
    yield mount
    there.kill_movers()
    for folder in mounts:
        subprocess.run(["umount", "-l", folder], timeout=20, check=True)


@pytest.fixture(params=list(STOPS) if ALL else ["log", "middle", "plain", "entry"])
def stop(request):
    return STOPS[request.param]


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user or to mount")
