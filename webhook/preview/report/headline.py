"""The verdict on a pod in a few words, and why some mutations were held back."""

from __future__ import annotations

from typing import NamedTuple

from webhook.decide.examine import HOST_NETWORK_MISSING
from webhook.decide.reasons import NOT_OPTED_IN, WHOLE
from webhook.model.decision import Decision, Outcome, Rdma
from webhook.preview.report.record import NOT_CALLED, Preview


class Headline(NamedTuple):
    """Whether a pod will have RDMA, how the summary counts it, and how it is shown."""

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
    if decision.reason not in WHOLE:
        return Barrier(decision.reason.code, decision.message)
    held = [one for one in decision.outcomes if one.reason.code == HOST_NETWORK_MISSING.code]
    if not any(one.status == "skipped" for one in held):
        return Barrier()
    # Prefer the warning, which names the fabric; the skipped outcomes all have one other sentence.
    held.sort(key=lambda one: one.status != "warned")
    return Barrier(HOST_NETWORK_MISSING.code, held[0].message.removesuffix("."))


def not_opted_in(preview: Preview) -> bool:
    """Whether the pod has not opted in."""
    return preview.decision.reason.code == NOT_OPTED_IN.code


def headline_of(preview: Preview) -> Headline:
    """Return what a reader wants to know first: whether the pod will have RDMA."""
    verdict = preview.verdict
    if verdict is None:
        return _NOT_OPTED_IN
    if verdict.because is NOT_CALLED:
        return _NOT_CALLED
    return _HEADLINES[verdict.rdma] if preview.decision.allowed else _DENIED


_NOT_OPTED_IN = Headline("not opted in", "not opted in", "○", "yellow")
_NOT_CALLED = Headline("no RDMA", "not called", "✘", "bold red")
_DENIED = Headline("denied", "denied", "✘", "bold red")
_HEADLINES: dict[Rdma, Headline] = {
    "yes": Headline("equipped for RDMA", "equipped for RDMA", "✔", "bold green"),
    "no": Headline("no RDMA", "without RDMA", "✘", "bold red"),
    "unsure": Headline("RDMA not certain", "not certain", "?", "bold yellow"),
    "none": Headline("launcher", "only launching", "○", "bold"),
}
