"""The JUnit XML of a run."""

from __future__ import annotations

from tests.unit.diagnose.verify.measured_runs import NO_MEMORY, measured_run
from webhook.diagnose.verify.matrix_output import matrix_junit
from webhook.diagnose.verify.results import NodePair
from webhook.model.finding import Finding

LATE = Finding("unsure", "Interrupted", "The run was interrupted.", "Run it again.")


def test_the_whole_document() -> None:
    """A test case for each pair and device, in a class for each pair."""
    pairs = [NodePair("a", "b"), NodePair("b", "<a>")]
    report = measured_run(
        ("a", "b", "<a>"),
        lambda pair, _: NO_MEMORY if pair.client == "b" else 96,
        pairs=pairs,
        findings=(LATE,),
    )
    ((failed,),) = (pair.results for pair in report.pairs[1:])
    text = f"{failed.finding.text} {failed.finding.remedy}".replace("\n", " ")
    expected = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="rdma-webhook verify">
  <testsuite name="rdma-webhook verify" tests="3" failures="1" errors="0" skipped="1">
    <testcase classname="a → b" name="ib_write_bw mlx5_0">
      <system-out>ok (AtRate): 96.0 Gb/s, 97% of the expected 99.37 Gb/s.</system-out>
    </testcase>
    <testcase classname="b → &lt;a&gt;" name="Output">
      <failure type="PerftestNoMemory" message="{failed.finding.text}">{text}</failure>
    </testcase>
    <testcase classname="Whole run" name="Interrupted">
      <skipped message="Interrupted: The run was interrupted. Run it again." />
    </testcase>
  </testsuite>
</testsuites>
"""
    assert matrix_junit(report) == expected
