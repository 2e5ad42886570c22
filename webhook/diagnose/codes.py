"""The codes of all tools: `rdma-webhook why CODE` and docs/codes.md explain each of them.

Each tool defines its codes next to its checks; this module only collects them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from webhook.admission import configuration_changes
from webhook.config.findings import FILE_CODES, INVALID_FACTS
from webhook.config.rules import RULES
from webhook.decide.examine.fabric_choice import FABRIC_AMBIGUOUS
from webhook.decide.mutations import MUTATIONS
from webhook.decide.mutations.config_files import ANNOTATION_DIFFERS
from webhook.decide.mutations.ipc_lock import POD_SECURITY
from webhook.decide.reasons import DENIALS
from webhook.diagnose.discover import codes as discover
from webhook.diagnose.install import codes as install
from webhook.diagnose.tools.known_lines import KNOWN_LINES
from webhook.diagnose.verify import codes as verify
from webhook.diagnose.why import codes as why
from webhook.diagnose.why.code_output import CodeExplanation, CodeRow
from webhook.diagnose.why.reasons import REASON_ROWS
from webhook.errors import WebhookError
from webhook.model import fabric_findings
from webhook.model.decision import Rdma, Reason
from webhook.model.finding import Code
from webhook.model.names import enumerated
from webhook.model.nearest import nearest
from webhook.preview.report.record import NOT_CALLED

#: The effect of each verdict, as a sentence.
EFFECTS: dict[Rdma | None, str] = {
    "yes": "The pod is equipped for RDMA, as far as admission can see.",
    "no": "The pod has no RDMA: its traffic uses TCP sockets, or the job fails or stays pending.",
    "unsure": "Whether the pod has RDMA depends on something that admission cannot see.",
    "none": "The pod itself needs no RDMA: it only starts ranks in other pods.",
    None: "This code alone does not determine whether the pod has RDMA.",
}
_SEE_VERDICT = (
    "If a mutation reports this code but the verdict does not, the pod may still have RDMA."
)
_MUTATION_NAMES = frozenset(mutation.name for mutation in MUTATIONS)
_DENIED = "The webhook denies the pod: the pod is not created until the problem is corrected."
#: The codes that deny a pod only if this field of `defaults` is `deny`.
_DENIED_BY_FIELD = {FABRIC_AMBIGUOUS.code: "onAmbiguous", POD_SECURITY.code: "podSecurity"}
#: The codes that deny a pod in any case, unless they are above.
_DENIALS = frozenset(reason.code for reason in (*DENIALS, ANNOTATION_DIFFERS))
#: The beginning of a rule, and that of the statement that a file breaks it.
_IMPERATIVE = re.compile(r"\A(?:Reject|Warn about) (a configuration|a fabric|two fabrics) that ")
_SUBJECTS = {
    "a configuration": "The configuration",
    "a fabric": "A fabric in the configuration",
    "two fabrics": "Two fabrics in the configuration",
}
_WEBHOOK, _PREVIEW, _CHECK_CONFIG = "webhook", "preview", "check-config"


def _reason_row(tool: str, part: str, reason: Reason) -> CodeRow:
    code = Code(reason.code, reason.meaning, reason.remedy)
    return CodeRow(tool, part, code, reason.rdma)


def _rule_code(code: Code) -> Code:
    """Return the code of a rule with a statement about the file instead of its imperative."""
    meaning = _IMPERATIVE.sub(lambda match: f"{_SUBJECTS[match[1]]} ", code.meaning)
    return code._replace(meaning=meaning)


def _rows(tool: str, codes: Iterable[Code], part: str = "") -> Iterator[CodeRow]:
    return (CodeRow(tool, part, code) for code in codes)


#: The rows of all codes, tool by tool.
CODE_ROWS: tuple[CodeRow, ...] = (
    *(_reason_row(_WEBHOOK, part, reason) for part, reason in REASON_ROWS),
    _reason_row(_PREVIEW, "", NOT_CALLED),
    *_rows(
        "why",
        (
            Code(known_line.code, known_line.meaning, known_line.remedy)
            for known_line in KNOWN_LINES
        ),
        "log",
    ),
    *_rows("why", why.CODES),
    *_rows("fabrics", fabric_findings.CODES),
    *_rows("discover", discover.CODES),
    *_rows("verify", verify.CODES),
    *_rows("check-install", install.CODES),
    *_rows("fabrics", (INVALID_FACTS,)),
    *_rows(_CHECK_CONFIG, (code for code in FILE_CODES if code is not INVALID_FACTS)),
    *_rows(_CHECK_CONFIG, (_rule_code(rule.code) for rule in RULES)),
    *_rows("kubectl apply", configuration_changes.CODES),
)
#: The names of all codes, in the order of their first rows.
CODE_NAMES = tuple(dict.fromkeys(row.code.code for row in CODE_ROWS))
_BY_LOWER = {code.lower(): code for code in CODE_NAMES}


class UnknownCodeError(WebhookError):
    """The error for a word that is not a code."""


def is_code(word: str) -> bool:
    """Return whether a word is a code, regardless of case."""
    return word.lower() in _BY_LOWER


def explain_code(word: str) -> CodeExplanation:
    """Explain a code, regardless of case.

    Raises UnknownCodeError with the nearest codes if it is unknown.
    """
    code = _BY_LOWER.get(word.lower())
    if code is None:
        raise UnknownCodeError(unknown_code(word))
    rows = tuple(row for row in CODE_ROWS if row.code.code == code)
    rdma = next((row.rdma for row in rows if row.rdma is not None), None)
    return CodeExplanation(code, rdma, _effect(rows, rdma), rows)


def _effect(rows: tuple[CodeRow, ...], rdma: Rdma | None) -> str:
    """Return what a code says about a pod's RDMA; "" for codes that are not reasons."""
    if rows[0].tool not in (_WEBHOOK, _PREVIEW):
        return ""
    code = rows[0].code.code
    if code in _DENIED_BY_FIELD:
        field = f"defaults.{_DENIED_BY_FIELD[code]}"
        return f"{EFFECTS[rdma]} If `{field}` is `deny`, the webhook denies the pod instead."
    if code in _DENIALS:
        return _DENIED
    if rdma == "no" and any(row.part in _MUTATION_NAMES for row in rows):
        return f"{EFFECTS[rdma]} {_SEE_VERDICT}"
    return EFFECTS[rdma]


def unknown_code(word: str) -> str:
    """Return the message that a word is not a code, with the nearest codes if some are near."""
    message = f"{word!r:.80} is not a code"
    matches = nearest(word, _BY_LOWER.values(), limit=3, compared=len(_BY_LOWER))
    if not matches:
        return f"{message} (rdma-webhook why --codes lists all codes)"
    return f"{message}; did you mean {enumerated(matches, 'or')}?"
