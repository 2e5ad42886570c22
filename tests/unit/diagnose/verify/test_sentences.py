"""The wording of whole findings."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, nccl_tests, row
from tests.unit.diagnose.verify.evaluated import only_result
from webhook.diagnose.tools.known_lines import TRANSPORTS


@pytest.mark.parametrize(
    ("gbps", "digits"), [(0.35, "0.35"), (1, "1.0"), (1.5, "1.5"), (94.71, "94.7")]
)
def test_digits(gbps: float, digits: str) -> None:
    """A tenth of a Gb/s is precise enough, but not below 1 Gb/s."""
    assert only_result(bandwidth(row(gbps))).finding.text.startswith(
        f"{digits} Gb/s, {gbps / 99.37:.0%} of the expected "
    )


def test_a_collective_says_its_bandwidth() -> None:
    """The reason has the bus bandwidth, if there is any, and no ratio."""
    rdma_line = TRANSPORTS[0].example
    ending = "over RDMA, without wrong results. The bandwidth is not graded."
    assert (
        only_result(nccl_tests() + rdma_line).finding.text == f"Bus bandwidth 373.2 Gb/s {ending}"
    )
    unreadable = nccl_tests().replace("0.00", "n/a").replace("46.65", "n/a").replace("46.48", "n/a")
    assert only_result(unreadable + rdma_line).finding.text == f"The collective ran {ending}"
