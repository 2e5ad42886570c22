"""Files of /sys/bus/pci/devices, each with its path, as `grep -r . PATH` writes them.

    /sys/bus/pci/devices/0000:18:00.0/class:0x020700
    /sys/bus/pci/devices/0000:18:00.0/vendor:0x15b3
    /sys/bus/pci/devices/0000:18:00.0/current_link_speed:32.0 GT/s PCIe
    /sys/bus/pci/devices/0000:18:00.0/current_link_width:16
    /sys/bus/pci/devices/0000:18:00.1/physfn/device:0x1021

Only a virtual function has a physfn, and only a function that could have such has sriov_totalvfs.
Source: Linux, Documentation/ABI/testing/sysfs-bus-pci, and drivers/pci/pci-sysfs.c.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from webhook.diagnose.tools.observations import CardSighting, Line, Origin, PcieLink, Reading
from webhook.diagnose.tools.readers.notation import number
from webhook.diagnose.tools.readers.rows import Reader

_PCI_SYSFS = "sysfs"

_FILE = re.compile(
    r"\s{0,40}/sys/bus/pci/devices/(?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/"
    r"(?P<file>[a-z_]{1,30}(?:/device)?):(?P<value>.{0,60}?)\s*"
)
_SPEED = re.compile(r"([\d.]{1,4}) GT/s(?: PCIe)?", re.ASCII)
_HEXADECIMAL = re.compile(r"0x[0-9a-f]{1,8}")
_VALUES = {
    "class": _HEXADECIMAL,
    "vendor": _HEXADECIMAL,
    "device": _HEXADECIMAL,
    "physfn/device": _HEXADECIMAL,
    "numa_node": re.compile(r"-?\d{1,4}", re.ASCII),
    "sriov_totalvfs": re.compile(r"\d{1,5}", re.ASCII),
    "current_link_speed": re.compile(rf"{_SPEED.pattern}|Unknown(?: speed)?", re.ASCII),
    "max_link_speed": re.compile(rf"{_SPEED.pattern}|Unknown(?: speed)?", re.ASCII),
    "current_link_width": re.compile(r"\d{1,3}", re.ASCII),
    "max_link_width": re.compile(r"\d{1,3}", re.ASCII),
}
#: The base class of network controllers.
_NETWORK_CLASS = 0x02


def read_pci_sysfs(lines: Sequence[Line]) -> Reading:
    """Read the known files of each function; one without a class is not certainly a card."""
    functions: dict[str, dict[str, str]] = {}
    first: dict[str, int] = {}
    taken: set[int] = set()
    for line in lines:
        file = _FILE.fullmatch(line.text)
        form = _VALUES.get(file["file"]) if file else None
        if file and form and form.fullmatch(file["value"]):
            functions.setdefault(file["pci"], {})[file["file"]] = file["value"]
            first.setdefault(file["pci"], line.number)
            taken.add(line.number)
    cards = (_pci_sysfs_card(pci, first[pci], files) for pci, files in functions.items())
    return Reading(tuple(card for card in cards if card), frozenset(taken))


def _pci_sysfs_card(pci: str, line: int, files: Mapping[str, str]) -> CardSighting | None:
    numbers = {name: int(value, 16) for name, value in files.items() if value.startswith("0x")}
    if numbers.get("class", 0) >> 16 != _NETWORK_CLASS:
        return None
    return CardSighting(
        Origin(_PCI_SYSFS, line),
        pci,
        numbers["class"] >> 8,
        numbers.get("vendor"),
        numbers.get("device"),
        link=_link(files, "current"),
        best_link=_link(files, "max"),
        numa=number(files.get("numa_node", "")),
        virtual=_virtual(files),
    )


def _link(files: Mapping[str, str], which: str) -> PcieLink | None:
    speed = _SPEED.fullmatch(files.get(f"{which}_link_speed", ""))
    width = number(files.get(f"{which}_link_width", ""))
    # The kernel shows 255 lanes, or none, for a link that it cannot read.
    return PcieLink(float(speed[1]), width) if speed and width in (1, 2, 4, 8, 12, 16, 32) else None


def _virtual(files: Mapping[str, str]) -> bool | None:
    if "physfn/device" in files:
        return True
    return False if "sriov_totalvfs" in files else None


PCI_SYSFS = Reader(_PCI_SYSFS, read_pci_sysfs)
