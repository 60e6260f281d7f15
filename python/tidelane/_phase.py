"""A context manager round the part of a program that writes: what it came to, and at its end everything stored if asked for."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Optional

from ._report import stats
from ._wait import flush, wait


class Phase:
    """What happened between its begin and its end: see `phase`."""

    def __init__(self, *targets: Any, name: str = "", wait: bool = False) -> None:
        self.name = name
        self.seconds = 0.0
        self.waited_seconds = 0.0
        self.asynchronous_bytes = 0
        self.synchronous_bytes = 0
        self.counters: dict[str, int] = {}
        self._targets = targets
        self._wait = wait or bool(targets)
        self._before: dict[str, int] = {}
        self._begin = 0.0

    def __enter__(self) -> Phase:
        self._before = stats()["counters"]
        self._begin = time.monotonic()
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        try:
            if kind is None and self._wait:
                for target in self._targets:
                    flush(target)
                if not self._targets:
                    wait()
        finally:
            self._measure()

    def _measure(self) -> None:
        self.seconds = time.monotonic() - self._begin
        now = stats()["counters"]
        self.counters = {key: value - self._before.get(key, 0) for key, value in now.items() if "peak" not in key}
        self.asynchronous_bytes = self.counters["bytes_deferred"]
        self.synchronous_bytes = self.counters["bytes_sync"]
        waits = (value for key, value in self.counters.items() if key.startswith("wait_"))
        self.waited_seconds = sum(waits) / 1e9

    def __repr__(self) -> str:
        return (
            f"<phase {self.name or 'unnamed'}: {self.seconds:.3f} s, waited {self.waited_seconds:.3f} s, "
            f"{self.asynchronous_bytes} bytes asynchronous, {self.synchronous_bytes} synchronous>"
        )


def phase(*targets: Any, name: str = "", wait: bool = False) -> Phase:
    """`with tidelane.phase(file, name="checkpoint") as p:` flushes the files at its end and returns when they are stored.

    Without files nothing is flushed; `wait=True` then waits for what was written. After an exception nothing waits. `p` has
    `seconds`, `waited_seconds`, `asynchronous_bytes`, `synchronous_bytes` and `counters` of the process in that time.
    """
    return Phase(*targets, name=name, wait=wait)
