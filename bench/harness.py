"""What the demo and the benchmarks share: the places of things, slow storage, and runs with and without Tidelane.

Invariant: nothing outlives the process. Mounts are taken down, folders under temporary storage removed and programs
killed when their time is over, whatever happens in between.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

REPO = pathlib.Path(__file__).resolve().parents[1]


class DemoError(Exception):
    """Something did not work that must: the message is for the user."""


class Places:
    """Where the build put what."""

    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.bin = self.build / "bin"
        self.plugins = self.build / "lib" / "tidelane"
        root = os.environ.get("TIDELANE_HDF5_ROOT", "")
        self.hdf5 = pathlib.Path(root) if root else None

    def program(self, name):
        path = self.bin / name
        if not path.exists():
            raise DemoError(f"{path} is missing: run `make demo`, which builds it")
        return str(path)

    def tool(self, name):
        """An HDF5 command line tool, from the HDF5 that the programs are linked to if it has it."""
        own = self.hdf5 / "bin" / name if self.hdf5 else None
        found = str(own) if own and own.exists() else shutil.which(name)
        if not found:
            raise DemoError(f"{name} is missing (Debian's hdf5-tools has it)")
        return found

    def check(self, programs, tools):
        """Finds out at once, not after minutes, that something was not built or installed."""
        if not (self.plugins / "libtidelane.so").exists():
            raise DemoError(f"{self.plugins}/libtidelane.so is missing: run `make build`")
        for name in programs:
            self.program(name)
        for name in tools:
            run([self.tool(name), "--version"], native_environment())


def native_environment():
    """The environment without anything that changes how HDF5 works, earlier runs included."""
    plain = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("TIDELANE_", "HDF5_VOL", "HDF5_PLUGIN", "HDF5_DRIVER"))
    }
    return {**plain, "XDG_STATE_HOME": "/dev/null"}


def tidelane_environment(places, **settings):
    env = native_environment()
    env["HDF5_PLUGIN_PATH"] = str(places.plugins)
    env["HDF5_VOL_CONNECTOR"] = "tidelane"
    env.update({f"TIDELANE_{name.upper()}": str(value) for name, value in settings.items()})
    return env


# Open MPI starts as root, and more ranks than there are cores, only when told; MPICH does not mind.
STARTING = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def run(command, env, timeout=60, **kwargs):
    """Runs a program to its end; returns the seconds it took. Its failure, or a hang, is ours."""
    begin = time.monotonic()
    try:
        done = subprocess.run(command, env=env, timeout=timeout, capture_output=True, text=True, **kwargs)
    except subprocess.TimeoutExpired as late:
        raise DemoError(f"no end after {timeout} s: {' '.join(map(str, command))}\n{late.stderr or ''}") from None
    if done.returncode != 0:
        raise DemoError(
            f"exit status {done.returncode}: {' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return time.monotonic() - begin


def read_summary(folder):
    """The counters of the one process that wrote its summary into `folder`."""
    found = list(pathlib.Path(folder).glob("summary-*.json"))
    if len(found) != 1:
        raise DemoError(f"expected one summary of the plugin in {folder}, found {len(found)}: was it loaded?")
    return json.loads(found[0].read_text())


def require_deferred(summary, at_least, what):
    """A comparison with a plugin that quietly did nothing would look perfect: refuse it."""
    deferred = summary["counters"]["bytes_deferred"]
    if deferred < at_least:
        raise DemoError(
            f"{what}: only {deferred} bytes were deferred, expected {at_least}; "
            f"reasons counted: {summary.get('fallbacks')}"
        )
    if summary["counters"].get("errors", 0) != 0:
        raise DemoError(f"{what}: the plugin counted {summary['counters']['errors']} errors")


def require_passed(summary, at_least, what):
    """Deferred, or written through by the plugin for a reason that it counted: nothing went past it."""
    counters = summary["counters"]
    passed = counters["bytes_deferred"] + counters["bytes_sync"]
    if passed < at_least:
        raise DemoError(f"{what}: only {passed} bytes passed the plugin, expected {at_least}")


def require_equal(places, reference, folder, what):
    """Every HDF5 file of `reference` must be in `folder`, and h5diff must find no difference."""
    names = sorted(path.name for path in pathlib.Path(reference).glob("*.h5"))
    others = sorted(path.name for path in pathlib.Path(folder).glob("*.h5"))
    if not names or names != others:
        raise DemoError(f"{what}: the files differ: {names} and {others}")
    for name in names:
        run([places.tool("h5diff"), f"{reference}/{name}", f"{folder}/{name}"], native_environment())


def is_mounted(path):
    path = os.path.realpath(path)
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        return any(line.split()[1].replace("\\040", " ") == path for line in mounts)


def unmount(path):
    for command in (["fusermount3", "-uz", path], ["umount", "-l", path]):
        with contextlib.suppress(FileNotFoundError):
            subprocess.run(command, capture_output=True, check=False)
        if not is_mounted(path):
            return


class Throttle:
    """Simulated slow storage (bench/throttle), mounted while the `with` block runs.

    `path` is where programs write; `backing` shows the same files without the delays.
    """

    def __init__(self, places, latency_us=2000, bandwidth=200e6):
        self.command = [places.program("throttle"), f"--latency-us={latency_us}", f"--bandwidth={bandwidth:.0f}"]
        self.latency_us = latency_us
        self.bandwidth = bandwidth

    @staticmethod
    def missing():
        """Why slow storage cannot be simulated here, or None."""
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            return "/dev/fuse is missing or closed to this user (in a container: --device /dev/fuse --cap-add SYS_ADMIN)"
        return None

    def __enter__(self):
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.root = tempfile.mkdtemp(prefix="tidelane-throttle-", dir=memory)
        self.backing = os.path.join(self.root, "backing")
        self.path = tempfile.mkdtemp(prefix="tidelane-throttle-")
        self.server = None
        try:
            os.mkdir(self.backing)
            self.server = subprocess.Popen(self.command + [self.backing, self.path], stderr=subprocess.PIPE, text=True)
            self.wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_until_ready(self):
        deadline = time.monotonic() + 10
        while not os.path.exists(self.path + "/.throttle/stats"):
            if self.server.poll() is not None:
                raise DemoError(f"the throttle did not start: {self.server.stderr.read().strip()}")
            if time.monotonic() > deadline:
                raise DemoError("the throttle did not answer within 10 s")
            time.sleep(0.01)

    def __exit__(self, *_):
        if self.server and self.server.poll() is None:
            self.server.terminate()
            try:
                self.server.wait(10)
            except subprocess.TimeoutExpired:
                self.server.kill()
                self.server.wait()
        if is_mounted(self.path):
            unmount(self.path)
        if self.server:
            self.server.stderr.close()
        with contextlib.suppress(OSError):
            os.rmdir(self.path)
        shutil.rmtree(self.root, ignore_errors=True)

    def reset(self):
        with open(self.path + "/.throttle/stats", "w", encoding="ascii") as stats:
            stats.write("reset")

    def stats(self):
        with open(self.path + "/.throttle/stats", encoding="ascii") as stats:
            return json.load(stats)


class Storage:
    """A place to write to: `path`, the same files without delays at `backing`, and whether programs compute there."""

    def __init__(self, name, path, throttle=None, compute=True):
        self.name, self.path, self.throttle, self.compute = name, path, throttle, compute
        self.backing = throttle.backing if throttle else path

    def fresh(self, folder):
        """An empty folder here; requests are counted from now on."""
        self.remove(folder)
        os.mkdir(os.path.join(self.path, folder))
        if self.throttle:
            self.throttle.reset()
        return os.path.join(self.path, folder)

    def remove(self, *folders):
        for folder in folders:
            shutil.rmtree(os.path.join(self.backing, folder), ignore_errors=True)


@contextlib.contextmanager
def disk_storage(folder):
    """The file system that `folder` is on, as the system caches it."""
    with tempfile.TemporaryDirectory(prefix="disk-", dir=folder) as path:
        yield Storage("local disk", path)


@contextlib.contextmanager
def memory_storage(compute=False):
    """tmpfs, or None where there is none."""
    if not os.access("/dev/shm", os.W_OK):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="tidelane-memory-", dir="/dev/shm") as path:
        yield Storage("memory" if compute else "memory, no computation", path, compute=compute)
