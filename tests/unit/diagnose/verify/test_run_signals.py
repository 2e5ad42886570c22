"""What signals do while a run goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from webhook.cli.verify.session import LeftAtOnceError, RunSignals


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Restore the handlers of signals; at first none is ignored, not even under nohup."""
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


def test_no_signal() -> None:
    """A pause takes its time, and the exit code is that of the verdict."""
    with RunSignals() as signals:
        assert signals.pause(0.001) is False
        signals.rest(0.001)
        assert signals.exit_code is None


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
def test_the_first_signal(number: signal.Signals, code: int) -> None:
    """It ends pauses and interrupts nothing else; the exit code is that of shells."""
    with RunSignals() as signals:
        os.kill(os.getpid(), number)
        assert signals.pause(300) is True
        assert signals.exit_code == code
        signals.rest(0.001)


def test_a_second_signal() -> None:
    """It interrupts whatever goes on; the exit code stays that of the first."""
    with RunSignals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        signals.pause(300)
        with pytest.raises(LeftAtOnceError):
            signal.raise_signal(signal.SIGINT)
        assert signals.exit_code == 143


def test_a_signal_that_is_ignored() -> None:
    """A run that nohup started goes on when its terminal closes."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with RunSignals() as signals:
        os.kill(os.getpid(), signal.SIGHUP)
        assert signals.pause(0.001) is False
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_afterwards() -> None:
    """The handlers are those of before."""
    before = signal.getsignal(signal.SIGTERM)
    with RunSignals():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
