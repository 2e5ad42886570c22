"""The meaning of each reason code: where it occurs, what it decides, and its remedy."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

from webhook.decide.examine.fabric_choice import FABRIC_AMBIGUOUS
from webhook.decide.mutations import MUTATIONS
from webhook.decide.reasons import DECISION_REASONS, DENIALS, PIPELINE_REASONS, VERDICT_REASONS
from webhook.diagnose.tools.causes import CAUSES
from webhook.errors import WebhookError
from webhook.model.decision import Reason
from webhook.preview.report.record import NOT_CALLED

#: The parts of a pod's decision, besides mutations, that give reasons.
_VERDICT, _DECISION, _REQUEST, _LOG = "verdict", "decision", "request", "log"
_PREVIEW = "preview"
#: The meaning of each verdict, as a sentence.
MEANINGS = {
    "yes": "The pod is equipped for RDMA, as far as admission can see.",
    "no": "The pod has no RDMA: its traffic goes over sockets, or the job fails.",
    "unsure": "Whether the pod has RDMA depends on something that admission cannot see.",
    "none": "The pod itself needs no RDMA: it starts ranks in other pods, which use it.",
    None: "This code alone does not decide whether the pod has RDMA.",
}


_DENIED = "The webhook denies the pod: it is not created until this is corrected."


class UnknownCodeError(WebhookError):
    """The error for a word that is not a reason code."""


class CodeRow(NamedTuple):
    """One row of docs/reasons.md, or of docs/troubleshooting.md."""

    #: A mutation, "verdict", "decision", "request" for the pod's annotations and namespace,
    #: "preview" for a reason that only a preview gives, or "log" for a line of a library's log.
    part: str
    code: str
    rdma: str | None
    when: str
    #: "" if no action is needed; the same in all rows of a code.
    remedy: str
    quiet: bool


class CodeExplanation(NamedTuple):
    """The rows of a code."""

    code: str
    rows: tuple[CodeRow, ...]

    @property
    def remedy(self) -> str:
        """The remedy; "" if no action is needed."""
        return self.rows[0].remedy

    @property
    def rdma(self) -> str | None:
        """The verdict that the code explains; it is the same in all rows that have one."""
        return next((row.rdma for row in self.rows if row.rdma is not None), None)

    @property
    def meaning(self) -> str:
        """The meaning of the code for RDMA, as a sentence; "" for a line of a log."""
        if self.code in _DENIALS:
            return _DENIED
        return "" if self.rows[0].part == _LOG else MEANINGS[self.rdma]


def _rows(part: str, reasons: Iterable[Reason]) -> Iterable[CodeRow]:
    return (
        CodeRow(part, reason.code, reason.rdma, reason.when, reason.remedy, reason.quiet)
        for reason in reasons
    )


#: The rows of docs/reasons.md, in its order.
CODE_ROWS: tuple[CodeRow, ...] = (
    *_rows(_VERDICT, VERDICT_REASONS),
    *_rows(_DECISION, DECISION_REASONS),
    *_rows(_REQUEST, PIPELINE_REASONS),
    *_rows(_PREVIEW, (NOT_CALLED,)),
    *(row for mutation in MUTATIONS for row in _rows(mutation.name, mutation.reasons)),
)
CODES = tuple(dict.fromkeys(row.code for row in CODE_ROWS))
#: Codes that always deny a pod; an ambiguous fabric does only if the site configures that.
_DENIALS = frozenset(reason.code for reason in DENIALS if reason is not FABRIC_AMBIGUOUS)
_CAUSES = {cause.code: cause for cause in CAUSES}
_BY_LOWER = {code.lower(): code for code in (*CODES, *_CAUSES)}


def is_code(word: str) -> bool:
    """Return whether a word is a reason code, regardless of case."""
    return word.lower() in _BY_LOWER


def explained(word: str) -> CodeExplanation:
    """Explain a code, regardless of case; UnknownCodeError with the nearest codes if unknown."""
    code = _BY_LOWER.get(word.lower())
    if code is None:
        raise UnknownCodeError(f"{word!r:.80} is not a reason code{_nearest(word)}")
    if cause := _CAUSES.get(code):
        rdma = {True: "yes", False: "no", None: None}[cause.rdma]
        row = CodeRow(_LOG, code, rdma, cause.means, cause.remedy, quiet=False)
        return CodeExplanation(code, (row,))
    return CodeExplanation(code, tuple(row for row in CODE_ROWS if row.code == code))


def remedy_of(code: str) -> str:
    """Return the remedy for a reason code; "" if no action is needed, or the code is unknown."""
    return next((row.remedy for row in CODE_ROWS if row.code == code), "")


def _nearest(word: str) -> str:
    matches = get_close_matches(word.lower()[:80], _BY_LOWER, n=3)
    if not matches:
        return ": docs/reasons.md and docs/troubleshooting.md list them"
    return f": did you mean {' or '.join(_BY_LOWER[match] for match in matches)}?"
