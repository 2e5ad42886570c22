"""Signals during a run."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from itertools import count
from types import FrameType
from typing import Any

import pytest

from tests.waiting import PATIENCE
from webhook.cli.verify.session import RunSignals, SecondSignalError


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Restore the handlers of signals; initially no signal is ignored, not even under nohup."""
    before = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_no_signal() -> None:
    """A pause takes its time, and the level decides the exit code."""
    with RunSignals() as signals:
        assert signals.wait_for_end(0.001) is False
        signals.sleep(0.001)
        assert signals.exit_code is None


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
def test_the_first_signal(number: signal.Signals, code: int) -> None:
    """It ends pauses and interrupts nothing else; the exit code follows the shell convention."""
    with RunSignals() as signals:
        os.kill(os.getpid(), number)
        assert signals.wait_for_end(300) is True
        assert signals.exit_code == code
        signals.sleep(0.001)


def _wait_with_signal(signals: RunSignals, position: int) -> None:
    """Wait, and let the first signal arrive before a line of the code that runs meanwhile."""
    lines = count()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if event == "line" and next(lines) == position:
            signals._note(signal.SIGINT, frame)
        return trace

    sys.settrace(trace)
    try:
        signals.wait_for_end(0.001)
    finally:
        sys.settrace(None)


def test_the_moment_of_a_signal() -> None:
    """A signal may come at any line of a wait, also where it holds a lock; later waits see it.

    A handler runs in the thread that waits: if it waited for this thread's lock, a run would never
    end, not even at its timeout.
    """
    for position in range(60):
        signals = RunSignals()
        waiting = threading.Thread(target=_wait_with_signal, args=(signals, position), daemon=True)
        waiting.start()
        waiting.join(PATIENCE)
        assert not waiting.is_alive(), f"a signal at line {position} of the wait"
        if signals.exit_code is None:
            break
        assert signals.wait_for_end(300) is True
    else:
        raise AssertionError("a wait has fewer lines")
    assert position > 2


def test_a_second_signal() -> None:
    """It interrupts everything; the exit code of the first signal remains."""
    with RunSignals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        signals.wait_for_end(300)
        with pytest.raises(SecondSignalError):
            signal.raise_signal(signal.SIGINT)
        assert signals.exit_code == 143


def test_a_signal_that_is_ignored() -> None:
    """A run that was started by nohup continues when its terminal closes."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with RunSignals() as signals:
        os.kill(os.getpid(), signal.SIGHUP)
        assert signals.wait_for_end(0.001) is False
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_afterwards() -> None:
    """The previous handlers are restored."""
    before = signal.getsignal(signal.SIGTERM)
    with RunSignals():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
