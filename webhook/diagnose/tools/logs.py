"""Read a log: find lines of `causes` in it, and whether the traffic went over RDMA."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator
from typing import NamedTuple

from webhook.diagnose.tools.causes import CAUSES, TRANSPORTS, Cause

#: Characters of a line that are read; no pattern needs more.
_MAX_LINE = 4000
#: The transports in pairs, RDMA first; the first pair with a line in the log decides, since actual
#: channels are better evidence than a chosen network.
_PAIRS = tuple(zip(TRANSPORTS[::2], TRANSPORTS[1::2], strict=True))
_LINE_END = re.compile("\n")
#: Lines of NCCL; without INFO it logs nothing about transports.
_NCCL, _NCCL_INFO = ("NCCL version", " NCCL INFO ", " NCCL WARN "), " NCCL INFO "


class CauseCount(NamedTuple):
    """A cause that a log shows, and the number of its lines."""

    cause: Cause
    #: The first such line.
    line: str
    times: int


class MatchedLine(NamedTuple):
    """A line of a log that matches a row of the table."""

    #: The number of the line; 1 is the first.
    number: int
    cause: Cause
    line: str


class LogReport(NamedTuple):
    """The causes and the transport that a log shows."""

    #: In the order of the table.
    cause_counts: tuple[CauseCount, ...]
    #: Whether traffic to other nodes went over RDMA: "yes", "no", "mixed", or "" if unknown.
    transport: str
    #: Whether NCCL wrote anything, and whether it did so at level INFO.
    nccl: bool
    info: bool
    #: Whether NCCL's channels use GPUDirect RDMA; None without channels over RDMA.
    gpu_direct: bool | None


def read_log(text: str) -> LogReport:
    """Read a log, or several logs of one container, in time linear in their length."""
    # Progress bars overwrite their lines.
    text = text.replace("\r", "\n")
    lines_by_cause: dict[str, list[str]] = {}
    for cause in CAUSES:
        lines = [line.strip() for _, line in _lines_with(text, cause.clue) if cause.fits(line)]
        if lines:
            lines_by_cause[cause.code] = lines
    matched = tuple(
        CauseCount(cause, lines_by_cause[cause.code][0], len(lines_by_cause[cause.code]))
        for cause in CAUSES
        if cause.code in lines_by_cause
    )
    channels = lines_by_cause.get(TRANSPORTS[0].code)
    return LogReport(
        matched,
        _transport(lines_by_cause.keys()),
        nccl=any(word in text for word in _NCCL),
        info=_NCCL_INFO in text,
        gpu_direct=any("/GDRDMA" in line for line in channels) if channels else None,
    )


def matched_lines(text: str) -> list[MatchedLine]:
    """Return all lines of a text that match a row of the table, in the order of the text."""
    ends = [line_end.start() for line_end in _LINE_END.finditer(text)]
    causes = [
        MatchedLine(bisect_left(ends, position) + 1, cause, line.strip())
        for cause in CAUSES
        for position, line in _lines_with(text, cause.clue)
        if cause.fits(line)
    ]
    return sorted(causes, key=lambda matched_line: matched_line.number)


def _lines_with(text: str, clue: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that contain a clue, with the position of each.

    One search in the whole text is much faster than a search in each line.
    """
    position = text.find(clue)
    while position >= 0:
        start, end = text.rfind("\n", 0, position) + 1, text.find("\n", position)
        end = len(text) if end < 0 else end
        yield start, text[start : min(end, start + _MAX_LINE)]
        position = text.find(clue, end)


def _transport(codes: Collection[str]) -> str:
    for rdma, sockets in _PAIRS:
        if rdma.code in codes and sockets.code in codes:
            return "mixed"
        if rdma.code in codes or sockets.code in codes:
            return "yes" if rdma.code in codes else "no"
    return ""
