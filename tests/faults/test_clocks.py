"""Replicas whose clocks are wrong by ten minutes, next to replicas whose clocks are right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cluster.install import DEPLOYMENT, NAME, Webhook
from tests.e2e.documents import Document
from tests.e2e.live.lab import ChangingNamespace
from tests.e2e.live.replica import replicas
from tests.faults.certs_command import served
from tests.faults.conftest import Figure, Load
from tests.faults.counts import check_none_lost
from tests.faults.replicas import settled
from tests.faults.scale import SCALE
from tests.integration.replica import WRONG_CLOCK
from tests.waiting import until

CLOCKS = {"ahead": 600, "behind": -600}
#: Pods at once: more than the API server keeps connections, so it has to open new ones.
BURST = 64


@pytest.fixture
def skewed(webhook: Webhook) -> Iterator[list[str]]:
    """Add a replica for each clock to the same Service; return their names."""
    before = set(webhook.replicas())
    deployment: Document = json.loads(webhook.kubectl("get", DEPLOYMENT, "--output=json"))
    for clock, seconds in CLOCKS.items():
        webhook.kubectl("create", "-f", "-", input=json.dumps(_copy(deployment, clock, seconds)))
    settled(webhook, 4)
    yield sorted(set(webhook.replicas()) - before)
    # The controllers alone, and first: their pods would drain for more than a minute.
    webhook.kubectl("delete", "deployments,replicasets", "--selector=clock", "--cascade=orphan")
    webhook.kubectl("delete", "pods", "--selector=clock", "--now")
    settled(webhook)


def _copy(deployment: Document, clock: str, seconds: int) -> Document:
    """Write a Deployment of one replica whose clock is wrong by `seconds`."""
    labels = {"app.kubernetes.io/name": NAME, "clock": clock}
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    skewed = {**container, "command": ["/app/bin/python", "-c", WRONG_CLOCK, str(seconds)]}
    template = {"metadata": {"labels": labels}, "spec": {**pod, "containers": [skewed]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"{NAME}-{clock}", "namespace": NAME, "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def test_clocks_are_wrong(
    webhook: Webhook, skewed: list[str], lab: ChangingNamespace, load: Load, figure: Figure
) -> None:
    """With clocks ten minutes ahead and behind, the API server verifies the leaves, and calls them.

    Which replica a new connection reaches is a matter of chance, so pods are created until each of
    these has been called.
    """
    before = _calls(webhook)

    def new_calls() -> dict[str, float]:
        return {name: _calls(webhook)[name] - before[name] for name in skewed}

    with load() as creations:
        with ThreadPoolExecutor(BURST) as burst:
            until(lambda: _patched(burst, lab) and all(new_calls().values()))
        creations.continue_for(SCALE.after_repair)
    measured = check_none_lost(creations)
    calls = sum(new_calls().values())
    figure(
        "clocks 10 minutes ahead and behind",
        f"{served(webhook, 4)} of 4 handshakes verify, {calls:.0f} calls to these; {measured}",
    )


def _patched(burst: ThreadPoolExecutor, lab: ChangingNamespace) -> bool:
    """Dry-run many pods at once; each must be patched."""
    answers = list(burst.map(lambda _: lab.ask(), range(BURST)))
    assert all("rdma.lab/status" in answer.object["metadata"]["annotations"] for answer in answers)
    return True


def _calls(webhook: Webhook) -> dict[str, float]:
    sample = 'rdma_webhook_request_duration_seconds_count{endpoint="mutate"}'
    return {replica.name: replica.metric(sample) for replica in replicas(webhook)}
