"""Findings as JUnit XML, which CI systems show as tests.

An error is a failure and unsure is skipped; every other level passes, with its text. The
format is the one of Ant's JUnit task, which Jenkins and GitLab read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from webhook.model.finding import Finding
from webhook.text.escape import visible


class JunitCase(NamedTuple):
    """A test case, and the finding on it."""

    classname: str
    name: str
    finding: Finding


def junit_document(suite_name: str, cases: Sequence[JunitCase]) -> str:
    """Return an XML document with a single suite, of these cases."""
    counts = Counter(case.finding.level for case in cases)
    suite = Element(
        "testsuite",
        name=suite_name,
        tests=str(len(cases)),
        failures=str(counts["error"]),
        errors="0",
        skipped=str(counts["unsure"]),
    )
    for case in cases:
        _add_case(suite, case)
    suites = Element("testsuites", name=suite_name)
    suites.append(suite)
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _add_case(suite: Element, case: JunitCase) -> None:
    """Add a test case; control characters, which XML does not allow, are escaped."""
    element = SubElement(
        suite, "testcase", classname=visible(case.classname), name=visible(case.name)
    )
    finding, code = case.finding, visible(case.finding.code)
    text = visible(f"{finding.text} {finding.remedy}".strip())
    if finding.level == "error":
        failure = SubElement(element, "failure", type=code, message=visible(finding.text))
        failure.text = text
    elif finding.level == "unsure":
        SubElement(element, "skipped", message=f"{code}: {text}")
    else:
        SubElement(element, "system-out").text = f"{finding.level} ({code}): {text}"
