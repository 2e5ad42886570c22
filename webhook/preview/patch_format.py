"""`patch`: the RFC 6902 patch of each document, one per line."""

from __future__ import annotations

import json
from collections.abc import Sequence

from webhook.preview.report.record import Report, asides
from webhook.preview.rewrite import patches
from webhook.preview.writers import Display, Shown
from webhook.text.escape import visible_json
from webhook.text.yaml.documents import Document


def write_patch(documents: Sequence[Document], report: Report, _: Display) -> Shown:
    """Write the patches, one a line."""
    written = (json.dumps(patch, ensure_ascii=False) for patch in patches(documents, report))
    lines = [visible_json(one) + "\n" for one in written]
    return Shown("".join(lines), asides(report))
