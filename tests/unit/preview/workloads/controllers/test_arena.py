"""Additions of the operators that arena installs: et-operator and mpi-operator v1alpha1."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.preview.workloads.controllers.workloads import (
    created_pods,
    env,
    labels,
    main_container,
    mounts,
    template,
    workload,
)
from webhook.preview.workloads.controllers import controller_pods
from webhook.preview.workloads.templates import templates_of

GPU = {"limits": {"nvidia.com/gpu": 4}, "requests": {"memory": "1Gi"}}


def et(replica: str, pod_template: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Make a TrainingJob of et-operator."""
    replicas = {replica: {"template": pod_template or template()}}
    return workload(
        "kai.alibabacloud.com/v1alpha1 TrainingJob", {"etReplicaSpecs": replicas, **spec}
    )


def test_roles_are_labels() -> None:
    """Launcher and worker have the same labels but for the role and the index."""
    (launcher,), (worker,) = created_pods(et("launcher")), created_pods(et("worker"))
    common = {"group-name": "kai.alibabacloud.com", "training-job-name": "job"}
    assert labels(launcher) == {**common, "training-job-role": "launcher"}
    assert labels(worker) == {**common, "training-job-role": "worker", "replica-index": "0"}


@pytest.mark.parametrize(
    ("mode", "script", "agent", "keys"),
    [
        (None, "/usr/sbin/sshd  && sleep 365d", {}, ["/root/.ssh"]),
        ("ssh", "/usr/sbin/sshd  && sleep 365d", {}, ["/root/.ssh"]),
        ("kubexec", "sleep 365d", {"OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh"}, []),
    ],
)
def test_how_the_launcher_reaches_workers(
    mode: str | None, script: str, agent: dict[str, str], keys: list[str]
) -> None:
    """By ssh, unless the job sets another mode."""
    spec: dict[str, Any] = {} if mode is None else {"launcherAttachMode": mode}
    worker, launcher = main_container(et("worker", **spec)), main_container(et("launcher", **spec))
    assert worker["command"] == ["sh", "-c", script]
    assert mounts(worker) == keys
    assert env(launcher) == agent
    assert mounts(launcher) == ["/etc/mpi", "/etc/edl", "/opt/kube", "/job", *keys]
    assert "command" not in launcher


def test_a_worker_with_a_command_keeps_it() -> None:
    """Only a worker without a command gets the operator's."""
    assert main_container(et("worker", template(command=["x"])))["command"] == ["x"]


def test_the_init_container_of_the_launcher() -> None:
    """It copies the hostfile, and has its own limits."""
    (pod,) = created_pods(et("launcher"))
    (init,) = pod["spec"]["initContainers"]
    assert init["name"] == "init-hostfile"
    assert init["resources"]["limits"]["memory"] == "512Mi"


def mpi(**container: Any) -> dict[str, Any]:
    """Make an MPIJob v1alpha1."""
    kind = "kubeflow.org/v1alpha1 MPIJob"
    return workload(kind, {"replicas": 2, "template": template(**container)})


def test_a_single_template_makes_workers_and_a_launcher() -> None:
    """The workers get the resources and sleep; the launcher gets the command, and no resources."""
    (source,) = templates_of(mpi(command=["mpirun", "x"], resources=GPU))
    (worker, launcher) = controller_pods(source)
    assert (worker.role, launcher.role) == ("worker", "launcher")
    sleeping, running = (live.pod["spec"]["containers"][0] for live in (worker, launcher))
    assert (sleeping["command"], sleeping["args"]) == (["sleep"], ["365d"])
    assert sleeping["resources"] == GPU
    assert running["command"] == ["mpirun", "x"]
    assert running["resources"] == {}
    assert env(running) == {
        "OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
    }
    assert (mounts(sleeping), mounts(running)) == (["/etc/mpi"], ["/opt/kube", "/etc/mpi"])
    assert labels(worker.pod)["mpi_role_type"] == "worker"
    assert labels(launcher.pod)["mpi_role_type"] == "launcher"


@pytest.mark.parametrize(
    "value",
    [
        et("launcher", {"spec": {"containers": []}}),
        workload("kai.alibabacloud.com/v1alpha1 TrainingJob", {"template": template()}),
        workload("kubeflow.org/v1alpha1 MPIJob", {"other": {"template": template()}}),
        workload("kubeflow.org/v1alpha1 MPIJob", {"template": {"spec": {"containers": []}}}),
    ],
    ids=["no container", "elsewhere", "MPIJob elsewhere", "MPIJob without containers"],
)
def test_nothing_is_added_elsewhere(value: dict[str, Any]) -> None:
    """The pod is created as written."""
    (pod,) = created_pods(value)
    assert "labels" not in pod.get("metadata", {})
