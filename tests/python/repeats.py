#!/usr/bin/env python3
"""Opens, writes and closes again and again, where things go wrong: threads, forked workers, runs that are cut short.

    repeats.py threads|workers|interrupts N

No hang (each run has a time limit), no loss: every file is read back, natively, after the run. Runs under the plugin with
everything deferred; it must have been.
"""

import argparse
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))
import client  # noqa: E402

SITE = os.environ.get("TIDELANE_TEST_SITE", "")
COMMON = """
import tidelane.auto, tidelane, h5py, numpy as np, multiprocessing, os, sys, threading
N = int(sys.argv[1])
def data(i): return np.random.default_rng(i).integers(0, 999, 20_000 + i % 7)
def write(i):
    with h5py.File(f"{i}.h5", "w") as file:
        file["plain"] = data(i)
        file.create_dataset("packed", data=data(i), chunks=(5000,), compression="gzip", shuffle=True)
        if i % 3 == 0: tidelane.wait(file)
def check(i):
    with h5py.File(f"{i}.h5") as file:
        for name in ("plain", "packed"): assert (file[name][:] == data(i)).all(), (i, name)
"""
PROGRAMS = {
    "threads": """
def run(first):
    for i in range(first, N, 4):
        write(i), check(i)
threads = [threading.Thread(target=run, args=(first,)) for first in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
    "workers": """
def samples(path, wanted, batches):  # as a data loader's worker: opens the file itself, answers until told to stop
    file = h5py.File(path)
    for index in iter(wanted.get, None): batches.put(int(file["packed"][index::10].sum()))
context = multiprocessing.get_context("fork")
for i in range(0, N, 5):
    for k in range(i, i + 4): write(k)
    open_here = h5py.File(f"{i + 4}.h5", "w")
    open_here["plain"] = data(i + 4)  # pending when the fork comes
    wanted, batches = context.Queue(), context.Queue()
    loaders = [context.Process(target=samples, args=(f"{i + k}.h5", wanted, batches)) for k in range(2)]
    writers = [context.Process(target=write, args=(f,)) for f in (i, i + 1)] if i % 2 else []
    if writers: loaders = []
    for process in loaders + writers: process.start()
    if loaders:
        for index in range(6): wanted.put(index)
        for _ in loaders: wanted.put(None)
        sums = [batches.get(timeout=60) for _ in range(6)]
        assert len(sums) == 6
    for process in loaders + writers:
        process.join(60)
        assert process.exitcode == 0, process.exitcode
    open_here.create_dataset("packed", data=data(i + 4), chunks=(5000,), compression="gzip", shuffle=True)
    open_here.close()
    for k in range(i, i + 5): check(k)
""",
    "interrupts": """
import itertools
stop, numbers = threading.Event(), itertools.count()
def told(i): os.write(1, b"%d\\n" % i)  # its close has returned
def run(numbers):
    for i in numbers:
        if stop.is_set(): return
        write(i), told(i)
def alone(): run(numbers)
def threads():
    others = [threading.Thread(target=run, args=(itertools.count(k, 4),)) for k in range(3)]
    try:
        for thread in others: thread.start()
        run(itertools.count(3, 4))
    finally: stop.set()  # the end of Python waits for its threads
def workers():  # a file is pending when each fork comes
    context = multiprocessing.get_context("fork")
    for i in itertools.count(0, 5):
        with h5py.File(f"{i}.h5", "w") as file:
            file["plain"] = data(i)
            others = [context.Process(target=run, args=(range(i + k, i + 5, 2),)) for k in (1, 2)]
            for process in others: process.start()
            file.create_dataset("packed", data=data(i), chunks=(5000,), compression="gzip", shuffle=True)
        told(i)
        for process in others: process.join()
{"alone": alone, "threads": threads, "workers": workers}[sys.argv[2]]()
""",
}
VERIFY = COMMON.replace("import tidelane.auto, tidelane,", "import") + """
for i in (int(word) for word in sys.argv[2:] or range(N)): check(i)
"""
SETTINGS = {"TIDELANE_MODE": "async"}
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
SHAPES = ("alone", "threads", "workers")
DEFERRED = {**SETTINGS, "TIDELANE_CLOSE": "deferred", "TIDELANE_FLUSH": "deferred"}


def python(code, *arguments):
    return [sys.executable, "-B", "-c", textwrap.dedent(code), *map(str, arguments)]


def verify(folder, n, *files):
    done = client.run_native(python(VERIFY, n, *files), folder, timeout=900)
    client.require(done.rc == 0, f"something is lost\n{done.output[-3000:]}")


def one_process(kind, n, settings):
    with tempfile.TemporaryDirectory(prefix=f"{kind}.") as folder:
        done, summary = client.run_plugin(python(COMMON + PROGRAMS[kind], n), folder, settings=settings, timeout=1500)
        client.require(done.rc == 0, f"{kind}: status {done.rc}\n{done.output[-3000:]}")
        verify(folder, n)
        counters = summary["counters"]
        client.require(counters["errors"] == 0, f"{kind}: errors counted")
        client.require(counters["bytes_deferred"] >= n * 100_000, f"{kind}: {counters['bytes_deferred']} bytes deferred")
        client.require(counters["lane_busy_ns"] > 0, f"{kind}: no lane ever worked")
        print(f"{kind}: {n} files in {done.seconds:.1f} s, {counters['bytes_deferred']} bytes deferred", flush=True)


def end(process, how):
    """Its output. As a terminal does, all its processes are told. Python loses an interrupt that comes during a weak reference's
    callback, so that it is sent again."""
    for _ in range(200):
        os.killpg(process.pid, how)
        try:
            return process.communicate(timeout=0.3)[0]
        except subprocess.TimeoutExpired:
            continue
    raise client.ClientError(f"no end after signal {how}")


def one_interrupt(number, folder):
    """The files that had been closed, by closes that wait, when a run was cut short at some moment."""
    env = {**client.native_environment(), "PYTHONPATH": SITE, **SETTINGS}
    how = INTERRUPTS[number % len(INTERRUPTS)]
    shape = SHAPES[number // len(INTERRUPTS) % len(SHAPES)]
    process = subprocess.Popen(python(COMMON + PROGRAMS["interrupts"], 0, shape), cwd=folder, env=env, start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    try:
        first = process.stdout.readline()  # it has begun
        time.sleep(random.Random(number).random() * 0.2)
        output = first + end(process, how)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return output.split()[: output.count("\n")]


def interrupted(n):
    whole = 0
    for number in range(n):
        with tempfile.TemporaryDirectory(prefix="interrupts.") as folder:
            closed = one_interrupt(number, folder)
            client.require(closed, f"run {number} ended before it had closed a file")
            verify(folder, 0, *closed)
            whole += len(closed)
    print(f"interrupts: {n} runs, {whole} files whole", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=PROGRAMS)
    parser.add_argument("n", type=int)
    args = parser.parse_args()
    os.environ["PYTHONPATH"] = SITE
    if args.kind == "interrupts":
        interrupted(args.n)
        return
    for settings in (SETTINGS, DEFERRED):
        one_process(args.kind, args.n, settings)


if __name__ == "__main__":
    client.main_of(main)
