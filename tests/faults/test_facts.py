"""Rules and labels that are added while pods are created."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.cluster.install import Webhook
from tests.e2e.admission.pods import Answer
from tests.e2e.documents import ENABLE
from tests.e2e.live.lab import ChangingNamespace
from tests.e2e.live.test_new_namespaces import _outcome
from tests.faults.conftest import Figure, Load
from tests.faults.counts import check_none_lost
from tests.faults.scale import SCALE
from tests.waiting import until

RULES: dict[str, dict[str, Any]] = {
    "LimitRange": {"limits": [{"type": "Container", "max": {"memory": "100Gi"}}]},
    "ResourceQuota": {"hard": {"limits.memory": "1Ti"}},
}


@pytest.mark.parametrize("kind", RULES)
def test_a_rule_is_added(lab: ChangingNamespace, load: Load, figure: Figure, kind: str) -> None:
    """The next pods keep their memory limit, on every replica; no pod is rejected meanwhile."""
    with load() as creations:
        creations.continue_for(0.5)
        lab.put(kind, **RULES[kind])
        took = lab.wait_for_answers(_limit_kept)
        creations.continue_for(SCALE.after_repair)
    figure(
        f"{kind} added, then a pod",
        f"counted after {took * 1000:.0f} ms; {check_none_lost(creations)}",
    )


def _limit_kept(answer: Answer) -> bool:
    """Return whether the limit is kept; a pod without it is rejected."""
    return bool(answer.object) and answer.memory().limit == "64Gi"


def test_a_label_is_put(
    webhook: Webhook, lab: ChangingNamespace, load: Load, figure: Figure
) -> None:
    """A pod created right after its namespace is labeled is patched once the API server calls."""
    outcomes: Counter[str] = Counter()
    before = _not_opted_in(webhook)
    with load() as creations:
        for _ in range(SCALE.labels):
            lab.label(ENABLE, None)
            until(lambda: _outcome(lab.ask()) == "not called")
            lab.label(ENABLE, "true")
            outcome = ""
            while outcome not in {"patched", "unknown"}:
                outcome = _outcome(lab.ask())
                outcomes[outcome] += 1
    assert _not_opted_in(webhook) == before
    # The API server learns about the label from its own watch: until then it does not call.
    assert set(outcomes) <= {"patched", "unknown", "not called"}
    calls = (
        f"{outcomes['patched']} patched, {outcomes['unknown']} decided as unknown, 0 not opted in"
    )
    early = f"the API server did not call yet for {outcomes['not called']}"
    figure(
        "label put on a namespace, a pod at once", f"{calls}; {early}; {check_none_lost(creations)}"
    )


def _not_opted_in(webhook: Webhook) -> int:
    return webhook.counted("rdma_webhook_decisions_total", "reason")["NotOptedIn",]
