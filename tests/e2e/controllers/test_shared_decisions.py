"""The pods that real controllers make for one role share a decision: all but the first are hits.

The pods stay gated, so that none has to run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.controllers import start_jobset, start_kuberay, start_lws, start_mpi_operator
from tests.e2e.admission.by_url import Webhook, register
from tests.e2e.admission.places import CALLED_BY
from tests.e2e.documents import Document, apply, workload
from tests.waiting import until

LABEL = "shared-decisions"
#: The pods of a role.
PODS = 16
POD_LABELS = {"app": "probe"}
_DECISIONS = "rdma_webhook_decision_cache_{}_total"


def template(**spec: Any) -> Document:
    """Make the template of pods with a GPU, which the scheduler does not see."""
    limits = {"nvidia.com/v100": "1", "memory": "256Mi"}
    trainer = {"name": "trainer", "image": "lab/train", "resources": {"limits": limits}}
    gates = [{"name": "rdma.lab/test"}]
    return {
        "metadata": {"labels": POD_LABELS, "annotations": {"rdma.lab/enable": "true"}},
        "spec": {"containers": [trainer], "schedulingGates": gates, **spec},
    }


def _apps(kind: str, **spec: Any) -> Document:
    document = workload(kind, LABEL, template(), name=kind.lower())
    document["spec"] |= spec
    return document


def _custom(api_version: str, kind: str, spec: Document) -> Document:
    metadata = {"name": kind.lower(), "namespace": LABEL}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


_JOB: Document = {"parallelism": PODS, "completions": PODS}
_CLAIMS = [
    {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
]
_ONCE = template(restartPolicy="Never")
#: Each with the number of its roles: pods of two roles differ.
_WORKLOADS: dict[str, tuple[Document, int]] = {
    "Deployment": (_apps("Deployment", replicas=PODS), 1),
    "StatefulSet": (
        _apps(
            "StatefulSet",
            replicas=PODS,
            podManagementPolicy="Parallel",
            volumeClaimTemplates=_CLAIMS,
        ),
        1,
    ),
    "Job": (_apps("Job", **_JOB), 1),
    "Indexed Job": (
        {**_apps("Job", **_JOB, completionMode="Indexed"), "metadata": {"name": "indexed"}},
        1,
    ),
    "JobSet": (
        _custom(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            {
                "replicatedJobs": [
                    {
                        "name": "workers",
                        "replicas": 2,
                        "template": {
                            "spec": {
                                "parallelism": PODS // 2,
                                "completions": PODS // 2,
                                "template": _ONCE,
                            }
                        },
                    }
                ]
            },
        ),
        1,
    ),
    "LeaderWorkerSet": (
        _custom(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {
                "replicas": 2,
                "leaderWorkerTemplate": {"size": PODS // 2, "workerTemplate": template()},
            },
        ),
        2,
    ),
    "MPIJob": (
        _custom(
            "kubeflow.org/v2beta1",
            "MPIJob",
            {
                "launcherCreationPolicy": "WaitForWorkersReady",
                "mpiReplicaSpecs": {
                    "Launcher": {"replicas": 1, "template": template()},
                    "Worker": {"replicas": PODS, "template": template()},
                },
            },
        ),
        1,
    ),
    "RayCluster": (
        _custom(
            "ray.io/v1",
            "RayCluster",
            {
                "headGroupSpec": {"rayStartParams": {}, "template": template()},
                "workerGroupSpecs": [
                    {
                        "groupName": "gpus",
                        "replicas": PODS - 1,
                        "minReplicas": PODS - 1,
                        "maxReplicas": PODS - 1,
                        "rayStartParams": {},
                        "template": template(),
                    }
                ],
            },
        ),
        2,
    ),
}


@pytest.fixture(scope="module")
def server(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    """Run one replica, which the API server calls for one namespace, and the controllers."""
    cluster.skip_if_existing("a process of this checkout beside the API server")
    started = Webhook(cluster, LABEL, tmp_path_factory.mktemp(LABEL) / "webhook")
    started.wait_for_ports()
    labels = {CALLED_BY: LABEL}
    metadata = {"name": LABEL, "labels": labels}
    apply(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    configuration = register(cluster, LABEL, started)
    for start in (start_jobset, start_lws, start_mpi_operator, start_kuberay):
        start(cluster)
    yield started
    cluster.kubectl("delete", "mutatingwebhookconfiguration", configuration)
    cluster.kubectl("delete", "namespace", LABEL, "--wait=false")
    started.stop()


@pytest.mark.parametrize("name", _WORKLOADS)
def test_pods_of_a_role_share_a_decision(cluster: Cluster, server: Webhook, name: str) -> None:
    """Each role costs one decision, whatever its pods are called; every pod gets its patch."""
    document, roles = _WORKLOADS[name]
    document["metadata"]["namespace"] = LABEL
    hits, misses = (server.metric(_DECISIONS.format(event)) for event in ("hits", "misses"))
    pods: list[Document] = []

    def are_made() -> bool:
        listed = cluster.kubectl("get", "pods", "--namespace", LABEL, "--output=json")
        pods[:] = json.loads(listed)["items"]
        return len(pods) == PODS

    try:
        apply(cluster, document)
        until(are_made, lambda: cluster.kubectl("get", "events", "--namespace", LABEL))
        assert server.metric(_DECISIONS.format("misses")) - misses == roles
        # A controller may try again to create a pod that exists: each try is a call.
        assert server.metric(_DECISIONS.format("hits")) - hits >= PODS - roles
        assert all("rdma.lab/status" in pod["metadata"]["annotations"] for pod in pods)
    finally:
        kind, workload_name = document["kind"].lower(), document["metadata"]["name"]
        cluster.kubectl("delete", kind, workload_name, "--namespace", LABEL, "--wait=false")
        cluster.kubectl("delete", "pods", "--all", "--namespace", LABEL, "--wait", "--force")
