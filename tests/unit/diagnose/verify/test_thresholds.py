"""Numbers exactly on a threshold."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, latency, row
from tests.unit.diagnose.verify.evaluated import only_result


@pytest.mark.parametrize(
    ("gbps", "code"),
    [(90, "AtRate"), (75, "BelowRate"), (105, "AtRate"), (106, "FasterThanRate")],
)
def test_a_threshold_belongs_to_the_better_level(gbps: float, code: str) -> None:
    """0.9 passes, 0.75 warns, and 1.05 is still possible; without an MTU the full rate counts."""
    output = bandwidth(row(gbps)).replace("Mtu", "")
    assert (only_result(output).finding.code, only_result(output).expected) == (code, 100)


@pytest.mark.parametrize(
    ("test", "typical", "code"),
    [
        ("RDMA_Write", 2.6, "NoPeers"),
        ("Send", 2.6, "NoPeers"),
        ("RDMA_Read", 2.6, "Quick"),
        ("RDMA_Read", 4.6, "NoPeers"),
    ],
)
def test_each_test_has_its_own_bound(test: str, typical: float, code: str) -> None:
    """A read is a round trip, so it may take longer."""
    assert only_result(latency(typical, test)).finding.code == code
