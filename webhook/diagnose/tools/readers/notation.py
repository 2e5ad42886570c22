"""Parsers for the tools' spellings of states, rates, numbers and addresses.

Each function returns None for a text that it does not recognize with certainty.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address

from webhook.diagnose.tools.observations import LinkLayer, PhysicalState, PortState

#: A part of a regular expression: the name of an RDMA device (the kernel has 64 bytes for it).
DEVICE = r"[A-Za-z][\w.-]{0,62}"
#: The name of a network interface (15 bytes in the kernel; longer in texts that people edited).
NETDEV = r"[^\s/(){}\[\],\"']{1,40}"
#: The address of a PCI function, with or without its domain.
PCI = r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"

#: Linux, drivers/infiniband/core/sysfs.c (ACTIVE); rdma-core, devinfo.c (PORT_ACTIVE), ibstat.c.
_PORT_STATES: dict[str, PortState] = {
    "DOWN": "Down",
    "INIT": "Initializing",
    "INITIALIZING": "Initializing",
    "ARMED": "Armed",
    "ACTIVE": "Active",
}
#: Number 5 is ACTIVE_DEFER, which begins like ACTIVE. Source: Linux, include/rdma/ib_verbs.h, enum
#: ib_port_state.
_STATE_NUMBERS: dict[PortState, str] = {
    "Down": "1",
    "Initializing": "2",
    "Armed": "3",
    "Active": "4",
}
#: Without blanks and underscores. iproute2 rdma/link.c writes ARMED for the state with number 4,
#: and rdma-core's devinfo.c writes TRAINNING.
_PHYSICAL_STATES: dict[str, PhysicalState] = {
    "nostatechange": "No state change",
    "nop": "No state change",
    "sleep": "Sleep",
    "polling": "Polling",
    "disabled": "Disabled",
    "portconfigurationtraining": "PortConfigurationTraining",
    "portconfigurationtrainning": "PortConfigurationTraining",
    "armed": "PortConfigurationTraining",
    "linkup": "LinkUp",
    "linkerrorrecovery": "LinkErrorRecovery",
    "linkerrorrecover": "LinkErrorRecovery",
    "phytest": "PhyTest",
}
_LINK_LAYERS: dict[str, LinkLayer] = {"InfiniBand": "InfiniBand", "Ethernet": "Ethernet"}
_RATE = re.compile(
    r"(\d{1,4}(?:\.\d{1,6})?)(?:\s?(?:Gb/s|Gb/sec|Gbps))?(?:\s\([\w .]{1,20}\))?", re.ASCII
)
_NUMBER = re.compile(r"(-?(?:0|[1-9]\d{0,18})|0x[0-9a-f]{1,16})(?:\s\(\d{1,3}\))?", re.ASCII)
_NAMED = re.compile(r"\d{1,2}:\s{0,4}(\w[\w ]{0,40})", re.ASCII)
_VERBS_NAMED = re.compile(r"(?:PORT_(?!CONFIG))?(\w[\w ]{0,40}) \(\d{1,2}\)", re.ASCII)
_WORD = re.compile(r"[\w.:/+-]{1,60}", re.ASCII)
_GID_LENGTH = 39
_GUID = re.compile(r"[0-9a-f]{16}", re.ASCII)


def port_state(text: str) -> PortState | None:
    """Return the state of a port: "Active", "ACTIVE"."""
    return _PORT_STATES.get(text.strip().upper())


def kernel_port_state(text: str) -> PortState | None:
    """Return the state of a port as sysfs writes it: "4: ACTIVE"."""
    number, _, name = text.strip().partition(":")
    state = port_state(name)
    return state if state and _STATE_NUMBERS[state] == number else None


def verbs_port_state(text: str) -> PortState | None:
    """Return the state of a port as libibverbs writes it: "PORT_ACTIVE (4)"."""
    named = _VERBS_NAMED.fullmatch(text.strip())
    return port_state(named[1]) if named else None


def physical_state(text: str) -> PhysicalState | None:
    """Return the physical state of a port: "LinkUp", "LINK_UP"."""
    return _PHYSICAL_STATES.get(text.replace(" ", "").replace("_", "").lower())


def kernel_physical_state(text: str) -> PhysicalState | None:
    """Return the physical state of a port as sysfs writes it: "5: LinkUp"."""
    named = _NAMED.fullmatch(text.strip())
    return physical_state(named[1]) if named else None


def verbs_physical_state(text: str) -> PhysicalState | None:
    """Return the physical state of a port as libibverbs writes it: "LINK_UP (5)"."""
    named = _VERBS_NAMED.fullmatch(text.strip())
    return physical_state(named[1]) if named else None


def link_layer(text: str) -> LinkLayer | None:
    """Return the link layer of a port."""
    return _LINK_LAYERS.get(text.strip())


def rate(text: str) -> float | None:
    """Return a rate in Gb/s: "400", "40 (FDR10)", "400 Gb/sec (4X NDR)", "25.0 Gbps (32)"."""
    match = _RATE.fullmatch(text.strip())
    return float(match[1]) if match else None


def single_word(text: str) -> str | None:
    """Return a text of one word, such as a version or a part number."""
    return text if _WORD.fullmatch(text) else None


def guid(text: str) -> str | None:
    """Return a GUID without colons: "0x0015...", "0015:5dff:fd34:11eb"."""
    digits = text.strip().lower().removeprefix("0x").replace(":", "")
    return digits if _GUID.fullmatch(digits) else None


def gid(text: str) -> str | None:
    """Return the full form of a GID, also from the short form of an IPv6 address."""
    try:
        return IPv6Address(text.strip().partition("%")[0]).exploded
    except ValueError:
        return None


def kernel_gid(text: str) -> str | None:
    """Return a GID in the full form of the kernel: "fe80:0000:...:11eb"."""
    return gid(text) if len(text.strip()) == _GID_LENGTH else None


def number(text: str) -> int | None:
    """Return a number of plausible length: "13", "0xd", "4096 (5)"."""
    match = _NUMBER.fullmatch(text.strip())
    return int(match[1], 0) if match else None


def hexadecimal(text: str) -> int | None:
    """Return a number in the kernel's notation of LIDs and ids, "0x11"; None for a cut "0"."""
    return number(text) if text.strip().startswith("0x") else None


def mellanox_type(text: str) -> int | None:
    """Return the PCI device id in a model such as "MT4129", where it is decimal."""
    kind, digits = text.strip()[:2], text.strip()[2:]
    return number(digits) if kind == "MT" and digits.isdecimal() else None


# DMI fields of a node, if its maker filled them in.

#: The makers' placeholders for empty fields.
_PLACEHOLDERS = frozenset(
    {"", "default string", "none", "not applicable", "not specified", "n/a", "no asset tag"}
    | {"to be filled by o.e.m.", "system product name", "system manufacturer", "unknown", "0"}
)


def dmi_value(text: str) -> str | None:
    """Return the value of a field; None if it is empty, a placeholder or the beginning of one."""
    text = text.strip()
    return None if any(word.startswith(text.lower()) for word in _PLACEHOLDERS) else text


# Whether a driver is the kernel's (inbox) or NVIDIA's (OFED), by its version.

#: 24.10-0.7.0, with one more number in the name of the package.
_OFED = re.compile(r"(\d{1,2}\.\d{1,2}-\d{1,2}\.\d{1,2}\.\d{1,2})(?:\.\d{1,3})?", re.ASCII)
#: Linux, drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.h, until 5.10: DRIVER_VERSION "5.0-0".
_INBOX = re.compile(r"\d\.\d-\d", re.ASCII)


def ofed_driver(version: str) -> str | None:
    """Return the driver property for a version of OFED: "OFED 24.10-0.7.0"."""
    ofed = _OFED.fullmatch(version)
    return f"OFED {ofed[1]}" if ofed else None


def mlx5_driver(version: str) -> str | None:
    """Return the driver property for a version of mlx5_core; None if unknown."""
    return "inbox" if _INBOX.fullmatch(version) else ofed_driver(version)


# The PCI addresses of NVIDIA's driver, with a domain of eight digits.


def pci_of_gpu(text: str | None) -> str | None:
    """Return an address in Linux's notation: 00000000:3B:00.0 becomes 0000:3b:00.0."""
    if text is None:
        return None
    domain, colon, function = text.lower().partition(":")
    short = domain.lstrip("0").zfill(4) if len(domain) == len("00000000") else domain
    return short + colon + function
