"""`yaml`: the documents after the patches, ready for `kubectl apply`."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.preview.formats.display import Display, Shown
from webhook.preview.rewrite import lost_layout, rewrite
from webhook.render.report import Report, asides
from webhook.yamltext.documents import Document, joined


def write(documents: Sequence[Document], report: Report, display: Display) -> Shown:
    """Write the documents with the patches applied."""
    rewritten = rewrite(documents, report, most=display.most)
    whole = joined([one.text for one in rewritten])
    ended = whole if whole.endswith("\n") or not whole else f"{whole}\n"
    return Shown(ended, [*lost_layout(documents, rewritten), *asides(report)])
