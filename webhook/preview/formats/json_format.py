"""`json`: the documented form, for programs."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.preview.formats.format import Display, Format, Shown
from webhook.render.json_form import form_text
from webhook.render.report import Report
from webhook.yamltext.documents import Document


def _write(_: Sequence[Document], report: Report, display: Display) -> Shown:
    return Shown(form_text(report, most=display.most))


FORMAT = Format("json", "the documented form", _write, ("application/json",))
