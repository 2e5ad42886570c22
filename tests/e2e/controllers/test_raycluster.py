"""RayCluster with KubeRay, which itself writes the commands of head and workers."""

from __future__ import annotations

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.controllers import start_kuberay
from tests.e2e.controllers.compared import check_preview, previews_of
from tests.e2e.controllers.lab import (
    TARGET,
    Document,
    WorkloadNamespace,
    applied,
    environment,
    locks_memory,
)
from tests.waiting import until

TYPE = "ray.io/node-type"


@pytest.fixture(scope="module")
def pods(cluster: Cluster, lab: WorkloadNamespace) -> dict[str, Document]:
    """Let the operator make the pods of a cluster; return them by their type."""
    start_kuberay(cluster)
    lab.create("raycluster")
    pods: dict[str, Document] = {}

    def are_made() -> bool:
        pods.update((pod["metadata"]["labels"][TYPE], pod) for pod in lab.pods())
        return pods.keys() == {"head", "worker"}

    until(are_made)
    return pods


def test_head_gets_variables_only(lab: WorkloadNamespace, pods: dict[str, Document]) -> None:
    """A head without a GPU starts what others compute, so it gets no device and no capability."""
    (container,) = pods["head"]["spec"]["containers"]
    (rank,) = lab.ranks(pods["head"])

    assert applied(pods["head"]) == ["env", "hcoll"]
    assert not [name for name in container["resources"].get("limits", {}) if "rdma" in name]
    assert not locks_memory(rank)
    assert rank["env"]["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1"


def test_worker_has_the_set(pods: dict[str, Document]) -> None:
    """It keeps the operator's command, and the container that waits for the head is unchanged."""
    worker = pods["worker"]
    (container,), (waits,) = worker["spec"]["containers"], worker["spec"]["initContainers"]

    assert applied(worker) == TARGET
    assert "ray start" in container["args"][0]
    assert container["resources"]["limits"]["rdma/rdma_v100"] == "1"
    assert container["securityContext"]["capabilities"] == {"add": ["IPC_LOCK"]}
    assert environment(worker)["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1"
    assert "rdma/rdma_v100" not in str(waits["resources"])


def test_preview_matches_the_pods(lab: WorkloadNamespace, pods: dict[str, Document]) -> None:
    """It has the label of the head, and the commands that the operator makes."""
    previews = previews_of(lab, "raycluster")

    check_preview(previews["spec.headGroupSpec.template"], pods["head"])
    check_preview(previews["spec.workerGroupSpecs[0].template"], pods["worker"])
