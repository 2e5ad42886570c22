"""The answer of `/readyz`: a line for each check, written by a replica, and read by a command."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

#: The start of the details of a check whose result does not make a replica unready.
WARNING, UNKNOWN = "warning: ", "unknown: "
_LINE = re.compile(r"\[([+-])\] ([\w-]+): (.*)")
_SIGNS = {True: "+", False: "-"}


class ReadinessCheck(NamedTuple):
    """A line of `/readyz`."""

    name: str
    #: Whether the server may get requests.
    ready: bool
    detail: str


def readiness_text(checks: Iterable[ReadinessCheck], *, ready: bool) -> str:
    """Return the lines of the checks, and a last line with the result."""
    lines = [f"[{_SIGNS[check.ready]}] {check.name}: {check.detail}" for check in checks]
    return "\n".join([*lines, "ready" if ready else "not ready"]) + "\n"


def read_readiness(text: str) -> tuple[ReadinessCheck, ...]:
    """Return the checks of an answer; () for any other text."""
    matches = filter(None, map(_LINE.fullmatch, text.splitlines()))
    return tuple(ReadinessCheck(match[2], match[1] == "+", match[3]) for match in matches)
