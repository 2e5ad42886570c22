"""Read a log: which lines of `causes` are in it, and whether the traffic went over RDMA."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator
from typing import NamedTuple

from webhook.diagnose.tools.causes import CAUSES, TRANSPORTS, Cause

#: Characters of a line that are read; no line of the table is longer.
_LONGEST = 4000
#: The transports in pairs, RDMA first; the first pair with a line in the log decides, since
#: channels that were made say more than a network that was chosen.
_PAIRS = tuple(zip(TRANSPORTS[::2], TRANSPORTS[1::2], strict=True))
_LINE_END = re.compile("\n")
#: NCCL says this when it starts; without INFO it says nothing about transports.
_NCCL, _NCCL_INFO = ("NCCL version", " NCCL INFO ", " NCCL WARN "), " NCCL INFO "


class MatchedLine(NamedTuple):
    """A kind of line that is in a log."""

    cause: Cause
    #: The first such line.
    line: str
    times: int


class CauseLine(NamedTuple):
    """A line of a log that is in the table."""

    #: Where it stands; 1 is the first line.
    number: int
    cause: Cause
    line: str


class LogReport(NamedTuple):
    """What a log says."""

    #: In the order of the table.
    seen: tuple[MatchedLine, ...]
    #: Whether traffic to other machines went over RDMA: "yes", "no", "mixed", or "" if it does
    #: not say.
    transport: str
    #: Whether NCCL wrote anything, and whether it did so at the level INFO.
    nccl: bool
    info: bool
    #: Whether NCCL's channels use GPUDirect RDMA; None without channels over RDMA.
    gpu_direct: bool | None


def read_log(text: str) -> LogReport:
    """Read a log, or several logs of one container, in a time that grows with the length."""
    # Progress bars write their lines over each other.
    text = text.replace("\r", "\n")
    found: dict[str, list[str]] = {}
    for cause in CAUSES:
        lines = [line.strip() for _, line in _with(text, cause.clue) if cause.fits(line)]
        if lines:
            found[cause.code] = lines
    seen = tuple(
        MatchedLine(cause, found[cause.code][0], len(found[cause.code]))
        for cause in CAUSES
        if cause.code in found
    )
    channels = found.get(TRANSPORTS[0].code)
    return LogReport(
        seen,
        _transport(found.keys()),
        nccl=any(word in text for word in _NCCL),
        info=_NCCL_INFO in text,
        gpu_direct=any("/GDRDMA" in line for line in channels) if channels else None,
    )


def cause_lines(text: str) -> list[CauseLine]:
    """Return all lines of the table that are in a text, in the order of the text."""
    ends = [found.start() for found in _LINE_END.finditer(text)]
    found = [
        CauseLine(bisect_left(ends, at) + 1, cause, line.strip())
        for cause in CAUSES
        for at, line in _with(text, cause.clue)
        if cause.fits(line)
    ]
    return sorted(found, key=lambda one: one.number)


def _with(text: str, clue: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that contain a clue, and where each begins.

    The search for the clue in the whole text is much faster than one per line.
    """
    at = text.find(clue)
    while at >= 0:
        start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        end = len(text) if end < 0 else end
        yield start, text[start : min(end, start + _LONGEST)]
        at = text.find(clue, end)


def _transport(found: Collection[str]) -> str:
    for rdma, sockets in _PAIRS:
        if rdma.code in found and sockets.code in found:
            return "mixed"
        if rdma.code in found or sockets.code in found:
            return "yes" if rdma.code in found else "no"
    return ""
