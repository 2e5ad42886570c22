"""Exceptions that reach no caller, such as one in a function that OpenSSL calls.

Python writes them to standard error, in several lines that are not JSON, and waits until somebody
reads them. Anybody can cause one with a server name that is not ASCII, so they are no internal
errors: nobody has to be called for them.
"""

from __future__ import annotations

import sys

from certs.clock import Clock
from webhook.errors import crash_summary
from webhook.serve.log import Log

#: The lines for them in each period of so many seconds; the others are counted.
MAX_LINES, PERIOD = 5, 60.0


class UnraisableLog:
    """A function for `sys.unraisablehook` that writes a line of the log, and never waits."""

    def __init__(self, log: Log, clock: Clock | None = None) -> None:
        self._log = log
        self._clock = clock or Clock()
        self._period_end = 0.0
        self._lines = 0
        #: The number of exceptions since the last line.
        self._unwritten = 0

    def __call__(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Write the type of an exception and its trace, from any thread.

        Its message, and the object that Python would name, may be a client's text.
        """
        if self._clock.monotonic() >= self._period_end:
            self._period_end = self._clock.monotonic() + PERIOD
            self._lines = 0
        if self._lines == MAX_LINES:
            self._unwritten += 1
            return
        self._lines += 1
        unwritten, self._unwritten = self._unwritten, 0
        summary = crash_summary(unraisable.exc_value) if unraisable.exc_value else {}
        self._log.write("warning", "exception ignored", **summary, unwritten=unwritten or None)
