"""training-operator: PyTorchJob, TFJob, MPIJob and others of kubeflow.org/v1.

Source: kubeflow/training-operator v1.9.2, pkg/controller.v1: common/pod.go (createNewPod: labels),
and of each kind its envvar.go; mpi/mpijob_controller.go (newWorker, newLauncher: kubectl exec in
place of ssh), pytorch/initcontainer.go. MXJob was in the operator until v1.7.

Left out, since no decision reads them: pod names, restart policies, ports, what a gang scheduler
adds; of TF_CONFIG and of the elastic variables (PET_RDZV_*) the values.
"""

from __future__ import annotations

from typing import Any

from webhook.decide.draft import Draft
from webhook.model.pod import at, items, mapping
from webhook.preview.workloads.controllers.workload import (
    CONTAINERS,
    FIRST,
    INIT_CONTAINERS,
    Controller,
    Live,
    Workload,
    add_env,
    add_labels,
    add_mount,
    has_containers,
    variables,
)

#: The field with the replicas of each kind.
FIELDS = {
    "JAXJob": "jaxReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "MXJob": "mxReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
}
#: The variables of all containers, or of one. MASTER_ADDR and its like tell what all replicas tell.
_VARIABLES: dict[str, tuple[str, ...]] = {
    "JAXJob": (
        "PYTHONUNBUFFERED",
        "COORDINATOR_PORT",
        "COORDINATOR_ADDRESS",
        "NUM_PROCESSES",
        "PROCESS_ID",
    ),
    "MXJob": ("MX_CONFIG",),
    "PaddleJob": ("PYTHONUNBUFFERED", "PADDLE_JOB_ID", "PADDLE_NNODES", "PADDLE_MASTER"),
    "PyTorchJob": ("PYTHONUNBUFFERED",),
    "TFJob": ("TF_CONFIG",),
    "XGBoostJob": (
        "MASTER_PORT",
        "MASTER_ADDR",
        "WORLD_SIZE",
        "RANK",
        "PYTHONUNBUFFERED",
    ),
}
_OF_MASTER = (
    "MASTER_PORT",
    "PET_MASTER_PORT",
    "MASTER_ADDR",
    "PET_MASTER_ADDR",
    "WORLD_SIZE",
    "RANK",
    "PET_NODE_RANK",
)
_MASTERS = ("master", "chief")
_ONLY = {"TFJob": "tensorflow", "MXJob": "mxnet"}  # the container that gets the variables
_SCRIPTS = "/etc/mpi"
_KUBECTL = "/opt/kube"
_SMALL = {"cpu": "100m", "ephemeral-storage": "5Gi", "memory": "512Mi"}


def _live(workload: Workload) -> tuple[Live, ...]:
    kind = str(workload.value["kind"])
    where = workload.where
    if where[:2] != ("spec", FIELDS[kind]) or where[3:] != ("template",):
        return (Live(workload.pod),)
    if not isinstance(where[2], str) or not has_containers(workload.pod):
        return (Live(workload.pod),)
    replica = where[2].lower()
    draft = Draft(workload.pod)
    add_labels(draft, _labels(workload, kind, replica))
    if kind != "MPIJob":
        _add_variables(draft, workload, kind, replica)
    elif replica == "launcher":
        _make_launcher(draft, workload)
    else:
        _make_worker(draft, workload)
    return (Live(draft.pod),)


def _labels(workload: Workload, kind: str, replica: str) -> dict[str, str]:
    prefix = "training.kubeflow.org"
    replicas = mapping(workload.value, workload.where[:2])
    masters = [name for name in map(str.lower, replicas) if name in (*_MASTERS, "launcher")]
    labels = {
        f"{prefix}/operator-name": f"{kind.lower()}-controller",
        f"{prefix}/job-name": workload.name,
        f"{prefix}/replica-type": replica,
        f"{prefix}/replica-index": "0",
    }
    if replica in masters or (not masters and replica == "worker"):
        labels[f"{prefix}/job-role"] = "master"
    return labels


def _add_variables(draft: Draft, workload: Workload, kind: str, replica: str) -> None:
    names = _VARIABLES[kind]
    replicas = mapping(workload.value, workload.where[:2])
    has_master = any(name.lower() == "master" for name in replicas)
    if kind == "PyTorchJob":
        names += _OF_MASTER if has_master else ()
        names += _of_torch(workload.value)
    elif kind == "PaddleJob" and has_master:
        names += ("PADDLE_SERVER_NUM" if replica == "master" else "PADDLE_TRAINER_NUM",)
    for index, container in enumerate(items(draft.pod, CONTAINERS)):
        if _ONLY.get(kind) in (None, container.get("name")):
            add_env(draft, (*CONTAINERS, index), variables(**dict.fromkeys(names, "1")))
    if kind == "PyTorchJob" and has_master and replica == "worker":
        wait = ["sh", "-c", f"until nslookup {workload.name}-master-0; do sleep 2; done"]
        limits = {"limits": {"cpu": "100m", "memory": "20Mi"}}
        limits["requests"] = {"cpu": "50m", "memory": "10Mi"}
        draft.append(
            INIT_CONTAINERS, {"name": "init-pytorch", "command": wait, "resources": limits}
        )


def _of_torch(job: dict[str, Any]) -> tuple[str, ...]:
    per_node = ("PET_NPROC_PER_NODE",) if at(job, ("spec", "nprocPerNode")) is not None else ()
    elastic = at(job, ("spec", "elasticPolicy")) is not None
    return (
        *per_node,
        *(("PET_RDZV_ENDPOINT", "PET_RDZV_BACKEND") if elastic else ()),
        "PET_NNODES",
    )


def _make_launcher(draft: Draft, workload: Workload) -> None:
    ours = variables(
        OMPI_MCA_plm_rsh_agent=f"{_SCRIPTS}/kubexec.sh",
        OMPI_MCA_orte_default_hostfile=f"{_SCRIPTS}/hostfile",
    )
    if not _uses_gpus(workload):
        ours += variables(NVIDIA_VISIBLE_DEVICES="", NVIDIA_DRIVER_CAPABILITIES="")
    known = [one.get("name") for one in items(draft.pod, (*FIRST, "env"))]
    intel = variables(
        I_MPI_HYDRA_BOOTSTRAP="rsh", I_MPI_HYDRA_BOOTSTRAP_EXEC=f"{_SCRIPTS}/kubexec.sh"
    )
    add_env(draft, FIRST, [*ours, *(one for one in intel if one["name"] not in known)])
    kubectl = {"name": "mpi-job-kubectl", "emptyDir": {}}
    add_mount(draft, FIRST, kubectl, _KUBECTL)
    add_mount(draft, FIRST, _scripts(workload), _SCRIPTS)
    deliver = {"name": "kubectl-delivery", "resources": {"limits": {**_SMALL}}}
    draft.append(INIT_CONTAINERS, {**deliver, "env": variables(TARGET_DIR=_KUBECTL)})


def _uses_gpus(workload: Workload) -> bool:
    limits = at(workload.pod, (*FIRST, "resources", "limits"))
    return isinstance(limits, dict) and any(
        key.endswith(".com/gpu") or "gpu" in key for key in limits
    )


def _make_worker(draft: Draft, workload: Workload) -> None:
    if not at(draft.pod, (*FIRST, "command")):
        draft.set((*FIRST, "command"), ["sleep"])
        draft.set((*FIRST, "args"), ["365d"])
    add_mount(draft, FIRST, _scripts(workload), _SCRIPTS)


def _scripts(workload: Workload) -> dict[str, Any]:
    return {"name": "mpi-job-config", "configMap": {"name": f"{workload.name}-config"}}


TRAINING_OPERATOR = Controller(
    name="training-operator",
    kinds=frozenset(f"kubeflow.org/v1 {kind}" for kind in FIELDS),
    adds="`training.kubeflow.org/*` labels; the variables of each framework (`MASTER_ADDR`, "
    "`TF_CONFIG` and others, by their names); for MPIJob v1 the launcher's `OMPI_MCA_*`, the "
    "hostfile, and `sleep 365d` for a worker without a command",
    live=_live,
)
