"""The wording of whole judgements."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, nccl_tests, row
from tests.unit.diagnose.verify.judged import the_only
from webhook.diagnose.tools.causes import TRANSPORTS


@pytest.mark.parametrize(
    ("gbps", "shown"), [(0.35, "0.35"), (1, "1.0"), (1.5, "1.5"), (94.71, "94.7")]
)
def test_digits(gbps: float, shown: str) -> None:
    """A tenth of a Gb/s is precise enough, but not below 1 Gb/s."""
    assert the_only(bandwidth(row(gbps))).because.startswith(f"{shown} Gb/s of 99.37 Gb/s (")


def test_a_collective_says_its_bandwidth() -> None:
    """The reason has the bus bandwidth, if there is any, and no ratio."""
    over_rdma = TRANSPORTS[0].example
    ending = "over RDMA, without wrong results. No ratio is judged."
    assert the_only(nccl_tests() + over_rdma).because == f"Bus bandwidth 373.2 Gb/s {ending}"
    unreadable = nccl_tests().replace("0.00", "n/a").replace("46.65", "n/a").replace("46.48", "n/a")
    assert the_only(unreadable + over_rdma).because == f"Results {ending}"
