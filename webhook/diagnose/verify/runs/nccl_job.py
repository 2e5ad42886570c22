"""The MPIJob of a run (kubeflow.org/v2beta1): a launcher, and one worker on each node.

Fields: kubeflow/mpi-operator v0.6.0, pkg/apis/kubeflow/v2beta1/types.go. The pods have the labels
of all runs, so that they are listed and deleted like the pods of perftest.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from webhook.diagnose.verify.results import PortRate
from webhook.diagnose.verify.runs.pods import NAME_LABEL, NCCL_CONTAINER, RUN_LABEL, VERIFY
from webhook.model.annotations import ENABLE_ANNOTATION, FABRIC_ANNOTATION
from webhook.model.fabric import Fabric
from webhook.model.json import JsonObject

#: The label with which mpi-operator marks launcher and workers.
ROLE_LABEL = "training.kubeflow.org/job-role"
_PORT = 2222
#: Seconds from the end of a job until mpi-operator deletes it.
_TTL_SECONDS = 600


def mpi_job(plan: NcclPlan) -> JsonObject:
    """Return the MPIJob; each worker has a node to itself, and the launcher runs on any of them."""
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
                "activeDeadlineSeconds": plan.deadline,
                "ttlSecondsAfterFinished": _TTL_SECONDS,
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
    arguments = [str(plan.ranks), str(plan.program_timeout), plan.test, plan.largest]
    template = _template(plan, [*_script("launch.sh"), *arguments], {"requests": {"cpu": "100m"}})
    template["spec"]["affinity"] = {"nodeAffinity": _node_affinity(plan.nodes)}
    return template


def _worker(plan: NcclPlan) -> JsonObject:
    gpus = {plan.gpu_resource: str(plan.gpus)}
    template = _template(plan, _script("work.sh"), {"limits": gpus})
    spec = template["spec"]
    (container,) = spec["containers"]
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    container["env"] = [{"name": "SSHD_ADDRESS", "valueFrom": address}]
    container["readinessProbe"] = {"tcpSocket": {"port": _PORT}, "periodSeconds": 1}
    # The ranks of a node exchange data in /dev/shm, which is 64 MiB by default in containerd.
    container["volumeMounts"] = [{"name": "shared-memory", "mountPath": "/dev/shm"}]  # noqa: S108
    spec["volumes"] = [{"name": "shared-memory", "emptyDir": {"medium": "Memory"}}]
    spec["affinity"] = {
        "nodeAffinity": _node_affinity(plan.nodes),
        "podAntiAffinity": _worker_anti_affinity(plan),
    }
    if plan.fabric.mode == "host-network":
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    return template


def _template(plan: NcclPlan, command: list[str], resources: JsonObject) -> JsonObject:
    spec: JsonObject = {
        "terminationGracePeriodSeconds": 1,
        # The job's own deadline begins only with its launcher, which waits for the workers.
        "activeDeadlineSeconds": plan.deadline,
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
        spec["imagePullSecrets"] = [{"name": secret} for secret in plan.pull_secrets]
    annotations = {ENABLE_ANNOTATION: "true", FABRIC_ANNOTATION: plan.fabric.name}
    return {"metadata": {"labels": _labels(plan), "annotations": annotations}, "spec": spec}


def _script(name: str) -> list[str]:
    """Return a command; the kubelet turns `$$(` into `$(`, and `$(NAME)` into a variable."""
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return ["sh", "-c", text.replace("$(", "$$("), "rdma-verify"]


def _node_affinity(nodes: Sequence[str]) -> JsonObject:
    """Return the affinity to the nodes of the run, which need the image in any case."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        for node in nodes
    ]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _worker_anti_affinity(plan: NcclPlan) -> JsonObject:
    """Return the anti-affinity that puts one worker on each node."""
    workers = {
        "labelSelector": {"matchLabels": {**_labels(plan), ROLE_LABEL: "worker"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"requiredDuringSchedulingIgnoredDuringExecution": [workers]}


# The plan of a run of nccl-tests.

#: Seconds for a collective of some GiB on a slow network, including the start of NCCL.
_LIMIT = 600


class NcclPlan(NamedTuple):
    """The plan of a run: nodes, image, test and limits."""

    #: The value of the label on all objects that the run creates, and the name of the MPIJob.
    name: str
    fabric: Fabric
    nodes: tuple[str, ...]
    #: GPUs of each node, and their resource; a rank has a single GPU.
    gpus: int
    gpu_resource: str
    image: str
    #: A program of nccl-tests: a name on the PATH, or a path.
    test: str
    #: The largest message, in the notation of nccl-tests: 1G.
    largest: str
    #: Seconds until the workers must be ready.
    start_timeout: float
    pull_secrets: tuple[str, ...] = ()
    #: Tolerations as in a pod.
    tolerations: tuple[dict[str, str], ...] = ()
    #: The rate of an HCA; None if it is not known.
    rate: PortRate | None = None
    #: The machine type of the nodes, if a cloud has published a minimum for it; else "".
    machine: str = ""

    @property
    def ranks(self) -> int:
        """The total number of ranks."""
        return self.gpus * len(self.nodes)

    @property
    def program_timeout(self) -> int:
        """Seconds after which mpirun is terminated."""
        return _LIMIT

    @property
    def deadline(self) -> int:
        """Seconds after which Kubernetes ends a job and its pods that nobody deletes."""
        return int(2 * self.start_timeout) + self.program_timeout
