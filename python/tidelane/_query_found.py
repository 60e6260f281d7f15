"""Results of queries, in one array each although nobody knows before how long they become."""

from __future__ import annotations

from typing import Any

PART_BYTES = 1 << 28


class Found:
    """Elements one after another. Memory for as many as there may be is reserved; the system gives what is used of it."""

    def __init__(self, dtype: Any, most: int) -> None:
        """`most`: elements, at most, altogether."""
        import numpy

        self._numpy, self._dtype, self._left = numpy, numpy.dtype(dtype), most
        self._parts: list[Any] = []
        self._size = self._used = self._address = 0  # of the last part

    def room(self, count: int) -> int:
        """The address of memory for `count` more, which the caller fills."""
        if self._used + count > self._size:
            self._cut()
            self._size = max(count, min(self._left, PART_BYTES // max(self._dtype.itemsize, 1)))
            self._parts.append(self._numpy.empty(self._size, self._dtype))
            self._address, self._used = self._parts[-1].ctypes.data, 0
        address = self._address + self._used * self._dtype.itemsize
        self._used += count
        self._left -= count
        return address

    def array(self) -> Any:
        """All of them; there must be no more."""
        self._cut()
        if len(self._parts) == 1:
            return self._parts[0]
        return self._numpy.concatenate(self._parts) if self._parts else self._numpy.empty(0, self._dtype)

    def _cut(self) -> None:
        if self._parts:
            self._parts[-1].resize(self._used, refcheck=False)
