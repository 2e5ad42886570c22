"""Limits on the CPU time and the memory of a decision, so that no pod can stop a replica.

Decisions run in the event loop, and their work and memory grow linearly with the pod. If a defect
made that false for some pod, such as a pattern that searches a long text again and again, or a
message that repeats a long name for each entry of a list, the loop would stand still, or the kernel
would end the process. With the limits, only that pod's request fails, as with any other defect.

A timer interrupts a decision that takes long, also within a search of `re`. RLIMIT_DATA would be
no way to limit memory: a failed allocation ends the process if it happens in orjson, also in
another thread.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from time import thread_time

from webhook.decide.analysis import DecisionInput
from webhook.model.decision import Decision
from webhook.model.pod import PodManifest
from webhook.serve.http.decision_cache import Decide

#: Seconds of CPU. The largest pods that the limits on entries allow take less than one.
MAX_DECISION_SECONDS = 2.0
#: Bytes beyond what the process uses before. The largest pods take less than half.
MAX_DECISION_BYTES = 64 << 20
#: Seconds of CPU, of all threads, between two checks. Nearly all decisions take less.
_CHECK_SECONDS = 0.01
#: The sizes of the process in pages; the second is its resident memory (man 5 proc).
_SIZES, _RESIDENT = "/proc/self/statm", 1
_PAGE_BYTES = resource.getpagesize()


class CpuTimeError(Exception):
    """A decision has used up its CPU time."""


class DecisionLimits:
    """The limits; only the main thread can have them, since only there Python handles signals."""

    def __init__(
        self, seconds: float = MAX_DECISION_SECONDS, max_bytes: int = MAX_DECISION_BYTES
    ) -> None:
        """Prepare limits in seconds of CPU time and in bytes of memory."""
        self._seconds, self._max_bytes = seconds, max_bytes
        self._is_enforced = False
        #: The CPU time of this thread at which the decision in progress must end.
        self._end: float | None = None
        #: The resident memory of the process at which it must end.
        self._largest = 0

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Enforce the limits while the block runs, in the main thread."""
        earlier = signal.signal(signal.SIGPROF, self._check)
        self._is_enforced = True
        try:
            yield
        finally:
            self._is_enforced = False
            signal.signal(signal.SIGPROF, earlier)

    def of(self, decide: Decide) -> Decide:
        """Return a function that decides as `decide` does.

        At a limit, it raises CpuTimeError or MemoryError.
        """

        def decide_within_limits(pod: PodManifest, decision_input: DecisionInput) -> Decision:
            if not self._is_enforced:
                return decide(pod, decision_input)
            self._largest = _resident_bytes() + self._max_bytes
            self._end = thread_time() + self._seconds
            signal.setitimer(signal.ITIMER_PROF, _CHECK_SECONDS, _CHECK_SECONDS)
            try:
                return decide(pod, decision_input)
            finally:
                self._stop()

        return decide_within_limits

    def _stop(self) -> None:
        self._end = None
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _check(self, *_: object) -> None:
        """End the decision if it is at a limit; other threads may have used a part of the time."""
        if self._end is None:
            return
        if thread_time() >= self._end:
            self._stop()  # so that nothing but the decision is ended
            raise CpuTimeError(f"a decision took more than {self._seconds} s of CPU time")
        if _resident_bytes() > self._largest:
            self._stop()
            size = self._max_bytes >> 20
            raise MemoryError(f"a decision used more than {size} MiB of memory")


def _resident_bytes() -> int:
    """Return the resident memory of the process; 0, which is no limit, outside Linux."""
    sizes = _sizes_file()
    return int(os.pread(sizes, 256, 0).split()[_RESIDENT]) * _PAGE_BYTES if sizes else 0


@cache  # opening the file would take most of the time
def _sizes_file() -> int | None:
    with suppress(OSError):
        return os.open(_SIZES, os.O_RDONLY | os.O_CLOEXEC)
    return None
