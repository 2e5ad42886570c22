"""`yaml`: the documents after the patches, ready for `kubectl apply`."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.preview.formats.display import Display, Shown
from webhook.preview.rewrite import lost_layout, rewrite
from webhook.render.report import Report, asides
from webhook.yamltext.documents import Document, joined
from webhook.yamltext.edit.ending import with_line_break


def write_yaml(documents: Sequence[Document], report: Report, display: Display) -> Shown:
    """Write the documents with the patches applied."""
    rewritten = rewrite(documents, report, most=display.most)
    texts = [one.text for one in rewritten]
    whole = joined([*map(with_line_break, texts[:-1]), *texts[-1:]])
    return Shown(whole, [*lost_layout(documents, rewritten), *asides(report)])
