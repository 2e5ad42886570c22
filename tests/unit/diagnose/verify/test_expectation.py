"""The expectation for a run."""

from __future__ import annotations

from typing import Literal

import pytest

from webhook.diagnose.tools.benchmarks.measurements import Measurement
from webhook.diagnose.verify.results import PortRate, expected_rate

_RUN = Measurement("perftest", "ib_write_bw", "bandwidth", (1, 1))


@pytest.mark.parametrize("mtu", [None, 0, 1500, 9000])
def test_sizes_that_no_packet_of_rdma_has(mtu: int | None) -> None:
    """An MTU that RDMA does not have is ignored, and nothing is subtracted."""
    assert expected_rate(_RUN._replace(link_layer="Ethernet", mtu=mtu), PortRate(25, "x")) == (
        25,
        "x",
    )


@pytest.mark.parametrize(
    ("rate", "link", "data"),
    [
        (10, "InfiniBand", 8),
        (20, "InfiniBand", 16),
        (40, "InfiniBand", 32),
        (56, "InfiniBand", 54.5),
        (100, "InfiniBand", 100),
        (40, "Ethernet", 40),
        (40, None, 40),
    ],
)
def test_encoding(rate: float, link: Literal["InfiniBand", "Ethernet"] | None, data: float) -> None:
    """InfiniBand up to FDR is named after its signaling rate, not after its data rate."""
    assert expected_rate(_RUN._replace(link_layer=link), PortRate(rate, "x")).gbps == data


def test_all_of_it() -> None:
    """Both directions double the expectation, and the computation has each step."""
    run = _RUN._replace(link_layer="InfiniBand", mtu=2048, bidirectional=True)
    source = (
        "--rate 40 (32 Gb/s after InfiniBand's encoding) × 0.987 payload share at MTU 2048 "
        "× 2 directions"
    )
    assert expected_rate(run, PortRate(40, "--rate 40")) == (63.2, source)
