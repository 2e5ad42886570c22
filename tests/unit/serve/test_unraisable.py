from __future__ import annotations

import gc
from typing import Any, NoReturn

import pytest

from certs.clock import Clock
from tests.unit.serve.client import Lines
from webhook.serve.unraisable import MAX_LINES, PERIOD, UnraisableLog


class _Clock(Clock):
    seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


class _Broken:
    def __del__(self) -> NoReturn:
        raise ValueError("hunter2")


class Reports:
    """The lines for exceptions that reach no caller."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = _Clock()
        self._lines = Lines()
        monkeypatch.setattr("sys.unraisablehook", UnraisableLog(self._lines.log, self.clock))

    def of(self, number: int) -> list[dict[str, Any]]:
        """Return the lines for a number of exceptions."""
        for _ in range(number):
            _Broken()
        gc.collect()
        return self._lines.read()


def test_an_exception_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """With its type and its trace, but without its message, which may be a client's text."""
    (line,) = Reports(monkeypatch).of(1)

    assert (line["level"], line["msg"], line["error"]) == (
        *("warning", "exception ignored"),
        "ValueError",
    )
    assert line["trace"][-1].startswith("test_unraisable.py:")
    assert "unwritten" not in line
    assert "hunter2" not in str(line)
    assert capfd.readouterr().err == ""


def test_many_exceptions_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client can cause thousands in a second; there are a few lines in a minute."""
    reports = Reports(monkeypatch)
    assert len(reports.of(MAX_LINES + 7)) == MAX_LINES
    reports.clock.seconds += PERIOD - 1
    assert reports.of(1) == []
    reports.clock.seconds += 1

    assert [line.get("unwritten") for line in reports.of(MAX_LINES + 1)] == [
        8,
        *[None] * (MAX_LINES - 1),
    ]
