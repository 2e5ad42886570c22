"""ip -br address and ip -br link (iproute2), a row for each network interface.

    ens3f0np0        UP             10.0.0.4/24 fe80::a288:c2ff:fe12:3456/64
    eth0@if12        UP             3a:7c:01:02:03:04 <BROADCAST,MULTICAST,UP,LOWER_UP>

A row without an address is taken only if its columns are as wide as `ip` makes them. Source:
iproute2, ip/ipaddress.c.
"""

from __future__ import annotations

import re

from webhook.diagnose.tools.observations import InterfaceSighting, Line, Origin
from webhook.diagnose.tools.readers.notation import NETDEV
from webhook.diagnose.tools.readers.rows import Reader, ReadsRows, RowReading

_IP_BRIEF = "ip -br"

_IP_BRIEF_ROW = re.compile(
    rf"(?P<netdev>{NETDEV}?)(?:@{NETDEV})?(?P<gap>\s{{1,40}})"
    r"(?P<state>UP|DOWN|UNKNOWN|DORMANT|TESTING|LOWERLAYERDOWN|NOTPRESENT)(?P<rest>(?:\s.*)?)",
    re.ASCII,
)
_LINK = re.compile(
    r"\s{1,40}(?:[0-9a-f]{2}(?::[0-9a-f]{2}){3,31})?\s{1,40}<[A-Z0-9_,-]{0,200}>\s*", re.ASCII
)
_ADDRESS = re.compile(
    r"\s{1,40}(?P<address>[0-9a-f:.]{2,45}(?:/\d{1,3}|(?= peer )))"
    r"(?: peer [0-9a-f:.]{2,45}(?:/\d{1,3})?)?(?: metric \d{1,10})?(?=\s|$)",
    re.ASCII,
)
#: The width of the first column.
_WIDE = 16


def _ip_brief_row(line: Line) -> RowReading | None:
    """Read the rows."""
    row = _IP_BRIEF_ROW.fullmatch(line.text)
    if row is None:
        return None
    rest = row["rest"].rstrip()
    addresses: list[str] = []
    link = _LINK.fullmatch(rest) is not None
    while not link and (found := _ADDRESS.match(rest)):
        addresses.append(found["address"])
        rest = rest[found.end() :]
    wide = row.start("state") > _WIDE
    if not link and (rest or not (addresses or wide)):
        return None
    origin = Origin("ip -br link" if link else "ip -br address", line.number)
    shown = InterfaceSighting(origin, row["netdev"], row["state"], tuple(addresses))
    return RowReading((shown,))


read_ip_brief = ReadsRows(_ip_brief_row)
IP_BRIEF = Reader(_IP_BRIEF, read_ip_brief)
