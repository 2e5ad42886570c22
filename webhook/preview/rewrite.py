"""The documents of a report with their patches applied, and the patches themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from webhook.model.decision import PatchOp
from webhook.model.path import pointer
from webhook.model.pod import at
from webhook.preview.patches import prove
from webhook.preview.report.json import LONGEST, check_length
from webhook.preview.report.record import Edit, Report
from webhook.preview.workloads.patch import patched
from webhook.text.escape import visible
from webhook.text.yaml.documents import Document
from webhook.text.yaml.splice import splice


class Rewritten(NamedTuple):
    """One document with the patches of its pods applied."""

    text: str
    warning: str  #: why comments and order are lost; "" if they are kept


def patches(documents: Sequence[Document], report: Report) -> list[list[PatchOp]]:
    """Return the RFC 6902 patch of each whole document; empty if nothing changes."""
    found: list[list[PatchOp]] = [[] for _ in documents]
    for edit in report.edits:
        base = pointer(edit.steps)
        for op in edit.ops:
            found[edit.document].append({**op, "path": base + op["path"]})
    return found


def rewrite(
    documents: Sequence[Document], report: Report, *, most: int | None = LONGEST
) -> list[Rewritten]:
    """Return the text of each document with its patches applied, with comments and order kept.

    Raises DocumentError if the texts have more than `most` characters. A document that has to be
    rewritten as a whole grows: its indentation changes, and its aliases are expanded.
    """
    changed: list[list[Edit]] = [[] for _ in documents]
    for edit in report.edits:
        if edit.ops:
            changed[edit.document].append(edit)
    found: list[Rewritten] = []
    length = 0
    for document, own in zip(documents, changed, strict=True):
        found.append(_rewritten(document, own) if own else Rewritten(document.text, ""))
        length += len(found[-1].text)
        check_length(length, most)
    return found


def _rewritten(document: Document, edits: Sequence[Edit]) -> Rewritten:
    value = patched(document.value, [(edit.steps, edit.ops) for edit in edits])
    for edit in edits:
        prove(edit.pod, at(value, edit.steps))
    spliced = splice(document, value)
    return Rewritten(spliced.text, spliced.warning)


def lost_layout(
    documents: Sequence[Document], rewritten: Sequence[Rewritten]
) -> list[tuple[str, str]]:
    """List the documents that lost their comments and order: label and visible sentence."""
    return [
        ("warning", visible(f"{document.name}:{document.line}: {new.warning}"))
        for document, new in zip(documents, rewritten, strict=True)
        if new.warning
    ]
