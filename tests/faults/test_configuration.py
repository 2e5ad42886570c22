"""The fabrics ConfigMap is broken, a replica is killed meanwhile, and the file is repaired."""

from __future__ import annotations

import json
import time
from itertools import count

from tests.cluster.install import Webhook
from tests.e2e.live.lab import Lab
from tests.e2e.live.replica import Replica, replicas
from tests.e2e.live.test_configuration import changed, put, successful
from tests.faults.conftest import Figure, Load
from tests.faults.counts import killed_with
from tests.faults.replicas import kill, processes, settled
from tests.faults.scale import SCALE
from tests.waiting import until

_NUDGES = count()


def test_the_configuration_is_broken(
    webhook: Webhook, lab: Lab, load: Load, figure: Figure
) -> None:
    """The other replica decides as before, the new process is up but unready; events say why."""
    good, used = webhook.fabrics.read_text(), lab.ask().status["config"]
    dies, stays = sorted(replicas(webhook), key=lambda one: one.name)
    container = processes(webhook)[dies.name]
    with load() as creations:
        creations.last(1)
        began = time.monotonic()
        _change(webhook, changed("fast"))
        until(lambda: not any(successful(one) for one in replicas(webhook)))
        told = time.monotonic() - began
        kill(webhook, container)
        until(lambda: processes(webhook).get(dies.name, container) != container)
        until(lambda: _health(dies) == (200, 503))
        creations.last(time.monotonic() - creations.begun + SCALE.after)
        assert {lab.ask().status["config"] for _ in range(10)} == {used}
        assert _health(dies) == (200, 503)
        assert _health(stays) == (200, 200)
        assert [successful(one) for one in (dies, stays)] == [False, False]
        for one in (dies, stays):
            until(lambda one=one: _event(webhook, one))  # type: ignore[misc]
        began = time.monotonic()
        _change(webhook, good)
        until(lambda: all(successful(one) for one in replicas(webhook)))
        repaired = time.monotonic() - began
        settled(webhook)
    assert creations.created == creations.patched > 0
    how = "by itself" if SCALE.patient else "made to look at once"
    figure(
        "ConfigMap broken, a replica killed, fixed",
        f"the new one up and unready, the other on the last good; {killed_with(creations)}; "
        f"told after {told:.0f} s, repaired after {repaired:.0f} s (kubelet {how})",
    )


def _change(webhook: Webhook, text: str) -> None:
    put(webhook, text)
    if not SCALE.patient:
        # The kubelet mounts a pod's volumes again when the pod changes.
        nudge = f"rdma.lab/nudge={next(_NUDGES)}"
        webhook.kubectl("annotate", "pods", "--all", "--overwrite", nudge)


def _health(replica: Replica) -> tuple[int, int]:
    try:
        return replica.get("/healthz")[0], replica.get("/readyz")[0]
    except OSError:  # it has just been killed
        return 0, 0


def _event(webhook: Webhook, replica: Replica) -> bool:
    of = f"--field-selector=involvedObject.name={replica.name},reason=ConfigurationNotUsable"
    events = json.loads(webhook.kubectl("get", "events", of, "--output=json"))["items"]
    return any("fabrics[0].rateGbps" in event["message"] for event in events)
