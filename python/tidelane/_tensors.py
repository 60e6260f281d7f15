"""Writing from and reading into tensors in the memory of GPUs: `write` and `read`.

HDF5 is called with the device's address, and Tidelane copies (docs/python.md): a tensor on a device never becomes one in
host memory that Python knows. Tensors in host memory are h5py's to transfer.

Invariant: an address on a device goes to HDF5 only after the plugin, asked through the dataset itself, has called it device
memory; whatever else HDF5 would do with it ends the process.
Thread safety: as h5py's own calls; its lock is held while its HDF5 is in use, the interpreter's is not.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import re
from typing import Any, Iterator, Optional

from . import _enable, _memory

STREAM = b"tidelane.gpu_stream"  # src/h5/protocol.h
_hid = ctypes.c_int64


def write(dataset: Any, tensor: Any, selection: Any = ...) -> None:
    """Writes a tensor, in the memory of a GPU or of the host, to what `selection` selects of an open h5py dataset.

    `tensor`: an array of CuPy, numba or JAX, a PyTorch tensor, whatever offers `__cuda_array_interface__` or DLPack, or a NumPy
    array. `selection` is as in `dataset[selection]`, and must have the tensor's shape. The bytes are those that the tensor's
    stream (CuPy's and PyTorch's current one) has written by then; when the call returns the tensor is the program's again.

    Raises TypeError or ValueError, with the dataset's name, for what does not fit; ValueError where the file was not opened with
    Tidelane and the tensor is on a device; OSError with HDF5's words where it fails.
    """
    _check(dataset)
    if getattr(tensor, "requires_grad", False):
        tensor = tensor.detach()
    with _naming(dataset):
        if _memory.on_host(tensor):
            with _memory.host_array(tensor) as array, _phil():
                _check_shape(_Selected(dataset, selection), array.shape)
                dataset[selection] = array
            return
        with _memory.borrowed(tensor) as memory:
            _transfer(dataset, selection, memory, "H5Dwrite")


def read(dataset: Any, selection: Any = ..., *, out: Any) -> Any:
    """Reads what `selection` selects of an open h5py dataset into a tensor, in the memory of a GPU or of the host, and returns
    the tensor.

    `out` is as `tensor` of `write`, but no array of JAX: those are never changed. What its stream was given before comes
    first; when the call returns the elements are there. Raises what `write` raises.
    """
    _check(dataset)
    with _naming(dataset):
        if _memory.immutable(out):
            raise _memory.Unfit(TypeError, "an array of JAX cannot be read into: read into one of CuPy, and give it to JAX by DLPack")
        if _memory.on_host(out):
            with _memory.host_array(out) as array, _phil():
                _read_into_host(dataset, selection, array)
            return out
        with _memory.borrowed(out) as memory:
            if memory.read_only:
                raise _memory.Unfit(ValueError, _READ_ONLY)
            _transfer(dataset, selection, memory, "H5Dread")
    return out


def _check(dataset: Any) -> None:
    import h5py

    if not isinstance(dataset, h5py.Dataset):
        raise TypeError(f"an open dataset of h5py is needed, not a {type(dataset).__name__}")
    if not dataset:
        raise ValueError("the dataset is closed, or its file is")


@contextlib.contextmanager
def _naming(dataset: Any) -> Iterator[None]:
    try:
        yield
    except _memory.Unfit as error:
        raise error.kind(f"{_name(dataset)}: {error}") from error.__cause__


def _name(dataset: Any) -> str:
    return f"dataset {dataset.name!r} of {dataset.file.filename!r}" if dataset else "a closed dataset"


def _phil() -> Any:
    import h5py

    return h5py._objects.phil


class _Selected:
    """What is selected of a dataset: its dataspace, and the shape, with and without the dimensions that an index took."""

    def __init__(self, dataset: Any, selection: Any) -> None:
        from h5py._hl import selections

        if dataset.shape is None:
            raise _memory.Unfit(TypeError, "it has no elements (a null dataspace)")
        if dataset.shape == ():
            if not (selection is ... or isinstance(selection, tuple) and all(item is ... for item in selection)):
                raise _memory.Unfit(TypeError, "it is a scalar: select it by ... or ()")
            self.space, self.full_shape, self.shape = dataset.id.get_space(), (), ()
            return
        selected = selections.select(dataset.shape, selection, dataset)
        self.space, self.full_shape, self.shape = selected.id, selected.mshape, selected.array_shape


def _check_shape(selected: _Selected, shape: tuple[int, ...]) -> None:
    if tuple(shape) != tuple(selected.shape):
        raise _memory.Unfit(ValueError, f"the tensor's shape is {tuple(shape)}, the selection's {tuple(selected.shape)}")


def _read_into_host(dataset: Any, selection: Any, array: Any) -> None:
    import numpy

    if not array.flags.writeable:
        raise _memory.Unfit(ValueError, _READ_ONLY)
    _check_shape(_Selected(dataset, selection), array.shape)
    if array.shape == ():
        array[()] = dataset[selection]
    elif array.size > 0:
        whole = numpy.ascontiguousarray(array)  # h5py reads into no other
        dataset.read_direct(whole, source_sel=selection)
        if whole is not array:
            array[...] = whole


def _transfer(dataset: Any, selection: Any, memory: _memory.Memory, function: str) -> None:
    from h5py import h5t

    with _phil():
        if not dataset:
            raise ValueError("the dataset is closed, or its file is")
        selected = _Selected(dataset, selection)
        _check_shape(selected, memory.shape)
        try:
            mtype = h5t.py_create(memory.dtype)
        except TypeError as error:
            raise _memory.Unfit(TypeError, f"elements of type {memory.dtype}: {error}") from error
        if math.prod(memory.shape) == 0:  # a collective transfer may have a part for others
            memory = memory._replace(address=0)
        else:
            _check_device(dataset, memory)
        space = _memory_space(memory, selected.full_shape)
        hdf5 = _hdf5()
        plist = _transfer_list(dataset, memory.stream)
        with hdf5.quiet():
            call = getattr(hdf5.functions, function)
            if call(dataset.id.id, mtype.id, space.id, selected.space.id, plist.id, memory.address) < 0:
                raise hdf5.error("write" if function == "H5Dwrite" else "read")


def _transfer_list(dataset: Any, stream: int) -> Any:
    """The dataset's own, collective perhaps, with the stream on it."""
    plist = dataset._dxpl
    if stream == 0:
        return plist
    plist = plist.copy()
    value = ctypes.c_uint64(stream)
    if _hdf5().functions.H5Pinsert2(plist.id, STREAM, ctypes.sizeof(value), ctypes.byref(value), *[None] * 6) < 0:
        raise OSError("HDF5 does not take the stream on a transfer list")
    return plist


# Where the elements lie ----------------------------------------------------------------------------------------------------


def regular(counts: list[int], strides: list[int]) -> Optional[list[tuple[int, int]]]:
    """For each dimension the size of an array without gaps, and the step in it, so that regular slices of that array lie at those
    strides, counted in elements; None: there is no such array. All counts are over 1.

    The elements of a dimension are so far apart as divides its stride and all outer ones; the innermost's are neighbours.
    """
    if min(strides) <= 0:
        return None
    units, unit = [], 0
    for stride in strides:
        unit = math.gcd(unit, stride)
        units.append(unit)
    units[-1] = 1
    steps = [stride // unit for stride, unit in zip(strides, units)]
    needed = [(count - 1) * step + 1 for count, step in zip(counts, steps)]
    sizes = needed[:1] + [outer // inner for outer, inner in zip(units, units[1:])]
    return list(zip(sizes, steps)) if all(least <= size for least, size in zip(needed, sizes)) else None


def merged(counts: list[int], strides: list[int]) -> tuple[list[int], list[int]]:
    """The same elements in as few dimensions as there can be."""
    sizes: list[int] = []
    steps: list[int] = []
    for count, stride in zip(counts, strides):
        if steps and steps[-1] == stride * count:
            sizes[-1] *= count
            steps[-1] = stride
        else:
            sizes.append(count)
            steps.append(stride)
    return sizes, steps


def _memory_space(memory: _memory.Memory, full_shape: tuple[int, ...]) -> Any:
    """The dataspace, in the file's dimensions where it can be: then HDF5 need not go through it element by element."""
    from h5py import h5s

    itemsize = memory.dtype.itemsize
    apart = [(count, stride) for count, stride in zip(memory.shape, memory.strides) if count > 1]
    counts = [count for count, _ in apart]
    if any(stride % itemsize for _, stride in apart):
        raise _memory.Unfit(ValueError, _NOT_REGULAR)
    strides = [stride // itemsize for _, stride in apart]
    few_counts, few_strides = merged(counts, strides)
    if few_strides in ([], [1]) or 0 in memory.shape:
        return h5s.create_simple(full_shape) if full_shape else h5s.create(h5s.SCALAR)
    places = regular(counts, strides)
    if places is not None:
        rest = iter(zip(places, counts))
        laid = [next(rest) if count > 1 else ((1, 1), 1) for count in full_shape]
    else:
        places, counts = regular(few_counts, few_strides), few_counts
        if places is None:
            raise _memory.Unfit(ValueError, _NOT_REGULAR)
        laid = list(zip(places, counts))
    space = h5s.create_simple(tuple(size for (size, _), _ in laid))
    space.select_hyperslab((0,) * len(laid), tuple(count for _, count in laid), tuple(step for (_, step), _ in laid))
    return space


_READ_ONLY = "the tensor's memory is read-only"
_NOT_REGULAR = "the tensor is no regular slice of an array (its strides say so): give tensor.contiguous(), or a copy in C's order"


# Whose the memory is -------------------------------------------------------------------------------------------------------


def _check_device(dataset: Any, memory: _memory.Memory) -> None:
    from h5py import h5o

    hdf5 = _hdf5()
    if hdf5.connector(dataset.id.id) not in _enable.NAMES:
        raise _memory.Unfit(
            ValueError,
            "its file was not opened with Tidelane, and HDF5 alone cannot reach the memory of a GPU: "
            '`import tidelane.auto` before h5py, or h5py.File(name, mode, driver="tidelane")',
        )
    if _knows(dataset, memory.address):
        return
    h5o.open(dataset.id, b".")  # the plugin looks for the GPU's driver where something is opened
    if not _knows(dataset, memory.address):
        raise _memory.Unfit(
            ValueError,
            f"Tidelane's plugin does not know {memory.address:#x} as the memory of a GPU: this is a process that was forked after "
            "the plugin was loaded, or the memory was freed, or the plugin or the GPU's driver is too old",
        )


@functools.cache
def _question() -> tuple[Any, Any]:
    """A type that device memory cannot hold, and no elements."""
    from h5py import h5s, h5t

    nothing = h5s.create_simple((1,))
    nothing.select_none()
    return h5t.vlen_create(h5t.NATIVE_INT32), nothing


def _knows(dataset: Any, address: int) -> bool:
    """Whether the plugin calls it device memory. It refuses to read pointers into that, and says so, before it looks at how many;
    whoever else gets such a read, of nothing, fails or does nothing, and does not look at the address."""
    hdf5 = _hdf5()
    pointers, nothing = _question()
    with hdf5.quiet():
        done = hdf5.functions.H5Dread(dataset.id.id, pointers.id, nothing.id, nothing.id, 0, address)
        return done < 0 and any("device memory" in words and "forked process" not in words for words in hdf5.words())


# h5py's HDF5 ---------------------------------------------------------------------------------------------------------------


class _Error(ctypes.Structure):
    _fields_ = [
        ("kinds", _hid * 3),
        ("line", ctypes.c_uint),
        ("function", ctypes.c_char_p),
        ("file", ctypes.c_char_p),
        ("words", ctypes.c_char_p),
    ]


_Walk = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.POINTER(_Error), ctypes.c_void_p)


class _Hdf5:
    """The functions that h5py has no call for. h5py's lock is held."""

    def __init__(self, functions: Any) -> None:
        self.functions = functions
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        for name in ("H5Dwrite", "H5Dread"):
            getattr(functions, name).argtypes = [_hid, _hid, _hid, _hid, _hid, pointer]
        functions.H5Pinsert2.argtypes = [_hid, text, ctypes.c_size_t, pointer, *[pointer] * 6]
        functions.H5VLget_connector_name.argtypes = [_hid, text, ctypes.c_size_t]
        functions.H5VLget_connector_name.restype = ctypes.c_ssize_t
        functions.H5Ewalk2.argtypes = [_hid, ctypes.c_int, _Walk, pointer]
        functions.H5Eget_auto2.argtypes = [_hid, ctypes.POINTER(pointer), ctypes.POINTER(pointer)]
        functions.H5Eset_auto2.argtypes = [_hid, pointer, pointer]
        self._found: list[str] = []
        self._note = _Walk(self._take)

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Errors are not printed meanwhile."""
        show, context = ctypes.c_void_p(), ctypes.c_void_p()
        self.functions.H5Eget_auto2(0, ctypes.byref(show), ctypes.byref(context))
        self.functions.H5Eset_auto2(0, None, None)
        try:
            yield
        finally:
            self.functions.H5Eset_auto2(0, show, context)

    def words(self) -> list[str]:
        """Of the errors of the last call, the innermost first."""
        self._found = []
        self.functions.H5Ewalk2(0, 0, self._note, None)
        return self._found

    def _take(self, _: int, error: Any, __: Any) -> int:
        self._found.append((error.contents.words or b"").decode(errors="replace"))
        return 0

    def error(self, what: str) -> OSError:
        words = self.words() or ["HDF5 gives no reason"]
        number = next((int(match[1]) for match in map(re.compile(r"errno = (\d+)").search, words) if match), None)
        text = f"Can't {what} data ({words[0]})"
        return OSError(text) if number is None else OSError(number, text)

    def connector(self, object_id: int) -> str:
        name = ctypes.create_string_buffer(64)
        with self.quiet():
            return name.value.decode(errors="replace") if self.functions.H5VLget_connector_name(object_id, name, 64) >= 0 else ""


@functools.cache
def _hdf5() -> _Hdf5:
    import h5py

    return _Hdf5(ctypes.CDLL(h5py.h5.__file__))
