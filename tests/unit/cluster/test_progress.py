from __future__ import annotations

import io
import re
import time

import pytest

from tests.cluster.progress import say, step
from tests.waiting import until


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Claim to be one."""
        return True


def _timeless(stream: io.StringIO) -> str:
    """Return what was written, whatever it took: a machine may be busy."""
    return re.sub(r"\d+ s\b", "N s", stream.getvalue())


def test_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A line goes to stderr, where no output of a program is mixed with it."""
    say("one thing")
    assert capsys.readouterr() == ("", "one thing\n")


def test_a_log_gets_lines() -> None:
    """Where stderr is no terminal, the start, signs of life and the end are lines of their own."""
    log = io.StringIO()
    with step("building x", log, every=0.01):
        until(lambda: "building x ... N s" in _timeless(log))
    lines = _timeless(log).splitlines()
    assert lines[0] == "building x ..."
    assert set(lines[1:-1]) == {"building x ... N s"}
    assert lines[-1] == "building x: done in N s"


def test_a_log_is_not_flooded() -> None:
    """What takes a moment is said twice."""
    log = io.StringIO()
    with step("building x", log):
        pass
    assert _timeless(log) == "building x ...\nbuilding x: done in N s\n"


def test_a_terminal_has_one_line() -> None:
    """On a terminal one line is written over and over, and ended once."""
    terminal = Terminal()
    with step("building x", terminal, every=0.01):
        until(lambda: "building x ... N s" in _timeless(terminal))
    written = _timeless(terminal)
    assert written.count("\n") == 1
    assert written.startswith("\r\x1b[Kbuilding x ...\r\x1b[Kbuilding x ... N s")
    assert written.endswith("\r\x1b[Kbuilding x: done in N s\n")


def test_a_failure_is_said() -> None:
    """What fails is not said to be done, and the error goes on."""
    log = io.StringIO()
    with pytest.raises(ValueError, match="no"), step("building x", log):
        raise ValueError("no")
    assert _timeless(log).endswith("building x: failed after N s\n")


def test_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a minute on, minutes are said as well."""
    clock = iter([0.0, 189.4])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    log = io.StringIO()
    with step("building x", log, every=60):
        pass
    assert log.getvalue().endswith("building x: done in 3 min 09 s\n")
