"""docs/codes.md has the codes of each tool, and every code has a page."""

from __future__ import annotations

import re

from tests.generated_pages import DOCS, assert_up_to_date
from webhook.diagnose.codes import CODE_NAMES, CODE_ROWS

PAGE = DOCS / "codes.md"
#: Pages with a row or an entry for each of their codes, and the pattern of such a row.
_PAGES = {
    "codes.md": r"^\| `(\w+)` \|",
    "reasons.md": r"^\| `(\w+)` \|",
    "troubleshooting.md": r"\(`(\w+)`; ",
}
#: The tool and the part whose codes have a page of their own.
_ELSEWHERE = {"webhook", "log"}


def tables() -> str:
    """Write a table for each tool."""
    rows = [row for row in CODE_ROWS if not _ELSEWHERE & {row.tool, row.part}]
    lines: list[str] = []
    for tool in dict.fromkeys(row.tool for row in rows):
        lines += [f"## {tool}", "", "| code | when | what to do |", "|---|---|---|"]
        lines += [
            f"| `{row.code.code}` | {row.code.meaning} | {row.code.remedy or '-'} |"
            for row in rows
            if row.tool == tool
        ]
        lines.append("")
    return "\n".join(lines)


def test_the_tables_are_up_to_date() -> None:
    """Every code is on the page as its tool defines it."""
    assert_up_to_date(PAGE, "<!-- codes: ", "<!-- end of codes -->", f"\n{tables()}")


def codes_on_pages() -> set[str]:
    """Return the codes that have a row or an entry on a page."""
    return {
        code
        for page, pattern in _PAGES.items()
        for code in re.findall(pattern, (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    }


def test_every_code_has_a_page() -> None:
    """No registered code is missing in the docs, and no page has a code that no tool prints."""
    assert codes_on_pages() == set(CODE_NAMES)
