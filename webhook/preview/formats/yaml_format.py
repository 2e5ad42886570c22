"""`yaml`: the documents after the patches, ready for `kubectl apply`."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.preview.formats.format import Display, Format, Shown
from webhook.preview.rewrite import lost_layout, rewrite
from webhook.render.report import Report, asides
from webhook.yamltext.documents import Document, joined


def _write(documents: Sequence[Document], report: Report, display: Display) -> Shown:
    rewritten = rewrite(documents, report, most=display.most)
    whole = joined([one.text for one in rewritten])
    ended = whole if whole.endswith("\n") or not whole else f"{whole}\n"
    return Shown(ended, [*lost_layout(documents, rewritten), *asides(report)])


FORMAT = Format(
    "yaml",
    "the patched documents, comments and order kept",
    _write,
    ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"),
)
