"""training-operator: PyTorchJob, TFJob, MPIJob and other kinds of kubeflow.org/v1.

Source: kubeflow/training-operator v1.9.2, pkg/controller.v1: common/pod.go (createNewPod: labels),
and the envvar.go of each kind; mpi/mpijob_controller.go (newWorker, newLauncher: kubectl exec in
place of ssh), pytorch/initcontainer.go. MXJob was in the operator until v1.7.

Left out, since no decision reads them: pod names, restart policies, ports, a gang scheduler's
additions, the values of TF_CONFIG and of the elastic variables (PET_RDZV_*).
"""

from __future__ import annotations

from collections.abc import Iterable

from webhook.decide.draft import Draft
from webhook.kube.records import LenientObject
from webhook.model.pod import fields_or_empty
from webhook.preview.workloads.controllers.workload import (
    CONTAINERS,
    INIT_CONTAINERS,
    MAIN_CONTAINER,
    Controller,
    ControllerPod,
    TemplateContainer,
    Workload,
    add_env,
    add_labels,
    add_mount,
    containers_in,
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
#: The variables of all containers, or of one. MASTER_ADDR and the like are equal in all replicas.
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
_MASTER_VARIABLES = (
    "MASTER_PORT",
    "PET_MASTER_PORT",
    "MASTER_ADDR",
    "PET_MASTER_ADDR",
    "WORLD_SIZE",
    "RANK",
    "PET_NODE_RANK",
)
_MASTERS = ("master", "chief")
#: The container that gets the variables.
_EQUIPPED_CONTAINER = {"TFJob": "tensorflow", "MXJob": "mxnet"}
_SCRIPTS = "/etc/mpi"
_KUBECTL = "/opt/kube"
_INIT_RESOURCES = {"cpu": "100m", "ephemeral-storage": "5Gi", "memory": "512Mi"}


class _PyTorchJobSpec(LenientObject):
    nproc_per_node: object = None
    elastic_policy: object = None


def _pods_of(workload: Workload) -> tuple[ControllerPod, ...]:
    kind, template_path, main_container = (
        workload.kind,
        workload.template_path,
        workload.main_container,
    )
    if template_path[:2] != ("spec", FIELDS[kind]) or template_path[3:] != ("template",):
        return (ControllerPod(workload.pod),)
    if not isinstance(template_path[2], str) or main_container is None:
        return (ControllerPod(workload.pod),)
    replica = template_path[2].lower()
    replicas = [name.lower() for name in fields_or_empty(workload.values_above_template[2])]
    draft = Draft(workload.pod)
    add_labels(draft, _labels(workload, replica, replicas))
    if kind != "MPIJob":
        _add_variables(draft, workload, replica, has_master="master" in replicas)
    elif replica == "launcher":
        _make_launcher(draft, workload, main_container)
    else:
        _make_worker(draft, workload, main_container)
    return (ControllerPod(draft.pod),)


def _labels(workload: Workload, replica: str, replicas: Iterable[str]) -> dict[str, str]:
    prefix = "training.kubeflow.org"
    masters = [name for name in replicas if name in (*_MASTERS, "launcher")]
    labels = {
        f"{prefix}/operator-name": f"{workload.kind.lower()}-controller",
        f"{prefix}/job-name": workload.name,
        f"{prefix}/replica-type": replica,
        f"{prefix}/replica-index": "0",
    }
    if replica in masters or (not masters and replica == "worker"):
        labels[f"{prefix}/job-role"] = "master"
    return labels


def _add_variables(draft: Draft, workload: Workload, replica: str, *, has_master: bool) -> None:
    kind = workload.kind
    names = _VARIABLES[kind]
    if kind == "PyTorchJob":
        names += _MASTER_VARIABLES if has_master else ()
        names += _torch_variables(_PyTorchJobSpec.model_validate(workload.values_above_template[1]))
    elif kind == "PaddleJob" and has_master:
        names += ("PADDLE_SERVER_NUM" if replica == "master" else "PADDLE_TRAINER_NUM",)
    for container in containers_in(draft.pod, CONTAINERS):
        if _EQUIPPED_CONTAINER.get(kind) in (None, container.manifest.get("name")):
            add_env(draft, container.path, variables(**dict.fromkeys(names, "1")))
    if kind == "PyTorchJob" and has_master and replica == "worker":
        wait = ["sh", "-c", f"until nslookup {workload.name}-master-0; do sleep 2; done"]
        limits = {"limits": {"cpu": "100m", "memory": "20Mi"}}
        limits["requests"] = {"cpu": "50m", "memory": "10Mi"}
        draft.append(
            INIT_CONTAINERS, {"name": "init-pytorch", "command": wait, "resources": limits}
        )


def _torch_variables(spec: _PyTorchJobSpec) -> tuple[str, ...]:
    elastic = ("PET_RDZV_ENDPOINT", "PET_RDZV_BACKEND")
    return (
        *(("PET_NPROC_PER_NODE",) if spec.nproc_per_node is not None else ()),
        *(elastic if spec.elastic_policy is not None else ()),
        "PET_NNODES",
    )


def _make_launcher(draft: Draft, workload: Workload, main_container: TemplateContainer) -> None:
    launcher_env = variables(
        OMPI_MCA_plm_rsh_agent=f"{_SCRIPTS}/kubexec.sh",
        OMPI_MCA_orte_default_hostfile=f"{_SCRIPTS}/hostfile",
    )
    if not _uses_gpus(main_container):
        launcher_env += variables(NVIDIA_VISIBLE_DEVICES="", NVIDIA_DRIVER_CAPABILITIES="")
    names = main_container.env_names
    intel_env = variables(
        I_MPI_HYDRA_BOOTSTRAP="rsh", I_MPI_HYDRA_BOOTSTRAP_EXEC=f"{_SCRIPTS}/kubexec.sh"
    )
    add_env(
        draft,
        MAIN_CONTAINER,
        [*launcher_env, *(variable for variable in intel_env if variable["name"] not in names)],
    )
    kubectl = {"name": "mpi-job-kubectl", "emptyDir": {}}
    add_mount(draft, MAIN_CONTAINER, kubectl, _KUBECTL)
    add_mount(draft, MAIN_CONTAINER, _scripts(workload), _SCRIPTS)
    deliver = {"name": "kubectl-delivery", "resources": {"limits": {**_INIT_RESOURCES}}}
    draft.append(INIT_CONTAINERS, {**deliver, "env": variables(TARGET_DIR=_KUBECTL)})


def _uses_gpus(container: TemplateContainer) -> bool:
    limits = fields_or_empty(container.resources.limits)
    return any(key.endswith(".com/gpu") or "gpu" in key for key in limits)


def _make_worker(draft: Draft, workload: Workload, main_container: TemplateContainer) -> None:
    if not main_container.has_command:
        draft.set((*MAIN_CONTAINER, "command"), ["sleep"])
        draft.set((*MAIN_CONTAINER, "args"), ["365d"])
    add_mount(draft, MAIN_CONTAINER, _scripts(workload), _SCRIPTS)


def _scripts(workload: Workload) -> dict[str, object]:
    return {"name": "mpi-job-config", "configMap": {"name": f"{workload.name}-config"}}


TRAINING_OPERATOR = Controller(
    name="training-operator",
    kinds=frozenset(f"kubeflow.org/v1 {kind}" for kind in FIELDS),
    adds="`training.kubeflow.org/*` labels; the variables of each framework (`MASTER_ADDR`, "
    "`TF_CONFIG` and others, by their names); for MPIJob v1 the launcher's `OMPI_MCA_*`, the "
    "hostfile, and `sleep 365d` for a worker without a command",
    make_pods=_pods_of,
)
