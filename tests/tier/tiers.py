"""What the tests of the fast tier share: folders, environments with and without a mover, movers that are run by hand, and what is left when they have ended.

A program that the plugin has loaded starts a mover by itself. Plugin folders made here have the plugin without its mover, so that a test says when there is one.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "journal"))
import common  # noqa: E402

MOVER = "tidelane-mover"
IDLE = "300"  # milliseconds: nobody needs to see it idle for long
ITS_OWN = {"mover.lock", "mover.socket"}  # what a mover has in the tier for itself
SECONDS = 30  # no mover takes longer


def without_mover(plugin, folder):
    """A folder with the plugin of another one, and no mover beside it."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made, source = folder / "libtidelane.so", plugin.folder / "libtidelane.so"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        copy = folder / f"copy.{os.getpid()}"
        shutil.copy2(source, copy)  # a link would lead the plugin to where its mover is
        copy.rename(made)
    return folder


class Place:
    """A folder for files and one for the tier, both below `root`, whose calls the shim counts."""

    def __init__(self, root, plugin, alone):
        self.root, self.plugin, self.alone = pathlib.Path(root), plugin, alone
        self.data, self.tier = self.root / "data", self.root / "tier"
        self.own = self.tier / f"tidelane-{os.geteuid()}"
        self.data.mkdir(parents=True, exist_ok=True)
        self.tier.mkdir(exist_ok=True)
        self.movers = []

    def env(self, mover=False, tier=True, settings=()):
        """Of a program. mover: the plugin may start one. tier: its files wait there."""
        env = self.plugin.env(settings, journal=False) | {"HDF5_PLUGIN_PATH": str(self.plugin.folder if mover else self.alone)}
        return env | {"TIDELANE_TIER": str(self.tier), "TIDELANE_CLOSE": "tier"} | dict(settings) if tier else env

    def entries(self):
        """What the tier has of files."""
        return sorted(path.name for path in self.own.iterdir() if path.name not in ITS_OWN and not path.name.startswith("spare")) if self.own.is_dir() else []

    def beside(self):
        """What lies beside the files: markers, logs."""
        return sorted(str(path.relative_to(self.data)) for path in self.data.rglob("*") if any(word in path.name for word in ("-tier", "-wal.")))

    def drained(self):
        return not self.entries() and not self.beside()

    # Movers.

    def start(self, env=(), words=()):
        mover = subprocess.Popen(
            [str(self.plugin.folder / MOVER), str(self.own), IDLE, *map(str, words)], env=common.native_env() | dict(env), cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )  # fmt: skip
        self.movers.append(mover)
        return mover

    def end(self, mover, patience=SECONDS, whole=False):
        """Waits until a mover has ended; or, as nobody needs to see it idle, has nothing left (whole: not so). None: it hung."""
        until = time.monotonic() + patience
        while mover.poll() is None and (whole or not self.drained()):
            if time.monotonic() > until:
                mover.kill()
                mover.wait()
                return None
            time.sleep(0.01)
        if mover.poll() is None:
            mover.kill()
        return mover.wait()

    def drain(self, env=(), patience=SECONDS, whole=False):
        """A mover, to its end. Where there is no tier yet none would be started."""
        if not self.own.is_dir():
            return 0
        return self.end(self.start(env), patience, whole)

    def started(self):
        """The movers of this tier that are alive, whoever has started them."""
        found = []
        for one in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                words = (one / "cmdline").read_bytes().split(b"\0")
                if pathlib.Path(words[0].decode()).name == MOVER and os.fsencode(self.tier) in b" ".join(words) and b"State:\tZ" not in (one / "status").read_bytes():
                    found.append(int(one.name))
        return found

    def kill_movers(self):
        for number in self.started():
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        for mover in self.movers:
            if mover.poll() is None:
                mover.kill()
            mover.wait()
            mover.stderr.close()
        self.movers = []
        until = time.monotonic() + 5
        while self.started() and time.monotonic() < until:
            time.sleep(0.005)


@contextlib.contextmanager
def place(plugin, alone, parent=None):
    with common.scratch(parent, "tier.") as work:
        there = Place(work / "counted", plugin, alone)
        try:
            yield there
        finally:
            there.kill_movers()
