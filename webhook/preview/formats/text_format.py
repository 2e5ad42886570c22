"""`text`: for people."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.preview.formats.format import Format, Shown, View
from webhook.render.report import Report
from webhook.render.text import text
from webhook.yamltext.documents import Document


def _write(_: Sequence[Document], report: Report, view: View) -> Shown:
    return Shown(text(report, width=view.width, colour=view.colour, ways=view.ways))


FORMAT = Format("text", "for people", _write, ("text/plain",))
