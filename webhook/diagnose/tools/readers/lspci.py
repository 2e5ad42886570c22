"""lspci, which says which PCI functions a machine has.

    0000:3b:00.0 0207: 15b3:1021
    3b:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 [ConnectX-7] [15b3:1021]
    3b:00.0 Infiniband controller: Mellanox Technologies MT2910 [ConnectX-7] (rev 01)
            NUMA node: 0
            LnkCap: Port #0, Speed 32GT/s, Width x16, ASPM not supported
            LnkSta: Speed 16GT/s (downgraded), Width x16

These are -Dn, -nn, and plain; with -vv, the last three lines follow each of them. Only network
cards are of interest. The domain is left out where the machine has only one (without -D), and so is
a speed that nobody knows (of a virtual function). Source: pciutils, lspci.c and ls-caps.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from webhook.diagnose.tools.observations import CardSighting, Line, Origin, PcieLink, Reading
from webhook.diagnose.tools.readers.notation import PCI, number
from webhook.diagnose.tools.readers.rows import Reader

_LSPCI = "lspci"

_HEAD = re.compile(
    rf"(?P<pci>{PCI}) (?:Class )?(?:(?P<numeric>[0-9a-f]{{4}})"
    r"|(?P<name>[A-Z0-9][A-Za-z/ -]{2,40}?)(?: \[(?P<class>[0-9a-f]{4})\])?): (?P<rest>\S.*)"
)
#: What may follow a function.
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
#: What -v writes below a function. Copied text often has lost its indentation.
_BELOW = re.compile(
    r"\s{1,40}(?!\s|LnkCap:|LnkSta:|NUMA node:).*"
    r"|(?:Subsystem|Control|Status|Latency|Interrupt|IOMMU group|Region \d|Expansion ROM at"
    r"|Capabilities|Kernel (?:driver in use|modules)|DevCap2?|DevCtl2?|DevSta|LnkCap2|LnkCtl2?"
    r"|LnkSta2|Physical Slot|Flags|Memory at|Vector table|PBA|Product Name|Read-only fields)\b.*"
)
#: The network classes, as pci.ids names them.
_CONTROLLERS = {
    "Infiniband controller": 0x0207,
    "InfiniBand controller": 0x0207,
    "Ethernet controller": 0x0200,
    "Network controller": 0x0280,
    "Fabric controller": 0x0208,
}
_CLASSES = frozenset(_CONTROLLERS.values())


def read_lspci(lines: Sequence[Line]) -> Reading:
    """Read one function after the other, each with what stands below it."""
    cards: list[CardSighting] = []
    taken: set[int] = set()
    for head, below in _functions(lines):
        taken.update(line.number for line in below)
        found = _HEAD.fullmatch(head.text)
        card = found and _lspci_card(Origin(_LSPCI, head.number), found)
        if found and (card or not _is_network(found)):
            taken.add(head.number)
        if card:
            cards.append(_with_details(card, below))
    return Reading(tuple(cards), frozenset(taken))


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
    return any(known.fullmatch(text) for known in (_BELOW, _LINK, _NUMA))


def _is_network(found: re.Match[str]) -> bool:
    return (
        found["name"] in _CONTROLLERS
        or int(found["numeric"] or found["class"] or "0", 16) in _CLASSES
    )


def _lspci_card(origin: Origin, found: re.Match[str]) -> CardSighting | None:
    """Return the card, or None if it is none, or if its ids cannot be read."""
    if not _is_network(found):
        return None
    pci = found["pci"].lower()
    if found["numeric"]:
        ids = _IDS.fullmatch(found["rest"])
        return ids and CardSighting(
            origin, pci, int(found["numeric"], 16), int(ids[1], 16), int(ids[2], 16)
        )
    named = _NAMED.fullmatch(found["rest"])
    if named is None or (found["class"] is None) != (named["vendor"] is None):
        return None  # cut
    model = named["model"]
    if model.count("(") > model.count(")"):  # cut within a revision
        model = model.rpartition("(")[0].strip()
    return CardSighting(
        origin,
        pci,
        int(found["class"], 16) if found["class"] else _CONTROLLERS[found["name"]],
        _hexadecimal(named["vendor"]),
        _hexadecimal(named["device"]),
        model=model or None,
        virtual=True if "Virtual Function" in model else None,
    )


def _hexadecimal(text: str | None) -> int | None:
    return None if text is None else int(text, 16)


def _with_details(card: CardSighting, below: Sequence[Line]) -> CardSighting:
    for line in below:
        link, numa = _LINK.fullmatch(line.text), _NUMA.fullmatch(line.text)
        if numa:
            card = card._replace(numa=number(numa[1]))
        elif link and link["what"] == "LnkCap":
            card = card._replace(best_link=_pcie_link(link))
        elif link:
            card = card._replace(link=_pcie_link(link))
    return card


def _pcie_link(link: re.Match[str]) -> PcieLink | None:
    if link["speed"] == "unknown" or int(link["width"]) == 0:
        return None
    return PcieLink(float(link["speed"].removesuffix("GT/s")), int(link["width"]))


LSPCI = Reader(_LSPCI, read_lspci)
