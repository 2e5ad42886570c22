"""docs/troubleshooting.md has the table of causes in the code."""

from __future__ import annotations

from tests.generated_pages import DOCS, assert_up_to_date
from webhook.diagnose.tools.causes import CAUSES, FAILURES, SETTINGS, SLOWER, TRANSPORTS, Cause

PAGE = DOCS / "troubleshooting.md"
TABLES: dict[str, tuple[Cause, ...]] = {
    "The network that carries the traffic": TRANSPORTS,
    "Settings that turn RDMA off": SETTINGS,
    "Causes of slower traffic": SLOWER,
    "Failures": FAILURES,
}
_NO_ACTION = "No action is needed."


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
    meaning = f"**{cause.meaning}** {cause.remedy or _NO_ACTION}"
    return [*quoted, "", f"{meaning} (`{cause.code}`; {cause.source})", ""]


def test_the_page_is_up_to_date() -> None:
    """The page has every cause of the code."""
    assert_up_to_date(PAGE, "<!-- causes: ", "<!-- end of causes -->", f"\n{tables()}")


def test_every_cause_is_in_a_table() -> None:
    """No row of the code is left out."""
    assert [cause for causes in TABLES.values() for cause in causes] == list(CAUSES)
