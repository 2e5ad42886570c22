"""A workload of each kind of controller, and short ways to read its additions to the pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.model.pod import PodManifest, at
from webhook.preview.workloads.controllers import controller_pods
from webhook.preview.workloads.templates import templates_of


def template(name: str = "main", **container: Any) -> dict[str, Any]:
    """Make a pod template that has opted in, with one container that has an image."""
    return {
        "metadata": {"annotations": {"rdma.lab/enable": "true"}},
        "spec": {"containers": [{"name": name, "image": "x", **container}]},
    }


def workload(
    kind: str, spec: Mapping[str, Any], *, name: str = "job", **metadata: Any
) -> dict[str, Any]:
    """Make an object; `kind` is "GROUP/VERSION KIND" as in the table of controllers."""
    api_version, _, word = kind.rpartition(" ")
    return {
        "apiVersion": api_version,
        "kind": word,
        "metadata": {"name": name, "namespace": "lab", **metadata},
        "spec": dict(spec),
    }


def created_pods(value: dict[str, Any]) -> list[PodManifest]:
    """Return the pods that the controller makes of all templates in an object."""
    return [live.pod for source in templates_of(value) for live in controller_pods(source)]


def main_container(value: dict[str, Any]) -> dict[str, Any]:
    """Return the main container of the only pod."""
    (pod,) = created_pods(value)
    container: dict[str, Any] = pod["spec"]["containers"][0]
    return container


def labels(pod: PodManifest) -> dict[str, str]:
    """Return the pod's labels."""
    return at(pod, ("metadata", "labels")) or {}


def env(container: Mapping[str, Any]) -> dict[str, Any]:
    """Return a container's literal variables by name; None for the others."""
    return {variable["name"]: variable.get("value") for variable in container.get("env", [])}


def mounts(container: Mapping[str, Any]) -> list[str]:
    """List the paths where the container mounts something."""
    return [mount["mountPath"] for mount in container.get("volumeMounts", [])]


GPU: dict[str, Any] = {"resources": {"limits": {"nvidia.com/v100": 1, "memory": "64Gi"}}}
MPIRUN = ["mpirun", "--allow-run-as-root", "-np", "8", "train"]


def launcher() -> dict[str, Any]:
    """Make the template of a launcher that names its fabric."""
    pod_template = template("launcher", command=MPIRUN)
    pod_template["metadata"]["annotations"]["rdma.lab/fabric"] = "v100-ib"
    return pod_template


def replicas(**templates: Any) -> dict[str, Any]:
    """Write replica specs."""
    return {name: {"template": pod_template} for name, pod_template in templates.items()}


MPI_JOB = workload(
    "kubeflow.org/v2beta1 MPIJob",
    {"mpiReplicaSpecs": replicas(Launcher=launcher(), Worker=template(**GPU))},
)
OLD_MPI_JOB = workload(
    "kubeflow.org/v1alpha1 MPIJob", {"replicas": 2, "template": template(command=MPIRUN, **GPU)}
)
RAY = workload(
    "ray.io/v1 RayCluster",
    {
        "headGroupSpec": {"template": launcher()},
        "workerGroupSpecs": [{"groupName": "g", "template": template(command=MPIRUN, **GPU)}],
    },
)
#: A workload for each controller in the table.
WORKLOADS = {
    "kubernetes": workload(
        "batch/v1 Job", {"completionMode": "Indexed", "template": template(**GPU)}
    ),
    "mpi-operator": MPI_JOB,
    "mpi-operator v1alpha1": OLD_MPI_JOB,
    "mpi-operator v1alpha2": workload(
        "kubeflow.org/v1alpha2 MPIJob",
        {"mpiReplicaSpecs": replicas(Launcher=launcher(), Worker=template(**GPU))},
    ),
    "training-operator": workload(
        "kubeflow.org/v1 PyTorchJob",
        {"pytorchReplicaSpecs": replicas(Master=template(**GPU), Worker=template(**GPU))},
    ),
    "training-operator, MPIJob": workload(
        "kubeflow.org/v1 MPIJob",
        {"mpiReplicaSpecs": replicas(Launcher=launcher(), Worker=template(**GPU))},
    ),
    "kuberay": RAY,
    "leaderworkerset": workload(
        "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet",
        {"leaderWorkerTemplate": {"size": 2, "workerTemplate": template(**GPU)}},
    ),
    "jobset": workload(
        "jobset.x-k8s.io/v1alpha2 JobSet",
        {
            "replicatedJobs": [
                {"name": "w", "template": {"spec": {"template": template(**GPU)}}},
            ]
        },
    ),
    "et-operator": workload(
        "kai.alibabacloud.com/v1alpha1 TrainingJob",
        {"etReplicaSpecs": replicas(launcher=launcher(), worker=template(**GPU))},
    ),
}
