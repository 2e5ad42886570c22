"""The signals that end a run: the first lets it clean up, the second one does not."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: What shells add to the number of a signal for the exit code.
_KILLED_BY = 128


class LeftAtOnceError(KeyboardInterrupt):
    """A second signal came."""


class RunSignals:
    """Notes the first signal instead of ending the process."""

    def __init__(self) -> None:
        self._came = threading.Event()
        self._number = 0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for one in _SIGNALS:
            # A signal that is ignored, by nohup say, stays ignored.
            if signal.getsignal(one) is not signal.SIG_IGN:
                self._before[one] = signal.signal(one, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)

    @property
    def exit_code(self) -> int | None:
        """What a shell calls the end by the signal; None if none came."""
        return _KILLED_BY + self._number if self._number else None

    def pause(self, seconds: float) -> bool:
        """Wait until a signal comes, at most for some seconds; return whether one came."""
        return self._came.wait(seconds)

    def rest(self, seconds: float) -> None:
        """Wait, whether a signal came or not."""
        time.sleep(seconds)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self._number:
            raise LeftAtOnceError
        self._number = number
        self._came.set()
