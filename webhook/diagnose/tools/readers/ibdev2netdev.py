"""ibdev2netdev, which says what network interface an RDMA port has.

    mlx5_0 port 1 ==> ib0 (Up)
    0000:3b:00.0 mlx5_0 (MT4123 - MCX653106A-HDAT) ConnectX-6 VPI fw 20.31.1014 port 1 (DOWN  )
        ==> ib0 (Down)                                     (in one line)
    mlx4_0 port 1 <===> ib0

The second is `-v`, the third a script of before 2012. (Up) is the network interface, not the RDMA
port, whose state only `-v` shows. Source: mlnx-tools, ofed_scripts/ibdev2netdev.
"""

from __future__ import annotations

import re

from webhook.diagnose.tools.observations import Line, Origin, PortSighting
from webhook.diagnose.tools.readers.notation import (
    DEVICE,
    NETDEV,
    PCI,
    mellanox_type,
    number,
    port_state,
)
from webhook.diagnose.tools.readers.rows import Reader, ReadsRows, RowReading

_IBDEV2NETDEV = "ibdev2netdev"

#: What follows (Up) is a remark of whoever saved the text.
_IBDEV2NETDEV_ROW = re.compile(
    rf"\s{{0,40}}(?:(?P<pci>{PCI})\s{{1,40}})?(?P<device>{DEVICE})\s{{1,40}}"
    r"(?P<verbose>\((?P<type>MT\d{4,6}|NA) - (?P<part>\S{0,60})\s{0,20}\)\s{1,20}"
    r"(?P<words>\S.{0,200}?)??\s{0,40}\bfw\s{1,40}(?P<firmware>\S{1,40})\s{1,40})?"
    r"port\s{1,40}(?P<port>\d{1,3})\s{1,40}(?:\((?P<state>\w{1,12})\s{0,8}\)\s{1,40})?"
    rf"(?:<===>\s{{1,40}}(?P<old>{NETDEV})\s*$"
    rf"|==>(?P<new>\s{{0,40}}(?P<netdev>{NETDEV})?\s{{1,40}}\((?P<up>[\w/]{{0,12}})\))?)",
    re.ASCII,
)
_UP = {"Up": True, "Down": False}
#: Where the script finds no serial number, it takes another string of the card for the part.
_PART = re.compile(r"M(?:CX|BF|HQ)[\w-]{2,40}|900-[\w-]{2,40}", re.ASCII)
#: What the script writes where it could not read a file.
_UNKNOWN = (None, "", "NA")


def _ibdev2netdev_row(line: Line) -> RowReading | None:
    """Read the rows, one for each port."""
    row = _IBDEV2NETDEV_ROW.match(line.text)
    if row is None or (row["state"] is None) != (row["verbose"] is None):
        return None
    state = port_state(row["state"] or "")
    sighting = PortSighting(
        Origin(_IBDEV2NETDEV, line.number),
        row["device"],
        number(row["port"]),
        netdevs=_netdevs(row),
        netdev_up=_UP.get(row["up"] or ""),
        state=state,
        pci=row["pci"] and row["pci"].lower(),
        device_id=mellanox_type(row["type"] or ""),
        model=_model(row["part"], row["words"]),
        firmware=None if row["firmware"] == "NA" else row["firmware"],
    )
    whole = sighting.netdevs is not None
    known = row["up"] in (*_UNKNOWN, *_UP) and (state is not None or row["state"] in _UNKNOWN)
    return RowReading((sighting,), understood=whole and known)


def _netdevs(row: re.Match[str]) -> tuple[str, ...] | None:
    """Return the interface; None where the line was cut before its end."""
    if row["old"] or row["new"]:
        netdev = row["old"] or row["netdev"]
        return (netdev,) if netdev else ()
    return None


def _model(part: str | None, words: str | None) -> str | None:
    return part if part and _PART.fullmatch(part) else words or None


read_ibdev2netdev = ReadsRows(_ibdev2netdev_row)
IBDEV2NETDEV = Reader(_IBDEV2NETDEV, read_ibdev2netdev)
