"""A run as JUnit XML: a test case for each pair and device, in a class for each pair."""

from __future__ import annotations

from webhook.diagnose.verify.matrix import pair_matrix, pair_words
from webhook.diagnose.verify.output import title_of
from webhook.diagnose.verify.run_report import RunReport
from webhook.diagnose.verify.verify_junit import JunitCase, junit_document


def matrix_junit(report: RunReport) -> str:
    """Return a run as an XML document."""
    pairs = (
        JunitCase(pair_words(pair), title_of(one.measurement), one)
        for pair, cell in pair_matrix(report).cells.items()
        for one in cell.judgements
    )
    remarks = (JunitCase("The whole run", one.code, one) for one in report.remarks)
    return junit_document([*pairs, *remarks])
