"""An everyday h5py program: writes, appends and reads back in a loop, and checks what it reads.

    loop.py FILE [ROUNDS]
"""

import sys

import h5py
import numpy

ROWS = 64


def main():
    path, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
    with h5py.File(path, "w") as file:
        log = file.create_dataset("log", shape=(0, 512), maxshape=(None, 512), chunks=(ROWS, 512), dtype="f8")
        for number in range(rounds):
            values = numpy.arange(ROWS * 512, dtype="f8").reshape(ROWS, 512) * (number + 1)
            snapshot = file.create_dataset(f"snapshots/{number:04}", data=values)
            snapshot.attrs["round"] = number
            log.resize(ROWS * (number + 1), axis=0)
            log[-ROWS:] = values + 0.5
            earlier = number // 2
            back = file[f"snapshots/{earlier:04}"][...]
            assert back[-1, -1] == (ROWS * 512 - 1) * (earlier + 1), "a snapshot reads back wrong"
            assert log[ROWS * earlier, 1] == earlier + 1.5, "the log reads back wrong"
            if number % 10 == 9:
                file.flush()
    with h5py.File(path, "r") as file:
        assert file["log"].shape == (ROWS * rounds, 512)
        assert float(file["log"][-ROWS, 0]) == 0.5
        assert len(file["snapshots"]) == rounds


if __name__ == "__main__":
    main()
