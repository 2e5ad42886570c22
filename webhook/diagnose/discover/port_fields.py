"""The fields of a port in messages about tools that disagree."""

from __future__ import annotations

#: The name of a field of a port in a message.
TOPICS = {
    "state": "the state of {}",
    "physical_state": "the physical state of {}",
    "rate_gbps": "the rate of {} in Gb/s",
    "link_layer": "the link layer of {}",
    "vendor_id": "the vendor ID of {}",
    "device_id": "the device ID of {}",
    "board_id": "the PSID of {}",
    "firmware": "the firmware of {}",
    "numa": "the NUMA node of {}",
    "mtu": "the MTU of {}",
    "max_mtu": "the largest MTU of {}",
    "virtual": "the function type of {}",
    "pci": "the PCI address of {}",
    "netdevs": "the network interface of {}",
}


def field_text(name: str, value: object) -> str:
    """Return the value of a field as people read it."""
    if name in ("vendor_id", "device_id") and isinstance(value, int):
        return f"{value:#06x}"
    if name == "virtual":
        return "virtual" if value else "physical"
    return " ".join(value) if isinstance(value, tuple) else str(value)
