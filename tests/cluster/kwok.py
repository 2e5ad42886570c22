"""Fake nodes: kwok reports that they and their pods are ready."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.cluster.binaries import binary, module_dir
from tests.cluster.namespaces import INSIDE
from tests.cluster.processes import Processes

#: Marks a fake node, and is its taint: only pods that tolerate it are scheduled there.
FAKE = "kwok.x-k8s.io/node"
CAPACITY: Mapping[str, str] = {"cpu": "128", "memory": "2Ti", "pods": "1000"}


def start_kwok(processes: Processes) -> None:
    """Start kwok for the marked nodes."""
    stages = module_dir("kwok") / "kustomize" / "stage"
    files = [*sorted(stages.glob("node/fast/node-*.yaml")), *stages.glob("pod/fast/pod-*.yaml")]
    processes.start(
        "kwok",
        [
            binary("kwok"),
            f"--kubeconfig={INSIDE}/kubeconfig",
            f"--manage-nodes-with-annotation-selector={FAKE}=fake",
            "--node-lease-duration-seconds=40",
            *(f"--config={file}" for file in files),
        ],
    )


def nodes(
    names: Iterable[str], labels: Mapping[str, str], capacity: Mapping[str, str]
) -> dict[str, Any]:
    """Return a List of tainted fake nodes with these labels and amounts of resources."""
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [_node(name, labels, {**CAPACITY, **capacity}) for name in names],
    }


def _node(name: str, labels: Mapping[str, str], capacity: Mapping[str, str]) -> dict[str, Any]:
    real = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        FAKE: "fake",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**real, **labels}, "annotations": {FAKE: "fake"}},
        "spec": {"taints": [{"key": FAKE, "value": "fake", "effect": "NoSchedule"}]},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
