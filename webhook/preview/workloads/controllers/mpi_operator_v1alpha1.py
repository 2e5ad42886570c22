"""The mpi-operator of arena: MPIJob (kubeflow.org/v1alpha1), one template for launcher and workers.

Source: kubeflow/mpi-operator, commit 111dffd, pkg/controllers/v1alpha1/mpi_job_controller.go
(newWorker, newLauncher). The launcher has the template's command and none of its resources; the
workers have the resources, and sleep: the launcher runs the ranks in them by `kubectl exec`.

Left out, since no decision reads them: service accounts, restart policies, tolerations; and the
number of GPUs where `gpus` or `processingUnits` asks for them, which depends on the operator's
flags. `replicas` counts workers, and their GPUs are those of the template.
"""

from __future__ import annotations

from typing import Any

from webhook.decide.draft import Draft
from webhook.model.pod import PodManifest, at
from webhook.preview.workloads.controllers.workload import (
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

_CONFIG, _KUBECTL = "/etc/mpi", "/opt/kube"


def _live_v1alpha1(workload: Workload) -> tuple[Live, ...]:
    if workload.where != ("spec", "template") or not has_containers(workload.pod):
        return (Live(workload.pod),)
    return (Live(_worker(workload), "worker"), Live(_launcher(workload), "launcher"))


def _labelled(workload: Workload, role: str) -> Draft:
    draft = Draft(workload.pod)
    add_labels(
        draft,
        {"group_name": "kubeflow.org", "mpi_job_name": workload.name, "mpi_role_type": role},
    )
    return draft


def _worker(workload: Workload) -> PodManifest:
    draft = _labelled(workload, "worker")
    draft.set((*FIRST, "command"), ["sleep"])
    draft.set((*FIRST, "args"), ["365d"])
    add_mount(draft, FIRST, _config(workload), _CONFIG)
    return draft.pod


def _launcher(workload: Workload) -> PodManifest:
    draft = _labelled(workload, "launcher")
    draft.append(INIT_CONTAINERS, {"name": "kubectl-delivery"})
    ours = variables(
        OMPI_MCA_plm_rsh_agent=f"{_CONFIG}/kubexec.sh",
        OMPI_MCA_orte_default_hostfile=f"{_CONFIG}/hostfile",
    )
    add_env(draft, FIRST, ours)
    for section in ("limits", "requests"):
        if at(draft.pod, (*FIRST, "resources", section)) is not None:
            draft.remove((*FIRST, "resources", section))
    add_mount(draft, FIRST, {"name": "mpi-job-kubectl", "emptyDir": {}}, _KUBECTL)
    add_mount(draft, FIRST, _config(workload), _CONFIG)
    return draft.pod


def _config(workload: Workload) -> dict[str, Any]:
    return {"name": "mpi-job-config", "configMap": {"name": f"{workload.name}-config"}}


MPI_OPERATOR_V1ALPHA1 = Controller(
    name="mpi-operator",
    kinds=frozenset({"kubeflow.org/v1alpha1 MPIJob"}),
    adds="two kinds of pods from one template: workers, labeled, that run `sleep 365d`, and a "
    "launcher, labeled, without resources, with `OMPI_MCA_*` and the hostfile",
    live=_live_v1alpha1,
)
