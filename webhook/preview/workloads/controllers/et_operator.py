"""et-operator, installed by arena: TrainingJob (kai.alibabacloud.com/v1alpha1), arena's etjob.

Source: AliyunContainerService/et-operator, commit 00016ea: pkg/controllers/resource.go
(newLauncher, newWorker, initContainer), trainingjob_controller.go (labels, paths), pkg/util/ssh.go
(MountRsaKey), api/v1alpha1/trainingjob_types.go (GetAttachMode). The launcher reaches the workers
by ssh, or by `kubectl exec` where `launcherAttachMode` is kubexec.

Left out, since no decision reads them: service accounts, restart policies, the image of the init
container.
"""

from __future__ import annotations

from webhook.decide.draft import Draft
from webhook.kube.records import LenientObject
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

_SPECS = ("spec", "etReplicaSpecs")
_CONFIG, _HOSTS, _KUBECTL, _DEEPSPEED = "/etc/mpi", "/etc/edl", "/opt/kube", "/job"
_INIT_RESOURCES = {"cpu": "100m", "ephemeral-storage": "5Gi", "memory": "512Mi"}


class _TrainingJobSpec(LenientObject):
    launcher_attach_mode: object = None


def _pods_of(workload: Workload) -> tuple[ControllerPod, ...]:
    template_path, main_container = workload.template_path, workload.main_container
    if template_path[:2] != _SPECS or template_path[3:] != ("template",) or main_container is None:
        return (ControllerPod(workload.pod),)
    role = str(template_path[2])
    draft = Draft(workload.pod)
    add_labels(
        draft,
        {
            "group-name": "kai.alibabacloud.com",
            "training-job-name": workload.name,
            "training-job-role": role,
        },
    )
    over_ssh = _TrainingJobSpec.model_validate(
        workload.values_above_template[1]
    ).launcher_attach_mode in (
        None,
        "ssh",
    )
    if role == "launcher":
        _make_launcher(draft, workload.name, over_ssh=over_ssh)
    else:
        _make_worker(draft, main_container, over_ssh=over_ssh)
    if over_ssh:
        add_mount(draft, MAIN_CONTAINER, {"name": workload.name, "secret": {}}, "/root/.ssh")
    return (ControllerPod(draft.pod),)


def _make_launcher(draft: Draft, name: str, *, over_ssh: bool) -> None:
    draft.append(
        INIT_CONTAINERS, {"name": "init-hostfile", "resources": {"limits": {**_INIT_RESOURCES}}}
    )
    config = {"name": "training-job-config", "configMap": {"name": f"{name}-config"}}
    add_mount(draft, MAIN_CONTAINER, config, _CONFIG)
    for volume, mount_path in (
        ("training-job-hostfile", _HOSTS),
        ("training-job-kubectl", _KUBECTL),
        ("deepspeed-hostfile", _DEEPSPEED),
    ):
        add_mount(draft, MAIN_CONTAINER, {"name": volume, "emptyDir": {}}, mount_path)
    if not over_ssh:
        add_env(draft, MAIN_CONTAINER, variables(OMPI_MCA_plm_rsh_agent=f"{_CONFIG}/kubexec.sh"))


def _make_worker(draft: Draft, main_container: TemplateContainer, *, over_ssh: bool) -> None:
    add_labels(draft, {"replica-index": "0"})
    if not main_container.has_command:
        script = "/usr/sbin/sshd  && sleep 365d" if over_ssh else "sleep 365d"
        draft.set((*MAIN_CONTAINER, "command"), ["sh", "-c", script])


ET_OPERATOR = Controller(
    name="et-operator",
    kinds=frozenset({"kai.alibabacloud.com/v1alpha1 TrainingJob"}),
    adds="`training-job-role` and other labels; host files for the launcher; ssh keys, and "
    "`/usr/sbin/sshd` with `sleep 365d` for a worker without a command; without ssh: "
    "`OMPI_MCA_plm_rsh_agent` and `sleep 365d`",
    make_pods=_pods_of,
)
