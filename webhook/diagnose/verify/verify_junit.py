"""An assessment as JUnit XML, which CI systems show as tests.

A run is a test case: a failure for fail, skipped for inconclusive; a warning passes, with its text.
Elements and attributes: the XML of Ant's JUnit task, as Jenkins and GitLab read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from webhook.diagnose.verify.output import title_of, where_judged
from webhook.diagnose.verify.results import Assessment, Judgement, Remark
from webhook.text.escape import visible

_NAME = "rdma-webhook verify"


class JunitCase(NamedTuple):
    """A test case, and what is said of it."""

    classname: str
    name: str
    said: Judgement | Remark


def verify_junit(assessment: Assessment) -> str:
    """Return an assessment as an XML document."""
    runs = (
        JunitCase(title_of(one.measurement), where_judged(one), one)
        for one in assessment.judgements
    )
    remarks = (JunitCase("All runs", one.code, one) for one in assessment.remarks)
    return junit_document([*runs, *remarks])


def junit_document(cases: Sequence[JunitCase]) -> str:
    """Return an XML document with a suite of these cases."""
    counted = Counter(one.said.verdict for one in cases)
    suite = Element(
        "testsuite",
        name=_NAME,
        tests=str(len(cases)),
        failures=str(counted["fail"]),
        errors="0",
        skipped=str(counted["inconclusive"]),
    )
    for one in cases:
        _case(suite, one)
    suites = Element("testsuites", name=_NAME)
    suites.append(suite)
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _case(suite: Element, of: JunitCase) -> None:
    """Add a test case; control characters, which XML does not have, are escaped."""
    case = SubElement(suite, "testcase", classname=visible(of.classname), name=visible(of.name))
    one, code = of.said, visible(of.said.code)
    because, text = visible(one.because), visible(f"{one.because} {one.remedy}".strip())
    if one.verdict == "fail":
        SubElement(case, "failure", type=code, message=because).text = text
    elif one.verdict == "inconclusive":
        SubElement(case, "skipped", message=f"{code}: {text}")
    else:
        SubElement(case, "system-out").text = f"{one.verdict} ({code}): {text}"
