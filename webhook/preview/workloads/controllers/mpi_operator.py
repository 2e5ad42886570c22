"""mpi-operator: MPIJob (kubeflow.org/v2beta1), whose launcher reaches the workers over ssh.

Source: kubeflow/mpi-operator v0.6.0, pkg/controller/mpi_job_controller.go (newWorker,
newLauncherPodTemplate, setupSSHOnPod, defaultLabels), pkg/apis/kubeflow/v2beta1/default.go.

Left out, since no decision reads them: host names, DNS searches, restart policies, ownerReferences,
a gang scheduler's additions.
"""

from __future__ import annotations

from webhook.decide.draft import Draft
from webhook.kube.records import Flag, LenientObject
from webhook.model.pod import PodManifest
from webhook.preview.workloads.controllers.workload import (
    INIT_CONTAINERS,
    MAIN_CONTAINER,
    Controller,
    ControllerPod,
    TemplateContainer,
    Workload,
    add_env,
    add_labels,
    add_mount,
    variables,
)
from webhook.preview.workloads.objects import TextOrDefault, below

_SPECS = ("spec", "mpiReplicaSpecs")
_ROLES = {"Launcher": "launcher", "Worker": "worker"}
_SSHD = ["/usr/sbin/sshd", "-De"]
_HOSTFILE_FOLDER = "/etc/mpi"
_SSH_ATTEMPTS = "-o ConnectionAttempts=10"
_OPEN_MPI = {
    "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
    "OMPI_MCA_orte_default_hostfile": f"{_HOSTFILE_FOLDER}/hostfile",
    "OMPI_MCA_plm_rsh_args": _SSH_ATTEMPTS,
}
_INTEL = {
    "I_MPI_HYDRA_HOST_FILE": f"{_HOSTFILE_FOLDER}/hostfile",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": _SSH_ATTEMPTS,
}
_MPICH = {
    "HYDRA_HOST_FILE": f"{_HOSTFILE_FOLDER}/hostfile",
    "HYDRA_LAUNCH_EXTRA_ARGS": _SSH_ATTEMPTS,
}
#: The launcher's variables by `mpiImplementation`, and the name of the variable with the slots.
_IMPLEMENTATIONS = {
    "OpenMPI": (_OPEN_MPI, "OMPI_MCA_orte_set_default_slots"),
    "Intel": (_INTEL, "I_MPI_PERHOST"),
    "MPICH": (_MPICH, ""),
}


class _MPIJobSpec(LenientObject):
    mpi_implementation: TextOrDefault = "OpenMPI"
    slots_per_worker: TextOrDefault = "1"
    run_launcher_as_worker: Flag = False
    ssh_auth_mount_path: TextOrDefault = "/root/.ssh"


class _PodTemplate(LenientObject):
    host_network: Flag = below("spec", "hostNetwork", default=False)


def _mpijob_pods(workload: Workload) -> tuple[ControllerPod, ...]:
    role = _ROLES.get(str(workload.template_path[2])) if _is_replica(workload) else None
    if role is None or workload.main_container is None:
        return (ControllerPod(workload.pod),)
    spec, draft = _MPIJobSpec.model_validate(workload.values_above_template[1]), Draft(workload.pod)
    add_labels(draft, _labels(workload.name, role))
    if _PodTemplate.model_validate(workload.pod).host_network:
        draft.set(("spec", "dnsPolicy"), "ClusterFirstWithHostNet")
    add_env(draft, MAIN_CONTAINER, variables(K_MPI_JOB_ROLE=role))
    if role == "launcher":
        add_env(draft, MAIN_CONTAINER, _launcher_env(spec))
    else:
        add_labels(draft, {"training.kubeflow.org/replica-index": "0"})
        if not _has_command_or_args(workload.main_container):
            draft.set((*MAIN_CONTAINER, "command"), [*_SSHD])
    add_mount(draft, MAIN_CONTAINER, _ssh_volume(workload), spec.ssh_auth_mount_path)
    if role == "launcher":
        add_mount(draft, MAIN_CONTAINER, _config_volume(workload), _HOSTFILE_FOLDER)
    return (ControllerPod(draft.pod),)


def _is_replica(workload: Workload) -> bool:
    return workload.template_path[:2] == _SPECS and workload.template_path[3:] == ("template",)


def _labels(name: str, role: str) -> dict[str, str]:
    prefix = "training.kubeflow.org"
    return {
        f"{prefix}/operator-name": "mpi-operator",
        f"{prefix}/job-name": name,
        f"{prefix}/job-role": role,
    }


def _has_command_or_args(container: TemplateContainer) -> bool:
    return container.has_command or bool(container.manifest.get("args"))


def _launcher_env(spec: _MPIJobSpec) -> list[dict[str, object]]:
    values, slots = _IMPLEMENTATIONS.get(spec.mpi_implementation, ({}, ""))
    env = variables(**values)
    if slots:
        env += variables(**{slots: spec.slots_per_worker})
    if not spec.run_launcher_as_worker:
        env += variables(NVIDIA_VISIBLE_DEVICES="", NVIDIA_DRIVER_CAPABILITIES="")
    return env


def _ssh_volume(workload: Workload) -> dict[str, object]:
    return {"name": "ssh-auth", "secret": {"secretName": f"{workload.name}-ssh"}}


def _config_volume(workload: Workload) -> dict[str, object]:
    return {"name": "mpi-job-config", "configMap": {"name": f"{workload.name}-config"}}


MPI_OPERATOR = Controller(
    name="mpi-operator",
    kinds=frozenset({"kubeflow.org/v2beta1 MPIJob"}),
    adds="role labels, `K_MPI_JOB_ROLE`, the launcher's `OMPI_MCA_*` or hostfile variables, ssh "
    "keys, the hostfile, and `/usr/sbin/sshd -De` for a worker without a command",
    make_pods=_mpijob_pods,
)


# The mpi-operator of arena: MPIJob (kubeflow.org/v1alpha1), one template for launcher and
# workers.
#
# Source: kubeflow/mpi-operator, commit 111dffd, pkg/controllers/v1alpha1/mpi_job_controller.go
# (newWorker, newLauncher). The launcher has the template's command and none of its resources; the
# workers have the resources, and sleep: the launcher runs the ranks in them by `kubectl exec`.
#
# Left out, since no decision reads them: service accounts, restart policies, tolerations; and the
# number of GPUs where `gpus` or `processingUnits` asks for them, which depends on the operator's
# flags. `replicas` counts workers, and their GPUs are those of the template.

_CONFIG, _KUBECTL = "/etc/mpi", "/opt/kube"


def _v1alpha1_pods(workload: Workload) -> tuple[ControllerPod, ...]:
    if workload.template_path != ("spec", "template") or workload.main_container is None:
        return (ControllerPod(workload.pod),)
    launcher = _launcher(workload)
    for section in workload.main_container.resource_sections:
        launcher.remove((*MAIN_CONTAINER, "resources", section))
    return (ControllerPod(_worker(workload), "worker"), ControllerPod(launcher.pod, "launcher"))


def _draft_with_labels(workload: Workload, role: str) -> Draft:
    draft = Draft(workload.pod)
    add_labels(
        draft,
        {"group_name": "kubeflow.org", "mpi_job_name": workload.name, "mpi_role_type": role},
    )
    return draft


def _worker(workload: Workload) -> PodManifest:
    draft = _draft_with_labels(workload, "worker")
    draft.set((*MAIN_CONTAINER, "command"), ["sleep"])
    draft.set((*MAIN_CONTAINER, "args"), ["365d"])
    add_mount(draft, MAIN_CONTAINER, _config_volume(workload), _CONFIG)
    return draft.pod


def _launcher(workload: Workload) -> Draft:
    draft = _draft_with_labels(workload, "launcher")
    draft.append(INIT_CONTAINERS, {"name": "kubectl-delivery"})
    launcher_env = variables(
        OMPI_MCA_plm_rsh_agent=f"{_CONFIG}/kubexec.sh",
        OMPI_MCA_orte_default_hostfile=f"{_CONFIG}/hostfile",
    )
    add_env(draft, MAIN_CONTAINER, launcher_env)
    add_mount(draft, MAIN_CONTAINER, {"name": "mpi-job-kubectl", "emptyDir": {}}, _KUBECTL)
    add_mount(draft, MAIN_CONTAINER, _config_volume(workload), _CONFIG)
    return draft


MPI_OPERATOR_V1ALPHA1 = Controller(
    name="mpi-operator",
    kinds=frozenset({"kubeflow.org/v1alpha1 MPIJob"}),
    adds="two kinds of pods from one template: labeled workers that run `sleep 365d`, and a "
    "labeled launcher without resources, with `OMPI_MCA_*` and the hostfile",
    make_pods=_v1alpha1_pods,
)


# The mpi-operator of Kubeflow 0.6 and 0.7: MPIJob (kubeflow.org/v1alpha2), a template for each.
#
# Source: kubeflow/mpi-operator, commit 00b6567, pkg/controllers/v1alpha2/mpi_job_controller.go
# (newWorker, newLauncher). As in v1alpha1, but the launcher keeps its resources.


def _v1alpha2_pods(workload: Workload) -> tuple[ControllerPod, ...]:
    role = _ROLES.get(str(workload.template_path[2])) if _is_replica(workload) else None
    if role is None or workload.main_container is None:
        return (ControllerPod(workload.pod),)
    pod = _launcher(workload).pod if role == "launcher" else _worker(workload)
    return (ControllerPod(pod),)


MPI_OPERATOR_V1ALPHA2 = Controller(
    name="mpi-operator",
    kinds=frozenset({"kubeflow.org/v1alpha2 MPIJob"}),
    adds="role labels, `sleep 365d` for the workers, and the launcher's `OMPI_MCA_*` and hostfile",
    make_pods=_v1alpha2_pods,
)
