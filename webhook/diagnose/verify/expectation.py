"""What a run should reach: the data rate of the port, less what the headers of packets take.

A card in a slot that is slower than its port reaches what the slot carries.
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.diagnose.tools.benchmarks.measurements import Measurement
from webhook.diagnose.tools.link_rates import data_rate, payload_share

#: The parts of the expectation that pass, and that warn. NVIDIA's own test passes at 0.9
#: (Mellanox/ngc_multinode_perf); Azure passes its V100 machines at 0.78 (azurehpc-health-checks).
PASS, WARN = 0.9, 0.75

#: Of RDMA, in bytes; a number that is none of these is not an MTU.
_MTUS = (256, 512, 1024, 2048, 4096)


class PortRate(NamedTuple):
    """The rate of a port in Gb/s as tools show it, and who says so."""

    gbps: float
    source: str


class BusRate(NamedTuple):
    """What a PCI Express link carries, in Gb/s, and who says so."""

    gbps: float
    source: str


class DueRate(NamedTuple):
    """What a run should reach, in Gb/s."""

    gbps: float
    #: How it was computed, from what.
    source: str


def due_rate(measurement: Measurement, rate: PortRate, bus: BusRate | None = None) -> DueRate:
    """Return what a run on ports of this rate, behind this PCIe link, should reach."""
    gbps, steps = data_rate(rate.gbps, measurement.link_layer), [rate.source]
    if gbps != rate.gbps:
        steps.append(f"of which InfiniBand's encoding leaves {gbps:g} Gb/s")
    if measurement.link_layer is not None and measurement.mtu in _MTUS:
        share = payload_share(measurement.mtu, measurement.link_layer)
        gbps *= share
        steps.append(f"of which packets of MTU {measurement.mtu} leave {share:.3f}")
    if bus is not None and bus.gbps < gbps:
        gbps, steps = bus.gbps, [f"{bus.source}, which is less than {rate.source}"]
    if measurement.bidirectional:
        gbps *= 2
        steps.append("in both directions")
    return DueRate(round(gbps, 2), ", ".join(steps))
