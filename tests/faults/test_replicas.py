"""A replica that is killed, and a kubelet that restarts."""

from __future__ import annotations

import time

from tests.cluster.api import Api
from tests.cluster.install import Webhook
from tests.cluster.node import NAME as NODE
from tests.faults.conftest import Figure, Load
from tests.faults.counts import check_none_lost, killed_with
from tests.faults.replicas import kill, processes, ready, settled
from tests.faults.scale import SCALE
from tests.waiting import until


def test_a_replica_is_killed(webhook: Webhook, load: Load, figure: Figure) -> None:
    """Only calls in flight, and calls dialed before the kubelet has noticed, are lost.

    Once the replica is ready again, no call is lost.
    """
    before = processes(webhook)
    name, container = min(before.items())
    with load() as creations:
        creations.continue_for(2)
        kill(webhook, container)
        killed = time.monotonic()
        until(lambda: processes(webhook).get(name, container) != container)
        until(lambda: name in ready(webhook))
        back = time.monotonic() - killed
    measured = f"{killed_with(creations)}, within {creations.blocked:.1f} s"
    figure("kill -9 of a replica", f"{measured}; ready again after {back:.1f} s")
    assert creations.created == creations.patched
    with load() as later:
        later.continue_for(SCALE.after_repair)
    check_none_lost(later)


def test_the_kubelet_restarts(webhook: Webhook, load: Load, figure: Figure) -> None:
    """The replicas keep running, and stay in the Service."""
    before = processes(webhook)
    api = Api(webhook.cluster.access)
    with load() as creations:
        creations.continue_for(1)
        with webhook.cluster.processes.without("kubelet"):
            creations.continue_for(1 + SCALE.outage)
        until(lambda: api.ready(f"/api/v1/nodes/{NODE}"))
        settled(webhook)
        time.sleep(SCALE.after_repair)
    assert processes(webhook) == before
    figure("the node's kubelet restarted", check_none_lost(creations))
