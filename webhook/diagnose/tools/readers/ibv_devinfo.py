"""ibv_devinfo (libibverbs), also with -v: a block for each device.

    hca_id: mlx5_0
            fw_ver:                         28.39.1002
            vendor_part_id:                 4129
            phys_port_cnt:                  1
                    port:   1
                            state:                  PORT_ACTIVE (4)
                            active_width:           4X (2)
                            active_speed:           100.0 Gbps (128)
                            GID[  3]:               ::ffff:10.0.0.4, RoCE v2

The version of OFED has a line "Device ports:" more. `vendor_id` is the vendor's number at the IEEE,
not that of PCI, but `vendor_part_id` is the PCI device id (0 for a device in software). The rate is
the width times the speed. Source: rdma-core, libibverbs/examples/devinfo.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from webhook.diagnose.tools.observations import GidSighting, Line, Origin, Reading, Sighting
from webhook.diagnose.tools.readers.layouts import Block, BlockFormat, read_blocks
from webhook.diagnose.tools.readers.notation import (
    DEVICE,
    gid,
    guid,
    kernel_gid,
    link_layer,
    number,
    rate,
    single_word,
    verbs_physical_state,
    verbs_port_state,
)
from webhook.diagnose.tools.readers.rows import Reader

_IBV_DEVINFO = "ibv_devinfo"

_GID = re.compile(
    r"\s{0,40}GID\[\s{0,5}(\d{1,4})\]:\s{1,20}([0-9a-fA-F:.]{2,45})(?:, (?:IB/)?RoCE v([12]))?\s*",
    re.ASCII,
)
#: What -v writes besides: capabilities, and limits of the device.
_VERBOSE = re.compile(
    r"\s{0,60}(?:[A-Z]{1,20}(?:_[A-Z0-9]{1,20}){1,6}|XRC|NO SUPPORT"
    r"|Unknown flags: 0x[0-9A-Fa-f]{1,16}|max_[a-z0-9_]{1,40}:.{0,80}"
    r"|(?:page_size_cap|device_cap_flags(?:_ex)?|atomic_cap|local_ca_ack_delay|hca_core_clock"
    r"|(?:general|rc|uc|ud|xrc)_odp_caps|(?:tso|rss|packet_pacing)_caps|supported_qp"
    r"|completion timestamp_mask|rx_hash_(?:function|fields_mask)|qp_rate_limit_(?:min|max)"
    r"|num_comp_vectors|(?:raw packet|cq moderation) caps|flags|maximum available device memory"
    r"|port_cap_flags2?|bad_pkey_cntr|qkey_viol_cntr|sm_sl|(?:pkey|gid)_tbl_len|subnet_timeout"
    r"|init_type_reply|Device ports):.{0,80}"
    r"|(?:C-VLAN stripping|Scatter FCS|IP csum) offload|Delay drop|tag matching not supported"
    r"|(?:completion_timestamp_mask|core clock) not supported)\s*",
    re.ASCII,
)


def _width(text: str) -> int | None:
    width = re.fullmatch(r"(\d{1,2})X(?: \(\d{1,2}\))?", text, re.ASCII)
    return int(width[1]) if width else None


_SHAPE = BlockFormat(
    _IBV_DEVINFO,
    re.compile(rf"\s{{0,40}}hca_id:\s{{1,20}}(?P<device>{DEVICE})\s*"),
    re.compile(r"\s{0,60}port:\s{1,20}(?P<port>\d{1,3})\s*", re.ASCII),
    {
        "transport": None,
        "fw_ver": ("firmware", single_word),
        "node_guid": ("node_guid", guid),
        "sys_image_guid": None,
        "vendor_id": None,
        "vendor_part_id": ("device_id", number),
        "hw_ver": None,
        "board_id": ("board_id", single_word),
        "phys_port_cnt": None,
    },
    {
        "state": ("state", verbs_port_state),
        "max_mtu": None,
        "active_mtu": ("mtu", number),
        "sm_lid": None,
        "port_lid": ("lid", number),
        "port_lmc": None,
        "link_layer": ("link_layer", link_layer),
        "active_width": ("width", _width),
        "active_speed": ("speed", rate),
        "effective_speed": None,
        "phys_state": ("physical_state", verbs_physical_state),
    },
    # ibstatus writes it behind one tab.
    {"link_layer": range(10, 80)},
)


def read_ibv_devinfo(lines: Sequence[Line]) -> Reading:
    """Read the blocks: a record for each device, one for each port, and one for each GID."""
    return read_blocks(lines, _SHAPE, _tell, _takes_other)


def _takes_other(line: Line, block: Block) -> bool:
    row = _GID.fullmatch(line.text)
    if row is None or block.port is None:
        return _VERBOSE.fullmatch(line.text) is not None
    # A short form may have been cut anywhere; only with a version is its end known.
    written = gid(row[2]) if row[3] else kernel_gid(row[2])
    if written is not None:
        version = row[3] and f"v{row[3]}"
        block.fields.setdefault("gids", []).append((line.number, int(row[1]), written, version))
    return written is not None


def _tell(block: Block) -> Iterator[Sighting]:
    width, speed = block.fields.pop("width", None), block.fields.pop("speed", None)
    gids = block.fields.pop("gids", ())
    if block.fields.get("device_id") == 0:
        del block.fields["device_id"]
    if width and speed:
        block.fields["rate_gbps"] = width * speed
    yield _SHAPE.port_sighting(block)
    for line, index, written, version in gids:
        yield GidSighting(
            Origin(_IBV_DEVINFO, line), block.device, block.port or 0, index, written, version
        )


IBV_DEVINFO = Reader(_IBV_DEVINFO, read_ibv_devinfo)
