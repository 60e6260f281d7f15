"""What tests and examples use of PyTorch, with the tests' own GPU. Without Tidelane "cuda" is host memory, too: natively it could not
be written."""

import contextlib

import gpu_arrays
import numpy as np
from tidelane import enabled


class Tensor:
    def __init__(self, array, device="cpu"):
        self.array, self.device = array, device  # NumPy's, or DlPack on the GPU
        self.requires_grad = False

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: f"torch.{self.array.dtype}")

    def _values(self):
        return self.array if isinstance(self.array, np.ndarray) else self.array.values()

    def to(self, device):
        return Tensor(gpu_arrays.DlPack(self._values()) if device != "cpu" and enabled() else self._values().copy(), device)

    def cpu(self):
        return Tensor(self._values())

    def numpy(self):
        assert isinstance(self.array, np.ndarray)
        return self.array

    def detach(self):
        return Tensor(self.array, self.device)

    def __getitem__(self, index):
        return Tensor(self.array[index], self.device)

    def __mul__(self, other):
        return from_numpy(self._values() * other).to(self.device)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **more):
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        assert isinstance(self.array, np.ndarray) or cuda.device.now == self.device
        return self.array.__dlpack__(**more)


def from_numpy(array):
    return Tensor(array)


def empty_like(tensor):
    return from_numpy(np.zeros(tensor.shape, tensor.array.dtype)).to(tensor.device)


def equal(one, other):
    return np.array_equal(one._values(), other._values())


class cuda:
    """torch.cuda"""

    class Stream:
        def __init__(self, cuda_stream=None):
            self.cuda_stream = gpu_arrays.make_stream() if cuda_stream is None else cuda_stream

    class device:
        now = None

        def __init__(self, device):
            self.device = device

        def __enter__(self):
            cuda.device.now, self.before = self.device, cuda.device.now

        def __exit__(self, *_):
            cuda.device.now = self.before

    current = Stream(0)

    @staticmethod
    def current_device():
        return 0 if cuda.device.now is None else 1

    @staticmethod
    def default_stream(device=None):
        return cuda.Stream(0)

    @staticmethod
    def current_stream(device=None):
        return cuda.current

    @staticmethod
    @contextlib.contextmanager
    def stream(stream):
        cuda.current, before = stream, cuda.current
        yield
        cuda.current = before
