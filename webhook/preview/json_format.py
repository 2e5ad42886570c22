"""`json`: the documented form, for programs."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.preview.report.json import form_text
from webhook.preview.report.record import Report
from webhook.preview.writers import Display, Shown
from webhook.text.yaml.documents import Document


def write_json(_: Sequence[Document], report: Report, display: Display) -> Shown:
    """Write the form."""
    return Shown(form_text(report, most=display.most))
