"""The processes of the replicas, and how to kill one."""

from __future__ import annotations

import json
from typing import Any

from tests.cluster.install import NAME, Webhook
from tests.waiting import until


def processes(webhook: Webhook) -> dict[str, str]:
    """Return the container ID of each running replica; a restart changes it."""
    containers = {}
    for pod in _pods(webhook):
        (status,) = pod["status"].get("containerStatuses") or [{}]
        if "running" in status.get("state", {}):
            containers[pod["metadata"]["name"]] = status["containerID"].removeprefix(
                "containerd://"
            )
    return containers


def kill(webhook: Webhook, container: str) -> None:
    """Kill the first process of a container at once, as `kill -9` on its node does."""
    task = ("ctr", "--namespace", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", container)
    webhook.cluster.exec(*task)


def ready(webhook: Webhook) -> set[str]:
    """Return the names of the replicas that the kubelet reports as ready."""
    return {pod["metadata"]["name"] for pod in _pods(webhook) if _is_ready(pod)}


def settled(webhook: Webhook, count: int = 2) -> None:
    """Wait until there are `count` replicas, all of them ready, and none is being deleted."""
    until(lambda: len(_pods(webhook)) == len(ready(webhook)) == count)


def _pods(webhook: Webhook) -> list[Any]:
    pods: list[Any] = json.loads(webhook.read(f"/api/v1/namespaces/{NAME}/pods"))["items"]
    return pods


def _is_ready(pod: Any) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return ("Ready", "True") in {
        (condition["type"], condition["status"]) for condition in conditions
    }
