"""Readers for PCI functions, cards and GPUs: /sys/bus/pci/devices and lspci."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from webhook.diagnose.tools.gpus import AMD_ID, amd_product, is_gpu
from webhook.diagnose.tools.hardware import MELLANOX_ID
from webhook.diagnose.tools.observations import (
    CardObservation,
    Cut,
    GpuObservation,
    Line,
    Origin,
    PcieLink,
    Reading,
)
from webhook.diagnose.tools.readers.layouts import Reader
from webhook.diagnose.tools.readers.notation import PCI, number

# Files of /sys/bus/pci/devices, each with its path, in the output of `grep -r . PATH`.
#
#   /sys/bus/pci/devices/0000:18:00.0/class:0x020700
#   /sys/bus/pci/devices/0000:18:00.0/vendor:0x15b3
#   /sys/bus/pci/devices/0000:18:00.0/current_link_speed:32.0 GT/s PCIe
#   /sys/bus/pci/devices/0000:18:00.0/current_link_width:16
#   /sys/bus/pci/devices/0000:18:00.1/physfn/device:0x1021
#
# Only a virtual function has a physfn, and only a function that can have virtual functions has
# sriov_totalvfs. Source: Linux, Documentation/ABI/testing/sysfs-bus-pci, and
# drivers/pci/pci-sysfs.c.

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
    """Read the known files of each function; one without a class may be neither card nor GPU."""
    functions: dict[str, dict[str, str]] = {}
    first: dict[str, int] = {}
    recognized: set[int] = set()
    for line in lines:
        file = _FILE.fullmatch(line.text)
        pattern = _VALUES.get(file["file"]) if file else None
        if file and pattern and pattern.fullmatch(file["value"]):
            functions.setdefault(file["pci"], {})[file["file"]] = file["value"]
            first.setdefault(file["pci"], line.number)
            recognized.add(line.number)
    cards_and_gpus = (
        _pci_sysfs_function(pci, first[pci], files) for pci, files in functions.items()
    )
    return Reading(
        tuple(function for function in cards_and_gpus if function), frozenset(recognized)
    )


def _pci_sysfs_function(
    pci: str, line: int, files: Mapping[str, str]
) -> CardObservation | GpuObservation | None:
    numbers = {name: int(value, 16) for name, value in files.items() if value.startswith("0x")}
    vendor, device = numbers.get("vendor"), numbers.get("device")
    if is_gpu(numbers.get("class", 0) >> 8, vendor):
        product = amd_product(device) if vendor == AMD_ID else None
        numa = number(files.get("numa_node", ""))
        return GpuObservation(Origin(_PCI_SYSFS, line), None, product, None, pci, numa, vendor)
    if numbers.get("class", 0) >> 16 != _NETWORK_CLASS:
        return None
    return CardObservation(
        Origin(_PCI_SYSFS, line),
        pci,
        numbers["class"] >> 8,
        vendor,
        device,
        link=_link(files, "current"),
        best_link=_link(files, "max"),
        numa=number(files.get("numa_node", "")),
        virtual=_virtual(files),
    )


def _link(files: Mapping[str, str], prefix: str) -> PcieLink | None:
    speed = _SPEED.fullmatch(files.get(f"{prefix}_link_speed", ""))
    width = number(files.get(f"{prefix}_link_width", ""))
    # The kernel shows 255 lanes, or none, for a link that it cannot read.
    return PcieLink(float(speed[1]), width) if speed and width in (1, 2, 4, 8, 12, 16, 32) else None


def _virtual(files: Mapping[str, str]) -> bool | None:
    if "physfn/device" in files:
        return True
    return False if "sriov_totalvfs" in files else None


PCI_SYSFS = Reader(_PCI_SYSFS, read_pci_sysfs)


# lspci, which lists the PCI functions of a node.
#
#   0000:3b:00.0 0207: 15b3:1021
#   3b:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 [ConnectX-7] [15b3:1021]
#   05:00.0 Processing accelerators [1200]: Advanced Micro Devices, Inc. [AMD/ATI] Aqua Vanjaram
#       [Instinct MI300X] [1002:74a1]                          (in one line)
#   3b:00.0 Infiniband controller: Mellanox Technologies MT2910 [ConnectX-7] (rev 01)
#           NUMA node: 0
#           LnkCap: Port #0, Speed 32GT/s, Width x16, ASPM not supported
#           LnkSta: Speed 16GT/s (downgraded), Width x16
#
# These are -Dn, -nn, and plain; with -vv, the last three lines follow each of them. Only network
# cards and GPUs matter. lspci omits the domain if the node has only one (without -D), and an
# unknown speed (of a virtual function). Source: pciutils, lspci.c and ls-caps.c.

_LSPCI = "lspci"

_HEAD = re.compile(
    rf"(?P<pci>{PCI}) (?:Class )?(?:(?P<numeric>[0-9a-f]{{4}})"
    r"|(?P<name>[A-Z0-9][A-Za-z/ -]{2,40}?)(?: \[(?P<class>[0-9a-f]{4})\])?): (?P<rest>\S.*)"
)
#: The optional end of a function's line.
_REVISION = r"(?: \(rev [0-9a-f]{2}\))?(?: \(prog-if .{0,60}\))?\s*"
_IDS = re.compile(rf"([0-9a-f]{{4}}):([0-9a-f]{{4}}){_REVISION}")
_NAMED = re.compile(
    r"(?P<model>.{1,200}?)(?: \[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\])?" + _REVISION
)
_LINK = re.compile(
    r"\s{0,40}(?P<what>LnkCap|LnkSta):\s{1,8}(?:Port #\d{1,3}, )?"
    r"Speed (?P<speed>[\d.]{1,4}GT/s|unknown)(?: \([a-z]{1,20}\))?, "
    r"Width x(?P<width>\d{1,2})\b.*"
)
_NUMA = re.compile(r"\s{0,40}NUMA node: (-?\d{1,4})\s*")
#: The lines of -v below a function. Copied text has often lost its indentation.
_BELOW = re.compile(
    r"\s{1,40}(?!\s|LnkCap:|LnkSta:|NUMA node:).*"
    r"|(?:Subsystem|Control|Status|Latency|Interrupt|IOMMU group|Region \d|Expansion ROM at"
    r"|Capabilities|Kernel (?:driver in use|modules)|DevCap2?|DevCtl2?|DevSta|LnkCap2|LnkCtl2?"
    r"|LnkSta2|Physical Slot|Flags|Memory at|Vector table|PBA|Product Name|Read-only fields)\b.*"
)
#: The names of network classes in pci.ids.
_CONTROLLERS = {
    "Infiniband controller": 0x0207,
    "InfiniBand controller": 0x0207,
    "Ethernet controller": 0x0200,
    "Network controller": 0x0280,
    "Fabric controller": 0x0208,
}
_CLASSES = frozenset(_CONTROLLERS.values())
#: The names of classes that GPUs have.
_GPU_CLASSES = {
    "3D controller": 0x0302,
    "Processing accelerators": 0x1200,
    "Display controller": 0x0380,
}
#: The names of vendors in pci.ids.
_MELLANOX_NAME = "Mellanox Technologies "
_AMD_NAME = "Advanced Micro Devices, Inc. [AMD/ATI]"
_INSTINCT = re.compile(r"\[((?:Radeon )?Instinct [\w ]{2,30})\]", re.ASCII)


def read_lspci(lines: Sequence[Line]) -> Reading:
    """Read each function with the lines below it."""
    cards_and_gpus: list[CardObservation | GpuObservation] = []
    recognized: set[int] = set()
    functions = [*_functions(lines)]
    before = 0
    for head, below in functions:
        before = len(cards_and_gpus)
        recognized.update(line.number for line in below)
        match = _HEAD.fullmatch(head.text)
        origin = Origin(_LSPCI, head.number)
        card = match and _lspci_card(origin, match)
        if match and (card or not _is_network(match)):
            recognized.add(head.number)
        if card:
            cards_and_gpus.append(_with_details(card, below))
        elif match and (gpu := _lspci_gpu(origin, match)):
            cards_and_gpus.append(gpu._replace(numa=_numa(below)))
    cut = _cut(*functions[-1], cards_and_gpus[:before]) if functions else None
    return Reading(tuple(cards_and_gpus), frozenset(recognized), (cut,) if cut else ())


def _cut(
    head: Line, below: Sequence[Line], before: Sequence[CardObservation | GpuObservation]
) -> Cut | None:
    """Return a card whose line ends too early, or that lacks the link that its equals have."""
    match = _HEAD.fullmatch(head.text)
    if match is None or not _is_network(match):
        return None
    card = _lspci_card(Origin(_LSPCI, head.number), match)
    cut = Cut(_LSPCI, below[-1].number if below else head.number, match["pci"].lower())
    if card is None:
        return cut
    alike = [
        earlier.link
        for earlier in before
        if isinstance(earlier, CardObservation)
        and earlier.model == card.model
        and (earlier.vendor_id, earlier.device_id) == (card.vendor_id, card.device_id)
    ]
    has_link = _with_details(card, below).link is not None
    return cut if alike and all(alike) and not has_link else None


def _functions(lines: Sequence[Line]) -> Iterator[tuple[Line, list[Line]]]:
    head, below = None, list[Line]()
    for line in (*lines, Line(0, "")):
        if _HEAD.fullmatch(line.text):
            if head:
                yield head, below
            head, below = line, []
        elif head and _is_below(line.text):
            below.append(line)
        elif head:
            yield head, below
            head = None


def _is_below(text: str) -> bool:
    return any(pattern.fullmatch(text) for pattern in (_BELOW, _LINK, _NUMA))


def _is_network(head: re.Match[str]) -> bool:
    return (
        head["name"] in _CONTROLLERS or int(head["numeric"] or head["class"] or "0", 16) in _CLASSES
    )


def _lspci_card(origin: Origin, head: re.Match[str]) -> CardObservation | None:
    """Return the card; None for another kind of function, or if its ids cannot be read."""
    if not _is_network(head):
        return None
    pci = head["pci"].lower()
    if head["numeric"]:
        ids = _IDS.fullmatch(head["rest"])
        return ids and CardObservation(
            origin, pci, int(head["numeric"], 16), int(ids[1], 16), int(ids[2], 16)
        )
    named = _NAMED.fullmatch(head["rest"])
    if named is None or (head["class"] is None) != (named["vendor"] is None):
        return None  # cut
    model = named["model"]
    if model.count("(") > model.count(")"):  # cut within a revision
        model = model.rpartition("(")[0].strip()
    return CardObservation(
        origin,
        pci,
        int(head["class"], 16) if head["class"] else _CONTROLLERS[head["name"]],
        MELLANOX_ID if model.startswith(_MELLANOX_NAME) else _hexadecimal(named["vendor"]),
        _hexadecimal(named["device"]),
        model=model or None,
        virtual=True if "Virtual Function" in model else None,
    )


def _lspci_gpu(origin: Origin, head: re.Match[str]) -> GpuObservation | None:
    """Return the GPU; None for another kind of function, or if its line was cut."""
    named, ids = _NAMED.fullmatch(head["rest"]), _IDS.fullmatch(head["rest"])
    if head["numeric"] and ids:
        model, vendor, device = "", ids[1], ids[2]
    elif named and not head["numeric"] and (head["class"] is None) == (named["vendor"] is None):
        model, vendor, device = named["model"], named["vendor"], named["device"]
    else:
        return None
    number_of_class = head["numeric"] or head["class"]
    pci_class = int(number_of_class, 16) if number_of_class else _GPU_CLASSES.get(head["name"])
    vendor_id = AMD_ID if model.startswith(_AMD_NAME) else _hexadecimal(vendor)
    if not is_gpu(pci_class, vendor_id):
        return None
    product = None
    if vendor_id == AMD_ID:
        name = _INSTINCT.search(model)
        product = name[1] if name else amd_product(_hexadecimal(device))
    return GpuObservation(origin, None, product, None, head["pci"].lower(), vendor_id=vendor_id)


def _hexadecimal(text: str | None) -> int | None:
    return None if text is None else int(text, 16)


def _numa(below: Sequence[Line]) -> int | None:
    rows = filter(None, (_NUMA.fullmatch(line.text) for line in below))
    return next((number(row[1]) for row in rows), None)


def _with_details(card: CardObservation, below: Sequence[Line]) -> CardObservation:
    card = card._replace(numa=_numa(below))
    for line in below:
        link = _LINK.fullmatch(line.text)
        if link and link["what"] == "LnkCap":
            card = card._replace(best_link=_pcie_link(link))
        elif link:
            card = card._replace(link=_pcie_link(link))
    return card


def _pcie_link(link: re.Match[str]) -> PcieLink | None:
    if link["speed"] == "unknown" or int(link["width"]) == 0:
        return None
    return PcieLink(float(link["speed"].removesuffix("GT/s")), int(link["width"]))


LSPCI = Reader(_LSPCI, read_lspci)
