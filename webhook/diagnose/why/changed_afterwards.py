"""What was changed after the webhook's call, and what may have changed it."""

from __future__ import annotations

from webhook.diagnose.why.comparison import Comparison
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.explanation import VERDICT_LEVELS
from webhook.model.finding import Code, Finding
from webhook.model.names import capitalized

CHANGED_AFTERWARDS = Code(
    "ChangedAfterwards",
    "The pod no longer matches its annotation rdma.lab/status: another webhook, a policy or a "
    "person changed the pod after rdma-webhook was called.",
    "Find out what changed the pod: `kubectl get mutatingwebhookconfigurations` lists the webhook "
    "configurations in the order in which their webhooks are called, and `kubectl get "
    "mutatingadmissionpolicies` lists the policies. Prevent that change, and create the pod again.",
)
CODES = (CHANGED_AFTERWARDS,)


def change_findings(evidence: PodEvidence, comparison: Comparison) -> list[Finding]:
    """Return findings on what was changed after the call; each has the same remedy."""
    texts = [f"{change.text}." for change in comparison.changes]
    if comparison.worse_verdict is not None and not texts:
        texts = [f"{capitalized(comparison.worse_verdict.message)}. This was not so at admission."]
    remedy = _change_remedy(evidence, comparison)
    level = VERDICT_LEVELS[comparison.rdma]
    return [CHANGED_AFTERWARDS.finding(level, text, remedy) for text in texts]


def _change_remedy(evidence: PodEvidence, comparison: Comparison) -> str:
    """Return the remedy, with the webhooks and policies that may have made the change."""
    if evidence.later_mutators:
        names = "; ".join(evidence.later_mutators)
        return (
            f"Check what may change the pod after rdma-webhook: {names}. Prevent that change, and "
            "create the pod again."
        )
    if evidence.later_mutators == () and comparison.changes:
        nobody = "No webhook or policy that selects the pod runs after rdma-webhook"
        return (
            f"{nobody}, so somebody changed the pod or its manifest. Undo that change, and create "
            "the pod again."
        )
    return CHANGED_AFTERWARDS.remedy
