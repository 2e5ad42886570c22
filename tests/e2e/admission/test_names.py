"""Pods as the API server sends them: without a name, or with fields that it filled in."""

from __future__ import annotations

from tests.cluster.cluster import Cluster
from tests.e2e.admission.by_url import Webhook
from tests.e2e.admission.conftest import Webhooks
from tests.e2e.admission.pods import create, pod, trainer
from tests.waiting import until


def test_a_pod_without_a_name_is_patched(cluster: Cluster, webhooks: Webhooks) -> None:
    """With generateName, the name is made after admission; the log has its prefix and a star."""
    manifest = pod("plain", trainer())
    manifest["metadata"]["generateName"] = f"{manifest['metadata'].pop('name')}-unnamed-"
    answer = create(cluster, manifest)
    assert answer.added_capabilities() == ["IPC_LOCK"]
    assert answer.object["metadata"]["name"].startswith("probe-unnamed-")
    until(lambda: _is_logged(webhooks["informed"]))  # a moment after the answer


def _is_logged(webhook: Webhook) -> bool:
    decided = {(line["name"], line["namespace"]) for line in webhook.logged("decided")}
    return ("probe-unnamed-*", "admission-plain") in decided


def test_devices_are_requested_and_limited(cluster: Cluster, webhooks: Webhooks) -> None:
    """An extended resource needs both, with equal values; the API server accepts the result."""
    assert webhooks
    resources = create(cluster, pod("plain", trainer())).containers[0]["resources"]
    devices = {"nvidia.com/v100": "1", "rdma/rdma_v100": "1"}
    assert resources == {"limits": devices, "requests": devices}
