"""An unusable object is stored, a replica is killed meanwhile, and the object is corrected."""

from __future__ import annotations

import time

from tests.cluster.fabrics import in_use, used
from tests.cluster.install import Webhook
from tests.e2e.fabrics_bypass import patch_fabrics, unchecked
from tests.e2e.live.lab import Lab
from tests.e2e.live.replica import replicas
from tests.e2e.live.test_configuration import fabrics_of, successful, unusable
from tests.faults.conftest import Figure, Load
from tests.faults.counts import killed_with, refused_without_fabrics
from tests.faults.replicas import kill, processes, settled
from tests.faults.scale import SCALE
from tests.waiting import until


def test_the_configuration_is_broken(
    webhook: Webhook, lab: Lab, load: Load, figure: Figure
) -> None:
    """One replica decides by the last good one; the new process has none, but is ready."""
    usable, config = webhook.fabrics.read_text(), lab.ask().status["config"]
    dies, stays = sorted(replicas(webhook), key=lambda replica: replica.name)
    container = processes(webhook)[dies.name]
    # The check runs with the lowest priority, and has no time while so many pods are created.
    with unchecked(webhook), load() as creations:
        creations.last(1)
        began = time.monotonic()
        patch_fabrics(webhook.cluster, fabrics_of(unusable()))
        until(lambda: not any(successful(replica) for replica in replicas(webhook)))
        noticed = time.monotonic() - began
        kill(webhook, container)
        until(lambda: processes(webhook).get(dies.name, container) != container)
        until(lambda: dies.get("/readyz")[0] == 200)
        assert used(dies.get("/metrics")[1]) == ""
        assert used(stays.get("/metrics")[1]) == config
        time.sleep(SCALE.after)
        began = time.monotonic()
        patch_fabrics(webhook.cluster, fabrics_of(usable))
        in_use(webhook, config)
        repaired = time.monotonic() - began
        settled(webhook)
    assert creations.created == creations.patched > 0
    refused = refused_without_fabrics(creations)
    figure(
        "fabrics unusable, a replica killed, fixed",
        f"the new one ready without fabrics ({refused} pods refused), the other on the last good; "
        f"{killed_with(creations)}; told after {noticed:.0f} s, repaired after {repaired:.0f} s",
    )
