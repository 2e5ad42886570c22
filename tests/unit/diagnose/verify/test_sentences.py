"""The wording of whole findings."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, row
from tests.unit.diagnose.verify.evaluated import only_result


@pytest.mark.parametrize(
    ("gbps", "digits"), [(0.35, "0.35"), (1, "1.0"), (1.5, "1.5"), (94.71, "94.7")]
)
def test_digits(gbps: float, digits: str) -> None:
    """A tenth of a Gb/s is precise enough, but not below 1 Gb/s."""
    assert only_result(bandwidth(row(gbps))).finding.text.startswith(
        f"{digits} Gb/s, {gbps / 99.37:.0%} of the expected "
    )
