"""`text`: for people."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.preview.formats.display import Display, Shown
from webhook.render.report import Report
from webhook.render.text import report_text
from webhook.yamltext.documents import Document


def write_text(_: Sequence[Document], report: Report, display: Display) -> Shown:
    """Write the report."""
    return Shown(report_text(report, width=display.width, colour=display.colour, ways=display.ways))
