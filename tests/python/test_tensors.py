"""Tensors in the memory of a GPU, written and read by `tidelane.write` and `tidelane.read`.

The GPU is the tests' own (gpu_arrays.py), whose memory cannot be touched but by copies of the driver.
"""

import os
import textwrap

import pytest
from conftest import GPU

HEAD = """
import tidelane.auto, tidelane, h5py, numpy as np, os
import gpu_arrays
from gpu_arrays import Interface, DlPack, OldDlPack
def refused(kind, words, what):
    try: what()
    except kind as error: assert all(word in str(error) for word in words), error
    else: raise SystemExit(f"it was not refused: {words}")
"""
NATIVE = HEAD.replace("import tidelane.auto, ", "import ")
FOOT = """
assert gpu_arrays.exports() == 0 and gpu_arrays.cuda().StandInMisuses() == 0 and gpu_arrays.cuda().StandInContexts() == 1
"""


@pytest.fixture
def gpu(program):
    assert os.path.exists(GPU["TEST_LIBCUDA"])

    def run(code, head=HEAD, foot=FOOT, **how):
        return program(head + textwrap.dedent(code) + foot, env=GPU, **how)

    return run


def test_every_type_there_and_back(gpu, program):
    gpu("""
        types = "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()
        with h5py.File("out.h5", "w") as file:
            for kind in Interface, DlPack, OldDlPack:
                for name in types + ([">f4", ">u2"] if kind is Interface else []):
                    data = (np.arange(6000) * 37 % 101).reshape(60, 100).astype(name)
                    for layout in {}, {"chunks": (10, 100), "compression": "gzip"}:
                        dataset = file.create_dataset(f"{kind.__name__}/{name}/{len(layout)}", data.shape, name, **layout)
                        tensor = kind(data)
                        tidelane.write(dataset, tensor)
                        back = kind(np.zeros_like(data))
                        assert tidelane.read(dataset, out=back) is back
                        assert (back.values() == data).all() and (dataset[...] == data).all(), dataset
        counters = tidelane.stats()["counters"]
        assert counters["gpu_bytes_down"] >= counters["gpu_bytes_up"] >= 60 * 100 * 4 * len(types)
        """)
    program("""
        import h5py, numpy as np
        found = []
        def look(name, item):
            if isinstance(item, h5py.Dataset):
                found.append(name)
                assert (item[...] == (np.arange(6000) * 37 % 101).reshape(60, 100).astype(item.dtype)).all(), name
        h5py.File("out.h5").visititems(look)
        assert len(found) == (3 * 14 + 2) * 2
        """, native=True)  # fmt: skip


def test_hdf5_converts_to_the_datasets_type(gpu):
    gpu("""
        with h5py.File("out.h5", "w") as file:
            dataset = file.create_dataset("x", (1000,), "f8")
            tidelane.write(dataset, Interface(np.arange(1000, dtype="i2")))
            assert dataset.dtype == "f8" and (dataset[...] == np.arange(1000)).all()
            back = DlPack(np.zeros(1000, "u4"))
            assert (tidelane.read(dataset, out=back).values() == np.arange(1000)).all()
            members = np.zeros(50, [("a", "i4"), ("b", "f8")])
            members["a"], members["b"] = np.arange(50), np.arange(50) / 2
            records = file.create_dataset("records", (50,), members.dtype)
            tidelane.write(records, Interface(members))
            assert (records[...] == members).all()
        """)


def test_selections_in_the_file(gpu):
    gpu("""
        whole = np.arange(7 * 8 * 9, dtype="i4").reshape(7, 8, 9)
        mask = whole % 5 == 2
        chosen = [np.s_[...], np.s_[3], np.s_[3, 1:4], np.s_[1:6:2, ::3, 2], np.s_[..., 4], np.s_[2:2], np.s_[[0, 2, 5], 1:3],
                  np.s_[3, 4, 5], mask, np.s_[:, [1, 4], 3], np.s_[6:7]]
        with h5py.File("out.h5", "w") as file:
            for kind in Interface, DlPack:
                for i, index in enumerate(chosen):
                    dataset = file.create_dataset(f"{kind.__name__}{i}", data=np.zeros_like(whole), chunks=(3, 8, 9) if i % 2 else None)
                    expected = np.zeros_like(whole)
                    expected[index] = whole[index]
                    tidelane.write(dataset, kind(whole[index]), index)
                    assert (dataset[...] == expected).all(), index
                    back = kind(np.full(whole[index].shape, -1, "i4"))
                    tidelane.read(dataset, index, out=back)
                    assert (back.values() == whole[index]).all(), index
            scalar = file.create_dataset("scalar", (), "f4")
            for index in (..., ()):
                tidelane.write(scalar, Interface(np.float32(2.5)), index)
                assert scalar[()] == 2.5 and tidelane.read(scalar, index, out=DlPack(np.float32(0))).values() == 2.5
            refused(TypeError, ["'/scalar'", "a scalar"], lambda: tidelane.write(scalar, Interface(np.float32(1)), 0))
            nothing = file.create_dataset("nothing", data=h5py.Empty("f4"))
            refused(TypeError, ["'/nothing'", "null dataspace"], lambda: tidelane.write(nothing, Interface(np.float32(1))))
        """)


def test_slices_of_memory(gpu):
    """What is between the elements is neither written to the file nor, by a read, changed."""
    gpu("""
        random = np.random.default_rng(5)
        looks = [lambda a: a[:, :, :20].reshape(4, 6, 5, 4), lambda a: a[1, 2], lambda a: a[..., 3], lambda a: a[:, None, 2:3, ::7],
                 lambda a: a[1:2].transpose(1, 0, 2), lambda a: a.reshape(24, 22)[::5], lambda a: a[::2, 1::2, ::3]]
        for _ in range(40):
            index = []
            for size in (4, 6, 22):
                first, step = random.integers(size), random.integers(1, 4)
                index.append(slice(first, random.integers(first + 1, size + 1), step) if random.random() < 0.8 else int(first))
            looks.append(lambda a, index=(*index, ...): a[index])
        data = np.arange(4 * 6 * 22, dtype="f4").reshape(4, 6, 22)
        with h5py.File("out.h5", "w") as file:
            for i, look in enumerate(looks):
                expected = look(data)
                dataset = file.create_dataset(str(i), expected.shape, "f4", chunks=True if i % 2 and expected.ndim else None)
                for kind in Interface, DlPack:
                    tidelane.write(dataset, kind(data).seen(look))
                    assert (dataset[...] == expected).all(), i
                    back = kind(np.full(data.shape, -1, "f4"))
                    tidelane.read(dataset, out=back.seen(look))
                    wanted = np.full(data.shape, -1, "f4")
                    look(wanted)[...] = expected
                    assert (back.values() == wanted).all(), i
        """)


def test_memory_that_is_no_slice(gpu):
    gpu("""
        data = np.arange(60, dtype="i4").reshape(6, 10)
        with h5py.File("out.h5", "w") as file:
            for name, look in {"turned": lambda a: a.T, "backwards": lambda a: a[::-1],
                               "repeated": lambda a: np.broadcast_to(a, (3, 6, 10)),
                               "overlapping": lambda a: np.lib.stride_tricks.sliding_window_view(a[0], 4),
                               "skewed": lambda a: np.lib.stride_tricks.as_strided(a, (5, 2), (44, 16)),
                               "between": lambda a: a.view([("x", "i2"), ("y", "i2")])["x"].view("i2")}.items():
                for kind in Interface, DlPack:
                    tensor = kind(data).seen(look)
                    dataset = file.require_dataset(name, tensor.shape, tensor.dtype)
                    if name == "between" or name == "skewed":
                        tidelane.write(dataset, tensor)
                        assert (dataset[...] == tensor.values()).all()
                        continue
                    for call in (lambda: tidelane.write(dataset, tensor), lambda: tidelane.read(dataset, out=tensor)):
                        refused(ValueError, [f"'/{name}'", ".contiguous()"], call)
                    assert (tensor.values() == look(data)).all()
        """)


def test_what_the_stream_still_computes_is_waited_for(gpu):
    gpu("""
        old, new = np.zeros(5000, "f8"), np.arange(5000, dtype="f8")
        with h5py.File("out.h5", "w") as file:
            dataset = file.create_dataset("x", (5000,), "f8")
            def written(tensor, stream):
                dataset[...] = -1
                tensor.write_later(new, stream)
                tidelane.write(dataset, tensor)
                return (dataset[...] == new).all()
            apart = gpu_arrays.make_stream()
            # Where nobody tells of the stream, the bytes are the old ones, or the stream was quicker: the tests' GPU would notice.
            assert not written(Interface(old), apart) or gpu_arrays.cuda().StandInPending() == 0
            assert written(Interface(old, stream=apart), apart)
            assert written(Interface(old), None) and written(Interface(old, stream=1), None) and written(Interface(old, stream=2), 2)
            for kind in DlPack, OldDlPack:
                tensor = kind(old, stream=apart)
                assert written(tensor, apart) and tensor.asked == [1]
            # A read comes after what the stream was given before, and does not change before that.
            for kind in Interface, DlPack:
                out = kind(old, stream=apart)
                out.write_later(old - 1, apart)
                tidelane.read(dataset, out=out)
                assert (out.values() == new).all()
            gpu_arrays.call("cuStreamSynchronize", gpu_arrays.HANDLE(apart))
        """)


def test_pytorch_and_its_current_stream(gpu):
    gpu("""
        import torch
        data = np.arange(600, dtype="f4").reshape(20, 30)
        with h5py.File("out.h5", "w") as file:
            dataset = file.create_dataset("x", data.shape, "f4")
            apart = torch.cuda.Stream()
            for stream in (torch.cuda.default_stream(), apart):
                tensor = torch.from_numpy(np.zeros_like(data)).to("cuda:1")
                with torch.cuda.stream(stream):
                    tensor.array.write_later(data, stream.cuda_stream)
                    tidelane.write(dataset, tensor)
                assert tensor.array.asked == [stream.cuda_stream or 1] and (dataset[...] == data).all()
                assert torch.cuda.current_device() == 0
            grown = torch.from_numpy(data + 1).to("cuda")
            grown.requires_grad = True
            tidelane.write(dataset, grown)
            assert (dataset[...] == data + 1).all()
            refused(ValueError, ["'/x'", "require gradient", "detach"], lambda: tidelane.read(dataset, out=grown))
            tidelane.read(dataset, out=grown.detach())
            host = torch.from_numpy(np.zeros_like(data))
            assert tidelane.read(dataset, out=host) is host and (host.numpy() == data + 1).all()
            tidelane.write(dataset, torch.from_numpy(data))
            assert (dataset[...] == data).all()
        """)


def test_what_does_not_fit_is_said(gpu):
    gpu("""
        data = np.arange(12, dtype="f4").reshape(3, 4)
        file = h5py.File("out.h5", "w")
        dataset = file.create_dataset("a/x", data.shape, "f4")
        named = "dataset '/a/x' of 'out.h5': "
        for tensor in Interface(data), DlPack(data), data:
            refused(ValueError, [named, "(3, 4)", "(2, 4)"], lambda: tidelane.write(dataset, tensor, np.s_[1:]))
            refused(ValueError, [named, "(3, 4)", "(3,)"], lambda: tidelane.read(dataset, np.s_[:, 0], out=tensor))
            refused(TypeError, ["dataset of h5py", "File"], lambda: tidelane.write(file, tensor))
        refused(ValueError, [named, "(4,)"], lambda: tidelane.write(dataset, Interface(data[0])))  # nothing is repeated
        for call in (tidelane.write, lambda dataset, it: tidelane.read(dataset, out=it)):
            refused(TypeError, [named, "list"], lambda: call(dataset, [[1.0] * 4] * 3))
            refused(TypeError, [named, "bfloat16"], lambda: call(dataset, DlPack(data.astype("u2"), code=4)))
            refused(TypeError, [named, "8 bits"], lambda: call(dataset, DlPack(data.astype("u1"), code=10)))
            refused(TypeError, [named, "2 lanes"], lambda: call(dataset, DlPack(data, lanes=2)))
            refused(TypeError, [named, "numbers 8"], lambda: call(dataset, DlPack(data, kind=8)))
            refused(TypeError, [named, "V2"], lambda: call(dataset, Interface(data.view("V2").reshape(3, 8)[:, :4])))
            refused(TypeError, [named, "datetime64"], lambda: call(dataset, Interface(np.zeros((3, 4), "M8[s]"))))
            refused(ValueError, [named, "mask"], lambda: call(dataset, Interface(data, more={"mask": 1})))
            refused(ValueError, [named, "stream 0"], lambda: call(dataset, Interface(data, stream=0)))
        for kind in Interface, DlPack:
            refused(ValueError, [named, "read-only"], lambda: tidelane.read(dataset, out=kind(data, read_only=True)))
            tidelane.write(dataset, kind(data, read_only=True))
        class Jax(DlPack): __module__ = "jaxlib.xla_extension"
        tidelane.write(dataset, Jax(data * 2))
        refused(TypeError, [named, "JAX"], lambda: tidelane.read(dataset, out=Jax(data)))
        assert (dataset[...] == data * 2).all()
        file.close()
        for tensor in Interface(data), data:
            refused(ValueError, ["closed"], lambda: tidelane.write(dataset, tensor))
            refused(ValueError, ["closed"], lambda: tidelane.read(dataset, out=tensor))
        """)


def test_hdf5s_and_the_drivers_words(gpu):
    gpu("""
        data = np.arange(1000, dtype="f4")
        with h5py.File("out.h5", "w") as file:
            texts, numbers = file.create_dataset("texts", (1000,), "S8"), file.create_dataset("numbers", (1000,), "f4")
            refused(OSError, ["Can't write data", "conversion path"], lambda: tidelane.write(texts, Interface(data)))
            refused(OSError, ["Can't read data", "conversion path"], lambda: tidelane.read(texts, out=DlPack(data)))
            write, read = (lambda: tidelane.write(numbers, DlPack(data))), (lambda: tidelane.read(numbers, out=DlPack(data)))
            for call, words in (write, "write"), (read, "read"):
                for name in b"cuMemcpyDtoHAsync_v2", b"cuMemcpyHtoDAsync_v2":
                    gpu_arrays.cuda().StandInFail(name, 1, 1, 719)
                refused(OSError, [f"Can't {words} data", "'/numbers'", "CUDA_ERROR_LAUNCH_FAILED"], call)
                gpu_arrays.cuda().StandInReset()
            tidelane.write(numbers, DlPack(data))
        with h5py.File("out.h5") as file:
            refused(OSError, ["write", "intent"], lambda: tidelane.write(file["numbers"], Interface(data)))
            assert (tidelane.read(file["numbers"], out=Interface(data * 0)).values() == data).all()
        """)


def test_a_file_that_is_not_tidelanes(gpu):
    gpu(
        """
        data = np.arange(12, dtype="f4")
        def refuses(dataset):
            for tensor in Interface(data), DlPack(data):
                refused(ValueError, ["'/x'", "import tidelane.auto", 'driver="tidelane"'], lambda: tidelane.write(dataset, tensor))
                refused(ValueError, ["'/x'", "import tidelane.auto"], lambda: tidelane.read(dataset, out=tensor))
            assert tidelane.write(dataset, data) is None and (dataset[...] == data).all()
        with h5py.File("native.h5", "w") as file:
            refuses(file.create_dataset("x", (12,), "f4"))
            with h5py.File("ours.h5", "w", driver="tidelane") as other:
                dataset = other.create_dataset("x", (12,), "f4")
                tidelane.write(dataset, DlPack(data))
                assert (dataset[...] == data).all()
                refuses(file["x"])
        """,
        head=NATIVE,
    )


def test_a_driver_that_is_loaded_late(gpu):
    gpu("""
        data = np.arange(12, dtype="f4")
        with h5py.File("out.h5", "w") as file:
            dataset = file.create_dataset("x", (12,), "f4")
            dataset[...] = 0
            tidelane.write(dataset, Interface(data))
            assert (dataset[...] == data).all()
        """)


def test_memory_that_the_plugin_does_not_know(gpu):
    """A child of fork has no GPU; memory that was freed is nobody's. Neither is looked at."""
    gpu("""
        data = np.arange(12, dtype="f4")
        file = h5py.File("out.h5", "w")
        dataset = file.create_dataset("x", (12,), "f4")
        tensor = Interface(data)
        tidelane.write(dataset, tensor)
        file.flush()
        pid = os.fork()
        if pid == 0:
            with h5py.File("child.h5", "w") as own:
                mine = own.create_dataset("x", (12,), "f4")
                refused(ValueError, ["'/x'", "does not know", "forked"], lambda: tidelane.write(mine, tensor))
                refused(ValueError, ["'/x'", "does not know", "forked"], lambda: tidelane.read(mine, out=tensor))
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        freed = Interface(data)
        freed.memory.address += 1 << 40
        refused(ValueError, ["'/x'", "does not know"], lambda: tidelane.write(dataset, freed))
        freed.memory.address -= 1 << 40
        tidelane.write(dataset, freed)
        """)


@pytest.mark.parametrize("native", [True, False])
def test_arrays_in_host_memory(gpu, native):
    gpu(
        """
        class Host:  # a tensor of a library that has only DLPack
            def __init__(self, array): self.array = array
            def __dlpack__(self, **more): return self.array.__dlpack__(**more)
            def __dlpack_device__(self): return self.array.__dlpack_device__()
        class Older(Host):
            def __dlpack__(self, stream=None): return self.array.__dlpack__()
        data = np.arange(60, dtype="f4").reshape(6, 10)
        with h5py.File("out.h5", "w") as file:
            for i, kind in enumerate([np.asarray, Host, Older]):
                dataset = file.create_dataset(str(i), (6, 10), "f8")
                tidelane.write(dataset, kind(data))
                tidelane.write(dataset, kind(data.T[:6, :6].copy()), np.s_[:, :6])
                assert (dataset[:, 6:] == data[:, 6:]).all() and (dataset[:, :6] == data.T[:6, :6]).all()
                back, parts, turned = np.zeros((6, 10), "f4"), np.zeros((12, 30), "i4"), np.zeros((10, 6))
                for out in (back, parts[::2, 1::3], turned.T):
                    given = kind(out)
                    assert tidelane.read(dataset, out=given) is given and (out == dataset[...]).all()
                assert parts.sum() == parts[::2, 1::3].sum()
                refused(ValueError, ["read-only"], lambda: tidelane.read(dataset, out=np.broadcast_to(back, (6, 10))))
            scalar = file.create_dataset("scalar", (), "i4")
            tidelane.write(scalar, np.int32(7))
            assert tidelane.read(scalar, out=np.zeros((), "i4")) == 7
            texts = file.create_dataset("texts", (2,), h5py.string_dtype())
            tidelane.write(texts, np.array(["a", "bc"], object))
            assert list(texts) == [b"a", b"bc"]
        """,
        head=NATIVE if native else HEAD,
        foot="",
    )


def test_several_threads(gpu):
    gpu("""
        import concurrent.futures
        with h5py.File("out.h5", "w") as file:
            dataset = file.create_dataset("x", (8, 40, 100), "i4", chunks=(1, 10, 100), compression="gzip")
            gpu_arrays.cuda()
            def work(i):
                gpu_arrays.call("cuCtxSetCurrent", context)
                data = np.full((40, 100), i, "i4") + np.arange(100, dtype="i4")
                for kind in Interface, DlPack:
                    for _ in range(5):
                        tidelane.write(dataset, kind(data), i)
                        assert (tidelane.read(dataset, i, out=kind(data * 0)).values() == data).all()
            context = gpu_arrays.HANDLE()
            gpu_arrays.call("cuCtxGetCurrent", gpu_arrays.ctypes.byref(context))
            with concurrent.futures.ThreadPoolExecutor(4) as pool: list(pool.map(work, range(8)))
            assert (dataset[:, 0, 0] == np.arange(8)).all()
        """)
