"""The MPIJob of a run (kubeflow.org/v2beta1): a launcher, and one worker on each node.

The fields are those of kubeflow/mpi-operator v0.6.0, pkg/apis/kubeflow/v2beta1/types.go. The pods
have the labels of all runs, so that they are found and deleted as those of perftest.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from webhook.diagnose.verify.runs.pods import NAME_LABEL, NCCL_CONTAINER, RUN_LABEL, VERIFY
from webhook.model.annotations import ENABLE, FABRIC
from webhook.model.fabric import Fabric
from webhook.model.json import JsonObject

#: The label by which mpi-operator tells launcher and workers apart.
ROLE_LABEL = "training.kubeflow.org/job-role"
_PORT = 2222
#: Seconds after which mpi-operator deletes a job that has ended, and that nobody deleted.
_KEPT = 600


def mpi_job(plan: NcclPlan) -> JsonObject:
    """Return the MPIJob; each worker has a node of its own, and the launcher any."""
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": plan.name, "labels": _labels(plan)},
        "spec": {
            "slotsPerWorker": plan.gpus,
            "launcherCreationPolicy": "WaitForWorkersReady",
            "runPolicy": {
                "cleanPodPolicy": "Running",
                "backoffLimit": 0,
                "activeDeadlineSeconds": int(2 * plan.patience) + plan.limit,
                "ttlSecondsAfterFinished": _KEPT,
            },
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": _launcher(plan)},
                "Worker": {
                    "replicas": len(plan.nodes),
                    "restartPolicy": "Never",
                    "template": _worker(plan),
                },
            },
        },
    }


def _labels(plan: NcclPlan) -> dict[str, str]:
    return {NAME_LABEL: VERIFY, RUN_LABEL: plan.name}


def _launcher(plan: NcclPlan) -> JsonObject:
    words = [str(plan.ranks), str(plan.limit), plan.test, plan.largest]
    template = _template(plan, [*_script("launch.sh"), *words], {"requests": {"cpu": "100m"}})
    template["spec"]["affinity"] = {"nodeAffinity": _on(plan.nodes)}
    return template


def _worker(plan: NcclPlan) -> JsonObject:
    gpus = {plan.gpu_resource: str(plan.gpus)}
    template = _template(plan, _script("work.sh"), {"limits": gpus})
    spec = template["spec"]
    (container,) = spec["containers"]
    container["readinessProbe"] = {"tcpSocket": {"port": _PORT}, "periodSeconds": 1}
    # The ranks of a node exchange data in /dev/shm, of which containerd gives 64 MiB.
    container["volumeMounts"] = [{"name": "shared-memory", "mountPath": "/dev/shm"}]  # noqa: S108
    spec["volumes"] = [{"name": "shared-memory", "emptyDir": {"medium": "Memory"}}]
    spec["affinity"] = {"nodeAffinity": _on(plan.nodes), "podAntiAffinity": _apart(plan)}
    if plan.fabric.mode == "host-network":
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    return template


def _template(plan: NcclPlan, command: list[str], resources: JsonObject) -> JsonObject:
    spec: JsonObject = {
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "tolerations": list(plan.tolerations),
        "containers": [
            {
                "name": NCCL_CONTAINER,
                "image": plan.image,
                "command": command,
                "resources": resources,
            }
        ],
    }
    if plan.pull_secrets:
        spec["imagePullSecrets"] = [{"name": one} for one in plan.pull_secrets]
    annotations = {ENABLE: "true", FABRIC: plan.fabric.name}
    return {"metadata": {"labels": _labels(plan), "annotations": annotations}, "spec": spec}


def _script(name: str) -> list[str]:
    """Return a command; the kubelet turns `$$(` into `$(`, and `$(NAME)` into a variable."""
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return ["sh", "-c", text.replace("$(", "$$("), "rdma-verify"]


def _on(nodes: Sequence[str]) -> JsonObject:
    """Return the affinity to the nodes, where the image is needed anyway."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        for node in nodes
    ]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _apart(plan: NcclPlan) -> JsonObject:
    """Return the anti-affinity that puts one worker on each node."""
    others = {
        "labelSelector": {"matchLabels": {**_labels(plan), ROLE_LABEL: "worker"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"requiredDuringSchedulingIgnoredDuringExecution": [others]}


# What a run of nccl-tests measures, and how.

#: Seconds in which a collective of some GiB ends on a slow network, NCCL's start included.
_LIMIT = 600


class NcclPlan(NamedTuple):
    """A run, as it was asked for."""

    #: The value of the label on all that it creates, and the name of the MPIJob.
    name: str
    fabric: Fabric
    nodes: tuple[str, ...]
    #: GPUs of each node, by the name of their resource; a rank has one GPU.
    gpus: int
    gpu_resource: str
    image: str
    #: A program of nccl-tests: a name on the PATH, or a path.
    test: str
    #: The largest message, as nccl-tests writes sizes: 1G.
    largest: str
    #: Seconds in which the workers must be ready.
    patience: float
    pull_secrets: tuple[str, ...] = ()
    #: Tolerations as in a pod.
    tolerations: tuple[dict[str, str], ...] = ()

    @property
    def ranks(self) -> int:
        """How many ranks there are in all."""
        return self.gpus * len(self.nodes)

    @property
    def limit(self) -> int:
        """Seconds after which mpirun is ended."""
        return _LIMIT
