"""The JUnit XML of an evaluation."""

from __future__ import annotations

from xml.etree.ElementTree import Element, fromstring

from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, row
from tests.unit.diagnose.verify.evaluated import evaluated
from webhook.diagnose.verify.output import verify_junit


def suite(*texts: str, hcas: tuple[str, ...] = ()) -> Element:
    """Return the test suite."""
    (element,) = fromstring(verify_junit(evaluated(*texts, hcas=hcas)).encode())
    return element


def test_the_whole_document() -> None:
    """Runs are test cases, in classes by test and device, with their place as the name."""
    evaluation = evaluated(
        bandwidth(row(95)), "Port number 1 state is Down\n", hcas=["mlx5_4", "mlx5_5"]
    )
    down = evaluation.results[1].finding
    expected = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="rdma-webhook verify">
  <testsuite name="rdma-webhook verify" tests="3" failures="1" errors="0" skipped="1">
    <testcase classname="ib_write_bw mlx5_4" name="a:2">
      <system-out>ok (AtRate): 95.0 Gb/s, 96% of the expected 99.37 Gb/s.</system-out>
    </testcase>
    <testcase classname="Output" name="b:1">
      <failure type="PortDown" message="{down.text}">{down.text} {down.remedy}</failure>
    </testcase>
    <testcase classname="All runs" name="NotTested">
      <skipped message="NotTested: 1 HCA of the fabric has no result: mlx5_5. Run \
ib_write_bw -d HCA for each HCA that has no result." />
    </testcase>
  </testsuite>
</testsuites>
"""
    assert verify_junit(evaluation) == expected


def test_a_warning_passes() -> None:
    """CI systems have no warning: its text is the output of a test that passes."""
    (case,) = suite(bandwidth(row(80)))
    (output,) = case
    assert output.tag == "system-out"
    assert (output.text or "").startswith(
        "warning (BelowRate): 80.0 Gb/s, 81% of the expected 99.37 Gb/s. Compare"
    )


def test_an_aborted_run_is_a_failed_test() -> None:
    """It is one test case, with the name of its run, and none passes."""
    rows = bandwidth(row(95, 65536)).rpartition("----")[0].rstrip("-")
    (case,) = suite(f"{rows} Failed status 10: wr_id 0 syndrom 0x88\n")
    (failure,) = case
    assert (case.get("classname"), failure.tag) == ("ib_write_bw mlx5_4", "failure")


def test_the_counts() -> None:
    """A suite counts failed and skipped cases."""
    element = suite(bandwidth(row(10)), bandwidth(row(11)), bandwidth(row(200)), bandwidth(row(95)))
    assert [element.get(name) for name in ("tests", "failures", "skipped", "errors")] == list(
        "4210"
    )


def test_characters_that_xml_does_not_have() -> None:
    """They are escaped, so that the document is readable."""
    (case,) = suite("Couldn't allocate MR \x01\x0b<&>\n")
    (failure,) = case
    assert r"\x01\x0b<&>" in (failure.text or "")
