"""Replicas that end in order or at once, and a kubelet that restarts."""

from __future__ import annotations

import time
from typing import Any

from tests.cluster.api import Api
from tests.cluster.install import DEPLOYMENT, Webhook, site
from tests.cluster.node import NAME as NODE
from tests.e2e.installed.test_life import held
from tests.faults.conftest import Figure, Load
from tests.faults.counts import killed_with, none_lost
from tests.faults.replicas import kill, processes, ready, settled
from tests.faults.scale import RATE, SCALE
from tests.waiting import until

Patch = list[dict[str, Any]]


def _version(name: str) -> Patch:
    """Write a patch that, to a Deployment, is another version: there has been no release yet."""
    annotations = {"version": name}
    return [{"op": "add", "path": "/spec/template/metadata/annotations", "value": annotations}]


def test_an_upgrade_loses_no_pod(webhook: Webhook, load: Load, figure: Figure) -> None:
    """While both replicas are replaced, several times in long runs, every pod is patched.

    failurePolicy is Fail, so one unanswered call is one rejected pod. The old processes end by
    themselves, with exit code 0, before the kubelet would kill them, and before the load ends.
    """
    with load() as creations:
        creations.last(1)
        for number in range(SCALE.restarts):
            with held(webhook, webhook.replicas()) as old:
                version = _version(f"next-{number}")
                with site(webhook.image, [version]) as folder:
                    webhook.cluster.kubectl("apply", "-k", str(folder))
                webhook.kubectl("rollout", "status", DEPLOYMENT, "--timeout=300s")
                until(lambda old=old: all(one.ended() for one in old))  # type: ignore[misc]
                assert [one.ended()["exitCode"] for one in old] == [0, 0]
                assert not {one.name for one in old} & set(webhook.replicas())
        creations.last(SCALE.pods / RATE)
    measured = none_lost(creations, SCALE.pods)
    figure("upgrade of 2 replicas", f"{SCALE.restarts} times: {measured}")


def test_a_replica_is_killed(webhook: Webhook, load: Load, figure: Figure) -> None:
    """Only calls in flight, and those dialed before the kubelet has noticed, are lost.

    Once the replica is ready again, none is.
    """
    before = processes(webhook)
    name, container = min(before.items())
    with load() as creations:
        creations.last(2)
        kill(webhook, container)
        killed = time.monotonic()
        until(lambda: processes(webhook).get(name, container) != container)
        until(lambda: name in ready(webhook))
        back = time.monotonic() - killed
    measured = f"{killed_with(creations)}, within {creations.blocked:.1f} s"
    figure("kill -9 of a replica", f"{measured}; ready again after {back:.1f} s")
    assert creations.created == creations.patched
    with load() as again:
        again.last(SCALE.after)
    none_lost(again)


def test_the_kubelet_restarts(webhook: Webhook, load: Load, figure: Figure) -> None:
    """The replicas keep running, and stay in the Service."""
    before = processes(webhook)
    api = Api(webhook.cluster.access)
    with load() as creations:
        creations.last(1)
        with webhook.cluster.processes.without("kubelet"):
            creations.last(1 + SCALE.gone)
        until(lambda: api.ready(f"/api/v1/nodes/{NODE}"))
        settled(webhook)
        creations.last(time.monotonic() - creations.begun + SCALE.after)
    assert processes(webhook) == before
    figure("the node's kubelet restarted", none_lost(creations))
