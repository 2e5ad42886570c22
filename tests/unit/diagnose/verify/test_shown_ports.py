"""Rates and PCIe links from other tools in the same text."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, row
from tests.unit.diagnose.verify.evaluated import evaluated, only_result
from webhook.diagnose.tools.benchmarks.measurements import Measurement
from webhook.diagnose.tools.observations import (
    CardObservation,
    Origin,
    PcieLink,
    PortObservation,
    PropertyObservation,
    Reading,
)
from webhook.diagnose.verify.results import ExpectedRate, PcieRate, PortRate, expected_rate
from webhook.diagnose.verify.shown_ports import PortContext, port_context

IBSTAT = Origin("ibstat", 12)
LSPCI = Origin("lspci", 40)
RUN = Measurement("perftest", "ib_write_bw", "bandwidth", (1, 1), device="mlx5_4")
GEN3 = PcieLink(8, 16)


def port(**fields: Any) -> PortObservation:
    """Return the observation of an Active port from ibstat."""
    return PortObservation(
        IBSTAT, **{"device": "mlx5_4", "port": 1, "state": "Active", "rate_gbps": 200.0, **fields}
    )


def test_the_rate_of_the_port() -> None:
    """The rate of the device counts, with the tool that shows it."""
    ports = PortContext((port(), port(device="mlx5_5", rate_gbps=100.0)))
    assert ports.rate(RUN) == PortRate(200, "200 Gb/s (ibstat, line 12)")
    sysfs = port()._replace(origin=Origin("sysfs", 0))
    assert PortContext((sysfs, port())).rate(RUN) == PortRate(200, "200 Gb/s (sysfs)")


@pytest.mark.parametrize(
    "ports",
    [
        (),
        (port(device="mlx5_5"),),
        (port(device=None),),
        (port(state="Down", rate_gbps=10.0),),
        (port(state=None),),
        (port(rate_gbps=None),),
        (port(), port(rate_gbps=100.0)),
        (port(), port(port=2, rate_gbps=100.0)),
    ],
    ids=["none", "other", "unnamed", "down", "stateless", "rateless", "contradiction", "ports"],
)
def test_a_rate_that_is_not_certain(ports: tuple[PortObservation, ...]) -> None:
    """A rate of another device, of a port that is down, or contradicted, is not used."""
    assert PortContext(ports).rate(RUN) is None
    assert PortContext((port(),)).rate(RUN._replace(device=None)) is None


def test_the_port_of_the_command() -> None:
    """If the command names the port, only that port counts."""
    ports = PortContext((port(), port(port=2, rate_gbps=100.0)))
    rate = ports.rate(RUN._replace(port=2))
    assert rate is not None
    assert rate.gbps == 100
    assert ports._replace(ports=(port(port=None),)).rate(RUN._replace(port=2)) is not None


@pytest.mark.parametrize("pci", ["0000:3b:00.0", "3b:00.0"])
def test_the_link_of_the_card(pci: str) -> None:
    """The card is matched by its address, with or without the domain."""
    cards = (
        CardObservation(LSPCI, pci, link=GEN3),
        CardObservation(LSPCI, "0000:5e:00.0", link=None),
    )
    pcie_rate = PortContext((port(pci="0000:3b:00.0"),), cards).pcie_rate(RUN)
    assert pcie_rate is not None
    assert pcie_rate.gbps == pytest.approx(115.2, abs=0.1)
    assert pcie_rate.source == "PCIe 8 GT/s x16 (lspci, line 40)"


@pytest.mark.parametrize(
    "cards",
    [
        (),
        (CardObservation(LSPCI, "0000:5e:00.0", link=GEN3),),
        (CardObservation(LSPCI, "0001:3b:00.0", link=GEN3),),
        (CardObservation(LSPCI, "0000:3b:00.0"),),
        (CardObservation(LSPCI, "0000:3b:00.0", link=PcieLink(3, 16)),),
        (
            CardObservation(LSPCI, "0000:3b:00.0", link=GEN3),
            CardObservation(LSPCI, "3b:00.0", link=PcieLink(8, 8)),
        ),
    ],
    ids=["none", "other", "domain", "unknown", "speed", "contradiction"],
)
def test_a_link_that_is_not_certain(cards: tuple[CardObservation, ...]) -> None:
    """A link of another card, of an unknown speed, or contradicted, is not used."""
    assert PortContext((port(pci="0000:3b:00.0"),), cards).pcie_rate(RUN) is None
    assert PortContext((port(),), cards).pcie_rate(RUN) is None


def test_what_is_taken() -> None:
    """Ports and cards are taken; other observations have no link."""
    card = CardObservation(LSPCI, "3b:00.0")
    other = PropertyObservation(Origin("uname -r", 1), "kernel", "6.1")
    reading = Reading((other, port(), card), frozenset())
    assert port_context(reading) == PortContext((port(),), (card,))


def test_a_slow_slot() -> None:
    """A PCIe link slower than the port sets the expectation, also in both directions."""
    pcie_rate = PcieRate(110.0, "PCIe 8 GT/s x16 (lspci, line 40)")
    rate = PortRate(200, "--rate 200")
    source, comparison = "PCIe 8 GT/s x16 (lspci, line 40)", ", slower than --rate 200"
    assert expected_rate(RUN, rate, pcie_rate) == ExpectedRate(110, source + comparison)
    bidirectional = expected_rate(RUN._replace(bidirectional=True), rate, pcie_rate)
    assert bidirectional == ExpectedRate(220, f"{source} × 2 directions{comparison}")
    assert expected_rate(RUN, PortRate(110, "x"), pcie_rate) == ExpectedRate(110, "x")


def test_both_ports_of_a_card() -> None:
    """They carry twice as much, but no more than the PCIe link of the card."""
    rate, run = PortRate(100, "--rate 100"), RUN._replace(dual_port=True)
    assert expected_rate(run, rate) == ExpectedRate(200, "--rate 100 × 2 ports")
    slot = PcieRate(126.0, "PCIe")
    assert expected_rate(run, rate, slot).gbps == 126
    assert expected_rate(RUN, rate, slot).gbps == 100
    output = bandwidth(row(190)).replace("Dual-port       : OFF", "Dual-port       : ON")
    assert only_result(output).expected == 198.74


TOOLS = """\
CA 'mlx5_4'
	CA type: MT4123
	Number of ports: 1
	Firmware version: 20.31.1014
	Hardware version: 0
	Node GUID: 0x0c42a10300a1b2c3
	System image GUID: 0x0c42a10300a1b2c3
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 200
		Base lid: 26
		LMC: 0
		SM lid: 1
		Capability mask: 0x2651e848
		Port GUID: 0x0c42a10300a1b2c3
		Link layer: InfiniBand
"""


def test_ibstat_above_a_benchmark() -> None:
    """The rate from ibstat is expected; --rate overrides it."""
    result = only_result(TOOLS + bandwidth(row(190)), rate=None)
    assert (result.finding.level, result.expected) == ("ok", 198.74)
    assert result.computation.startswith("200 Gb/s (ibstat, line 8)")
    assert only_result(TOOLS + bandwidth(row(95)), rate=100).finding.code == "AtRate"
    assert (
        only_result(TOOLS.replace("Active", "Down") + bandwidth(row(190)), rate=None).finding.code
        == "NoRate"
    )


LSPCI_VV = """\
{domain}3b:00.0 Infiniband controller: Mellanox Technologies MT28908 Family [ConnectX-6]
	Capabilities: [60] Express (v2) Endpoint, MSI 00
		DevCap:	MaxPayload 512 bytes, PhantFunc 0, Latency L0s unlimited, L1 unlimited
		DevCtl:	CorrErr+ NonFatalErr+ FatalErr+ UnsupReq-
			MaxPayload {payload} bytes, MaxReadReq 512 bytes
		LnkCap:	Port #0, Speed 16GT/s, Width x16, ASPM not supported
		LnkSta:	Speed 8GT/s (downgraded), Width x16
{domain}5e:00.0 Ethernet controller: Mellanox Technologies MT2892 Family [ConnectX-6 Dx]
			MaxPayload 4096 bytes, MaxReadReq 512 bytes
mlx5_4 port 1 ==> ib0 (Up)
0000:3b:00.0 mlx5_4 (MT4123 - MCX653105A) ConnectX-6 VPI fw 20.31.1014 port 1 (ACTIVE) ==> ib0 (Up)
"""


@pytest.mark.parametrize("domain", ["", "0000:"])
@pytest.mark.parametrize(("payload", "gbps"), [(128, 106.13), (256, 115.23), (512, 120.39)])
def test_the_payload_of_the_link(domain: str, payload: int, gbps: float) -> None:
    """Each PCIe packet has 24 bytes of overhead; the limit of the card does not matter."""
    text = LSPCI_VV.format(domain=domain, payload=payload)
    result = only_result(text + bandwidth(row(100)), rate=200)
    assert result.expected == pytest.approx(gbps, abs=0.01)
    title = f"PCIe 8 GT/s x16, MaxPayload {payload} (lspci"
    assert result.computation.startswith(title)


def test_nodes_of_a_single_file() -> None:
    """Each node is graded by its own output, and named."""
    outputs = {"n1": TOOLS + bandwidth(row(190)), "n2": bandwidth(row(190)), "n3": ""}
    lines = [f"{name}: {line}" for name, text in outputs.items() for line in text.splitlines()]
    evaluation = evaluated("\n".join([*lines, "n3: Couldn't allocate MR", ""]), rate=None)
    assert [
        (result.finding.location.nodes, result.finding.level, result.finding.code)
        for result in evaluation.results
    ] == [
        (("n1",), "ok", "AtRate"),
        (("n2",), "unsure", "NoRate"),
        (("n3",), "error", "PerftestNoMemory"),
    ]
    assert {result.finding.location.file for result in evaluation.results} == {"a"}
