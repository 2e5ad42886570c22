"""rdma link (iproute2).

    link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 13 sm_lid 1 lmc 0 state ACTIVE ...
    link mlx5_1/1 state DOWN physical_state DISABLED netdev ens1f1np1

It shows the network interface of a port only where it is in the same network namespace, and never
that of InfiniBand, so none shown does not mean that there is none. Source: iproute2, rdma/link.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from webhook.diagnose.tools.observations import Line, Origin, PortSighting
from webhook.diagnose.tools.readers.notation import DEVICE, number, physical_state, port_state
from webhook.diagnose.tools.readers.rows import Reader, ReadsRows, RowReading

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


def _rdma_link_row(line: Line) -> RowReading | None:
    """Read the rows, one for each port."""
    row = _RDMA_LINK_ROW.fullmatch(line.text)
    if row is None:
        return RowReading() if _CAPS.fullmatch(line.text) else None
    words = row["words"].split()
    shown = dict(zip(words[::2], words[1::2], strict=False))
    sighting = _rdma_link_port(Origin(_RDMA_LINK, line.number), row, shown)
    return RowReading((sighting,), understood=not len(words) % 2 and _known(sighting, shown))


def _rdma_link_port(origin: Origin, row: re.Match[str], shown: Mapping[str, str]) -> PortSighting:
    netdev = shown.get("netdev")
    return PortSighting(
        origin,
        row["device"],
        number(row["port"]),
        netdevs=None if netdev is None else (netdev,),
        state=port_state(shown.get("state", "")),
        physical_state=physical_state(shown.get("physical_state", "")),
        lid=number(shown.get("lid", "")),
    )


def _known(sighting: PortSighting, shown: Iterable[str]) -> bool:
    values = {"state": sighting.state, "physical_state": sighting.physical_state}
    return all(word in _WORDS and values.get(word, "") is not None for word in shown)


read_rdma_link = ReadsRows(_rdma_link_row)
RDMA_LINK = Reader(_RDMA_LINK, read_rdma_link)
