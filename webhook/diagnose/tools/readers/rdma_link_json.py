"""rdma link with -j, and with -jp, which writes an object on several lines.

    [{"ifindex":0,"ifname":"mlx5_0","port":1,"state":"ACTIVE","physical_state":"LINK_UP", ...

The objects are found by how they begin, not by decoding the document, so that it may be cut.
Source: iproute2, rdma/link.c.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from webhook.diagnose.tools.observations import Line, Origin, PortSighting, Reading
from webhook.diagnose.tools.readers.notation import number, physical_state, port_state
from webhook.diagnose.tools.readers.rows import Reader

_RDMA_LINK_JSON = "rdma -j link"

_BEGIN = re.compile(
    r'\{\s{0,80}"ifindex":\s{0,8}\d{1,9},\s{0,80}"ifname":\s{0,8}"(?P<device>[\w.-]{1,63})",'
    r'\s{0,80}"port":\s{0,8}(?P<port>\d{1,3})(?=[,\s}])',
    re.ASCII,
)
_PAIR = re.compile(
    r',\s{0,80}"(?P<key>[a-z_]{2,20})":\s{0,8}'
    r'(?:"(?P<text>[^"\\\n]{0,80})"|(?P<number>\d{1,10})(?=[,\s}])|\[[\w\s",]{0,2000}\])\s{0,80}',
    re.ASCII,
)


def read_rdma_link_json(lines: Sequence[Line]) -> Reading:
    """Read the objects, one for each port."""
    text = "\n".join(line.text for line in lines)
    starts = [0, *accumulate(len(line.text) + 1 for line in lines)]
    sightings: list[PortSighting] = []
    taken: set[int] = set()
    for begun in _BEGIN.finditer(text):
        shown, end = _pairs(text, begun.end())
        first, last = (bisect_right(starts, at) - 1 for at in (begun.start(), end))
        sighting = _json_port(Origin(_RDMA_LINK_JSON, lines[first].number), begun, shown)
        sightings.append(sighting)
        known = {"state": sighting.state, "physical_state": sighting.physical_state}
        if text[end : end + 1] == "}" and None not in (known.get(key, "") for key in shown):
            taken.update(line.number for line in lines[first : last + 1])
    return Reading(tuple(sightings), frozenset(taken))


def _pairs(text: str, at: int) -> tuple[dict[str, str], int]:
    """Return the values from a position on, by their keys, and where they end."""
    shown: dict[str, str] = {}
    while pair := _PAIR.match(text, at):
        shown.setdefault(pair["key"], pair["text"] or pair["number"] or "")
        at = pair.end()
    return shown, at + (len(text[at : at + 80]) - len(text[at : at + 80].lstrip()))


def _json_port(origin: Origin, begun: re.Match[str], shown: dict[str, str]) -> PortSighting:
    netdev = shown.get("netdev")
    return PortSighting(
        origin,
        begun["device"],
        int(begun["port"]),
        netdevs=(netdev,) if netdev else None,
        state=port_state(shown.get("state", "")),
        physical_state=physical_state(shown.get("physical_state", "")),
        lid=number(shown.get("lid", "")),
    )


RDMA_LINK_JSON = Reader(_RDMA_LINK_JSON, read_rdma_link_json)
