"""A reader for the tables of a page, as a browser shows them; for tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class PageTable:
    """A table: its caption, the headings of its columns, and its cells by the heading of a row."""

    caption: str = ""
    columns: list[str] = field(default_factory=list)
    rows: dict[str, list[str]] = field(default_factory=dict)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tables: list[PageTable] = []
        self._heads: list[str] = []
        self._cells: list[str] = []
        self._text: list[str] | None = None
        self._scope: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append(PageTable())
        elif tag == "tr":
            self._heads, self._cells = [], []
        elif tag in ("td", "th", "caption"):
            self._text, self._scope = [], dict(attrs).get("scope")

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        text = "".join(self._text or [])
        if tag == "caption":
            self.tables[-1].caption = text
        elif tag == "th":
            (self.tables[-1].columns if self._scope == "col" else self._heads).append(text)
        elif tag == "td":
            self._cells.append(text)
        elif tag == "tr" and self._heads:
            self.tables[-1].rows[" ".join(self._heads)] = self._cells
        if tag in ("td", "th", "caption"):
            self._text = None


def tables_of(page: str) -> list[PageTable]:
    """Return the tables of a page."""
    reader = _Reader()
    reader.feed(page)
    return reader.tables
