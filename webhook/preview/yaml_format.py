"""`yaml`: the documents after the patches, ready for `kubectl apply`."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.preview.report.record import Report, asides
from webhook.preview.rewrite import lost_layout, rewrite
from webhook.preview.writers import Display, Shown
from webhook.text.yaml.documents import Document, joined
from webhook.text.yaml.ending import with_line_break


def write_yaml(documents: Sequence[Document], report: Report, display: Display) -> Shown:
    """Write the documents with the patches applied."""
    rewritten = rewrite(documents, report, most=display.most)
    texts = [one.text for one in rewritten]
    whole = joined([*map(with_line_break, texts[:-1]), *texts[-1:]])
    return Shown(whole, [*lost_layout(documents, rewritten), *asides(report)])
