"""`text`: for people."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.preview.report.record import Report
from webhook.preview.report.text import report_text
from webhook.preview.writers import Display, Shown
from webhook.text.yaml.documents import Document


def write_text(_: Sequence[Document], report: Report, display: Display) -> Shown:
    """Write the report."""
    return Shown(report_text(report, width=display.width, colour=display.colour, ways=display.ways))
