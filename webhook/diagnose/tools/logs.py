"""Read a log: find the known lines in it, and whether the traffic went over RDMA."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator
from typing import NamedTuple

from webhook.diagnose.tools.known_lines import KNOWN_LINES, TRANSPORTS, KnownLine
from webhook.diagnose.tools.nccl_devices import NcclDevices, read_nccl_devices

#: Characters of a line that are read; no pattern needs more.
_MAX_LINE = 4000
#: The transports in pairs, RDMA first; the first pair with a line in the log decides, since actual
#: channels are better evidence than a chosen network.
_PAIRS = tuple(zip(TRANSPORTS[::2], TRANSPORTS[1::2], strict=True))
_LINE_END = re.compile("\n")
_RDMA_CHANNEL = re.compile(
    r"\bvia NET/(?:IB(?:ext\w{0,8})?|gIB|(?:AWS )?Libfabric)/\d{1,3}(/GDRDMA)?"
)
#: Channels within a node, and to others.
_WITHIN, _BETWEEN = re.compile(r"-> \d{1,6}\S{0,12} via (?:P2P|SHM)/"), "via NET/"
#: Lines of NCCL; without INFO it logs nothing about transports.
_NCCL, _NCCL_INFO = ("NCCL version", " NCCL INFO ", " NCCL WARN "), " NCCL INFO "


class LineCount(NamedTuple):
    """A known line that a log has, and how often."""

    known_line: KnownLine
    #: The first such line.
    line: str
    times: int


class MatchedLine(NamedTuple):
    """A line of a log that matches a row of the table."""

    #: The number of the line; 1 is the first.
    number: int
    known_line: KnownLine
    line: str


class LogReport(NamedTuple):
    """The known lines of a log, and whether it shows RDMA."""

    #: In the order of the table.
    line_counts: tuple[LineCount, ...]
    #: Whether traffic to other nodes went over RDMA: "yes", "no", "mixed", or "" if unknown.
    rdma_use: str
    #: Whether NCCL wrote anything, and whether it did so at level INFO.
    nccl: bool
    info: bool
    #: Whether NCCL's channels use GPUDirect RDMA; None without channels over RDMA.
    gpu_direct: bool | None
    #: The last line with any text, which often has the error of a program that failed.
    last_line: str = ""
    nccl_devices: NcclDevices = NcclDevices()
    #: Whether NCCL logged channels, but none to another node.
    within_a_node: bool = False


def read_log(text: str) -> LogReport:
    """Read a log, or several logs of one container, in time linear in their length."""
    # Progress bars overwrite their lines.
    text = text.replace("\r", "\n")
    lines_by_code: dict[str, list[str]] = {}
    for known_line in KNOWN_LINES:
        lines = [
            line.strip() for _, line in _lines_with(text, known_line.clue) if known_line.fits(line)
        ]
        if lines:
            lines_by_code[known_line.code] = lines
    matched = tuple(
        LineCount(known_line, matches[0], len(matches))
        for known_line in KNOWN_LINES
        if (matches := lines_by_code.get(known_line.code))
    )
    return LogReport(
        matched,
        _rdma_use(lines_by_code.keys()),
        nccl=any(word in text for word in _NCCL),
        info=_NCCL_INFO in text,
        gpu_direct=_gpu_direct(text),
        last_line=text.rstrip().rpartition("\n")[2],
        nccl_devices=read_nccl_devices(text),
        within_a_node=_BETWEEN not in text and _WITHIN.search(text) is not None,
    )


def _gpu_direct(text: str) -> bool | None:
    """Return whether a channel over RDMA or libfabric uses GPUDirect RDMA; None without any.

    NCCL writes the suffix for each of its networks (nccl, src/transport/net.cc), also for plugins:
    a plugin reports whether its NIC reads a GPU's memory (NCCL_PTR_CUDA; for libfabric:
    aws/aws-ofi-nccl, src/nccl_ofi_net).
    """
    ends = {match[1] for match in _RDMA_CHANNEL.finditer(text)}
    return "/GDRDMA" in ends if ends else None


def matched_lines(text: str) -> list[MatchedLine]:
    """Return all lines of a text that match a row of the table, in the order of the text."""
    ends = [line_end.start() for line_end in _LINE_END.finditer(text)]
    matches = [
        MatchedLine(bisect_left(ends, position) + 1, known_line, line.strip())
        for known_line in KNOWN_LINES
        for position, line in _lines_with(text, known_line.clue)
        if known_line.fits(line)
    ]
    return sorted(matches, key=lambda matched_line: matched_line.number)


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


def _rdma_use(codes: Collection[str]) -> str:
    for rdma, sockets in _PAIRS:
        if rdma.code in codes and sockets.code in codes:
            return "mixed"
        if rdma.code in codes or sockets.code in codes:
            return "yes" if rdma.code in codes else "no"
    return ""
