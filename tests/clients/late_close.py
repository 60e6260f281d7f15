#!/usr/bin/env python3
"""Programs of h5py, with its wheel's HDF5, whose closes return while chunks are compressed: what they find afterwards, and what the end of the
program leaves, whichever kind of index the datasets have, and whichever thread closes the file.

Needs TIDELANE_TEST_PLUGIN_DIR, and h5py.
"""

import importlib.util
import sys
import tempfile

import client

WRITE = """
import h5py, numpy as np, threading
data = np.random.default_rng(0).integers(0, 500, (11, 65536)).astype("f4")
def write(name, libver=None, **how):
    file = h5py.File(name, "w", libver=libver)
    file.create_dataset("x", data=data, chunks=(1, 65536), compression="gzip", compression_opts=6, **how)
    return file
"""
CHECK = """
for name in {names}:
    with h5py.File(name) as file:
        assert (file["x"][:] == data).all(), name
"""
INDEXES = {
    "old": "",
    "fixed": ", libver='latest'",
    "extensible": ", libver='latest', maxshape=(None, 65536)",
    "of several": ", libver='latest', maxshape=(None, None)",
}
# Its own H5close, before any handler of the exit.
CLOSES_HDF5 = """
import ctypes, glob, os
(library,) = glob.glob(os.path.join(os.path.dirname(h5py.__file__) + ".libs", "libhdf5-*.so*"))
assert ctypes.CDLL(library).H5close() == 0
os._exit(0)
"""
IN_THREAD = """
file = write("a.h5")
closes = threading.Thread(target=file.close)
closes.start()
closes.join()
with h5py.File("a.h5", "r+") as file:
    assert (file["x"][:] == data).all()
"""


def programs():
    """(name, text, files)"""
    for index, how in INDEXES.items():
        yield f"index {index}", f"write('a.h5'{how}).close()\n", ["a.h5"]
        yield f"index {index}, H5close", f"write('a.h5'{how}).close()\n" + CLOSES_HDF5, ["a.h5"]
    yield "two files", "write('a.h5').close()\nwrite('b.h5').close()\n", ["a.h5", "b.h5"]
    yield "closed by another thread", IN_THREAD, ["a.h5"]


def body():
    if importlib.util.find_spec("h5py") is None:
        print("skipped: no h5py")
        sys.exit(client.SKIPPED)
    for name, text, names in programs():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", WRITE + text]
            done, summary = client.run_plugin(command, folder, settings={"TIDELANE_CLOSE": "deferred", "TIDELANE_LANES": "1"})
            client.require(done.rc == 0 and "tidelane" not in done.output, f"{name}: exit status {done.rc}: {done.output}")
            counters = summary["counters"]
            client.require(counters["closes_late"] > 0 and counters["errors"] == 0, f"{name}: {counters['closes_late']} closes late")
            seen = client.run_native([sys.executable, "-c", WRITE + CHECK.format(names=names)], folder)
            client.require(seen.rc == 0, f"{name}: natively read: {seen.output}")
            print(f"{name}: {counters['closes_late']} closes returned early")


if __name__ == "__main__":
    client.main_of(body)
