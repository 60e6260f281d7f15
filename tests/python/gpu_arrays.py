"""Arrays in the memory of a GPU that is not there, as libraries for GPUs have them: for programs that the tests start.

The device is that of the stand-in for CUDA's library (tests/gpu/standin_cuda.h): who touches its memory in another way than by
the driver's copies is ended by SIGSEGV.

Invariant: `values()` is what is in the memory now, past all streams. Thread safety: as the stand-in's.
"""

import ctypes
import os

import numpy as np
from tidelane import _memory

HANDLE = ctypes.c_void_p
_library = None


def cuda():
    """The driver, loaded when it is first asked for, with a current context."""
    global _library
    if _library is None:
        _library = ctypes.CDLL(os.environ["TEST_LIBCUDA"])
        _library.StandInMisuses.restype = ctypes.c_uint64
        call("cuInit", 0)
        context = HANDLE()
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        call("cuCtxSetCurrent", context)
    return _library


def call(name, *arguments):
    result = getattr(cuda(), name)(*arguments)
    assert result == 0, f"{name} returned {result}"


def make_stream():
    stream = HANDLE()
    call("cuStreamCreate", ctypes.byref(stream), 1)  # one that does not wait for the default stream
    return stream.value


class _Allocation:
    def __init__(self, size):
        address = ctypes.c_ulonglong()
        call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(1, size)))
        self.address, self.size = address.value, size

    def __del__(self):
        _library.cuMemFree_v2(ctypes.c_ulonglong(self.address))

    def copy(self, way, host):
        if host.nbytes > 0:
            assert getattr(cuda(), way)(ctypes.c_ulonglong(self.address), HANDLE(host.ctypes.data), ctypes.c_size_t(host.nbytes)) == 1


class Array:
    """What the arrays here have in common: memory, and how it is looked at."""

    def __init__(self, values, like=None, **more):
        values = np.asarray(values)
        if like is None:
            whole = np.array(values, order="C")
            self.whole, self.layout, self.memory = whole, whole, _Allocation(whole.nbytes)
            self.memory.copy("StandInPoke", whole)
        else:
            self.whole, self.layout, self.memory = like.whole, values, like.memory
        self.stream, self.read_only = None, False
        self.__dict__.update(more)

    shape = property(lambda self: self.layout.shape)
    dtype = property(lambda self: self.layout.dtype)
    address = property(lambda self: self.memory.address + self.layout.ctypes.data - self.whole.ctypes.data)

    def __getitem__(self, index):
        return self.seen(lambda layout: layout[index])

    def seen(self, how):
        """The same memory as NumPy would look at it: `how` gives a view of an array."""
        more = {name: value for name, value in vars(self).items() if name not in ("whole", "layout", "memory")}
        return type(self)(how(self.layout), self, **more)

    def values(self):
        """A copy of the elements."""
        now = np.empty_like(self.whole)
        self.memory.copy("StandInPeek", now)
        at = self.layout.ctypes.data - self.whole.ctypes.data
        return np.ndarray(self.shape, self.dtype, now, at, self.layout.strides).copy() if self.layout.size else self.layout.copy()

    def write_later(self, values, stream, microseconds=50_000):
        """A kernel on the stream that takes so long, and then has written the values."""
        values = np.ascontiguousarray(values, self.dtype)
        call("StandInWriteLater", ctypes.c_ulonglong(self.address), HANDLE(values.ctypes.data), ctypes.c_size_t(values.nbytes),
             HANDLE(stream), microseconds)  # fmt: skip


class Interface(Array):
    """As CuPy's and numba's."""

    version = 3
    more = {}

    @property
    def __cuda_array_interface__(self):
        return {"version": self.version, "shape": self.shape, "typestr": self.dtype.str, "descr": self.dtype.descr, "stream": self.stream,
                "strides": None if self.layout.flags.c_contiguous else self.layout.strides,
                "data": (self.address, self.read_only), **self.more}  # fmt: skip


_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_NAMES = ctypes.c_char_p(b"dltensor"), ctypes.c_char_p(b"dltensor_versioned")
_given = {}  # exports by their addresses, with all that they are made of, until they are given back
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


def exports():
    return len(_given)


@_memory._Deleter
def _take_back(address):
    del _given[address]


class DlPack(Array):
    """As PyTorch's, JAX's and others'. `asked`: the streams that they were to be ready for."""

    kind, code, lanes, versions = 2, None, 1, True

    def __init__(self, *arguments, **more):
        self.asked = []
        super().__init__(*arguments, **more)

    def __dlpack_device__(self):
        return self.kind, 0

    def _order(self, stream):
        if self.stream not in (None, stream):
            event = HANDLE()
            call("cuEventCreate", ctypes.byref(event), 2)
            call("cuEventRecord", event, HANDLE(self.stream))
            call("cuStreamWaitEvent", HANDLE(stream), event, 0)

    def _export(self, stream, versioned):
        self.asked.append(stream)
        self._order(stream)
        layout = self.layout
        dims = ctypes.c_int64 * max(1, layout.ndim)
        shape, strides = dims(*layout.shape), dims(*(stride // layout.itemsize for stride in layout.strides))
        managed = (_memory._Versioned if versioned else _memory._Managed)(deleter=_take_back)
        tensor = managed.tensor
        tensor.data, tensor.byte_offset = self.memory.address, self.address - self.memory.address
        tensor.device.kind, tensor.ndim = self.kind, layout.ndim
        tensor.dtype.code = _CODES[self.dtype.kind] if self.code is None else self.code
        tensor.dtype.bits, tensor.dtype.lanes = layout.itemsize * 8, self.lanes
        tensor.shape = shape
        if versioned:
            managed.major, managed.flags = 1, int(self.read_only)
        if versioned or not layout.flags.c_contiguous:
            tensor.strides = strides
        _given[ctypes.addressof(managed)] = (managed, shape, strides, self)
        return _new_capsule(ctypes.addressof(managed), _NAMES[versioned], None)

    def __dlpack__(self, *, stream=None, max_version=None):
        return self._export(stream, self.versions and max_version is not None)


class OldDlPack(DlPack):
    """Of the time before versions."""

    def __dlpack__(self, *, stream=None):
        return self._export(stream, False)
