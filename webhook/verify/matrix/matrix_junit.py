"""A run as JUnit XML: a test case for each pair and device, in a class for each pair."""

from __future__ import annotations

from webhook.verify.matrix.pair_matrix import pair_matrix, pair_words
from webhook.verify.run_report import RunReport
from webhook.verify.verify_junit import JunitCase, junit_document
from webhook.verify.verify_text import title_of


def matrix_junit(report: RunReport) -> str:
    """Return a run as an XML document."""
    pairs = (
        JunitCase(pair_words(pair), title_of(one.measurement), one)
        for pair, cell in pair_matrix(report).cells.items()
        for one in cell.judgements
    )
    remarks = (JunitCase("The whole run", one.code, one) for one in report.remarks)
    return junit_document([*pairs, *remarks])
