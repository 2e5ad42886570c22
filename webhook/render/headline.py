"""The one word on a pod, and why it gets less than the whole set."""

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

#: Decisions that keep nothing back as a whole.
_WHOLE = frozenset({PATCHED.code, ALREADY_PATCHED.code})


class Verdict(NamedTuple):
    """What happens to a pod, how the summary counts it, and how it is drawn."""

    word: str
    counted: str
    sign: str
    style: str


class Barrier(NamedTuple):
    """Why mutations were held back: the reason's code, "" where none was; and a sentence."""

    code: str = ""
    message: str = ""

    def tells(self, outcome: Outcome) -> bool:
        """Whether an outcome says nothing but this."""
        return outcome.reason.code == self.code and (
            outcome.status == "skipped" or outcome.mutation == "request"
        )


def barrier_of(decision: Decision) -> Barrier:
    """Find why a pod gets less: the decision's own reason, or the host network that it lacks."""
    if decision.reason.code not in _WHOLE:
        return Barrier(decision.reason.code, decision.message)
    held = [one for one in decision.outcomes if one.reason.code == HOST_NETWORK_MISSING.code]
    if not any(one.status == "skipped" for one in held):
        return Barrier(message=decision.message)
    # The warning names the fabric; the reason of the skipped ones is the same sentence for all.
    held.sort(key=lambda one: one.status != "warned")
    return Barrier(HOST_NETWORK_MISSING.code, held[0].message.removesuffix("."))


def not_opted_in(preview: Preview) -> bool:
    """Whether the pod did not ask for us."""
    return preview.decision.reason.code == NOT_OPTED_IN.code


def verdict_of(preview: Preview) -> Verdict:
    """Judge a pod; where the webhook is not called, all else is only what would be."""
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
