"""Findings as JUnit XML: what CI systems count as failed and as skipped."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

from webhook.model.finding import LEVELS, Finding, Level
from webhook.text.junit import JunitCase, junit_document


def _document(*levels: Level, text: str = "It is down.") -> str:
    findings = (Finding(level, "PortDown", text, "Check it.") for level in levels)
    return junit_document("verify", [JunitCase("n1", "mlx5_0", finding) for finding in findings])


def test_errors_fail_and_unsure_is_skipped() -> None:
    """Every other level passes, with its text."""
    suite = fromstring(_document(*LEVELS))[0]
    assert suite.attrib == {
        "name": "verify", "tests": "5", "failures": "1", "errors": "0", "skipped": "1",
    }  # fmt: skip
    elements = [case[0] for case in suite]
    assert [element.tag for element in elements] == [
        "system-out", "system-out", "system-out", "skipped", "failure",
    ]  # fmt: skip
    assert elements[0].text == "ok (PortDown): It is down. Check it."
    assert elements[3].attrib == {"message": "PortDown: It is down. Check it."}
    assert elements[4].attrib == {"type": "PortDown", "message": "It is down."}
    assert elements[4].text == "It is down. Check it."


def test_control_characters_are_escaped() -> None:
    """XML has no control characters, not even escaped ones."""
    suite = fromstring(_document("error", text="a\x00b"))[0]
    assert "\x00" not in (suite[0][0].text or "")
    assert "b" in (suite[0][0].text or "")
