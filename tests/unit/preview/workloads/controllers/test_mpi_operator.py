"""Additions of mpi-operator to the pods of an MPIJob v2beta1 or v1alpha2."""

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

LIMITS = {"limits": {"cpu": "1"}}
KIND = "kubeflow.org/v2beta1 MPIJob"
ROLE = "training.kubeflow.org/job-role"


def job(replica: str, pod_template: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Make a job with one kind of replicas."""
    replicas = {replica: {"template": pod_template or template()}}
    return workload(KIND, {"mpiReplicaSpecs": replicas, **spec})


def test_a_worker_without_a_command_runs_sshd() -> None:
    """It has its role as a label and as a variable, and the keys for ssh."""
    (pod,) = created_pods(job("Worker"))
    container = pod["spec"]["containers"][0]
    assert container["command"] == ["/usr/sbin/sshd", "-De"]
    assert env(container) == {"K_MPI_JOB_ROLE": "worker"}
    assert mounts(container) == ["/root/.ssh"]
    assert labels(pod) == {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "job",
        ROLE: "worker",
        "training.kubeflow.org/replica-index": "0",
    }
    assert pod["spec"]["volumes"] == [{"name": "ssh-auth", "secret": {"secretName": "job-ssh"}}]


@pytest.mark.parametrize(
    "words", [{"command": ["run"]}, {"args": ["run"]}], ids=["command", "args"]
)
def test_a_worker_with_its_own_words_keeps_them(words: dict[str, Any]) -> None:
    """Only a container without both gets sshd."""
    container = main_container(job("Worker", template(**words)))
    assert {key: container[key] for key in ("command", "args") if key in container} == words


def test_the_launcher_of_open_mpi() -> None:
    """It finds the workers by a hostfile, and sees no GPU; its command is its own."""
    (pod,) = created_pods(job("Launcher", template(command=["mpirun"]), slotsPerWorker=8))
    container = pod["spec"]["containers"][0]
    assert container["command"] == ["mpirun"]
    assert env(container) == {
        "K_MPI_JOB_ROLE": "launcher",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
        "OMPI_MCA_orte_set_default_slots": "8",
        "NVIDIA_VISIBLE_DEVICES": "",
        "NVIDIA_DRIVER_CAPABILITIES": "",
    }
    assert mounts(container) == ["/root/.ssh", "/etc/mpi"]
    assert labels(pod)[ROLE] == "launcher"


@pytest.mark.parametrize(
    ("implementation", "names"),
    [
        (
            "Intel",
            [
                "I_MPI_HYDRA_HOST_FILE",
                "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
                "I_MPI_PERHOST",
            ],
        ),
        ("MPICH", ["HYDRA_HOST_FILE", "HYDRA_LAUNCH_EXTRA_ARGS"]),
        ("Other", []),
    ],
)
def test_another_implementation_has_other_variables(implementation: str, names: list[str]) -> None:
    """`mpiImplementation` determines the variables; an unknown implementation has none."""
    spec: dict[str, Any] = {"mpiImplementation": implementation, "runLauncherAsWorker": True}
    assert list(env(main_container(job("Launcher", **spec)))) == ["K_MPI_JOB_ROLE", *names]


def test_the_users_variables_stay_first() -> None:
    """Labels and variables are added; a label of the same name is overwritten."""
    pod_template = template(env=[{"name": "A", "value": "1"}])
    pod_template["metadata"]["labels"] = {"app": "x", ROLE: "mine"}
    (pod,) = created_pods(job("Worker", pod_template, sshAuthMountPath="/home/mpi/.ssh"))
    assert labels(pod)["app"] == "x"
    assert labels(pod)[ROLE] == "worker"
    assert list(env(pod["spec"]["containers"][0])) == ["A", "K_MPI_JOB_ROLE"]
    assert mounts(pod["spec"]["containers"][0]) == ["/home/mpi/.ssh"]


@pytest.mark.parametrize("host_network", [True, False])
def test_dns_in_the_hosts_network(host_network: bool) -> None:
    """With hostNetwork the pods resolve the names of their peers."""
    pod_template = template()
    pod_template["spec"]["hostNetwork"] = host_network
    (pod,) = created_pods(job("Worker", pod_template))
    assert ("dnsPolicy" in pod["spec"]) is host_network


@pytest.mark.parametrize(
    "value",
    [
        job("worker"),
        workload(KIND, {"template": template()}),
        job("Worker", {"spec": {"containers": []}}),
    ],
    ids=["no such role", "elsewhere", "no container"],
)
def test_nothing_is_added_elsewhere(value: dict[str, Any]) -> None:
    """The operator knows two replica types by their exact names."""
    (pod,) = created_pods(value)
    assert "labels" not in pod.get("metadata", {})


def old(role: str, **container: Any) -> dict[str, Any]:
    """Make an MPIJob v1alpha2 with one replica."""
    specs = {"mpiReplicaSpecs": {role: {"template": template(**container)}}}
    return workload("kubeflow.org/v1alpha2 MPIJob", specs)


def test_the_launcher_of_v1alpha2_is_one() -> None:
    """Its label shows it, whatever its command is; it reaches the workers by kubectl."""
    (pod,) = created_pods(old("Launcher", command=["python", "start.py"], resources=LIMITS))
    assert labels(pod)["mpi_role_type"] == "launcher"
    container = pod["spec"]["containers"][0]
    assert container["command"] == ["python", "start.py"]
    assert container["resources"] == LIMITS
    assert env(container) == {
        "OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
    }
    assert pod["spec"]["initContainers"] == [{"name": "kubectl-delivery"}]


def test_the_workers_of_v1alpha2_sleep() -> None:
    """The operator replaces their command."""
    (pod,) = created_pods(old("Worker", command=["x"]))
    assert labels(pod)["mpi_role_type"] == "worker"
    container = pod["spec"]["containers"][0]
    assert (container["command"], container["args"]) == (["sleep"], ["365d"])


@pytest.mark.parametrize("role", ["Other", "launcher"])
def test_v1alpha2_has_two_roles(role: str) -> None:
    """The names of the replicas are fixed."""
    (pod,) = created_pods(old(role))
    assert "labels" not in pod["metadata"]
    empty = workload(
        "kubeflow.org/v1alpha2 MPIJob",
        {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": []}}}}},
    )
    (pod,) = created_pods(empty)
    assert pod == {"spec": {"containers": []}}
