"""Readers for iproute2: rdma link, as text and as JSON, rdma dev, rdma system show, ip -br."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from webhook.diagnose.tools.observations import (
    InterfaceObservation,
    Line,
    LinkLayer,
    Origin,
    PortObservation,
    PropertyObservation,
    Reading,
)
from webhook.diagnose.tools.readers.layouts import RECOGNIZED, LineByLineReader, Reader, RowReading
from webhook.diagnose.tools.readers.notation import (
    DEVICE,
    NETDEV,
    guid,
    number,
    physical_state,
    port_state,
)

# rdma link (iproute2).
#
#   link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 13 sm_lid 1 lmc 0 state ACTIVE ...
#   link mlx5_1/1 state DOWN physical_state DISABLED netdev ens1f1np1
#
# It shows the network interface of a port only in the same network namespace, and never for
# InfiniBand, so a port without one may still have one. The kernel gives LIDs for InfiniBand alone.
# Sources: iproute2, rdma/link.c; Linux, drivers/infiniband/core/nldev.c, fill_port_info.

_RDMA_LINK = "rdma link"

#: iproute2 before 5.0 writes "1/1: mlx5_0/1:" for "link mlx5_0/1".
_RDMA_LINK_ROW = re.compile(
    rf"\s{{0,40}}(?:link|\d{{1,4}}/\d{{1,3}}:)\s{{1,40}}(?P<device>{DEVICE})/(?P<port>\d{{1,3}}):?"
    r"\s{1,40}(?P<words>(?:subnet_prefix|lid|state)\s.*)",
    re.ASCII,
)
#: With -d, below a row.
_CAPS = re.compile(r"\s{1,40}caps: <[A-Z][A-Z_0-9, ]*>\s*")
_WORDS = frozenset(
    ("subnet_prefix", "lid", "sm_lid", "lmc", "state", "physical_state", "netdev", "netdev_index")
)
#: The names of states, iproute2's rdma/link.c: a line may end within the last one.
_STATES = ("ACTIVE", "DOWN", "INIT", "ARMED", "LINK_UP", "POLLING", "DISABLED", "SLEEP")


def _rdma_link_row(line: Line) -> RowReading | None:
    """Read the rows, one for each port."""
    row = _RDMA_LINK_ROW.fullmatch(line.text)
    if row is None:
        return RECOGNIZED if _CAPS.fullmatch(line.text) else None
    words = row["words"].split()
    fields = dict(zip(words[::2], words[1::2], strict=False))
    observation = _rdma_link_port(Origin(_RDMA_LINK, line.number), row, fields)
    is_even = not len(words) % 2
    fully_read = is_even and _is_fully_read(observation, fields)
    is_state = is_even and words[-2] in ("state", "physical_state") and not fully_read
    possible_ends = _STATES if is_state else () if is_even else _WORDS
    is_cut = any(word.startswith(words[-1]) for word in possible_ends)
    return RowReading((observation,), fully_read, row["device"] if is_cut else "")


def _rdma_link_port(
    origin: Origin, row: re.Match[str], fields: Mapping[str, str]
) -> PortObservation:
    netdev = fields.get("netdev")
    return PortObservation(
        origin,
        row["device"],
        number(row["port"]),
        netdevs=None if netdev is None else (netdev,),
        state=port_state(fields.get("state", "")),
        physical_state=physical_state(fields.get("physical_state", "")),
        link_layer=_link_layer(fields),
        lid=number(fields.get("lid", "")),
    )


def _link_layer(fields: Mapping[str, str]) -> LinkLayer | None:
    """Return InfiniBand for a port with a LID; without one, the link layer is unknown."""
    return "InfiniBand" if "lid" in fields else None


def _is_fully_read(observation: PortObservation, keys: Iterable[str]) -> bool:
    values = {"state": observation.state, "physical_state": observation.physical_state}
    return all(word in _WORDS and values.get(word, "") is not None for word in keys)


read_rdma_link = LineByLineReader(_rdma_link_row)
RDMA_LINK = Reader(_RDMA_LINK, read_rdma_link)


# rdma dev (iproute2), a row for each device.
#
#   0: mlx5_0: node_type ca protocol ib fw 28.39.1002 node_guid a088:c203:0012:3456
#       sys_image_guid a088:c203:0012:3456                         (in one line)
#
# The protocol is that of the first port; only a ConnectX-3 can have another on the second. Sources:
# iproute2, rdma/dev.c; Linux, drivers/infiniband/core/nldev.c, fill_dev_info.

_RDMA_DEV = "rdma dev"

_RDMA_DEV_ROW = re.compile(
    rf"\s{{0,40}}\d{{1,5}}: (?P<device>{DEVICE}): (?P<words>node_type\s.*)", re.ASCII
)
_PROTOCOLS: dict[str, LinkLayer] = {"ib": "InfiniBand", "roce": "Ethernet", "iw": "Ethernet"}
_SEVERAL_LINK_LAYERS = "mlx4_"


def _rdma_dev_row(line: Line) -> RowReading | None:
    """Read a row, which shows a device."""
    row = _RDMA_DEV_ROW.fullmatch(line.text)
    if row is None:
        return None
    words = row["words"].split()
    fields = dict(zip(words[::2], words[1::2], strict=False))
    node_guid, last_guid = (guid(fields.get(key, "")) for key in ("node_guid", "sys_image_guid"))
    observation = PortObservation(
        Origin(_RDMA_DEV, line.number),
        row["device"],
        1 if row["device"].startswith(_SEVERAL_LINK_LAYERS) else None,
        link_layer=_PROTOCOLS.get(fields.get("protocol", "")),
        # A word after it shows that the version is complete.
        firmware=fields.get("fw") if "node_guid" in words else None,
        node_guid=node_guid,
    )
    return RowReading((observation,), fully_read=last_guid is not None)


read_rdma_dev = LineByLineReader(_rdma_dev_row)
RDMA_DEV = Reader(_RDMA_DEV, read_rdma_dev)


# ip -br address and ip -br link (iproute2), a row for each network interface.
#
#   ens3f0np0        UP             10.0.0.4/24 fe80::a288:c2ff:fe12:3456/64
#   eth0@if12        UP             3a:7c:01:02:03:04 <BROADCAST,MULTICAST,UP,LOWER_UP>
#
# A row without an address is taken only if its columns are as wide as `ip` makes them. Source:
# iproute2, ip/ipaddress.c.

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
    details = row["rest"].rstrip()
    addresses: list[str] = []
    link = _LINK.fullmatch(details) is not None
    while not link and (address := _ADDRESS.match(details)):
        addresses.append(address["address"])
        details = details[address.end() :]
    wide = row.start("state") > _WIDE
    if not link and (details or not (addresses or wide)):
        return None
    origin = Origin("ip -br link" if link else "ip -br address", line.number)
    interface = InterfaceObservation(origin, row["netdev"], row["state"], tuple(addresses))
    return RowReading((interface,))


read_ip_brief = LineByLineReader(_ip_brief_row)
IP_BRIEF = Reader(_IP_BRIEF, read_ip_brief)


# rdma link with -j, and with -jp, which writes an object on several lines.
#
#   [{"ifindex":0,"ifname":"mlx5_0","port":1,"state":"ACTIVE","physical_state":"LINK_UP", ...
#
# The objects are found by their first keys, without decoding the document, which may be cut.
# Source: iproute2, rdma/link.c.

_RDMA_LINK_JSON = "rdma -j link"

_OBJECT_START = re.compile(
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
    observations: list[PortObservation] = []
    recognized: set[int] = set()
    for object_start in _OBJECT_START.finditer(text):
        fields, end = _pairs(text, object_start.end())
        first, last = (
            bisect_right(starts, position) - 1 for position in (object_start.start(), end)
        )
        observation = _json_port(Origin(_RDMA_LINK_JSON, lines[first].number), object_start, fields)
        observations.append(observation)
        states = {"state": observation.state, "physical_state": observation.physical_state}
        if text[end : end + 1] == "}" and None not in (states.get(key, "") for key in fields):
            recognized.update(line.number for line in lines[first : last + 1])
    return Reading(tuple(observations), frozenset(recognized))


def _pairs(text: str, position: int) -> tuple[dict[str, str], int]:
    """Return the values by key from a position on, and the position after them."""
    fields: dict[str, str] = {}
    while pair := _PAIR.match(text, position):
        fields.setdefault(pair["key"], pair["text"] or pair["number"] or "")
        position = pair.end()
    return fields, position + (
        len(text[position : position + 80]) - len(text[position : position + 80].lstrip())
    )


def _json_port(
    origin: Origin, object_start: re.Match[str], fields: dict[str, str]
) -> PortObservation:
    netdev = fields.get("netdev")
    return PortObservation(
        origin,
        object_start["device"],
        int(object_start["port"]),
        netdevs=(netdev,) if netdev else None,
        state=port_state(fields.get("state", "")),
        physical_state=physical_state(fields.get("physical_state", "")),
        link_layer=_link_layer(fields),
        lid=number(fields.get("lid", "")),
    )


RDMA_LINK_JSON = Reader(_RDMA_LINK_JSON, read_rdma_link_json)


# rdma system show (iproute2), which shows whether containers see the node's RDMA devices.
#
#   netns shared copy-on-fork on
#   netns exclusive
#   [{"netns":"shared","copy-on-fork":true}]                    (-j)
#
# Source: iproute2, rdma/sys.c.

_RDMA_SYSTEM = "rdma system show"

_RDMA_SYSTEM_ROW = re.compile(
    r"\s{0,40}netns (shared|exclusive)"
    r"(?: (?:copy-on-fork|privileged-qkey|monitor) (?:on|off)){0,4}\s*"
)
_JSON = re.compile(
    r'\s{0,40}\[?\{\s{0,8}"netns"\s{0,8}:\s{0,8}"(shared|exclusive)"'
    r'(?:,\s{0,8}"[a-z-]{1,40}"\s{0,8}:\s{0,8}(?:true|false|"on"|"off")\s{0,8}){0,4}\s{0,8}\}\]?\s*'
)


def _rdma_system_row(line: Line) -> RowReading | None:
    """Read the mode."""
    mode = _RDMA_SYSTEM_ROW.fullmatch(line.text) or _JSON.fullmatch(line.text)
    if mode is None:
        return None
    return RowReading((PropertyObservation(Origin(_RDMA_SYSTEM, line.number), "netns", mode[1]),))


read_rdma_system = LineByLineReader(_rdma_system_row)
RDMA_SYSTEM = Reader(_RDMA_SYSTEM, read_rdma_system)
