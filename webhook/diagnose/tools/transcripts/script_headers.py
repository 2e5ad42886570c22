"""The headers that the script of `rdma-webhook discover script` writes.

    ### rdma-webhook discover: 1
    ### host: gpu-01
    ### ran: ibstat (exit 0)
    ### note: not installed: mst

The first begins the output of a machine, and names the version of the format. The third stands
above the output of a command. The last is for people.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import Line
from webhook.diagnose.tools.transcripts.segments import HOST, Capture, Sign, split

_BEGIN = re.compile(r"### rdma-webhook discover: \d{1,4}\s*", re.ASCII)
_HOST = re.compile(rf"### host: (?P<node>{HOST})\s*", re.ASCII)
_NOTE = re.compile(r"### note: .{1,2000}")
_RAN = re.compile(r"### ran: (?P<command>.{1,2000}?) \(exit (?P<status>\d{1,3})\)\s*", re.ASCII)


def is_script_header(text: str) -> bool:
    """Return whether a line is one of the headers."""
    return any(header.fullmatch(text) for header in (_BEGIN, _HOST, _NOTE, _RAN))


def split_at_headers(whole: Capture) -> tuple[Capture, ...]:
    """Split a capture at the headers; the host that they name is the machine."""
    node = whole.node

    def find(lines: Sequence[Line], at: int) -> Sign | None:
        nonlocal node
        text = lines[at].text
        if not text.startswith("### "):
            return None
        if _BEGIN.fullmatch(text):
            node = whole.node
            return Sign((node,), at + 1)
        host = _HOST.fullmatch(text)
        if host is not None:
            node = host["node"]
            return Sign((node,), at + 1)
        if _NOTE.fullmatch(text):
            return Sign((node,), at + 1)
        ran = _RAN.fullmatch(text)
        if ran is None:
            return None
        return Sign((node,), at + 1, ran["command"], int(ran["status"]))

    return tuple(split(whole, (find,)))
