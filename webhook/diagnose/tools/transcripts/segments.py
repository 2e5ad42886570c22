"""A part of a text that is from one machine, the signs that say so, and the script's headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from webhook.diagnose.tools.observations import Line

# Parts and signs.

#: A part of a regular expression: the name or the address of a machine.
HOST = r"[A-Za-z0-9](?:[\w.-]{0,252}[A-Za-z0-9])?"

#: Commands to a terminal (ECMA-48): colours, a title, the choice of a character set.
_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]{0,60}[ -/]{0,9}[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)?"
    r"|[()][0-9A-B]|[=>78cM])"
)


class NodeOutput(NamedTuple):
    """Lines that are from one machine, and in one piece."""

    #: None if nothing says which machine it is.
    node: str | None
    lines: tuple[Line, ...]
    #: What was typed or run, if the text says it, and the status with which it ended.
    command: str | None = None
    exit_status: int | None = None


def plain_lines(text: str, first: int = 1) -> list[Line]:
    """Split into lines, numbered as editors do; a carriage return alone splits within a line."""
    text = _TERMINAL.sub("", text.removeprefix("\ufeff")).replace("\xa0", " ")
    return [
        Line(number, piece)
        for number, line in enumerate(text.split("\n"), first)
        for piece in line.rstrip("\r").split("\r")
    ]


class NodeMarker(NamedTuple):
    """Something in a text that says which machine lines are from."""

    #: The machines; (None,) for one that nothing names.
    nodes: tuple[str | None, ...]
    #: The index of the first line behind the sign.
    behind: int
    command: str | None = None
    exit_status: int | None = None
    #: The lines that the sign encloses; None if they are those behind it, up to the next sign.
    enclosed: tuple[Line, ...] | None = None


#: Looks for a sign that begins at an index of the lines.
FindsSign = Callable[[Sequence[Line], int], NodeMarker | None]


def split(whole: NodeOutput, finders: Sequence[FindsSign]) -> Iterator[NodeOutput]:
    """Split a capture at signs; the lines before the first one stay with its machine."""
    nodes: tuple[str | None, ...] = (whole.node,)
    lines, at = whole.lines, 0
    start, command, status = 0, whole.command, whole.exit_status
    while at < len(lines):
        sign = next(filter(None, (find(lines, at) for find in finders)), None)
        if sign is None:
            at += 1
            continue
        yield from _captures(nodes, lines[start:at], command, status)
        nodes, command, status = sign.nodes, sign.command, sign.exit_status
        if sign.enclosed is not None:
            yield from _captures(nodes, sign.enclosed, command, status)
            nodes, command, status = (None,), None, None
        start = at = sign.behind
    yield from _captures(nodes, lines[start:], command, status)


def _captures(
    nodes: Iterable[str | None], lines: Sequence[Line], command: str | None, status: int | None
) -> Iterator[NodeOutput]:
    shared = tuple(lines)
    if command is not None or any(line.text.strip() for line in shared):
        yield from (NodeOutput(node, shared, command, status) for node in nodes)


# The headers that the script of `rdma-webhook discover script` writes.
#
#   ### rdma-webhook discover: 1
#   ### host: gpu-01
#   ### ran: ibstat (exit 0)
#   ### note: not installed: mst
#
# The first begins the output of a machine, and names the version of the format. The third stands
# above the output of a command. The last is for people.

_BEGIN = re.compile(r"### rdma-webhook discover: \d{1,4}\s*", re.ASCII)
_HOST = re.compile(rf"### host: (?P<node>{HOST})\s*", re.ASCII)
_NOTE = re.compile(r"### note: .{1,2000}")
_RAN = re.compile(r"### ran: (?P<command>.{1,2000}?) \(exit (?P<status>\d{1,3})\)\s*", re.ASCII)


def is_script_header(text: str) -> bool:
    """Return whether a line is one of the headers."""
    return any(header.fullmatch(text) for header in (_BEGIN, _HOST, _NOTE, _RAN))


def split_at_headers(whole: NodeOutput) -> tuple[NodeOutput, ...]:
    """Split a capture at the headers; the host that they name is the machine."""
    node = whole.node

    def find(lines: Sequence[Line], at: int) -> NodeMarker | None:
        nonlocal node
        text = lines[at].text
        if not text.startswith("### "):
            return None
        if _BEGIN.fullmatch(text):
            node = whole.node
            return NodeMarker((node,), at + 1)
        host = _HOST.fullmatch(text)
        if host is not None:
            node = host["node"]
            return NodeMarker((node,), at + 1)
        if _NOTE.fullmatch(text):
            return NodeMarker((node,), at + 1)
        ran = _RAN.fullmatch(text)
        if ran is None:
            return None
        return NodeMarker((node,), at + 1, ran["command"], int(ran["status"]))

    return tuple(split(whole, (find,)))
