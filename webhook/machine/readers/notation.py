"""How the tools write states, rates, numbers and addresses: many spellings, one value.

Each function returns None for a text that it does not know for certain.
"""

from __future__ import annotations

import re

from webhook.machine.sightings import PhysicalState, PortState

#: A part of a regular expression: the name of an RDMA device (the kernel has 64 bytes for it).
DEVICE = r"[A-Za-z][\w.-]{0,62}"
#: The name of a network interface (the kernel has 15 bytes; what people write instead is longer).
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
#: Without blanks and underscores. iproute2 rdma/link.c says ARMED for the state of number 4, and
#: rdma-core's devinfo.c writes TRAINNING.
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
_NUMBER = re.compile(r"-?\d{1,19}", re.ASCII)


def port_state(text: str) -> PortState | None:
    """Return the state of a port: "Active", "ACTIVE", "PORT_ACTIVE"."""
    return _PORT_STATES.get(text.strip().upper().removeprefix("PORT_"))


def physical_state(text: str) -> PhysicalState | None:
    """Return the physical state of a port: "LinkUp", "LINK_UP"."""
    return _PHYSICAL_STATES.get(re.sub(r"[\s_]", "", text).lower())


def number(text: str) -> int | None:
    """Return a decimal number of a size that a tool can mean."""
    text = text.strip()
    return int(text) if _NUMBER.fullmatch(text) else None


def mellanox_type(text: str) -> int | None:
    """Return the PCI device id in "MT4129", which writes it in decimal."""
    kind, digits = text.strip()[:2], text.strip()[2:]
    return number(digits) if kind == "MT" and digits.isdecimal() else None
