"""Read the verdict of a decision."""

from __future__ import annotations

from tests.builders import decide_on, decision_input
from webhook.decide.analysis import DecisionInput
from webhook.model.decision import Verdict
from webhook.model.pod import PodManifest


def judged(manifest: PodManifest, cluster: DecisionInput | None = None) -> tuple[str, str]:
    """Return the verdict on a pod and its reason code; a second call must give the same."""
    verdict = verdict_on(manifest, cluster)
    return verdict.rdma, verdict.because.code


def verdict_on(manifest: PodManifest, cluster: DecisionInput | None = None) -> Verdict:
    """Return the verdict on a pod."""
    actual = cluster or decision_input()
    decision = decide_on(manifest, actual)
    assert decision.verdict is not None
    second = decide_on(decision.pod, actual)
    assert (second.verdict, second.patch) == (decision.verdict, ())
    return decision.verdict
