"""Runs that failed in the middle: one failed result, whatever they measured before."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import (
    bandwidth,
    nccl_log,
    nccl_tests,
    row,
    ucx_perftest,
)
from tests.unit.diagnose.verify.evaluated import evaluated, only_result
from webhook.diagnose.tools.known_lines import KNOWN_LINES
from webhook.model.finding import Location

BY_CODE = {known_line.code: known_line for known_line in KNOWN_LINES}
ABORTED = [row(95, 32768), row(95.4, 65536), " Failed status 10: wr_id 0 syndrom 0x88", "ccnt=0"]


def test_an_aborted_run() -> None:
    """A run that ends with a failure below its rows fails, however fast the rows were."""
    aborted = bandwidth("\n".join(ABORTED)).rpartition("ccnt=0")[0]
    evaluation = evaluated(aborted + bandwidth(row(95)))
    assert [result.finding.level for result in evaluation.results] == ["error", "ok"]
    failed = evaluation.results[0]
    assert (failed.gbps, failed.measurement is not None) == (None, True)
    assert failed.finding.location == Location("a", 2, device="mlx5_4")
    assert failed.finding.text.endswith(
        " The last message that it measured had 65,536 bytes. Output: Failed status 10: wr_id 0 "
        "syndrom 0x88"
    )


def test_a_failure_below_a_complete_table() -> None:
    """The run has its result; what failed later is another program."""
    complete = bandwidth("\n".join(ABORTED[:2])) + ABORTED[2] + "\n"
    assert [result.finding.level for result in evaluated(complete).results] == ["ok", "error"]
    # The server and the client each print a table on a terminal that they share.
    both = bandwidth(row(95, 65536)).rstrip() + "\n" + row(95.1, 65536) + "\n" + ABORTED[2] + "\n"
    assert [result.finding.level for result in evaluated(both).results] == ["error"]


@pytest.mark.parametrize("footer", ["# Out of", "# Avg bus"])
def test_an_aborted_collective(footer: str) -> None:
    """nccl-tests end with their average; without their last lines, a failure is theirs."""
    rows, *_ = nccl_tests().partition("# Out of")
    warning = BY_CODE["PeerClosed"].example + "\n"
    failed = only_result(rows + warning + nccl_log())
    assert (failed.finding.code, failed.finding.location.line) == ("PeerClosed", 2)
    end = next(line for line in nccl_tests().splitlines() if line.startswith(footer))
    results = evaluated(f"{rows}{end}\n{warning}{nccl_log()}").results
    assert [result.finding.code for result in results] == ["OverRdma", "PeerClosed"]


def test_an_aborted_ucx_perftest() -> None:
    """A run without its final row is not complete."""
    stopped = ucx_perftest().partition("Final:")[0]
    killed = "Killed\n"
    assert only_result(stopped + killed).finding.code == "ProcessKilled"
    codes_of_complete = [
        result.finding.code for result in evaluated(ucx_perftest() + killed).results
    ]
    assert codes_of_complete == ["TransportUnknown", "ProcessKilled"]
