"""A case that breaks a law."""

from __future__ import annotations

import re
from typing import Any, NoReturn


class BrokenLawError(AssertionError):
    """A law does not hold; `place` distinguishes the ways of breaking it."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.place = place


def broken(message: str, place: str = "") -> NoReturn:
    """Report that a law is broken, and how."""
    raise BrokenLawError(message, place)


def check_line(line: str) -> None:
    """Break the law unless a terminal can show the line."""
    if not line.isprintable():
        broken(f"not one printable line: {line!r:.300}", "printable")


def shapes(paths: Any) -> str:
    """Write paths with # for their numbers, so that each way of breaking a law has one text."""
    return ", ".join(sorted({re.sub(r"\d+", "#", str(path)) for path in paths}))[:200]
