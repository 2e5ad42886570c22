"""`diff`: what changes in each input, as `diff -u` shows it and `patch -p1` accepts it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from webhook.preview.report.record import Report, asides
from webhook.preview.rewrite import Rewritten, lost_layout, rewrite
from webhook.preview.writers import Display, Shown
from webhook.text.diff import diff
from webhook.text.yaml.documents import Document, joined


def write_diff(documents: Sequence[Document], report: Report, display: Display) -> Shown:
    """Write one diff for each input."""
    rewritten = rewrite(documents, report, most=display.most)
    remarks = [*lost_layout(documents, rewritten), *asides(report)]
    return Shown("".join(_diffs(documents, rewritten, display)), remarks)


def _diffs(
    documents: Sequence[Document], rewritten: Sequence[Rewritten], display: Display
) -> Iterator[str]:
    """Yield one diff for each input, which may contain several documents."""
    pairs = zip(documents, rewritten, strict=True)
    for name, group in groupby(pairs, lambda pair: pair[0].name):
        own = list(group)
        before = joined([document.text for document, _ in own])
        after = joined([new.text for _, new in own])
        heading = name.strip("<>").lstrip("/")
        yield diff(heading, before, after, colour=display.colour, terminal=display.terminal)
