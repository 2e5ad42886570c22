"""The verdict on a pod in a word or two, and why some mutations were held back."""

from __future__ import annotations

from typing import NamedTuple

from webhook.decision.outcome import Decision, Outcome
from webhook.pipeline.examine import HOST_NETWORK_MISSING
from webhook.pipeline.reasons import (
    ALREADY_PATCHED,
    NOT_OPTED_IN,
    PATCHED,
)
from webhook.render.report import Preview

#: Decisions for which all mutations ran.
_WHOLE = frozenset({PATCHED.code, ALREADY_PATCHED.code})


class Verdict(NamedTuple):
    """What happens to a pod, how the summary counts it, and how it is shown."""

    word: str
    counted: str
    sign: str
    style: str


class Barrier(NamedTuple):
    """Why mutations were held back: the reason's code, "" if none was; and a sentence."""

    code: str = ""
    message: str = ""

    def tells(self, outcome: Outcome) -> bool:
        """Whether an outcome only repeats this reason."""
        return outcome.reason.code == self.code and (
            outcome.status == "skipped" or outcome.mutation == "request"
        )


def barrier_of(decision: Decision) -> Barrier:
    """Return why mutations were held back: the decision's reason, or a missing hostNetwork."""
    if decision.reason.code not in _WHOLE:
        return Barrier(decision.reason.code, decision.message)
    held = [one for one in decision.outcomes if one.reason.code == HOST_NETWORK_MISSING.code]
    if not any(one.status == "skipped" for one in held):
        return Barrier(message=decision.message)
    # Prefer the warning, which names the fabric; the skipped outcomes all have one other sentence.
    held.sort(key=lambda one: one.status != "warned")
    return Barrier(HOST_NETWORK_MISSING.code, held[0].message.removesuffix("."))


def not_opted_in(preview: Preview) -> bool:
    """Whether the pod has not opted in."""
    return preview.decision.reason.code == NOT_OPTED_IN.code


def verdict_of(preview: Preview) -> Verdict:
    """Return the verdict on a pod; if the webhook is not called, it says "would be …"."""
    idle = preview.called is False
    if not preview.decision.allowed:
        word, counted = ("would be denied", "denied if called") if idle else ("denied", "denied")
        return Verdict(word, counted, "✘", "bold red")
    if not_opted_in(preview):
        return Verdict("not opted in", "not opted in", "○", "yellow")
    if all(outcome.status != "applied" for outcome in preview.decision.outcomes):
        return Verdict("unchanged", "not called" if idle else "unchanged", "○", "bold")
    part = " in part" if barrier_of(preview.decision).code else ""
    if idle:
        return Verdict(f"would be patched{part}", "not called", "○", "bold yellow")
    return Verdict(f"patched{part}", f"patched{part}", "✔", f"bold {'yellow' if part else 'green'}")
