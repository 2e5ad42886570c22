"""Lines from which discover reads nothing, and devices that a tool could not open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from webhook.diagnose.tools.transcripts.commands import is_command
from webhook.model.finding import Code, Finding, Location
from webhook.model.names import counted, natural_key

LINES_UNREAD = Code(
    "LinesUnread",
    "The input has lines that discover does not recognize as output of a tool.",
    "If they come from a tool whose output discover reads, check that nothing cut or changed "
    "them, and collect that output again.",
)
DEVICE_NOT_OPENED = Code(
    "DeviceNotOpened",
    "ibv_devinfo could not open an RDMA device, so its output shows nothing about the device.",
    "Run the tools as root on the node, not in a container without the device, and check that "
    "/dev/infiniband has uverbs devices. If it has none, run `modprobe ib_uverbs`.",
)

#: Source: rdma-core, libibverbs/examples/devinfo.c.
_NOT_OPENED = re.compile(r"\s*Failed to open device\b.{0,300}")
_HAS_WORD = re.compile(r"\w")
#: A command that was copied without its prompt.
_TYPED = re.compile(r"\s{0,8}[\w./-]{2,60}(?: [\w./:=*-]{1,60}){0,8}\s*", re.ASCII)
#: What pdsh and clush write about a node.
_REMARK = re.compile(
    r"\s{0,8}(?:(?:[a-z]{1,10} )?exited with exit code \d{1,3}|command timeout)\s*", re.ASCII
)
_EXCERPT_LENGTH = 60


class UnreadLine(NamedTuple):
    """A line that no reader recognizes."""

    node: str
    #: As given on the command line.
    file: str
    number: int
    text: str
    #: Whether its command failed, so that it is an error message.
    is_of_failure: bool = False

    @property
    def is_not_opened(self) -> bool:
        """Whether it is the message about a device that could not be opened."""
        return _NOT_OPENED.fullmatch(self.text) is not None


def unread_findings(lines: Iterable[UnreadLine], answered: Iterable[str]) -> Iterator[Finding]:
    """Yield a finding for all unread lines of nodes that answered, and one for unopened devices.

    A host that did not answer has a finding of its own. The message of a command that failed, a
    typed command and a rule of dashes are no such lines.
    """
    nodes = frozenset(answered)
    lines = list(lines)
    not_opened = [line for line in lines if line.is_not_opened]
    unread = [
        line
        for line in lines
        if line.node in nodes
        and not (line.is_of_failure or line.is_not_opened)
        and _may_be_output(line.text)
    ]
    if not_opened:
        count = counted(_distinct(not_opened), "time")
        text = f"ibv_devinfo could not open a device ({count})"
        yield DEVICE_NOT_OPENED.finding("warning", text, location=_location(not_opened))
    if unread:
        first, number = unread[0], _distinct(unread)
        excerpt = first.text.strip()
        if len(excerpt) > _EXCERPT_LENGTH:
            excerpt = f"{excerpt[:_EXCERPT_LENGTH]}..."
        verb, which = ("shows", "") if number == 1 else ("show", "the first at ")
        text = (
            f"{counted(number, 'line')} {verb} nothing that discover reads: "
            f"{which}{first.file}:{first.number}: {excerpt!r}"
        )
        yield LINES_UNREAD.finding("info", text, location=_location(unread))


def _may_be_output(text: str) -> bool:
    is_typed = _TYPED.fullmatch(text) is not None and is_command(text)
    return not is_typed and not _REMARK.fullmatch(text) and _HAS_WORD.search(text) is not None


def _distinct(lines: Iterable[UnreadLine]) -> int:
    """Return the number of lines; one that clush printed for several nodes counts once."""
    return len({(line.file, line.number) for line in lines})


def _location(lines: Sequence[UnreadLine]) -> Location:
    """Return the first line, and the nodes of all."""
    nodes = sorted({line.node for line in lines}, key=natural_key)
    return Location(file=lines[0].file, line=lines[0].number, nodes=tuple(nodes))
