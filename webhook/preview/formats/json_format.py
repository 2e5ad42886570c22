"""`json`: the documented form, for programs."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.preview.formats.display import Display, Shown
from webhook.render.json_form import form_text
from webhook.render.report import Report
from webhook.yamltext.documents import Document


def write_json(_: Sequence[Document], report: Report, display: Display) -> Shown:
    """Write the form."""
    return Shown(form_text(report, most=display.most))
