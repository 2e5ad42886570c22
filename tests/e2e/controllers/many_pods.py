"""Workloads with many pods in each role, made by real controllers.

Those of `WORKLOADS` are gated, so that none has to run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.e2e.documents import Document, workload

NAMESPACE = "shared-decisions"
#: The pods of a workload.
PODS = 64
#: The annotation that reserves a domain of the topology, such as a rack, for each Job of a JobSet.
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


class Workload(NamedTuple):
    """A workload, and the number of roles among its pods: pods of two roles differ."""

    document: Document
    roles: int = 1


def template(name: str = "trainer", **spec: Any) -> Document:
    """Make the template of pods with a GPU."""
    limits = {"nvidia.com/v100": "1", "memory": "256Mi"}
    container = {"name": name, "image": "lab/train", "resources": {"limits": limits}}
    metadata = {"labels": {"app": "probe"}, "annotations": {"rdma.lab/enable": "true"}}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def gated(name: str = "trainer", **spec: Any) -> Document:
    """Make the template of pods that the scheduler does not see."""
    return template(name, schedulingGates=[{"name": "rdma.lab/test"}], **spec)


def kubernetes(kind: str, of: Document | None = None, **spec: Any) -> Document:
    """Make a workload of one of Kubernetes' own kinds."""
    document = workload(kind, NAMESPACE, of or gated(), name=kind.lower())
    document["spec"] |= spec
    return document


def jobset(jobs: int, pods: int, of: Document, **annotations: str) -> Document:
    """Make a JobSet of equal Jobs, each with this number of pods."""
    job = {"spec": {"parallelism": pods, "completions": pods, "template": of}}
    replicated = {"name": "workers", "replicas": jobs, "template": job}
    document = _custom("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [replicated]})
    document["metadata"]["annotations"] = annotations
    return document


def required(term: Document) -> Document:
    """Make the affinity of pods that require a node of this term."""
    kind = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {kind: {"nodeSelectorTerms": [term]}}}


def _custom(api_version: str, kind: str, spec: Document) -> Document:
    metadata = {"name": kind.lower(), "namespace": NAMESPACE}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _replicas(api_version: str, kind: str, field: str, of: Document, *roles: str) -> Document:
    """Make a Job of Kubeflow with one pod of the first role; all others are of the second."""
    first, second = roles
    replicas = {first: 1, second: PODS - 1}
    specs = {role: {"replicas": count, "template": of} for role, count in replicas.items()}
    return _custom(api_version, kind, {field: specs})


def _mpi_job() -> Document:
    """Make an MPIJob whose launcher waits for the workers, which are never ready."""
    kind = ("kubeflow.org/v2beta1", "MPIJob", "mpiReplicaSpecs")
    document = _replicas(*kind, gated(), "Launcher", "Worker")
    document["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    document["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = PODS
    return document


def _ray_cluster() -> Document:
    number = PODS - 1
    group = {
        "groupName": "gpus",
        "replicas": number,
        "minReplicas": number,
        "maxReplicas": number,
        "rayStartParams": {},
        "template": gated(),
    }
    head = {"rayStartParams": {}, "template": gated()}
    return _custom("ray.io/v1", "RayCluster", {"headGroupSpec": head, "workerGroupSpecs": [group]})


_JOB: Document = {"parallelism": PODS, "completions": PODS}
_STORAGE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_CLAIMS = [{"metadata": {"name": "data"}, "spec": _STORAGE}]
_GROUPS = {"size": PODS // 2, "workerTemplate": gated()}
WORKLOADS: dict[str, Workload] = {
    "Deployment": Workload(kubernetes("Deployment", replicas=PODS)),
    "StatefulSet": Workload(
        kubernetes(
            "StatefulSet",
            replicas=PODS,
            podManagementPolicy="Parallel",
            volumeClaimTemplates=_CLAIMS,
        )
    ),
    "Job": Workload(kubernetes("Job", **_JOB)),
    "Indexed Job": Workload(kubernetes("Job", **_JOB, completionMode="Indexed")),
    "JobSet": Workload(jobset(2, PODS // 2, gated(restartPolicy="Never"))),
    "LeaderWorkerSet": Workload(
        _custom(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {"replicas": 2, "leaderWorkerTemplate": _GROUPS},
        ),
        roles=2,
    ),
    "MPIJob": Workload(_mpi_job()),
    "PyTorchJob": Workload(
        _replicas(
            *("kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs", gated("pytorch")),
            *("Master", "Worker"),
        ),
        roles=2,
    ),
    "TFJob": Workload(
        _replicas(
            *("kubeflow.org/v1", "TFJob", "tfReplicaSpecs", gated("tensorflow")),
            *("Chief", "Worker"),
        ),
        roles=2,
    ),
    "RayCluster": Workload(_ray_cluster(), roles=2),
}
WORKLOADS["Indexed Job"].document["metadata"]["name"] = "indexed"
