"""docs/troubleshooting.md has the table of causes, as the code defines it."""

from __future__ import annotations

from tests.generated_pages import DOCS, assert_up_to_date
from webhook.diagnose.tools.causes import CAUSES, SETTINGS, SLOWER, TRANSPORTS, TROUBLES, Cause

PAGE = DOCS / "troubleshooting.md"
TABLES: dict[str, tuple[Cause, ...]] = {
    "Which network carries the traffic": TRANSPORTS,
    "What turns RDMA off": SETTINGS,
    "What makes it slower": SLOWER,
    "What fails": TROUBLES,
}
_NOTHING = "Nothing to do."


def tables() -> str:
    """Write all causes, each under its heading."""
    lines: list[str] = []
    for heading, causes in TABLES.items():
        lines += [f"### {heading}", ""]
        for cause in causes:
            lines += _entry(cause)
    return "\n".join(lines)


def _entry(cause: Cause) -> list[str]:
    quoted = ["```text", cause.example, "```"]
    said = f"**{cause.means}** {cause.remedy or _NOTHING}"
    return [*quoted, "", f"{said} (`{cause.code}`; {cause.source})", ""]


def test_the_page_is_up_to_date() -> None:
    """Every cause is on the page as the code defines it."""
    assert_up_to_date(PAGE, "<!-- causes: ", "<!-- end of causes -->", f"\n{tables()}")


def test_every_cause_is_in_a_table() -> None:
    """No row of the code is left out."""
    assert [cause for causes in TABLES.values() for cause in causes] == list(CAUSES)
