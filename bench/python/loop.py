"""One program of the comparison: computes, writes an array, again and again; prints as JSON where its time went.

    loop.py WRITER FORM FOLDER --steps N --compute SECONDS      WRITER: h5py, xarray, pandas, zarr, tensorstore

FORM: `plain` (contiguous, uncompressed) or `gzip` (level 4 with shuffle, chunks of 1 MiB); zarr and TensorStore know `fastest`
(a codec of their own choice) besides. The computation is a fixed amount of work, measured on this machine first. `waits`
is what the loop took beyond it, until everything is stored and the files are closed.
"""

import argparse
import json
import pathlib
import time

import numpy as np

SHAPE = (4096, 2048)  # 32 MiB of float32
CHUNK = (128, 2048)
WORK = np.random.default_rng(5).random(1 << 16)


def field(step):
    """Smooth with a little noise, as simulations write it."""
    x = np.linspace(step, step + 8, SHAPE[1])
    y = np.linspace(0, 5, SHAPE[0])[:, None]
    return (np.sin(x) * np.cos(y) + np.random.default_rng(step).random(SHAPE) * 0.001).astype("f4")


def work(times):
    for _ in range(times):
        np.sqrt(WORK).sum()


def times_for(seconds):
    work(200)
    begin = time.perf_counter()
    work(1000)
    return int(1000 * seconds / (time.perf_counter() - begin))


class H5py:
    def __init__(self, folder, form):
        import h5py

        self.file = h5py.File(folder / "out.h5", "w")
        self.how = {"chunks": CHUNK, "compression": "gzip", "compression_opts": 4, "shuffle": True} if form == "gzip" else {}

    def write(self, step, array):
        self.file.create_dataset(f"x{step}", data=array, **self.how)

    def close(self):
        self.file.close()


class Xarray:
    """A file a step, as its users do."""

    def __init__(self, folder, form):
        import xarray

        self.xarray, self.folder = xarray, folder
        self.how = {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": CHUNK} if form == "gzip" else {}

    def write(self, step, array):
        data = self.xarray.Dataset({"x": (("a", "b"), array)})
        data.to_netcdf(self.folder / f"step{step}.nc", engine="h5netcdf", encoding={"x": self.how})

    def close(self):
        pass


class Pandas:
    def __init__(self, folder, form):
        import pandas

        self.pandas, self.path = pandas, folder / "out.h5"
        self.how = {"complevel": 4, "complib": "zlib"} if form == "gzip" else {}

    def write(self, step, array):
        self.pandas.DataFrame(array).to_hdf(self.path, key=f"x{step}", mode="a", format="fixed", **self.how)

    def close(self):
        pass


class Zarr:
    """Version 3: all chunks of an array in flight at once."""

    def __init__(self, folder, form):
        import zarr

        codecs = zarr.codecs
        self.group = zarr.create_group(str(folder / "out.zarr"), zarr_format=3)
        self.how = {
            "plain": {"compressors": None, "chunks": SHAPE},
            "gzip": {"compressors": [codecs.GzipCodec(level=4)], "chunks": CHUNK},
            "fastest": {"compressors": [codecs.BloscCodec(cname="lz4", clevel=1, shuffle="shuffle")], "chunks": CHUNK},
        }[form]

    def write(self, step, array):
        self.group.create_array(f"x{step}", shape=array.shape, dtype=array.dtype, **self.how)[:] = array

    def close(self):
        pass


class TensorStore:
    def __init__(self, folder, form):
        import tensorstore

        self.ts, self.folder = tensorstore, folder
        gzip = {"name": "gzip", "configuration": {"level": 4}}
        blosc = {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 4}}
        little = {"name": "bytes", "configuration": {"endian": "little"}}
        self.codecs = [little] + {"plain": [], "gzip": [gzip], "fastest": [blosc]}[form]
        self.chunk = SHAPE if form == "plain" else CHUNK
        self.pending = []

    def write(self, step, array):
        grid = {"name": "regular", "configuration": {"chunk_shape": self.chunk}}
        spec = {
            "driver": "zarr3",
            "kvstore": {"driver": "file", "path": f"{self.folder}/x{step}", "file_io_sync": False},
            "metadata": {"shape": array.shape, "data_type": "float32", "chunk_grid": grid, "codecs": self.codecs},
        }
        store = self.ts.open(spec, create=True).result()
        future = store.write(array)
        future.copy.result()  # the array may be changed: what all the others promise
        self.pending.append(future)

    def close(self):
        for future in self.pending:
            future.result()


WRITERS = {"h5py": H5py, "xarray": Xarray, "pandas": Pandas, "zarr": Zarr, "tensorstore": TensorStore}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("writer", choices=WRITERS)
    parser.add_argument("form", choices=("plain", "gzip", "fastest"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--compute", type=float, default=0.0)
    args = parser.parse_args()
    arrays = [field(step) for step in range(args.steps)]
    times = times_for(args.compute) if args.compute else 0
    begin = time.perf_counter()
    computed = 0.0
    out = WRITERS[args.writer](args.folder, args.form)
    for step, array in enumerate(arrays):
        start = time.perf_counter()
        work(times)
        computed += time.perf_counter() - start
        out.write(step, array)
    start = time.perf_counter()
    work(times)
    computed += time.perf_counter() - start
    out.close()
    total = time.perf_counter() - begin
    size = sum(path.stat().st_size for path in args.folder.rglob("*") if path.is_file())
    print(json.dumps({"total": total, "computed": computed, "waits": total - computed, "size": size}))


if __name__ == "__main__":
    main()
