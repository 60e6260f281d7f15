"""Files as programs leave them that were killed while they wrote with a journal."""

import subprocess
import sys

from conftest import TOOL, clean_environment

# Ones, of which each commit to the log makes ten more sevens; nines were not committed.
KILLED = """
import os, sys
import h5py
file = h5py.File(sys.argv[1], sys.argv[5], libver=sys.argv[2])
data = file["data"] if sys.argv[5] == "r+" else file.create_dataset("data", shape=(100000,), dtype="f8")
data[:] = 1
file.flush()
for commit in range(int(sys.argv[4])):
    data[10 * commit : 10 * commit + 10] = 7
    file.flush()
data[:] = 9
if sys.argv[3] == "kill":
    os.kill(os.getpid(), 9)
print("ready", flush=True)
sys.stdin.readline()
os._exit(1)
"""
COMMITTED = [7.0] * 10 + [1.0] * 99990
READ = "import h5py, json, sys; print(json.dumps(h5py.File(sys.argv[1], sys.argv[2])['data'][:].tolist()))"


def plugins():
    shown = subprocess.run(
        [TOOL, "run", "-q", "--", sys.executable, "-c", "import os; print(os.environ['HDF5_PLUGIN_PATH'])"],
        env=clean_environment(), check=True, timeout=60, capture_output=True, text=True,
    )  # fmt: skip
    return shown.stdout.strip()


def environment(**settings):
    return clean_environment(HDF5_PLUGIN_PATH=plugins(), HDF5_VOL_CONNECTOR="tidelane", **settings)


def killed(path, libver="earliest", commits=1, mode="w", **settings):
    """A file that is marked, with its log beside it."""
    env = environment(**{"TIDELANE_JOURNAL": "process"} | settings)
    done = subprocess.run([sys.executable, "-B", "-c", KILLED, path, libver, "kill", str(commits), mode], env=env, timeout=60)
    assert done.returncode == -9
    return path


def never_committed(path):
    return killed(path, TIDELANE_JOURNAL_COMMITS="10")


def being_written(path):
    """The process that writes it; ended by a line on its stdin."""
    env = environment(TIDELANE_JOURNAL="process")
    process = subprocess.Popen(
        [sys.executable, "-B", "-c", KILLED, path, "earliest", "wait", "1", "w"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


def read(path, mode="r", plugin=False):
    """The elements, as JSON's text; or the last line of the error."""
    env = environment() if plugin else clean_environment()
    done = subprocess.run([sys.executable, "-B", "-c", READ, path, mode], env=env, timeout=60, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else done.stderr.splitlines()[-1]


def log_of(path, number=0):
    return path.with_name(f"{path.name}-wal.{number}")


def append(path):
    """Makes the file, or makes it longer, as any program may."""
    code = "import h5py, sys; h5py.File(sys.argv[1], 'a')['more'] = [1.0] * 1000"
    subprocess.run([sys.executable, "-B", "-c", code, path], env=clean_environment(), check=True, timeout=60)
