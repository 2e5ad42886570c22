"""A limit on the CPU time of a decision, so that no pod can stop a replica.

Decisions run in the event loop, and their work grows linearly with the pod. If a defect made that
false for some pod, such as a pattern that searches a long text again and again, the loop would
stand still, and every other pod of the cluster would wait. With the limit, only that pod's request
fails, as with any other defect. Python checks for signals also within a long search of `re`.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time

from webhook.decide.analysis import DecisionInput
from webhook.model.decision import Decision
from webhook.model.pod import PodManifest
from webhook.serve.http.decision_cache import Decide

#: Seconds of CPU. The largest pods that the limits on entries allow take less than one.
MAX_DECISION_SECONDS = 2.0


class CpuTimeError(Exception):
    """A decision has used up its CPU time."""


class CpuLimit:
    """The limit; only the main thread can have it, since only there Python handles signals."""

    def __init__(self, seconds: float = MAX_DECISION_SECONDS) -> None:
        """Prepare a limit in seconds of CPU time."""
        self._seconds = seconds
        self._is_enforced = False
        #: The CPU time of this thread at which the decision in progress must end.
        self._end: float | None = None

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Enforce the limit while the block runs, in the main thread."""
        earlier = signal.signal(signal.SIGPROF, self._handle_signal)
        self._is_enforced = True
        try:
            yield
        finally:
            self._is_enforced = False
            signal.signal(signal.SIGPROF, earlier)

    def of(self, decide: Decide) -> Decide:
        """Return a function that decides as `decide` does, and raises CpuTimeError at the limit."""

        def decide_in_time(pod: PodManifest, decision_input: DecisionInput) -> Decision:
            if not self._is_enforced:
                return decide(pod, decision_input)
            self._end = thread_time() + self._seconds
            signal.setitimer(signal.ITIMER_PROF, self._seconds)
            try:
                return decide(pod, decision_input)
            finally:
                self._end = None
                signal.setitimer(signal.ITIMER_PROF, 0)

        return decide_in_time

    def _handle_signal(self, *_: object) -> None:
        """End the decision, unless other threads have used a part of the time."""
        if self._end is None:
            return
        left = self._end - thread_time()
        if left <= 0:
            raise CpuTimeError(f"a decision took more than {self._seconds} s of CPU time")
        signal.setitimer(signal.ITIMER_PROF, left)
