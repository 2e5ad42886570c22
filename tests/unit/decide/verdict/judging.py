"""Read the verdict of a decision."""

from __future__ import annotations

from tests.builders import context, decide_on
from webhook.decide.scope import Context
from webhook.model.decision import Verdict
from webhook.model.pod import PodManifest


def judged(manifest: PodManifest, cluster: Context | None = None) -> tuple[str, str]:
    """Return the verdict on a pod and its reason code; a second call must give the same."""
    verdict = verdict_on(manifest, cluster)
    return verdict.rdma, verdict.because.code


def verdict_on(manifest: PodManifest, cluster: Context | None = None) -> Verdict:
    """Return the verdict on a pod."""
    actual = cluster or context()
    decision = decide_on(manifest, actual)
    assert decision.verdict is not None
    second = decide_on(decision.pod, actual)
    assert (second.verdict, second.patch) == (decision.verdict, ())
    return decision.verdict
