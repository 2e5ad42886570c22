"""ibstat (infiniband-diags), a block for each device.

    CA 'mlx5_0'
            CA type: MT4123
            Port 1:
                    State: Active
                    Rate: 200

`ibstat mlx5_0 1` writes `CA: 'mlx5_0'` and the port without indentation, and the web loses it, too:
so the keys tell what is what. The rate of a port that is Down means nothing, and is read as it is
shown. "Effective speed", in newer versions, is that of all ports of a bond together; it says
nothing of one port. Source: rdma-core, infiniband-diags/ibstat.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import Line, PortSighting, Reading
from webhook.diagnose.tools.readers.layouts import Block, BlockFormat, read_blocks
from webhook.diagnose.tools.readers.notation import (
    DEVICE,
    guid,
    link_layer,
    mellanox_type,
    number,
    physical_state,
    port_state,
    rate,
    single_word,
)
from webhook.diagnose.tools.readers.rows import Reader

_IBSTAT = "ibstat"

_IBSTAT_SHAPE = BlockFormat(
    _IBSTAT,
    re.compile(rf"\s{{0,40}}(?:CA|Switch|Router|iWARP RNIC|\?{{3}}):? '(?P<device>{DEVICE})'\s*"),
    re.compile(r"\s{0,40}Port (?P<port>\d{1,3}):\s*", re.ASCII),
    {
        "CA type": ("model", single_word),
        "Switch type": ("model", single_word),
        "Router type": ("model", single_word),
        "iWARP RNIC type": ("model", single_word),
        "Number of ports": None,
        "Firmware version": ("firmware", single_word),
        "Hardware version": None,
        "Node GUID": ("node_guid", guid),
        "System image GUID": None,
    },
    {
        "State": ("state", port_state),
        "Physical state": ("physical_state", physical_state),
        "Rate": ("rate_gbps", rate),
        "Effective speed": None,
        "Base lid": ("lid", number),
        "LMC": None,
        "SM lid": None,
        "Capability mask": None,
        "Port GUID": ("port_guid", guid),
        "Link layer": ("link_layer", link_layer),
    },
)


def read_ibstat(lines: Sequence[Line]) -> Reading:
    """Read the blocks: a record for each device, and one for each port."""
    return read_blocks(lines, _IBSTAT_SHAPE, _ibstat_ports)


def _ibstat_ports(block: Block) -> tuple[PortSighting]:
    model = block.fields.get("model", "")
    device_id = mellanox_type(model)
    if device_id is not None:
        block.fields["device_id"] = device_id
    if device_id is not None or model in ("M", "MT"):  # which were cut
        del block.fields["model"]
    return (_IBSTAT_SHAPE.port_sighting(block),)


IBSTAT = Reader(_IBSTAT, read_ibstat)
