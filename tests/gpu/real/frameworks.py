#!/usr/bin/env python3
"""CuPy, PyTorch, JAX and numba themselves, those of them that are installed, with `tidelane.write` and `tidelane.read` on a real GPU.

    frameworks.py [--folder DIR]        with h5py and the package `tidelane` to be imported

Each case is a process. What a case writes is compared by a process without Tidelane, whose h5py is native HDF5: every case says what
its datasets hold as NumPy's arrays, which come from the same numbers and never from the file.
0: all as it should be, 77: there is none of the packages, or no GPU.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:  # then there is nothing here that computes on a GPU
    np = None

NO_DEVICE = 77
TIMEOUT = 180
TYPES = "bool int8 uint8 int16 int32 int64 float16 float32 float64 complex64".split()
GZIP = {"chunks": (32, 512), "compression": "gzip", "shuffle": True}


def numbers(shape, kind="float32", seed=1):
    values = np.random.default_rng(seed).integers(0, 2 if kind == "bool" else 100, shape)
    return values.astype(kind)


class Written:
    """The file of one case, and what it must hold."""

    def __init__(self, path):
        import h5py

        self.file = h5py.File(path, "w")
        self.expected = {}

    def write(self, name, values, tensor, selection=..., shape=None, **layout):
        import tidelane

        if name not in self.expected:
            self.expected[name] = np.zeros(shape or values.shape, values.dtype)
            self.file.create_dataset(name, shape or values.shape, values.dtype, **layout)
        self.expected[name][selection] = values
        tidelane.write(self.file[name], tensor, selection)

    def read(self, name, tensor, selection=...):
        import tidelane

        tidelane.read(self.file[name], selection, out=tensor)
        return self.expected[name][selection]


def same(found, expected, what):
    if found.dtype != expected.dtype or not np.array_equal(found, expected):
        raise SystemExit(f"{what}: not what was written")


def cupy_types(written):
    import cupy

    for kind in TYPES:
        values = numbers((96, 512), kind)
        for layout in ({}, GZIP):
            name = f"{kind}{len(layout)}"
            written.write(name, values, cupy.asarray(values), **layout)
            back = cupy.zeros_like(cupy.asarray(values))
            written.read(name, back)
            same(back.get(), values, name)


def cupy_streams(written):
    """What a stream is still computing when `write` is called."""
    import cupy

    kernel = cupy.RawKernel(
        'extern "C" __global__ void late(float* x, long long n, long long ticks) { long long t = clock64(); while (clock64() - t < ticks);'
        " for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) x[i] += 1; }",
        "late",
    )
    for non_blocking in (False, True):
        with cupy.cuda.Stream(non_blocking=non_blocking):
            field = cupy.zeros(1 << 20, "float32")
            for step in range(6):
                kernel((64,), (128,), (field, np.int64(field.size), np.int64(20_000_000)))
                written.write(f"steps{non_blocking}", np.full(1 << 20, step + 1, "float32"), field, step, shape=(6, 1 << 20))
            back = cupy.zeros(1 << 20, "float32")
            written.read(f"steps{non_blocking}", back, 3)
            same((back + 1).get(), np.full(1 << 20, 5, "float32"), "read on a stream")


def cupy_slices(written):
    import cupy

    values = numbers((64, 48, 40))
    on_device = cupy.asarray(values)
    for number, chosen in enumerate((np.s_[::2], np.s_[:, 3:30:3], np.s_[..., ::4], np.s_[5:9, 7, 1:39], np.s_[10:20, 10:20, 10:20])):
        written.write(f"slice{number}", values[chosen], on_device[chosen])
        back = cupy.zeros_like(on_device)
        same_values = np.zeros_like(values)
        same_values[chosen] = written.read(f"slice{number}", back[chosen])
        same(back.get(), same_values, f"slice {number}")


def cupy_managed(written):
    import cupy

    for number, allocator in enumerate((cupy.cuda.malloc_managed, cupy.cuda.malloc_async)):
        pool = cupy.cuda.MemoryPool(allocator) if number == 0 else None
        with cupy.cuda.using_allocator(pool.malloc if pool else allocator):
            values = numbers((512, 512), seed=number)
            written.write(f"pool{number}", values, cupy.asarray(values))
            back = cupy.zeros_like(cupy.asarray(values))
            written.read(f"pool{number}", back)
            same(back.get(), values, "pool")


def torch_tensors(written):
    import torch

    for kind in TYPES:
        values = numbers((96, 512), kind)
        for layout in ({}, GZIP):
            written.write(f"{kind}{len(layout)}", values, torch.from_numpy(values).cuda(), **layout)
            back = torch.zeros(values.shape, dtype=torch.from_numpy(values).dtype, device="cuda")
            written.read(f"{kind}{len(layout)}", back)
            same(back.cpu().numpy(), values, kind)


def torch_streams(written):
    import torch

    field = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        for step in range(6):
            torch.cuda._sleep(20_000_000)
            field += 1
            written.write("steps", np.full(1 << 20, step + 1, "float32"), field, step, shape=(6, 1 << 20), chunks=(1, 1 << 18))
    weights = torch.nn.Linear(300, 200).cuda()
    values = weights.weight.detach().cpu().numpy()
    written.write("weights", values, weights.weight)
    with torch.no_grad():
        weights.weight.zero_()
    written.read("weights", weights.weight.detach())
    same(weights.weight.detach().cpu().numpy(), values, "weights")
    written.write("thinned", values[::2, ::3], weights.weight[::2, ::3])


def jax_arrays(written):
    import jax

    for kind in "int32 float32 uint8 float16".split():
        values = numbers((96, 512), kind)
        written.write(kind, values * 2, jax.numpy.asarray(values) * 2, **GZIP)
    import tidelane

    try:
        tidelane.read(written.file["int32"], out=jax.numpy.zeros((96, 512), "int32"))
    except TypeError:
        return
    raise SystemExit("an array of JAX was read into")


def numba_arrays(written):
    from numba import cuda

    values = numbers((256, 256))
    written.write("x", values, cuda.to_device(values))
    back = cuda.to_device(np.zeros_like(values))
    written.read("x", back)
    same(back.copy_to_host(), values, "numba")


CASES = {case.__name__: case for case in (cupy_types, cupy_streams, cupy_slices, cupy_managed, torch_tensors, torch_streams, jax_arrays, numba_arrays)}


def run_case(name, path):
    import tidelane.auto  # noqa: F401  before HDF5 is loaded
    import tidelane

    written = Written(path)
    CASES[name](written)
    written.file.close()
    counters = tidelane.stats()["counters"]
    least = sum(values.nbytes for values in written.expected.values())
    if counters["gpu_bytes_down"] < least or counters["errors"] or not counters["lane_busy_ns"]:
        raise SystemExit(f"{least} bytes written, but {counters}")
    np.savez(path + ".npz", **written.expected)
    print(json.dumps({key: counters[key] for key in ("gpu_bytes_down", "gpu_bytes_up", "bytes_deferred")}))


def compare(path):
    import h5py

    with np.load(path + ".npz") as expected, h5py.File(path) as file:
        for name in expected.files:
            same(file[name][()], expected[name], name)


def has_device():
    import ctypes

    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return cuda.cuInit(0) == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--compare", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case:
        return run_case(*asked.case)
    if asked.compare:
        return compare(asked.compare)
    names = [name for name in CASES if importlib.util.find_spec(name.split("_")[0])]
    if not names or np is None or importlib.util.find_spec("h5py") is None or not has_device():
        print("frameworks.py: no GPU, no h5py, or no package that computes on a GPU")
        return NO_DEVICE
    failed = 0
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for name in names:
            path = str(pathlib.Path(folder) / f"{name}.h5")
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("TIDELANE_", "HDF5_"))}
            for arguments in (["--case", name, path], ["--compare", path]):
                with_plugin = {"TIDELANE_MODE": "async"} if arguments[0] == "--case" else {}
                done = subprocess.run([sys.executable, __file__, *arguments], env={**environment, **with_plugin}, timeout=TIMEOUT, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)  # fmt: skip
                print(f"{name} {arguments[0][2:]}: {'ok' if done.returncode == 0 else 'FAILED'} {done.stdout[-1500:].strip()}", flush=True)
                if done.returncode != 0:
                    failed += 1
                    break
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
