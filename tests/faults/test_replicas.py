"""Replicas that end: in order, at once, and a kubelet that looks away."""

from __future__ import annotations

import time

from tests.cluster.api import Api
from tests.cluster.controlplane import server
from tests.cluster.install import DEPLOYMENT, Webhook
from tests.cluster.node import NAME as NODE
from tests.e2e.asking import until
from tests.faults.conftest import Figure, Load
from tests.faults.counts import killed_with, none_lost
from tests.faults.replicas import kill, processes, ready, settled
from tests.faults.scale import RATE, SCALE


def test_rolling_restarts_lose_no_pod(webhook: Webhook, load: Load, figure: Figure) -> None:
    """Both replicas are replaced, again and again, the old ones gone before the load ends."""
    seen = set(webhook.replicas())
    with load() as creations:
        for _ in range(SCALE.restarts):
            webhook.kubectl("rollout", "restart", DEPLOYMENT)
            webhook.kubectl("rollout", "status", DEPLOYMENT, "--timeout=180s")
            assert not seen & set(webhook.replicas())
            seen |= set(webhook.replicas())
        settled(webhook)
        creations.last(SCALE.pods / RATE)
    measured = none_lost(creations, SCALE.pods)
    figure("rolling restart of 2 replicas", f"{SCALE.restarts} times: {measured}")


def test_a_replica_is_killed(webhook: Webhook, load: Load, figure: Figure) -> None:
    """Lost is what it was just asked, and who dials it before the kubelet has noticed; no more.

    None is, once it is ready again.
    """
    before = processes(webhook)
    name, container = min(before.items())
    with load() as creations:
        creations.last(2)
        kill(webhook, container)
        killed = time.monotonic()
        until(lambda: processes(webhook).get(name, container) != container, 60)
        until(lambda: name in ready(webhook), 60)
        back = time.monotonic() - killed
    measured = f"{killed_with(creations)}, within {creations.blocked:.1f} s"
    figure("kill -9 of a replica", f"{measured}; ready again after {back:.1f} s")
    assert creations.created == creations.patched
    with load() as again:
        again.last(SCALE.after)
    none_lost(again)


def test_the_kubelet_restarts(webhook: Webhook, load: Load, figure: Figure) -> None:
    """The replicas go on, and stay in the Service."""
    before = processes(webhook)
    api = Api(server(webhook.cluster.network), webhook.cluster.directory / "pki")
    with load() as creations:
        creations.last(1)
        with webhook.cluster.processes.without("kubelet"):
            creations.last(1 + SCALE.gone)
        until(lambda: api.ready(f"/api/v1/nodes/{NODE}"), 60)
        settled(webhook)
        creations.last(time.monotonic() - creations.begun + SCALE.after)
    assert processes(webhook) == before
    figure("the node's kubelet restarted", none_lost(creations))
