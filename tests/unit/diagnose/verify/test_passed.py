"""The line on all that passed."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import (
    PINGS,
    bandwidth,
    latency,
    nccl_job,
    nccl_log,
    row,
)
from tests.unit.diagnose.verify.evaluated import evaluated
from tests.unit.diagnose.verify.measured_runs import measured_run
from webhook.diagnose.verify.matrix_output import matrix_text
from webhook.diagnose.verify.output import verify_text
from webhook.diagnose.verify.results import NodePair
from webhook.diagnose.verify.runs.plan import all_pair_rounds


def lines(*texts: str, rate: float = 100) -> list[str]:
    """Return the lines of the text on files."""
    return verify_text(evaluated(*texts, rate=rate)).splitlines()


def test_many_runs_that_passed() -> None:
    """They are one line below the failures, with the range of their bandwidths."""
    good = [bandwidth(row(gbps)) for gbps in (95.04, 96, 97.06, 98.44)]
    text = lines(*good[:2], bandwidth(row(50)), *good[2:])
    assert text[0] == "ib_write_bw mlx5_4  c:2"
    assert text[-3:] == [
        "✔ 4 of 5 runs passed, 95\N{EN DASH}98.4 Gb/s",
        "",
        "✘ error (FarBelowRate): 4 ok, 1 error",
    ]
    assert not [line for line in text if "98% of" in line]


def test_few_runs_that_passed() -> None:
    """Up to three are written out, after the failures."""
    text = lines(*[bandwidth(row(95))] * 3, bandwidth(row(50)))
    assert [line for line in text if line.startswith("ib_write_bw")] == [
        f"ib_write_bw mlx5_4  {name}:2" for name in "dabc"
    ]
    assert not [line for line in text if "passed" in line]


@pytest.mark.parametrize(
    ("texts", "rate", "line"),
    [
        ([bandwidth(row(391))] * 4, 400, "✔ 4 of 4 runs passed, 391 Gb/s"),
        ([latency(1.6), latency(1.65)] * 2, 400, "✔ 4 of 4 runs passed, 1.6\N{EN DASH}1.65 µs"),
        ([PINGS] * 4, 400, "✔ 4 of 4 runs passed"),
        (
            [*[nccl_job(gbytes="390") + nccl_log(8)] * 3, bandwidth(row(380))],
            400,
            "✔ 4 of 4 runs passed, 390 GB/s, 380 Gb/s",
        ),
    ],
)
def test_the_units(texts: list[str], rate: float, line: str) -> None:
    """Each unit has its own range; a run without a number has none."""
    assert lines(*texts, rate=rate)[-3] == line


def test_the_pairs_of_a_run() -> None:
    """A pair counts if all of its results passed."""
    nodes = ("a", "b", "c")
    pairs = [pair for pairs_at_once in all_pair_rounds(nodes) for pair in pairs_at_once]

    def outcome(pair: NodePair, device: str) -> float:
        return 48.2 if "c" in pair and device == "mlx5_1" else 96.4 + nodes.index(pair.server)

    devices = ("mlx5_0", "mlx5_1")
    text = matrix_text(measured_run(nodes, outcome, pairs=pairs, devices=devices))
    assert "\n✔ 1 of 3 pairs passed, 97.4 Gb/s\n✘ error" in text
    slow = matrix_text(measured_run(nodes, lambda *_: 48.2, pairs=pairs, devices=devices))
    assert "passed" not in slow
