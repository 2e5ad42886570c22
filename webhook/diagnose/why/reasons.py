"""The reasons for decisions by their codes, which the annotation `rdma.lab/status` contains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from webhook.decide.mutations import MUTATIONS
from webhook.decide.reasons import DECISION_REASONS, REASONS_OUTSIDE_MUTATIONS, VERDICT_REASONS
from webhook.model.decision import REQUEST_CHECK, Reason


class ReasonRow(NamedTuple):
    """A row of docs/reasons.md: a reason, in one part of a decision."""

    #: "verdict", "decision", the name of a mutation, or REQUEST_CHECK.
    part: str
    reason: Reason


def _rows(part: str, reasons: Iterable[Reason]) -> Iterator[ReasonRow]:
    return (ReasonRow(part, reason) for reason in reasons)


#: The rows of docs/reasons.md, in its order.
REASON_ROWS: tuple[ReasonRow, ...] = (
    *_rows("verdict", VERDICT_REASONS),
    *_rows("decision", DECISION_REASONS),
    *_rows(REQUEST_CHECK, REASONS_OUTSIDE_MUTATIONS),
    *(row for mutation in MUTATIONS for row in _rows(mutation.name, mutation.reasons)),
)


def _by_code() -> dict[str, tuple[ReasonRow, ...]]:
    rows_by_code: dict[str, tuple[ReasonRow, ...]] = {}
    for row in REASON_ROWS:
        code = row.reason.code
        rows_by_code[code] = (*rows_by_code.get(code, ()), row)
    return rows_by_code


#: Code → its rows; all of them have the same remedy.
REASONS = _by_code()
