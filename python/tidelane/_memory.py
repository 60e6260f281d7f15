"""What a tensor says of its memory: where it is, which elements lie there, and the stream that they were computed on.

Asked by `__cuda_array_interface__` (CuPy, numba) or by DLPack (PyTorch, JAX and others). The stream is the array's own if it
names one, PyTorch's current one, or else the legacy default stream, before which DLPack has the producer order itself.

Invariant: a DLPack capsule is taken over at once, and its tensor is given back by its own deleter, exactly once, when the
memory is no longer borrowed; until then the producer keeps it.
Thread safety: nothing is shared; h5py's lock is not held here, because producers run code of their own.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from typing import Any, Iterator, NamedTuple, Optional

LEGACY_STREAM = 1

# DLPack's kinds of devices.
_HOST = (1, 3, 11)  # ordinary memory; pinned by CUDA, by ROCm
_CUDA = (2, 13)  # a device's own, and managed memory
_ROCM = 10
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_SIZES = {"i": (8, 16, 32, 64), "u": (8, 16, 32, 64), "f": (16, 32, 64), "c": (64, 128), "b": (8,)}
_NAMES = {3: "opaque", 4: "bfloat16"}
_READ_ONLY, _COPIED = 1, 2  # flags of versioned DLPack


class Unfit(Exception):
    """Why a tensor cannot be transferred; `kind` is the exception that the program gets, with the dataset's name in it."""

    def __init__(self, kind: type[Exception], why: str) -> None:
        super().__init__(why)
        self.kind = kind


class Memory(NamedTuple):
    """Elements in device memory."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # bytes
    dtype: Any  # numpy's
    stream: int  # a handle as CUDA numbers them; 0: the legacy default stream
    read_only: bool


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


# With the interpreter's lock, and errors as exceptions. The names are read for as long as there are capsules.
_capsule_has = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_rename_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
_PLAIN, _USED = ctypes.c_char_p(b"dltensor"), ctypes.c_char_p(b"used_dltensor")
_VERSIONED, _USED_VERSIONED = ctypes.c_char_p(b"dltensor_versioned"), ctypes.c_char_p(b"used_dltensor_versioned")


def on_host(tensor: Any) -> bool:
    """Whether it is h5py's to transfer. Unfit where it is no tensor, or one in memory that is neither the host's nor a GPU's."""
    import numpy

    if isinstance(tensor, (numpy.ndarray, numpy.generic)):
        return True
    if hasattr(tensor, "__dlpack_device__"):
        kind, _ = tensor.__dlpack_device__()
        if int(kind) not in (*_HOST, *_CUDA, _ROCM):
            raise Unfit(TypeError, f"a {type(tensor).__name__} on a device that DLPack numbers {int(kind)}: neither CUDA's nor ROCm's")
        return int(kind) in _HOST
    if hasattr(tensor, "__cuda_array_interface__"):
        return False
    if hasattr(tensor, "__array_interface__") or hasattr(tensor, "__array__"):
        return True
    raise Unfit(TypeError, f"a {type(tensor).__name__} is neither a NumPy array nor offers __cuda_array_interface__ or __dlpack__")


@contextlib.contextmanager
def host_array(tensor: Any) -> Iterator[Any]:
    """A tensor in host memory as an array of NumPy, over the same memory; what has neither DLPack nor one is copied."""
    import numpy

    if isinstance(tensor, (numpy.ndarray, numpy.generic)) or not hasattr(tensor, "__dlpack__"):
        yield numpy.asarray(tensor)
        return
    with _of_dlpack(tensor, None) as memory:  # NumPy's own from_dlpack takes all for read-only that comes without a version
        yield _as_array(memory)


def _as_array(memory: Memory) -> Any:
    import numpy

    if 0 in memory.shape:
        return numpy.empty(memory.shape, memory.dtype)
    reach = [(size - 1) * stride for size, stride in zip(memory.shape, memory.strides)]
    before = -sum(bytes for bytes in reach if bytes < 0)
    size = before + sum(bytes for bytes in reach if bytes > 0) + memory.dtype.itemsize
    buffer = (ctypes.c_char * size).from_address(memory.address - before)
    array = numpy.ndarray(memory.shape, memory.dtype, buffer, before, memory.strides)
    array.flags.writeable = not memory.read_only
    return array


def immutable(tensor: Any) -> bool:
    """JAX's arrays: their memory may be another array's, too."""
    return type(tensor).__module__.split(".")[0] in ("jax", "jaxlib")


@contextlib.contextmanager
def borrowed(tensor: Any) -> Iterator[Memory]:
    """The memory of a tensor that is not the host's."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, getattr(torch, "Tensor", ())):
        with _of_torch(torch, tensor) as memory:
            yield memory
        return
    interface = getattr(tensor, "__cuda_array_interface__", None)
    # Before version 3 the interface names no stream: where there are both, DLPack says more.
    if interface is not None and (interface.get("version", 0) >= 3 or not hasattr(tensor, "__dlpack__")):
        yield _of_interface(tensor, interface)
        return
    with _of_dlpack(tensor, _default_stream(tensor)) as memory:
        yield memory._replace(read_only=memory.read_only or interface is not None and bool(interface["data"][1]))


def _of_interface(tensor: Any, interface: dict[str, Any]) -> Memory:
    import numpy

    if interface.get("mask") is not None:
        raise Unfit(ValueError, "an array with a mask, which HDF5 has no place for")
    stream = interface.get("stream")
    if stream == 0:
        raise Unfit(ValueError, "__cuda_array_interface__ names stream 0, which its protocol forbids: 1 is the default stream")
    dtype = numpy.dtype(interface["typestr"])
    if dtype.kind == "V" and interface.get("descr"):
        dtype = numpy.lib.format.descr_to_dtype(list(interface["descr"]))
    if dtype.kind == "O" or dtype.kind == "V" and not dtype.names:
        raise Unfit(TypeError, f"elements of type {getattr(tensor, 'dtype', interface['typestr'])}, which NumPy and HDF5 have no type for")
    shape = tuple(int(size) for size in interface["shape"])
    strides = interface.get("strides")
    strides = _whole(shape, dtype.itemsize) if strides is None else tuple(int(stride) for stride in strides)
    address, read_only = interface["data"]
    return Memory(int(address or 0), shape, strides, dtype, 0 if stream in (None, LEGACY_STREAM) else int(stream), bool(read_only))


@contextlib.contextmanager
def _of_torch(torch: Any, tensor: Any) -> Iterator[Memory]:
    """On the current stream of its device: there PyTorch has nothing to order."""
    with torch.cuda.device(tensor.device):  # PyTorch gives away what is on the current device only
        stream = int(torch.cuda.current_stream(tensor.device).cuda_stream)
        with _of_dlpack(tensor, stream or _default_stream(tensor)) as memory:
            yield memory._replace(stream=stream)


def _default_stream(tensor: Any) -> int:
    """As DLPack numbers it."""
    return LEGACY_STREAM if int(tensor.__dlpack_device__()[0]) in _CUDA else 0


def _export(tensor: Any, stream: Optional[int]) -> Any:
    try:
        try:
            return tensor.__dlpack__(stream=stream, max_version=(1, 0))
        except TypeError:  # it knows of no versions
            return tensor.__dlpack__(stream=stream)
    except BufferError as error:
        raise Unfit(ValueError, f"a {type(tensor).__name__} whose memory cannot be shared: {error}") from error


@contextlib.contextmanager
def _of_dlpack(tensor: Any, stream: Optional[int]) -> Iterator[Memory]:
    """The producer sees to it that the memory is ready for what is put into `stream` from now on; None: it is in host memory."""
    capsule = _export(tensor, stream)
    versioned = bool(_capsule_has(capsule, _VERSIONED))
    address = _capsule_pointer(capsule, _VERSIONED if versioned else _PLAIN)
    _rename_capsule(capsule, _USED_VERSIONED if versioned else _USED)
    managed = (_Versioned if versioned else _Managed).from_address(address)
    try:
        if versioned and managed.major != 1:
            raise Unfit(ValueError, f"a {type(tensor).__name__} of DLPack {managed.major}.{managed.minor}, of which nothing is known here")
        flags = managed.flags if versioned else 0
        yield _of_tensor(managed.tensor, getattr(tensor, "dtype", ""), bool(flags & (_READ_ONLY | _COPIED)))
    finally:
        if managed.deleter:
            managed.deleter(address)


def _of_tensor(tensor: _Tensor, declared: Any, read_only: bool) -> Memory:
    import numpy

    code, bits, lanes = tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes
    kind = _KINDS.get(code)
    if kind is None or bits not in _SIZES[kind] or lanes != 1:
        name = _NAMES.get(code, f"DLPack's {code} of {bits} bits and {lanes} lanes")
        raise Unfit(TypeError, f"elements of type {name}, which NumPy and HDF5 have no type for")
    if kind == "u" and str(declared).endswith("bool"):  # as it was exported before DLPack had a code for it
        kind = "b"
    dtype = numpy.dtype(f"{kind}{bits // 8}")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = _whole(shape, dtype.itemsize)
    if tensor.strides:
        strides = tuple(stride * dtype.itemsize for stride in tensor.strides[: tensor.ndim])
    return Memory((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, 0, read_only)


def _whole(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides of an array without gaps."""
    strides = []
    for size in reversed(shape):
        strides.append(itemsize)
        itemsize *= max(1, size)
    return tuple(reversed(strides))
