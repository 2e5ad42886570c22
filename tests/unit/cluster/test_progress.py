from __future__ import annotations

import io
import re
import time

import pytest

from tests.cluster.progress import say, step
from tests.waiting import until


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def _timeless(stream: io.StringIO) -> str:
    """Return the output without the times, since a machine may be busy."""
    return re.sub(r"\d+ s\b", "N s", stream.getvalue())


def test_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The line goes to stderr, separate from programs' output."""
    say("one thing")
    assert capsys.readouterr() == ("", "one thing\n")


def test_a_log_gets_lines() -> None:
    """If stderr is not a terminal, the start, signs of life and the end have their own lines."""
    log = io.StringIO()
    with step("building x", log, every=0.01):
        until(lambda: "building x ... N s" in _timeless(log))
    lines = _timeless(log).splitlines()
    assert lines[0] == "building x ..."
    assert set(lines[1:-1]) == {"building x ... N s"}
    assert lines[-1] == "building x: done in N s"


def test_a_log_is_not_flooded() -> None:
    """A quick step has only two lines."""
    log = io.StringIO()
    with step("building x", log):
        pass
    assert _timeless(log) == "building x ...\nbuilding x: done in N s\n"


def test_a_terminal_has_a_single_line() -> None:
    """On a terminal, one line is rewritten, and ended once."""
    terminal = Terminal()
    with step("building x", terminal, every=0.01):
        until(lambda: "building x ... N s" in _timeless(terminal))
    written = _timeless(terminal)
    assert written.count("\n") == 1
    assert written.startswith("\r\x1b[Kbuilding x ...\r\x1b[Kbuilding x ... N s")
    assert written.endswith("\r\x1b[Kbuilding x: done in N s\n")


def test_a_failure_is_reported() -> None:
    """A failed step is not reported as done, and its error is raised."""
    log = io.StringIO()
    with pytest.raises(ValueError, match="no"), step("building x", log):
        raise ValueError("no")
    assert _timeless(log).endswith("building x: failed after N s\n")


def test_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """From one minute on, the time is in minutes and seconds."""
    clock = iter([0.0, 189.4])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    log = io.StringIO()
    with step("building x", log, every=60):
        pass
    assert log.getvalue().endswith("building x: done in 3 min 09 s\n")
