"""Parts of pages in docs/ that are written from the code."""

from __future__ import annotations

import os
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def assert_up_to_date(page: Path, begin: str, end: str, written: str) -> None:
    """Assert that a page has `written` between two markers; UPDATE_GOLDEN=1 writes it there.

    `begin` is the start of the line above that part, and `end` the start of the line below.
    """
    text = page.read_text(encoding="utf-8")
    start = text.index("\n", text.index(begin)) + 1
    fresh = text[:start] + written + text[text.index(end, start) :]
    if os.environ.get("UPDATE_GOLDEN"):
        page.write_text(fresh, encoding="utf-8")
    stale = f"docs/{page.name} is stale: run `make golden`, and look at the diff"
    assert page.read_text(encoding="utf-8") == fresh, stale
