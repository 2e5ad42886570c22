"""ibstatus (infiniband-diags), a block for each port, of what sysfs says.

    Infiniband device 'mlx5_0' port 1 status:
            default gid:     fe80:0000:0000:0000:0015:5dff:fd34:11eb
            state:           4: ACTIVE
            rate:            200 Gb/sec (4X HDR)

It writes "unknown" for a file that it cannot read, and "IB" for a link layer. The default GID is
the one with index 0; zeros stand for an empty row. Source: rdma-core, infiniband-diags/scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from webhook.diagnose.tools.observations import GidSighting, Line, Origin, Reading, Sighting
from webhook.diagnose.tools.readers.layouts import Block, BlockFormat, read_blocks
from webhook.diagnose.tools.readers.notation import (
    DEVICE,
    hexadecimal,
    kernel_gid,
    kernel_physical_state,
    kernel_port_state,
    link_layer,
    rate,
)
from webhook.diagnose.tools.readers.rows import Reader

_IBSTATUS = "ibstatus"

_NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
_IBSTATUS_SHAPE = BlockFormat(
    _IBSTATUS,
    re.compile(
        rf"\s{{0,40}}Infiniband device '(?P<device>{DEVICE})' port (?P<port>\d{{1,3}}) status:\s*"
    ),
    None,
    {},
    {
        "default gid": ("gid", kernel_gid),
        "base lid": ("lid", hexadecimal),
        "sm lid": None,
        "state": ("state", kernel_port_state),
        "phys state": ("physical_state", kernel_physical_state),
        "rate": ("rate_gbps", rate),
        "link_layer": ("link_layer", link_layer),
    },
    # ibv_devinfo writes it behind three tabs.
    {"link_layer": range(1, 10)},
)


def read_ibstatus(lines: Sequence[Line]) -> Reading:
    """Read the blocks: a record for each port, and one for its first GID."""
    return read_blocks(lines, _IBSTATUS_SHAPE, _ibstatus_ports)


def _ibstatus_ports(block: Block) -> Iterator[Sighting]:
    first = block.fields.pop("gid", _NO_GID)
    yield _IBSTATUS_SHAPE.port_sighting(block)
    if first != _NO_GID and block.port is not None:
        yield GidSighting(Origin(_IBSTATUS, block.line), block.device, block.port, 0, first)


IBSTATUS = Reader(_IBSTATUS, read_ibstatus)
