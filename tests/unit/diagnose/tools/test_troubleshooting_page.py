"""docs/troubleshooting.md has the table of known lines in the code."""

from __future__ import annotations

from tests.generated_pages import DOCS, assert_up_to_date
from webhook.diagnose.tools.known_lines import (
    FAILURES,
    KNOWN_LINES,
    SETTINGS,
    SLOWER,
    TRANSPORTS,
    KnownLine,
)

PAGE = DOCS / "troubleshooting.md"
TABLES: dict[str, tuple[KnownLine, ...]] = {
    "The network that carries the traffic": TRANSPORTS,
    "Settings that turn RDMA off": SETTINGS,
    "Causes of slower traffic": SLOWER,
    "Failures": FAILURES,
}
_NO_ACTION = "No action is needed."


def tables() -> str:
    """Write all known lines, each under its heading."""
    lines: list[str] = []
    for heading, known_lines in TABLES.items():
        lines += [f"### {heading}", ""]
        for known_line in known_lines:
            lines += _entry(known_line)
    return "\n".join(lines)


def _entry(known_line: KnownLine) -> list[str]:
    quoted = ["```text", known_line.example, "```"]
    meaning = f"**{known_line.meaning}** {known_line.remedy or _NO_ACTION}"
    return [*quoted, "", f"{meaning} (`{known_line.code}`; {known_line.source})", ""]


def test_the_page_is_up_to_date() -> None:
    """The page has every known_line of the code."""
    assert_up_to_date(PAGE, "<!-- known lines: ", "<!-- end of known lines -->", f"\n{tables()}")


def test_every_known_line_is_in_a_table() -> None:
    """No row of the code is left out."""
    assert [known_line for known_lines in TABLES.values() for known_line in known_lines] == list(
        KNOWN_LINES
    )
