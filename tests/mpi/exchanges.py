"""How often ranks wait for one another in each call of HDF5: natively, and with the plugin, which may add what `MORE` says.

    exchanges.py <mpirun> <program> <plugin dir> <h5diff> --ranks N
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile

TIMEOUT = 120
# Collective calls in all times that the program does that. Why: docs/mpi.md.
MORE = collections.Counter(
    {
        "H5Fcreate": 1,
        "H5Fopen, for reading": 1,
        "H5Fclose": 1,
        "H5Fflush": 2,  # of two
        "H5Dwrite, together, over what is on its way": 1,
        "H5Dcreate2, chunks that are filled": 1,
        "H5Dread, together, of a file that is written": 1,
    }
)


def counted(arguments, folder, plugin):
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("TIDELANE_", "HDF5_VOL"))}
    if plugin:
        environment.update(HDF5_VOL_CONNECTOR="tidelane", HDF5_PLUGIN_PATH=plugin, TIDELANE_MODE="async", TIDELANE_COLLECTIVE_PIECE="0")
    side = "ours" if plugin else "native"
    path, report = (os.path.join(folder, f"{side}.{kind}") for kind in ("h5", "txt"))
    subprocess.run([arguments.mpirun, "-np", str(arguments.ranks), arguments.program, path, report], env=environment, check=True, timeout=TIMEOUT)
    steps = collections.Counter()
    with open(report) as lines:
        for name, count in (line.rstrip("\n").split("\t") for line in lines):
            steps[name] += int(count)
    return steps, path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("mpirun", "program", "plugin", "h5diff"):
        parser.add_argument(name)
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidelane-mpi-") as folder:
        native, native_file = counted(arguments, folder, None)
        ours, our_file = counted(arguments, folder, arguments.plugin)
        subprocess.run([arguments.h5diff, native_file, our_file], check=True, timeout=TIMEOUT)
    print(f"{'':48} native Tidelane")
    for name, count in native.items():
        print(f"{name:48} {count:6} {ours[name]:8}")
    if not any(ours[name] > native[name] for name in MORE):
        sys.exit("nothing of the plugin's was counted")
    if over := [name for name in native if ours[name] > native[name] + MORE[name]]:
        sys.exit(f"ranks waited more often for one another than they have to: {over}")


main()
