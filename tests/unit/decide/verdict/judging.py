"""Read the verdict of a decision."""

from __future__ import annotations

from tests.builders import context, decide_on
from webhook.decide.scope import Context
from webhook.model.decision import Verdict
from webhook.model.pod import PodManifest


def judged(manifest: PodManifest, where: Context | None = None) -> tuple[str, str]:
    """Return the verdict on a pod and its reason code; a second call must give the same."""
    verdict = verdict_on(manifest, where)
    return verdict.rdma, verdict.because.code


def verdict_on(manifest: PodManifest, where: Context | None = None) -> Verdict:
    """Return the verdict on a pod."""
    given = where or context()
    decision = decide_on(manifest, given)
    assert decision.verdict is not None
    again = decide_on(decision.pod, given)
    assert (again.verdict, again.patch) == (decision.verdict, ())
    return decision.verdict
