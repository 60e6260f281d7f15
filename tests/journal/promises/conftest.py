"""What the tests of the promises share: programs with and without the plugin, files as killed programs leave them, and a look at files with stock HDF5.

The promises are those of docs/survive.md and docs/formats/log.md; a test says one of them in its name. What is killed here is killed between two calls: kills within a call are kill.py's.
"""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

for name in [name for name in os.environ if name.startswith("HDF5_")]:
    del os.environ[name]  # what the test itself reads, it reads without the plugin
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import common  # noqa: E402

REPO = HERE.parents[2]
PLUGIN = common.Plugin(None)
BEGIN = "import os, signal, sys, time\nimport h5py, numpy as np\ndef kill(): os.kill(os.getpid(), signal.SIGKILL)\n"
NOBODY = "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
# Ones, of which a commit to the log makes ten sevens; the nines were not committed.
STORY = """
file = h5py.File("a.h5", "w", **{lists})
data = file.create_dataset("data", data=np.ones(100000))
file.flush()
data[:10] = 7
file.flush()
data[:] = 9
kill()
"""
COMMITTED = [7.0] * 10 + [1.0] * 99990
BAD_FLAGS = "bad flag value for superblock"


class Folder:
    """Where a test's files lie, and programs that run there."""

    def __init__(self, path, setting="process"):
        self.path, self.setting = pathlib.Path(path), setting

    def __truediv__(self, name):
        return self.path / name

    def env(self, native=False, journal=None, **settings):
        if native:
            return common.native_env() | settings
        journal = self.setting if journal is None else journal
        return PLUGIN.env({"TIDELANE_JOURNAL": journal, **settings} if journal else settings, journal=False)

    def run(self, code, *, native=False, journal=None, rc=0, as_nobody=False, **settings):
        """A program of its own; h5py and NumPy are there. Returns how it ended. as_nobody: as another user, who may do nothing (this one must be root)."""
        code = BEGIN + NOBODY * as_nobody + textwrap.dedent(code)
        done = common.run([sys.executable, "-B", "-c", code], self.env(native, journal, **settings), self.path, 60)
        assert rc is None or done.rc == rc, done.words()
        return done

    def killed(self, code, **settings):
        return self.run(code, rc=-9, **settings)

    def summary(self, code, rc=0, **settings):
        """What the plugin says of a program at its end."""
        where = self.path.parent / f"summary{len(list(self.path.parent.glob('summary*')))}.json"
        self.run(code, rc=rc, TIDELANE_SUMMARY=str(where), **settings)
        return json.loads(where.read_text())

    def recover(self, *words, rc=0):
        done = PLUGIN.recover(*[self.path / word if not str(word).startswith("-") and not str(word).startswith("/") else word for word in words])
        assert rc is None or done.rc == rc, done.words()
        return done

    def status(self, *names):
        done = common.run([PLUGIN.tool, "status", "--json", *[self.path / name for name in names or [""]]], common.native_env())
        assert done.rc == 0, done.words()
        return {pathlib.Path(entry["file"]).name: entry for entry in json.loads(done.out)}

    def names(self):
        return sorted(path.name for path in self.path.iterdir())

    def show_to_others(self):
        """Every user may read it."""
        for path in (self.path, *self.path.parents):
            if path.stat().st_uid == os.geteuid() and not path.stat().st_mode & 0o1000 and len(path.parts) > 2:
                path.chmod(path.stat().st_mode | 0o055)
        for path in self.path.iterdir():
            path.chmod(path.stat().st_mode | 0o044)

    def bytes(self):
        return common.snapshot(self.path)

    def times(self):
        return {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in self.path.iterdir()}

    def marked(self, name="a.h5"):
        return common.marked(self.path / name)

    def values(self, name="a.h5", data="data"):
        """The elements, by stock HDF5; or what it says."""
        import h5py

        try:
            with h5py.File(self.path / name, "r") as file:
                return file[data][()].tolist()
        except OSError as error:
            return str(error)

    def seen(self, name="a.h5", mode="r", **settings):
        """The elements as an open with the plugin shows them; or what it says. Without any setting."""
        done = self.run(
            f"""
            try:
                with h5py.File({str(name)!r}, {mode!r}) as file: print(file["data"][()].tolist())
            except OSError as error: print(repr(str(error)))
            """,
            journal="",
            **settings,
        )  # fmt: skip
        import ast

        return ast.literal_eval(done.out)


@dataclasses.dataclass
class Kept:
    """Files of killed programs, made once, and copied into each test's folder."""

    folder: pathlib.Path

    def into(self, target, setting, lists):
        made = self.folder / f"{setting}-{abs(hash(lists))}"
        if not made.exists():
            made.mkdir()
            Folder(made, setting).killed(STORY.replace("{lists}", lists))
        shutil.copytree(made, target, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    return Kept(tmp_path_factory.mktemp("kept"))


@pytest.fixture(params=["process", "power"])
def folder(request, tmp_path):
    """An empty folder, and a setting of `journal`."""
    (tmp_path / "data").mkdir()
    return Folder(tmp_path / "data", request.param)


@pytest.fixture
def plain(tmp_path):
    """An empty folder; journal=process, where `power` would be no different."""
    (tmp_path / "data").mkdir()
    return Folder(tmp_path / "data")


@pytest.fixture
def left(plain, kept):
    """The folder of a killed program: a.h5, whose data are COMMITTED, and its log."""
    kept.into(plain.path, "process", "{}")
    return plain


@pytest.fixture
def left_by(folder, kept):
    """The same for both settings, and for lists of creation."""

    def make(lists="{}"):
        kept.into(folder.path, folder.setting, lists)
        return folder

    return make


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Compiles a C program or a library to preload."""
    built = tmp_path_factory.mktemp("built")

    def make(name, *options, more=()):
        target = built / name.removesuffix(".c")
        hdf5 = [f"-I{common.HDF5}/include", f"-L{common.HDF5}/lib", f"-Wl,-rpath,{common.HDF5}/lib"]
        command = [os.environ.get("CC", "cc"), "-O1", "-Wall", "-o", target, *[HERE / name, *more], *hdf5, *options]
        subprocess.run([str(word) for word in command], check=True, timeout=60)
        return target

    return make


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user or to mount")
