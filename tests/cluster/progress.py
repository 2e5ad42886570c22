"""Progress on stderr: the current step, and its duration so far."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

#: Seconds between two signs of life: on a terminal the line is rewritten, in a log repeated.
TERMINAL, LOG = 1.0, 20.0


def say(line: str, stream: TextIO | None = None) -> None:
    """Print one line."""
    (stream or sys.stderr).write(f"{line}\n")


@contextmanager
def step(task: str, stream: TextIO | None = None, every: float | None = None) -> Iterator[None]:
    """Announce `task` while the block runs, then print how long it took or that it failed.

    On a terminal, one line counts the seconds; elsewhere a new line is printed now and then.
    """
    out = stream or sys.stderr
    terminal = out.isatty()
    begun, done = time.monotonic(), threading.Event()
    _show(out, f"{task} ...", terminal, last=False)
    ticking = threading.Thread(
        target=_tick,
        args=(out, task, begun, done, every or (TERMINAL if terminal else LOG)),
        name="progress",
        daemon=True,
    )
    ticking.start()
    outcome = "failed after"
    try:
        yield
        outcome = "done in"
    finally:
        done.set()
        ticking.join()
        _show(out, f"{task}: {outcome} {_elapsed(begun)}", terminal, last=True)


def _tick(out: TextIO, task: str, begun: float, done: threading.Event, every: float) -> None:
    while not done.wait(every):
        _show(out, f"{task} ... {_elapsed(begun)}", out.isatty(), last=False)


def _show(out: TextIO, line: str, terminal: bool, *, last: bool) -> None:
    if terminal:  # return to the line's start, clear it, write
        out.write(f"\r\x1b[K{line}" + "\n" * last)
    else:
        out.write(f"{line}\n")
    out.flush()


def _elapsed(begun: float) -> str:
    minutes, seconds = divmod(round(time.monotonic() - begun), 60)
    return f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"
