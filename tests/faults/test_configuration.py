"""An unusable object is stored, replicas are replaced meanwhile, and the object is corrected."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
import yaml

from tests.cluster.fabrics import hash_of, stored, used, wait_until_in_use
from tests.cluster.install import NAME, Webhook, called
from tests.e2e.fabrics_bypass import patch_fabrics, unchecked
from tests.e2e.live.replica import replicas
from tests.e2e.live.test_configuration import fabrics_of, successful, unusable
from tests.e2e.wire import send
from tests.faults.conftest import Figure, Load
from tests.faults.counts import check_none_lost, killed_with
from tests.faults.replicas import kill, processes, ready, settled
from tests.faults.scale import SCALE
from tests.waiting import until

PODS = f"/api/v1/namespaces/{NAME}/pods"


@pytest.fixture(scope="module")
def last_good(webhook: Webhook) -> Iterator[str]:
    """Store an unusable object past the check; return the hash of the configuration before it."""
    usable = webhook.fabrics.read_text()
    config = hash_of(yaml.safe_load(usable))
    until(lambda: stored(webhook)["status"]["kept"][0]["config"] == config)
    with unchecked(webhook):
        patch_fabrics(webhook.cluster, fabrics_of(unusable()))
        until(lambda: not any(successful(replica) for replica in replicas(webhook)))
        yield config
        patch_fabrics(webhook.cluster, fabrics_of(usable))
        wait_until_in_use(webhook, config)
        settled(webhook)


def kill_one(webhook: Webhook) -> None:
    """Kill the process of a replica, which restarts in its pod."""
    name, container = min(processes(webhook).items())
    kill(webhook, container)
    until(lambda: processes(webhook).get(name, container) != container)


def evict_one(webhook: Webhook) -> None:
    """Evict a replica through the PodDisruptionBudget, as the drain of a node does."""
    name = min(ready(webhook))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}

    def is_evicted() -> bool:
        response = send(webhook.cluster, "POST", f"{PODS}/{name}/eviction", eviction)
        # 429: the budget does not yet count the replica that has become ready.
        assert response.code in {201, 429}, response.refusal
        return response.code == 201

    until(is_evicted)
    until(lambda: name not in ready(webhook))


def lose_one(webhook: Webhook) -> None:
    """Delete a pod at once, as the loss of a node does, after its process has ended."""
    name, container = min(processes(webhook).items())
    kill(webhook, container)
    webhook.kubectl("delete", "pod", name, "--force", "--grace-period=0")


def replace_all(webhook: Webhook) -> None:
    """Replace every replica, one after the other."""
    webhook.kubectl("rollout", "restart", f"deployment/{NAME}")
    webhook.kubectl("rollout", "status", f"deployment/{NAME}", "--timeout=300s")


#: Each kind of replacement, and whether a process ends without draining.
REPLACED: dict[str, tuple[Callable[[Webhook], None], bool]] = {
    "a replica killed": (kill_one, True),
    "a replica evicted": (evict_one, False),
    "a replica lost": (lose_one, True),
    "a rollout": (replace_all, False),
}


@pytest.mark.parametrize("how", REPLACED)
def test_replaced_replicas_use_the_last_good_one(
    webhook: Webhook, last_good: str, load: Load, figure: Figure, how: str
) -> None:
    """No pod is refused for want of fabrics, and none is created without RDMA."""
    replace, is_sudden = REPLACED[how]
    with load() as creations:
        creations.continue_for(1)
        replace(webhook)
        settled(webhook)
        time.sleep(SCALE.after_repair)
    assert {used(replica.get("/metrics")[1]) for replica in replicas(webhook)} == {last_good}
    assert creations.created == creations.patched > 0
    measured = killed_with(creations) if is_sudden else check_none_lost(creations)
    figure(f"fabrics unusable, {how}", measured)


def test_all_replicas_are_killed_at_once(
    webhook: Webhook, last_good: str, load: Load, figure: Figure
) -> None:
    """Pods are refused until the first replica is ready, which uses the last good one."""
    before = processes(webhook)
    with load() as creations:
        creations.continue_for(1)
        for container in before.values():
            kill(webhook, container)
        until(lambda: {*before.values()}.isdisjoint(processes(webhook).values()))
        settled(webhook)
        called(webhook.cluster)  # endpoints and kube-proxy follow after a moment
    with load() as later:
        later.continue_for(SCALE.after_repair)
    check_none_lost(later)
    assert {used(replica.get("/metrics")[1]) for replica in replicas(webhook)} == {last_good}
    measured = f"{killed_with(creations)}, within {creations.blocked:.1f} s"
    figure("fabrics unusable, all replicas killed", measured)
