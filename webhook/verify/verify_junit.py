"""An assessment as JUnit XML, which CI systems show as tests.

A run is a test case: a failure for fail, skipped for inconclusive; a warning passes, with its text.
Elements and attributes: the XML of Ant's JUnit task, as Jenkins and GitLab read it.
"""

from __future__ import annotations

from collections import Counter
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from webhook.verify.judgement import Assessment, Judgement, Remark
from webhook.verify.verify_text import title_of, where_judged
from webhook.visible import visible

_NAME = "rdma-webhook verify"


def verify_junit(assessment: Assessment) -> str:
    """Return an assessment as an XML document."""
    counted = Counter(one.verdict for one in assessment.everything)
    suite = Element(
        "testsuite",
        name=_NAME,
        tests=str(len(assessment.everything)),
        failures=str(counted["fail"]),
        errors="0",
        skipped=str(counted["inconclusive"]),
    )
    for judgement in assessment.judgements:
        _case(suite, judgement, title_of(judgement.measurement), where_judged(judgement))
    for remark in assessment.remarks:
        _case(suite, remark, "All runs", remark.code)
    suites = Element("testsuites", name=_NAME)
    suites.append(suite)
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _case(suite: Element, one: Judgement | Remark, title: str, name: str) -> None:
    """Add a test case; control characters, which XML does not have, are escaped."""
    case = SubElement(suite, "testcase", classname=visible(title), name=visible(name))
    because, text = visible(one.because), visible(f"{one.because} {one.remedy}".strip())
    if one.verdict == "fail":
        SubElement(case, "failure", type=one.code, message=because).text = text
    elif one.verdict == "inconclusive":
        SubElement(case, "skipped", message=f"{one.code}: {text}")
    else:
        SubElement(case, "system-out").text = f"{one.verdict} ({one.code}): {text}"
