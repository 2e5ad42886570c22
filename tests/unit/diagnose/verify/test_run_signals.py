"""Signals during a run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

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
