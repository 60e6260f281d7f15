"""What the client tests share: environments with and without the plugin, runs that always end, the plugin's summary.

Invariant: no run outlives its time limit, nor do its children (each run is a process group of its own), and a run under
the plugin that left no summary is a failure: a comparison with a plugin that was not loaded would look perfect.
"""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77  # ctest's SKIP_RETURN_CODE


class ClientError(Exception):
    """What a test found, or what it lacks: the message is for the reader of the log."""


def plugin_dir():
    folder = pathlib.Path(os.environ.get("TIDELANE_TEST_PLUGIN_DIR", ""))
    if not (folder / "libtidelane.so").exists():
        raise ClientError(f"TIDELANE_TEST_PLUGIN_DIR ({folder}) has no libtidelane.so: build the plugin first")
    return folder


def hdf5_program(name):
    """A program that came with the HDF5 under test. Without it there is nothing to test: that is said, not hidden."""
    path = pathlib.Path(os.environ.get("TIDELANE_HDF5_ROOT", "")) / "bin" / name
    if not path.exists():
        print(f"skipped: {name} is not part of this HDF5 (`make test` builds one that has it)")
        sys.exit(SKIPPED)
    return str(path)


def native_environment():
    """The environment without anything that changes how HDF5 works."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TIDELANE_", "HDF5_VOL", "HDF5_PLUGIN", "HDF5_DRIVER", "HDF5_USE_FILE_LOCKING"))
    }
    library = pathlib.Path(os.environ.get("TIDELANE_HDF5_ROOT", "/nowhere")) / "lib"
    if library.is_dir():
        env["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(library), env.get("LD_LIBRARY_PATH")]))
    return env


@dataclasses.dataclass
class Done:
    rc: int
    pid: int
    output: str
    seconds: float


def run(command, env, folder, timeout=100):
    """Runs a program to its end in `folder`; returns its status and all it printed. A hang is a ClientError."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [str(word) for word in command], env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(timeout)
            hung = False
        except subprocess.TimeoutExpired:
            hung = True
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    if hung:
        raise ClientError(f"no end after {timeout} s: {command}\n{text[-3000:]}")
    return Done(process.returncode, process.pid, text, time.monotonic() - begin)


def run_native(command, folder, timeout=100):
    return run(command, native_environment(), folder, timeout)


def run_with_summaries(command, folder, connector="tidelane", settings=None, timeout=100, plugins=None):
    """Runs a program under the plugin; returns how it ended and the summaries of all its processes, by their numbers."""
    with tempfile.TemporaryDirectory(prefix="summary.") as summaries:
        env = native_environment()
        env["HDF5_PLUGIN_PATH"] = str(plugins or plugin_dir())
        env["HDF5_VOL_CONNECTOR"] = connector
        env["TIDELANE_SUMMARY"] = os.path.join(summaries, "%p.json")
        env.update(settings or {})
        done = run(command, env, folder, timeout)
        return done, {int(f.stem): json.loads(f.read_text()) for f in pathlib.Path(summaries).glob("*.json")}


def run_plugin(command, folder, connector="tidelane", settings=None, timeout=100, plugins=None):
    """Runs a program under the plugin; returns how it ended and the summary of the process that was started."""
    done, summaries = run_with_summaries(command, folder, connector, settings, timeout, plugins)
    if done.pid not in summaries:  # its children may have left theirs
        raise ClientError(
            f"no summary of the plugin: was it loaded? (exit status {done.rc}: {command})\n{done.output[-2000:]}"
        )
    return done, summaries[done.pid]


def require(condition, message):
    if not condition:
        raise ClientError(message)


def main_of(body):
    """Runs a test's body and turns what it found into an exit status."""
    try:
        body()
    except ClientError as error:
        print(f"FAILED: {error}", flush=True)
        sys.exit(1)
