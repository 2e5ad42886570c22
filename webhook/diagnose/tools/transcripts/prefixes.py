"""The prefixes of pdsh and clush: each line begins with the name of its machine.

    gpu-01: mlx5_0 port 1 ==> ibs1 (Up)

Tools write "state: Active", too. So a word is the name of a machine only if a reader takes a line
behind it, or if it differs from such a name in digits alone (gpu-03, which found no such command).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from webhook.diagnose.tools.observations import Line
from webhook.diagnose.tools.readers import read
from webhook.diagnose.tools.readers.device_list import DEVICE_LIST
from webhook.diagnose.tools.transcripts.script_headers import is_script_header
from webhook.diagnose.tools.transcripts.segments import HOST, Capture

_NODE_PREFIX = re.compile(rf"(?P<node>{HOST}):(?: (?P<text>.*))?", re.ASCII | re.DOTALL)
#: What pdsh and clush say of a machine.
_REMARK = re.compile(rf"(?:pdsh@{HOST}|clush): (?P<node>{HOST}): (?P<text>.*)", re.ASCII)


def split_by_prefix(whole: Capture) -> Iterator[Capture]:
    """Split into what has no prefix, if there is any, and a capture for each machine."""
    split = [_prefixed(line) for line in whole.lines]
    nodes = _nodes(one for one in split if one is not None)
    if not nodes:
        yield whole
        return
    rest: list[Line] = []
    by_node: dict[str, list[Line]] = {}
    for line, prefixed in zip(whole.lines, split, strict=True):
        if prefixed is None or prefixed[0] not in nodes:
            rest.append(line)
        else:
            by_node.setdefault(prefixed[0], []).append(prefixed[1])
    if any(line.text.strip() for line in rest):
        yield whole._replace(lines=tuple(rest))
    for node, lines in by_node.items():
        yield Capture(node, tuple(lines))


def _prefixed(line: Line) -> tuple[str, Line] | None:
    found = _REMARK.fullmatch(line.text) or _NODE_PREFIX.fullmatch(line.text)
    return (found["node"], line._replace(text=found["text"] or "")) if found else None


def _nodes(prefixed: Iterable[tuple[str, Line]]) -> set[str]:
    by_name: dict[str, list[Line]] = {}
    for name, line in prefixed:
        by_name.setdefault(name, []).append(line)
    # One call for all: a call for each of many names would take long.
    evidence = _evidence([line for lines in by_name.values() for line in lines])
    certain = {
        name
        for name, lines in by_name.items()
        if any(line.number in evidence or is_script_header(line.text) for line in lines)
    }
    shapes = {_shape(name) for name in certain}
    return {name for name in by_name if _shape(name) in shapes}


def _evidence(lines: list[Line]) -> set[int]:
    """Return the numbers of the lines that only a tool can have written."""
    sightings = read(lines).sightings
    # "hca_id: mlx5_0" is not a machine that lists its devices.
    return {one.origin.line for one in sightings if one.origin.tool != DEVICE_LIST.tool}


def _shape(name: str) -> str:
    return re.sub(r"\d+", "0", name)
