"""Rates and PCIe links of the tested ports, from other tools in the same text.

With the output of `ibstat` and `lspci -vv` above a benchmark, `--rate` is not needed. Values that
contradict each other, or belong to another device, are not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from webhook.diagnose.tools.benchmarks.measurements import Measurement
from webhook.diagnose.tools.hardware import USUAL_PAYLOAD, pcie_rate
from webhook.diagnose.tools.observations import (
    CardObservation,
    Line,
    Origin,
    PcieLink,
    PortObservation,
    Reading,
)
from webhook.diagnose.tools.readers import read
from webhook.diagnose.verify.results import PcieRate, PortRate

_T = TypeVar("_T")


class PortContext(NamedTuple):
    """The ports and cards of a node, as tools showed them."""

    ports: tuple[PortObservation, ...] = ()
    cards: tuple[CardObservation, ...] = ()
    #: Address of a card, without the domain 0000 → bytes of a packet on its PCIe link.
    payloads: Mapping[str, int] = MappingProxyType({})

    def rate(self, measurement: Measurement) -> PortRate | None:
        """Return the rate of the port of a run; None unless the port is Active."""
        rates = [
            (port.rate_gbps, port.origin)
            for port in self._ports(measurement)
            if port.state == "Active" and port.rate_gbps
        ]
        rate = _common_value(rates)
        return rate and PortRate(rate[0], f"{rate[0]:g} Gb/s ({_tool_line(rate[1])})")

    def pcie_rate(self, measurement: Measurement) -> PcieRate | None:
        """Return the rate of the card's PCIe link; None if unknown."""
        addresses = {_without_domain(port.pci) for port in self._ports(measurement) if port.pci}
        link = _common_value(
            (card.link, card.origin)
            for card in self.cards
            if card.link and _without_domain(card.pci) in addresses
        )
        if link is None:
            return None
        payloads = {self.payloads[address] for address in addresses if address in self.payloads}
        payload = payloads.pop() if len(payloads) == 1 else None
        gbps = pcie_rate(link[0], payload or USUAL_PAYLOAD)
        if gbps is None:
            return None
        title = _link_title(link[0]) + (f", MaxPayload {payload}" if payload else "")
        return PcieRate(gbps, f"{title} ({_tool_line(link[1])})")

    def _ports(self, measurement: Measurement) -> list[PortObservation]:
        return [
            port
            for port in self.ports
            if measurement.device is not None
            and port.device == measurement.device
            and (measurement.port is None or port.port in (None, measurement.port))
        ]


def shown_ports(lines: Sequence[Line]) -> PortContext:
    """Read the lines of one node."""
    return port_context(read(lines))._replace(payloads=_payloads(lines))


def port_context(reading: Reading) -> PortContext:
    """Return the ports and cards of a reading."""
    return PortContext(
        tuple(
            observation
            for observation in reading.observations
            if isinstance(observation, PortObservation)
        ),
        tuple(
            observation
            for observation in reading.observations
            if isinstance(observation, CardObservation)
        ),
    )


#: A function of lspci, and the payload of its packets: below DevCtl, not the limit below DevCap.
_FUNCTION = re.compile(r"(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] ")
_PAYLOAD = re.compile(r"\s{0,40}MaxPayload (\d{3,4}) bytes, MaxReadReq \d")


def _payloads(lines: Sequence[Line]) -> dict[str, int]:
    """Return the payloads of the packets of each function that `lspci -vv` shows."""
    payloads: dict[str, int] = {}
    address = ""
    for line in lines:
        if function := _FUNCTION.match(line.text):
            address = _without_domain(function[0].strip())
        elif address and (payload := _PAYLOAD.match(line.text)):
            payloads[address] = int(payload[1])
    return payloads


def _common_value(values: Iterable[tuple[_T, Origin]]) -> tuple[_T, Origin] | None:
    """Return the value that all tools agree on, with the first tool; None if they differ."""
    candidates = list(values)
    return candidates[0] if len({value for value, _ in candidates}) == 1 else None


def _without_domain(pci: str) -> str:
    """Return a PCI address without the domain 0000, which some tools omit."""
    return pci.removeprefix("0000:")


def _tool_line(origin: Origin) -> str:
    return f"{origin.tool}, line {origin.line}" if origin.line else origin.tool


def _link_title(link: PcieLink) -> str:
    return f"PCIe {link.speed:g} GT/s x{link.width}"
