"""Parts of a text from one node, the markers that name the node, and the script's headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from webhook.diagnose.tools.observations import Line

# Parts and markers.

#: A part of a regular expression: the name or the address of a node.
HOST = r"[A-Za-z0-9](?:[\w.-]{0,252}[A-Za-z0-9])?"

#: Terminal control sequences (ECMA-48): colors, a title, the choice of a character set.
_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]{0,60}[ -/]{0,9}[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)?"
    r"|[()][0-9A-B]|[=>78cM])"
)


class NodeOutput(NamedTuple):
    """Contiguous lines of output from one node."""

    #: None if the text does not name the node.
    node: str | None
    lines: tuple[Line, ...]
    #: The command and its exit status, if the text shows them.
    command: str | None = None
    exit_status: int | None = None
    #: Whether it is the end of a script's output that lacks its last line.
    is_cut: bool = False


def plain_lines(text: str, first: int = 1) -> list[Line]:
    """Split a text into numbered lines; a carriage return alone splits within a line."""
    text = _TERMINAL.sub("", text.removeprefix("\ufeff")).replace("\xa0", " ")
    return [
        Line(number, piece)
        for number, line in enumerate(text.split("\n"), first)
        for piece in line.rstrip("\r").split("\r")
    ]


class NodeMarker(NamedTuple):
    """Lines of a text that name the node of other lines."""

    #: The nodes; (None,) for an unknown one.
    nodes: tuple[str | None, ...]
    #: The index of the first line after the marker.
    end: int
    command: str | None = None
    exit_status: int | None = None
    #: The lines inside the marker; None for the lines after it, up to the next marker.
    enclosed_lines: tuple[Line, ...] | None = None


#: Returns the marker that begins at an index of the lines, or None.
FindsMarker = Callable[[Sequence[Line], int], NodeMarker | None]


def split(output: NodeOutput, finders: Sequence[FindsMarker]) -> Iterator[NodeOutput]:
    """Split an output at markers; the lines before the first marker keep their node."""
    nodes: tuple[str | None, ...] = (output.node,)
    lines, index = output.lines, 0
    start, command, status = 0, output.command, output.exit_status
    while index < len(lines):
        marker = next(filter(None, (find(lines, index) for find in finders)), None)
        if marker is None:
            index += 1
            continue
        yield from _outputs(nodes, lines[start:index], command, status)
        nodes, command, status = marker.nodes, marker.command, marker.exit_status
        if marker.enclosed_lines is not None:
            yield from _outputs(nodes, marker.enclosed_lines, command, status)
            nodes, command, status = (None,), None, None
        start = index = marker.end
    yield from _outputs(nodes, lines[start:], command, status)


def _outputs(
    nodes: Iterable[str | None], lines: Sequence[Line], command: str | None, status: int | None
) -> Iterator[NodeOutput]:
    shared = tuple(lines)
    if command is not None or any(line.text.strip() for line in shared):
        yield from (NodeOutput(node, shared, command, status) for node in nodes)


# The headers that the script of `rdma-webhook discover script` writes.
#
#   ### rdma-webhook discover: 2
#   ### host: gpu-01
#   ### ran: ibstat (exit 0)
#   ### note: not installed: mst
#   ### end
#
# The first begins the output of a node, and has the version of the format. The third is above the
# output of a command. The fourth is for the reader. The last is missing in version 1; in others, it
# shows that nothing was cut off.

_BEGIN = re.compile(r"### rdma-webhook discover: (?P<version>\d{1,4})\s*", re.ASCII)
_END = re.compile(r"### end\s*")
_HOST = re.compile(rf"### host: (?P<node>{HOST})\s*", re.ASCII)
_NOTE = re.compile(r"### note: .{1,2000}")
_RAN = re.compile(r"### ran: (?P<command>.{1,2000}?) \(exit (?P<status>\d{1,3})\)\s*", re.ASCII)


def is_script_header(text: str) -> bool:
    """Return whether a line is one of the headers."""
    return any(header.fullmatch(text) for header in (_BEGIN, _END, _HOST, _NOTE, _RAN))


def split_at_headers(output: NodeOutput) -> tuple[NodeOutput, ...]:
    """Split an output at the headers, which name the node."""
    node = output.node

    def find(lines: Sequence[Line], index: int) -> NodeMarker | None:
        nonlocal node
        text = lines[index].text
        if not text.startswith("### "):
            return None
        begin, host, ran = (form.fullmatch(text) for form in (_BEGIN, _HOST, _RAN))
        if ran:
            return NodeMarker((node,), index + 1, ran["command"], int(ran["status"]))
        if begin or host:
            node = host["node"] if host else output.node
        elif not (_NOTE.fullmatch(text) or _END.fullmatch(text)):
            return None
        return NodeMarker((node,), index + 1)

    parts = [*split(output, (find,))]
    if parts and _lacks_end(output.lines):
        parts[-1] = parts[-1]._replace(is_cut=True)
    return tuple(parts)


def _lacks_end(lines: Sequence[Line]) -> bool:
    """Return whether the last output of the script lacks its end, which version 1 never had."""
    for line in reversed(lines):
        begin = _BEGIN.fullmatch(line.text) if line.text.startswith("### ") else None
        if begin:
            return begin["version"] != "1"
        if _END.fullmatch(line.text):
            return False
    return False
