"""What other tools in the same text show of the ports that were tested: rates and PCIe links.

`ibstat` and `lspci -vv` above a benchmark save the reader `--rate`. What contradicts itself, or is
of another device, is not used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from webhook.diagnose.tools.benchmarks.measurements import Measurement
from webhook.diagnose.tools.link_rates import pcie_rate
from webhook.diagnose.tools.observations import (
    CardSighting,
    Origin,
    PcieLink,
    PortSighting,
    Reading,
)
from webhook.diagnose.verify.expectation import BusRate, PortRate

_T = TypeVar("_T")


class ShownPorts(NamedTuple):
    """What tools showed of the ports and cards of a machine."""

    ports: tuple[PortSighting, ...] = ()
    cards: tuple[CardSighting, ...] = ()

    def rate(self, run: Measurement) -> PortRate | None:
        """Return the rate of the port of a run; that of a port that is not Active means nothing."""
        shown = [
            (one.rate_gbps, one.origin)
            for one in self._ports(run)
            if one.state == "Active" and one.rate_gbps
        ]
        found = _only(shown)
        return found and PortRate(found[0], f"{found[0]:g} Gb/s by {_named(found[1])}")

    def bus(self, run: Measurement) -> BusRate | None:
        """Return what the PCIe link of the card carries."""
        places = {_short(one.pci) for one in self._ports(run) if one.pci}
        found = _only(
            (one.link, one.origin) for one in self.cards if one.link and _short(one.pci) in places
        )
        carried = pcie_rate(found[0]) if found else None
        if found is None or carried is None:
            return None
        return BusRate(carried, f"{_link(found[0])} by {_named(found[1])}")

    def _ports(self, run: Measurement) -> list[PortSighting]:
        return [
            one
            for one in self.ports
            if run.device is not None
            and one.device == run.device
            and (run.port is None or one.port in (None, run.port))
        ]


def shown_ports(reading: Reading) -> ShownPorts:
    """Take the ports and cards of what was read."""
    return ShownPorts(
        tuple(one for one in reading.sightings if isinstance(one, PortSighting)),
        tuple(one for one in reading.sightings if isinstance(one, CardSighting)),
    )


def _only(shown: Iterable[tuple[_T, Origin]]) -> tuple[_T, Origin] | None:
    """Return the value that all agree on, with the first tool that shows it."""
    found = list(shown)
    return found[0] if len({value for value, _ in found}) == 1 else None


def _short(pci: str) -> str:
    """Return a PCI address without the domain that some tools leave out."""
    return pci.removeprefix("0000:")


def _named(origin: Origin) -> str:
    return f"{origin.tool}, line {origin.line}" if origin.line else origin.tool


def _link(link: PcieLink) -> str:
    return f"PCIe {link.speed:g} GT/s x{link.width}"
