"""docs/reasons.md lists exactly the reason codes of the code."""

from __future__ import annotations

import pytest

from tests.generated_pages import DOCS, assert_up_to_date
from webhook.decide.mutations import MUTATIONS
from webhook.decide.reasons import DECISION_REASONS, REASONS_OUTSIDE_MUTATIONS, VERDICT_REASONS
from webhook.model.decision import Reason

PAGE = DOCS / "reasons.md"
#: Each heading, and the reasons below it.
TABLES: dict[str, tuple[Reason, ...]] = {
    "The verdict: will the pod have RDMA?": VERDICT_REASONS,
    "The decision on a pod": DECISION_REASONS,
    "`any` and `request`": REASONS_OUTSIDE_MUTATIONS,
    **{f"`{mutation.name}`: {mutation.summary}": mutation.reasons for mutation in MUTATIONS},
}

each_table = pytest.mark.parametrize("reasons", TABLES.values(), ids=TABLES)


def tables() -> str:
    """Write all tables, each under its heading."""
    lines: list[str] = []
    for heading, reasons in TABLES.items():
        lines += [f"## {heading}", "", "| code | RDMA | when | what to do |", "|---|---|---|---|"]
        lines += [_row(reason) for reason in reasons]
        lines.append("")
    return "\n".join(lines)


def _row(reason: Reason) -> str:
    meaning = reason.meaning if reason.reportable else f"{reason.meaning} (not reported)"
    return f"| `{reason.code}` | {reason.rdma or '-'} | {meaning} | {reason.remedy or '-'} |"


def test_the_tables_are_up_to_date() -> None:
    """Every reason is on the page as the code defines it."""
    assert_up_to_date(PAGE, "<!-- reasons: ", "<!-- end of reasons -->", f"\n{tables()}")


@each_table
def test_codes_are_words(reasons: tuple[Reason, ...]) -> None:
    """A code is in CamelCase, and unique in the mutation or pipeline that defines it."""
    codes = [reason.code for reason in reasons]
    assert len(set(codes)) == len(codes)
    assert all(code.isalnum() and code[0].isupper() for code in codes)


@each_table
def test_rows_are_sentences(reasons: tuple[Reason, ...]) -> None:
    """The text for each code is one sentence, and with its remedy it fits in a table's row."""
    for reason in reasons:
        assert reason.meaning.endswith(".")
        assert not {"\n", "|"} & set(reason.meaning + reason.remedy)
