"""What kill.py and its programs share: the environments with and without the plugin, what is compiled, runs that always end, superblocks, and a reader that is not the plugin's.

Needs a Python with h5py and NumPy, a compiler, and an HDF5 (TIDELANE_HDF5_ROOT). The plugin is a folder with libtidelane.so (TIDELANE_TEST_PLUGIN_DIR or --plugin), the
program `tidelane` is TIDELANE_TEST_TOOL or lies beside it.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HDF5 = pathlib.Path(os.environ.get("TIDELANE_HDF5_ROOT", "/usr"))
SECONDS = 120  # no run takes longer


class Unfit(Exception):
    """What is missing to test at all."""


@dataclasses.dataclass
class Done:
    rc: int  # negative: the signal; None: it hung, and was killed
    out: str
    err: str

    def words(self):
        how = "hung" if self.rc is None else f"status {self.rc}" if self.rc >= 0 else signal.Signals(-self.rc).name
        return f"{how}: {(self.err or self.out).strip()[-400:]}"


def run(command, env, cwd="/", timeout=SECONDS, user=None):
    """Runs a program to its end; one that hangs is killed, with its children. user: Popen's words for another user."""
    process = subprocess.Popen(
        [str(word) for word in command], env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **(user or {})
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=timeout)
        rc = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        rc = None
    return Done(rc, out.decode(errors="replace"), err.decode(errors="replace"))


def native_env():
    """The environment without anything that changes how HDF5 works."""
    named = ("TIDELANE_", "HDF5_", "KILL_", "RECORD_", "LD_PRELOAD")
    return {name: text for name, text in os.environ.items() if not name.startswith(named)}


class Plugin:
    def __init__(self, folder, tool=None):
        self.folder = pathlib.Path(folder or os.environ.get("TIDELANE_TEST_PLUGIN_DIR", "")).resolve()
        if not (self.folder / "libtidelane.so").exists():
            raise Unfit(f"{self.folder} has no libtidelane.so: name its folder with --plugin")
        places = [tool or os.environ.get("TIDELANE_TEST_TOOL", ""), *(self.folder / place for place in ("tidelane", "bin/tidelane", "../bin/tidelane", "../../tool/tidelane"))]
        self.tool = next((pathlib.Path(place).resolve() for place in places if str(place) and os.access(place, os.X_OK) and os.path.isfile(place)), None)
        if self.tool is None:
            raise Unfit(f"no program `tidelane` beside {self.folder}: name it with --tool")

    def env(self, settings=(), journal=True):
        env = native_env() | {"HDF5_PLUGIN_PATH": str(self.folder), "HDF5_VOL_CONNECTOR": "tidelane", "TIDELANE_HISTORY": "off"}
        if journal:
            env["TIDELANE_JOURNAL"] = journal if isinstance(journal, str) else "process"
        return env | dict(settings)

    def recover(self, *words, env=()):
        return run([self.tool, "recover", *words], native_env() | dict(env))


class Built:
    """The shims and the C program, compiled into a folder once."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.shim, self.recorder, self.writer = folder / "kill_at.so", folder / "record.so", folder / "writer"
        self.compile(self.shim, HERE / "kill_at.c", "-shared", "-fPIC")
        self.compile(self.recorder, HERE / "record.c", "-shared", "-fPIC")
        self.compile(self.writer, HERE / "writer.c", f"-I{HDF5}/include", f"-L{HDF5}/lib", "-lhdf5", f"-Wl,-rpath,{HDF5}/lib")

    @staticmethod
    def compile(target, source, *options):
        if target.exists() and all(target.stat().st_mtime > path.stat().st_mtime for path in (source, HERE / "shim.h")):
            return
        made = target.with_suffix(f".{os.getpid()}")
        done = run([os.environ.get("CC", "cc"), "-O1", "-Wall", "-Wextra", "-o", made, source, *options], native_env() | {"LC_ALL": "C"})
        if done.rc != 0:
            raise Unfit(f"{source.name}: {done.err}")
        made.rename(target)

    def kill_env(self, folder, at=None, tear=None, count=None, log=None, only=None):
        """What makes a program count its calls below `folder`, and end at one of them."""
        env = {"LD_PRELOAD": str(self.shim), "KILL_AT_FOLDER": str(folder)}
        env |= {name: str(word) for name, word in (("KILL_AT", at), ("KILL_TEAR", tear), ("KILL_COUNT", count), ("KILL_LOG", log), ("KILL_ONLY", only)) if word is not None}
        return env

    def record_env(self, folder, trace, report, end=None, fail=None, slow=None):
        """What makes a program's calls below `folder` and its report be recorded; and it end before a call, or a sync fail, or all take their time."""
        env = {"LD_PRELOAD": str(self.recorder), "RECORD_FOLDER": str(folder), "RECORD_TRACE": str(trace), "RECORD_REPORT": str(report)}
        return env | {name: str(word) for name, word in (("RECORD_END", end), ("RECORD_FAIL", fail), ("RECORD_SLOW", slow)) if word is not None}


class Reader:
    """Stock HDF5 (or, by its environment, HDF5 with the plugin) in a process of its own, which may crash over a torn file without ending the test."""

    def __init__(self, env=None, script="content.py"):
        self.process, self.env, self.script = None, env or native_env(), HERE / script

    def ask(self, command, path):
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, self.script, "serve"], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        self.process.stdin.write(f"{command} {path}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        rc = self.process.wait()
        self.process = None
        return {"refused": f"HDF5 crashed: {signal.Signals(-rc).name if rc < 0 else rc}"}

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def answer(done):
    """What content.py or `writer --read` printed."""
    try:
        return json.loads(done.out.splitlines()[-1])
    except (ValueError, IndexError):
        return {"refused": f"the reader failed, {done.words()}"}


def superblock(path):
    """(whether the file bears the log's mark, the segment's id there); (False, None) without a superblock."""
    data = pathlib.Path(path).read_bytes()
    place = 0
    while place < len(data):
        if data[place : place + 8] == b"\x89HDF\r\n\x1a\n":
            block = data[place : place + 64]
            old = block[8] < 2
            end_at = (24 if block[8] == 0 else 28) + 16 if old else 28
            return bool(block[20 if old else 11] & 0x80), int.from_bytes(block[end_at : end_at + 8], "little")
        place = place * 2 or 512
    return False, None


def is_unborn(path):
    """Whether there is a file with bytes but no superblock: HDF5 had written none of it when the program that created it was killed."""
    data = pathlib.Path(path).read_bytes() if pathlib.Path(path).is_file() else b""
    return bool(data) and not any(data[place : place + 8] == b"\x89HDF\r\n\x1a\n" for place in [0, *(512 << n for n in range(40) if 512 << n < len(data))])


def marked(path):
    return superblock(path)[0]


def digest(path):
    return hashlib.blake2b(path.read_bytes()).hexdigest() if path.is_file() else "no file"


def snapshot(folder):
    """All that is in a folder, byte by byte."""
    return {path.name: digest(path) for path in sorted(pathlib.Path(folder).iterdir())}


def segments(folder, name=""):
    return sorted(path.name for path in pathlib.Path(folder).iterdir() if path.name.startswith(f"{name}-wal." if name else "") and "-wal." in path.name)


@contextlib.contextmanager
def scratch(parent=None, prefix="kill."):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=parent)).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
