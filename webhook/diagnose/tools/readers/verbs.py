"""Readers for RDMA devices and ports: ibv_devices, ibdev2netdev, ibv_devinfo and show_gids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from webhook.diagnose.tools.hardware import verbs_vendor
from webhook.diagnose.tools.observations import (
    GidObservation,
    Line,
    Observation,
    Origin,
    PortObservation,
    Reading,
)
from webhook.diagnose.tools.readers.blocks import (
    Block,
    BlockFormat,
    read_blocks,
)
from webhook.diagnose.tools.readers.layouts import (
    RECOGNIZED,
    LineByLineReader,
    Reader,
    RowReading,
)
from webhook.diagnose.tools.readers.notation import (
    DEVICE,
    NETDEV,
    PCI,
    gid,
    guid,
    hexadecimal,
    kernel_gid,
    link_layer,
    mellanox_type,
    number,
    port_state,
    rate,
    single_word,
    verbs_physical_state,
    verbs_port_state,
)

# ibv_devices (libibverbs), a row for each device.
#
#   device                 node GUID
#   ------              ----------------
#   mlx5_0              a088c20300123456
#
# Source: rdma-core, libibverbs/examples/device_list.c.

_IBV_DEVICES = "ibv_devices"

_IBV_DEVICES_ROW = re.compile(
    rf"\s{{0,8}}(?P<device>{DEVICE})\s{{1,30}}(?P<guid>[0-9a-f]{{16}})\s*", re.ASCII
)
_HEAD = re.compile(r"\s{0,8}(?:device\s{1,40}node GUID|-{6}\s{1,40}-{16})\s*")


def _ibv_devices_row(line: Line) -> RowReading | None:
    """Read a row."""
    row = _IBV_DEVICES_ROW.fullmatch(line.text)
    if row is None:
        return RECOGNIZED if _HEAD.fullmatch(line.text) else None
    observation = PortObservation(
        Origin(_IBV_DEVICES, line.number), row["device"], node_guid=guid(row["guid"])
    )
    return RowReading((observation,))


read_ibv_devices = LineByLineReader(_ibv_devices_row)
IBV_DEVICES = Reader(_IBV_DEVICES, read_ibv_devices)


# ibdev2netdev, which shows the network interface of an RDMA port.
#
#   mlx5_0 port 1 ==> ib0 (Up)
#   0000:3b:00.0 mlx5_0 (MT4123 - MCX653106A-HDAT) ConnectX-6 VPI fw 20.31.1014 port 1 (DOWN  )
#       ==> ib0 (Down)                                     (in one line)
#   mlx4_0 port 1 <===> ib0
#
# The second is `-v`, the third a script of before 2012. (Up) is the network interface, not the
# RDMA port, whose state only `-v` shows. Source: mlnx-tools, ofed_scripts/ibdev2netdev.

_IBDEV2NETDEV = "ibdev2netdev"

#: Text after (Up) is a remark of the person who saved it.
_IBDEV2NETDEV_ROW = re.compile(
    rf"\s{{0,40}}(?:(?P<pci>{PCI})\s{{1,40}})?(?P<device>{DEVICE})\s{{1,40}}"
    r"(?P<verbose>\((?P<type>MT\d{4,6}|NA) - (?P<part>\S{0,60})\s{0,20}\)\s{1,20}"
    r"(?P<words>\S.{0,200}?)??\s{0,40}\bfw\s{1,40}(?P<firmware>\S{1,40})\s{1,40})?"
    r"port\s{1,40}(?P<port>\d{1,3})\s{1,40}(?:\((?P<state>\w{1,12})\s{0,8}\)\s{1,40})?"
    rf"(?:<===>\s{{1,40}}(?P<old>{NETDEV})\s*$"
    rf"|==>(?P<new>\s{{0,40}}(?P<netdev>{NETDEV})?\s{{1,40}}\((?P<up>[\w/]{{0,12}})\))?)",
    re.ASCII,
)
#: The beginning of a row of -v.
_TORN = re.compile(
    rf"\s{{0,40}}(?P<pci>{PCI})\s{{1,40}}(?P<device>{DEVICE})\s{{1,40}}\(MT\d{{4,6}} - .{{0,300}}",
    re.ASCII,
)
_UP = {"Up": True, "Down": False}
#: Without a serial number, the script shows another string of the card as the part.
_PART = re.compile(r"M(?:CX|BF|HQ)[\w-]{2,40}|900-[\w-]{2,40}", re.ASCII)
#: The script's values for a file that it could not read.
_UNKNOWN = (None, "", "NA")


def _ibdev2netdev_row(line: Line) -> RowReading | None:
    """Read a row, which shows a port."""
    row, torn = _IBDEV2NETDEV_ROW.match(line.text), _TORN.fullmatch(line.text)
    origin = Origin(_IBDEV2NETDEV, line.number)
    if row is None and torn:
        observation = PortObservation(origin, torn["device"], pci=torn["pci"].lower())
        return RowReading((observation,), fully_read=False, cut_within=torn["device"])
    if row is None or (row["state"] is None) != (row["verbose"] is None):
        return None
    state = port_state(row["state"] or "")
    observation = PortObservation(
        origin,
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
    complete = observation.netdevs is not None
    understood = row["up"] in (*_UNKNOWN, *_UP) and (state is not None or row["state"] in _UNKNOWN)
    return RowReading((observation,), complete and understood, "" if complete else row["device"])


def _netdevs(row: re.Match[str]) -> tuple[str, ...] | None:
    """Return the interface; None if the line was cut before its end."""
    if row["old"] or row["new"]:
        netdev = row["old"] or row["netdev"]
        return (netdev,) if netdev else ()
    return None


def _model(part: str | None, words: str | None) -> str | None:
    return part if part and _PART.fullmatch(part) else words or None


read_ibdev2netdev = LineByLineReader(_ibdev2netdev_row)
IBDEV2NETDEV = Reader(_IBDEV2NETDEV, read_ibdev2netdev)


# ibv_devinfo (libibverbs), also with -v: a block for each device.
#
#   hca_id: mlx5_0
#           fw_ver:                         28.39.1002
#           vendor_part_id:                 4129
#           phys_port_cnt:                  1
#                   port:   1
#                           state:                  PORT_ACTIVE (4)
#                           active_width:           4X (2)
#                           active_speed:           100.0 Gbps (128)
#                           GID[  3]:               ::ffff:10.0.0.4, RoCE v2
#
# The version of OFED has another line, "Device ports:". `vendor_id` is the id in PCI, or the
# one that some vendors have at the IEEE; `vendor_part_id` is the PCI device id (0 for a device in
# software). The rate is the width times the speed. Source: rdma-core, libibverbs/examples,
# devinfo.c.

_IBV_DEVINFO = "ibv_devinfo"

_GID = re.compile(
    r"\s{0,40}GID\[\s{0,5}(\d{1,4})\]:\s{1,20}([0-9a-fA-F:.]{2,45})(?:, (?:IB/)?RoCE v([12]))?\s*",
    re.ASCII,
)
#: Other lines of -v: capabilities, and limits of the device.
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


def _vendor(text: str) -> int | None:
    """Return the PCI vendor; None for a number of no known vendor, or the beginning of one."""
    shown = hexadecimal(text)
    return None if shown is None else verbs_vendor(shown)


def _width(text: str) -> int | None:
    width = re.fullmatch(r"(\d{1,2})X(?: \(\d{1,2}\))?", text, re.ASCII)
    return int(width[1]) if width else None


#: Keys of a port with -v before its speed, which nobody keeps without that.
_BEFORE_SPEED = frozenset(("max_msg_sz", "bad_pkey_cntr"))


def _lacks_end(block: Block) -> bool:
    """Return whether a port of -v lacks its speed, or the rest of its last GIDs.

    The kernel adds an address as RoCE v1 and then as v2 (Linux, drivers/infiniband/core,
    roce_gid_mgmt.c), so v1 is never the last of a table that has both for each address.
    """
    if _BEFORE_SPEED.issubset(block.keys) and "active_speed" not in block.keys:
        return True
    if not block.gids or block.gids[-1][0] != block.last_line:
        return False
    *before, last_version = (version for _, _, _, version in block.gids)
    if last_version is None:
        return any(before)
    of_v1, of_v2 = (
        {address for _, _, address, shown in block.gids[:-1] if shown == version}
        for version in ("v1", "v2")
    )
    return last_version == "v1" and bool(of_v1) and of_v1 <= of_v2


_DEVINFO_FORMAT = BlockFormat(
    _IBV_DEVINFO,
    re.compile(rf"\s{{0,40}}hca_id:\s{{1,20}}(?P<device>{DEVICE})\s*"),
    re.compile(r"\s{0,60}port:\s{1,20}(?P<port>\d{1,3})\s*", re.ASCII),
    {
        "transport": None,
        "fw_ver": ("firmware", single_word),
        "node_guid": ("node_guid", guid),
        "sys_image_guid": None,
        "vendor_id": ("vendor_id", _vendor),
        "vendor_part_id": ("device_id", number),
        "hw_ver": None,
        "board_id": ("board_id", single_word),
        "phys_port_cnt": None,
    },
    {
        "state": ("state", verbs_port_state),
        "max_mtu": ("max_mtu", number),
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
    # ibstatus writes it after one tab.
    {"link_layer": range(10, 80)},
    first_keys=frozenset(("fw_ver", "node_guid", "sys_image_guid")),
    # It always shows ports, so no key is the last of a device.
    last_device_key="port",
    last_port_keys=frozenset(("port_lmc", "link_layer")),
    port_count_key="phys_port_cnt",
    no_value="Unspecified",  # the link layer of EFA
    torn=re.compile(r"\s{0,40}G(?:I(?:D(?:\[.{0,80})?)?)?"),
    lacks_end=_lacks_end,
)


def read_ibv_devinfo(lines: Sequence[Line]) -> Reading:
    """Read the blocks: an observation for each device, for each port, and for each GID."""
    return read_blocks(lines, _DEVINFO_FORMAT, _devinfo_observations, _take_gid)


def _take_gid(line: Line, block: Block) -> bool:
    row = _GID.fullmatch(line.text)
    if row is None or block.port is None:
        is_verbose = _VERBOSE.fullmatch(line.text) is not None
        if is_verbose:
            block.keys.append(line.text.strip().partition(":")[0])
        return is_verbose
    # A short form may have been cut anywhere; only a version after it proves that it is complete.
    written = gid(row[2]) if row[3] else kernel_gid(row[2])
    if written is not None:
        version = row[3] and f"v{row[3]}"
        block.gids.append((line.number, int(row[1]), written, version))
    return written is not None


def _devinfo_observations(block: Block) -> Iterator[Observation]:
    width, speed = block.fields.pop("width", None), block.fields.pop("speed", None)
    if block.fields.get("device_id") == 0:
        del block.fields["device_id"]
    if isinstance(width, int) and isinstance(speed, float) and width and speed:
        block.fields["rate_gbps"] = width * speed
    yield _DEVINFO_FORMAT.port_observation(block)
    for line, index, written, version in block.gids:
        yield GidObservation(
            Origin(_IBV_DEVINFO, line), block.device, block.port or 0, index, written, version
        )


IBV_DEVINFO = Reader(_IBV_DEVINFO, read_ibv_devinfo)


# show_gids (mlnx-tools), a row for each GID that is not zero.
#
#   DEV     PORT    INDEX   GID                                     IPv4            VER     DEV
#   mlx5_0  1       3       0000:0000:0000:0000:0000:ffff:0a00:0004 10.0.0.4        v2      ens3f0
#
# On InfiniBand it writes v1 or nothing, and no network interface. Source: mlnx-tools, show_gids.

_SHOW_GIDS = "show_gids"

_SHOW_GIDS_ROW = re.compile(
    rf"\s{{0,40}}(?P<device>{DEVICE})\s{{1,20}}(?P<port>\d{{1,3}})\s{{1,20}}(?P<index>\d{{1,4}})"
    r"\s{1,20}(?P<gid>(?:[0-9a-f]{4}:){7}[0-9a-f]{4})(?:\s{1,40}\d{1,3}(?:\.\d{1,3}){3})?"
    rf"(?:\s{{1,40}}(?P<version>v[12])(?:\s{{1,40}}(?P<netdev>{NETDEV}))?)?\s*",
    re.ASCII,
)
_OTHER = re.compile(
    r"\s{0,40}(?:DEV\s+PORT\s+INDEX\s+GID\s+IPv4\s+VER\s+DEV|---\s+----\s+-----\s+---\s[\s-]{1,80}"
    r"|n_gids_found=\d{1,9})\s*",
    re.ASCII,
)


def _show_gids_row(line: Line) -> RowReading | None:
    """Read a row, which shows a GID."""
    row = _SHOW_GIDS_ROW.fullmatch(line.text)
    address = gid(row["gid"]) if row else None
    if row is None or address is None:
        return RECOGNIZED if _OTHER.fullmatch(line.text) else None
    observation = GidObservation(
        Origin(_SHOW_GIDS, line.number),
        row["device"],
        int(row["port"]),
        int(row["index"]),
        address,
        row["version"],
        row["netdev"],
    )
    return RowReading((observation,))


read_show_gids = LineByLineReader(_show_gids_row)
SHOW_GIDS = Reader(_SHOW_GIDS, read_show_gids)
