"""The checkpoint program and its runs: what `make demo` and `make bench` do with it.

`waits` is the time the application did not compute. It includes opening, closing and the end of the library, where
anything still on its way must be waited for.
"""

import json

from harness import native_environment, run

STEPS = 4
VARIABLE_BYTES = 4 << 20
SHORTEST_STEP_US = 0.1e6

# How a program writes: its options, and Tidelane's settings for it.
MODES = {
    "one file": {"options": ["--layout=one", "--mode=implicit"], "settings": {}},
    "one file, close=deferred": {"options": ["--layout=one", "--mode=implicit"], "settings": {"close": "deferred"}},
    "a file per step": {"options": ["--layout=per-step", "--mode=implicit"], "settings": {}},
    "a file per step, close=deferred": {
        "options": ["--layout=per-step", "--mode=implicit"],
        "settings": {"close": "deferred"},
    },
    "one file, event sets": {"options": ["--layout=one", "--mode=explicit"], "settings": {}},
    "a file per step, event sets": {"options": ["--layout=per-step", "--mode=explicit"], "settings": {}},
}
# The mode where nothing is gained, by design: a close that returns only when the bytes are written.
WAITING_CLOSE = "a file per step"


class Simulation:
    """Runs of the checkpoint program; `substeps` is how much each computes (0: nothing), see calibrate."""

    def __init__(self, places, scratch, steps=STEPS, variable_bytes=VARIABLE_BYTES, threads=1):
        self.places, self.scratch = places, scratch
        self.steps, self.variable_bytes, self.threads = steps, variable_bytes, threads
        self.substeps = 0

    @property
    def bytes(self):
        return self.steps * 8 * self.variable_bytes

    def command(self, *more):
        return [self.places.program("checkpoint"), f"--bytes={self.variable_bytes}", f"--threads={self.threads}", *more]

    def run(self, storage, options, env, folder):
        """Runs it with its output in `folder` of the storage; returns its report, with the requests storage saw."""
        target = storage.fresh(folder)
        result = self.scratch / "run.json"
        command = self.command(f"--directory={target}", f"--json={result}", f"--steps={self.steps}")
        wall = run([*command, f"--substeps={self.substeps}", *options], env)
        data = json.loads(result.read_text())
        data["wall_us"] = wall * 1e6
        data["waits_us"] = data["total_us"] - data["classes"]["compute"]
        if storage.throttle:
            data["requests"] = storage.throttle.stats()
        return data

    def covering_us(self, io_us):
        """How long a run should compute so that its I/O fits behind it."""
        return max(1.75 * io_us, self.steps * SHORTEST_STEP_US)

    def calibrate(self, storage, options=MODES["one file"]["options"]):
        """Chooses a computation that covers the I/O of a step, from what native HDF5 needs for it here."""
        probe = self.run(storage, options, native_environment(), "probe")
        storage.remove("probe")
        seconds = self.covering_us(probe["waits_us"]) / self.steps / 1e6
        answer = self.scratch / "calibrate.txt"
        command = self.command(f"--calibrate={seconds:.4f}")
        run(["sh", "-c", 'exec "$@" > "$0"', str(answer), *command], native_environment())
        self.substeps = int(answer.read_text())

    def covered_run(self, storage, options):
        """A native run whose computation covers its I/O: where the machine has become quieter or busier since the
        computation was chosen, it is adjusted and the run repeated."""
        for _ in range(4):
            data = self.run(storage, options, native_environment(), "native")
            computed, wanted = data["classes"]["compute"], self.covering_us(data["waits_us"])
            if not self.substeps or 0.75 * wanted <= computed <= 2 * wanted:
                return data
            self.substeps = max(1, round(self.substeps * wanted / computed))
        return self.run(storage, options, native_environment(), "native")
