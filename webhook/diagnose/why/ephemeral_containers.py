"""Ephemeral containers, which `kubectl debug` adds after the webhook's call."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.decide.mutations.ipc_lock import CAPABILITY
from webhook.errors import ShapeError
from webhook.kube.objects import PodRecord
from webhook.model.finding import Code, Finding
from webhook.model.pod import Container, Pod

EPHEMERAL_WITHOUT_CAPABILITY = Code(
    "EphemeralWithoutIpcLock",
    "An ephemeral container of the pod lacks IPC_LOCK, since the webhook changes pods only when "
    "they are created. It has no RDMA device either, since an ephemeral container cannot request "
    "resources, so RDMA fails in it.",
    "Run RDMA tools in one of the pod's regular containers: `kubectl exec POD -c CONTAINER -- "
    "COMMAND`.",
)
CODES = (EPHEMERAL_WITHOUT_CAPABILITY,)


def ephemeral_findings(pod: PodRecord) -> Iterator[Finding]:
    """Yield a finding on each ephemeral container that cannot register memory."""
    for name in _without_capability(pod):
        text = (
            f"The ephemeral container {name} has no {CAPABILITY} and no RDMA device, so RDMA fails "
            "in it, whatever the pod's own containers have."
        )
        yield EPHEMERAL_WITHOUT_CAPABILITY.finding("info", text)


def _without_capability(pod: PodRecord) -> list[str]:
    if not pod.spec.ephemeral_containers:
        return []
    try:
        containers = Pod(pod.manifest).containers
        return [
            container.name
            for container in containers
            if container.kind == "ephemeral" and not _may_lock_memory(container)
        ]
    except ShapeError:
        return []  # a file may have any shape


def _may_lock_memory(container: Container) -> bool:
    return container.privileged or container.capabilities.grants(CAPABILITY)
