"""A thread that does something again and again."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

#: Seconds of waiting for the end of a thread.
_END = 3.0


class Periodic:
    """A thread that makes one attempt after another, until it is stopped."""

    def __init__(
        self, name: str, attempt: Callable[[], float], end: Callable[[], None] | None = None
    ) -> None:
        """Prepare.

        `attempt` returns the seconds until the next attempt, which comes up to a fifth earlier, so
        that replicas act at different times; it must not raise. `end` is called in the thread after
        the last attempt.
        """
        self._attempt = attempt
        self._end = end
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current attempt; wait for the end, if there is something to do at it."""
        self._stop.set()
        if self._end is not None and self._thread.is_alive():
            self._thread.join(_END)

    def _run(self) -> None:
        while not self._stop.is_set():
            seconds = self._attempt()
            self._stop.wait(seconds * random.uniform(0.8, 1.0))  # noqa: S311 -- no secret
        if self._end is not None:
            self._end()
