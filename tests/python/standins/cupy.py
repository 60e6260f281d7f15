"""What examples use of CuPy, with the tests' own GPU. Without Tidelane its arrays are NumPy's: natively those of a GPU could not be
written."""

import gpu_arrays
import numpy as np
from tidelane import enabled


class ndarray(gpu_arrays.Interface):
    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **{"stream": 1, **more})

    def __add__(self, other):
        return asarray(self.values() + asnumpy(other))

    def __eq__(self, other):
        return asarray(self.values() == asnumpy(other))

    def all(self):
        return self.values().all()


def asarray(values):
    return ndarray(values) if enabled() else np.array(values)


def asnumpy(values):
    return values.values() if isinstance(values, ndarray) else np.asarray(values)


def empty(shape, dtype):
    return asarray(np.full(shape, 1, dtype))


def tanh(values):
    return asarray(np.tanh(asnumpy(values)))
