"""Additions of the training-operator to the pods of its kinds."""

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

PREFIX = "training.kubeflow.org"
MASTER = ["MASTER_PORT", "PET_MASTER_PORT", "MASTER_ADDR", "PET_MASTER_ADDR"]
RANKS = ["WORLD_SIZE", "RANK", "PET_NODE_RANK"]


def job(kind: str, field: str, *replicas: str, **spec: Any) -> dict[str, Any]:
    """Make a job with replicas of these types."""
    specs = {replica: {"template": template()} for replica in replicas}
    return workload(f"kubeflow.org/v1 {kind}", {field: specs, **spec})


def torch(*replicas: str, **spec: Any) -> dict[str, Any]:
    """Make a PyTorchJob."""
    return job("PyTorchJob", "pytorchReplicaSpecs", *replicas, **spec)


def test_labels_have_type_and_role() -> None:
    """The master has a role; without a master, worker 0 has it."""
    master, worker = created_pods(torch("Master", "Worker"))
    (alone,) = created_pods(torch("Worker"))
    assert labels(master) == {
        f"{PREFIX}/operator-name": "pytorchjob-controller",
        f"{PREFIX}/job-name": "job",
        f"{PREFIX}/replica-type": "master",
        f"{PREFIX}/replica-index": "0",
        f"{PREFIX}/job-role": "master",
    }
    assert f"{PREFIX}/job-role" not in labels(worker)
    assert labels(alone)[f"{PREFIX}/job-role"] == "master"


def test_pytorch_with_a_master() -> None:
    """All replicas get its address, and workers wait for its name."""
    master, worker = created_pods(torch("Master", "Worker", nprocPerNode="8"))
    names = ["PYTHONUNBUFFERED", *MASTER, *RANKS, "PET_NPROC_PER_NODE", "PET_NNODES"]
    assert list(env(master["spec"]["containers"][0])) == names
    assert list(env(worker["spec"]["containers"][0])) == names
    assert "initContainers" not in master["spec"]
    assert [container["name"] for container in worker["spec"]["initContainers"]] == ["init-pytorch"]


def test_elastic_pytorch() -> None:
    """Its replicas meet by a rendezvous instead."""
    names = ["PYTHONUNBUFFERED", "PET_RDZV_ENDPOINT", "PET_RDZV_BACKEND", "PET_NNODES"]
    assert list(env(main_container(torch("Worker", elasticPolicy={})))) == names


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (
            job("JAXJob", "jaxReplicaSpecs", "Worker"),
            [
                "PYTHONUNBUFFERED",
                "COORDINATOR_PORT",
                "COORDINATOR_ADDRESS",
                "NUM_PROCESSES",
                "PROCESS_ID",
            ],
        ),
        (
            job("PaddleJob", "paddleReplicaSpecs", "Worker"),
            ["PYTHONUNBUFFERED", "PADDLE_JOB_ID", "PADDLE_NNODES", "PADDLE_MASTER"],
        ),
        (
            job("PaddleJob", "paddleReplicaSpecs", "Master"),
            [
                "PYTHONUNBUFFERED",
                "PADDLE_JOB_ID",
                "PADDLE_NNODES",
                "PADDLE_MASTER",
                "PADDLE_SERVER_NUM",
            ],
        ),
        (
            job("XGBoostJob", "xgbReplicaSpecs", "Master"),
            ["MASTER_PORT", "MASTER_ADDR", "WORLD_SIZE", "RANK", "PYTHONUNBUFFERED"],
        ),
        (job("TFJob", "tfReplicaSpecs", "Worker"), []),
    ],
    ids=["jax", "paddle", "paddle with a master", "xgboost", "no container tensorflow"],
)
def test_variables_of_other_frameworks(value: dict[str, Any], names: list[str]) -> None:
    """Each framework has its own names."""
    assert list(env(main_container(value))) == names


@pytest.mark.parametrize(
    ("kind", "field", "container", "name"),
    [
        ("TFJob", "tfReplicaSpecs", "tensorflow", "TF_CONFIG"),
        ("MXJob", "mxReplicaSpecs", "mxnet", "MX_CONFIG"),
    ],
)
def test_variables_of_a_single_container(kind: str, field: str, container: str, name: str) -> None:
    """The container is chosen by its name."""
    pod_template = template("other")
    pod_template["spec"]["containers"].append({"name": container})
    value = workload(f"kubeflow.org/v1 {kind}", {field: {"Worker": {"template": pod_template}}})
    (pod,) = created_pods(value)
    assert [list(env(created)) for created in pod["spec"]["containers"]] == [[], [name]]


def mpi(pod_template: dict[str, Any] | None = None, replica: str = "Launcher") -> dict[str, Any]:
    """Make an MPIJob v1."""
    replicas = {replica: {"template": pod_template or template()}}
    return workload("kubeflow.org/v1 MPIJob", {"mpiReplicaSpecs": replicas})


def test_the_launcher_of_an_mpi_job() -> None:
    """It reaches the workers by kubectl, which an init container delivers."""
    (pod,) = created_pods(mpi())
    container = pod["spec"]["containers"][0]
    assert labels(pod)[f"{PREFIX}/replica-type"] == "launcher"
    assert env(container) == {
        "OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "NVIDIA_VISIBLE_DEVICES": "",
        "NVIDIA_DRIVER_CAPABILITIES": "",
        "I_MPI_HYDRA_BOOTSTRAP": "rsh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": "/etc/mpi/kubexec.sh",
    }
    assert mounts(container) == ["/opt/kube", "/etc/mpi"]
    assert [init["name"] for init in pod["spec"]["initContainers"]] == ["kubectl-delivery"]


def test_a_launcher_with_gpus_sees_them() -> None:
    """It runs ranks itself. Existing variables of Intel MPI are not changed."""
    gpus = {"limits": {"nvidia.com/gpu": 1}}
    variables = [{"name": "I_MPI_HYDRA_BOOTSTRAP", "value": "ssh"}]
    launcher_env = env(main_container(mpi(template(resources=gpus, env=variables))))
    assert "NVIDIA_VISIBLE_DEVICES" not in launcher_env
    assert launcher_env["I_MPI_HYDRA_BOOTSTRAP"] == "ssh"


@pytest.mark.parametrize(
    ("words", "command", "args"),
    [
        ({}, ["sleep"], ["365d"]),
        ({"args": ["x"]}, ["sleep"], ["365d"]),
        ({"command": ["x"]}, ["x"], None),
    ],
)
def test_a_worker_without_a_command_sleeps(words: Any, command: Any, args: Any) -> None:
    """The launcher runs the ranks in it."""
    container = main_container(mpi(template(**words), "Worker"))
    assert (container["command"], container.get("args")) == (command, args)
    assert mounts(container) == ["/etc/mpi"]


@pytest.mark.parametrize(
    "value",
    [
        workload("kubeflow.org/v1 TFJob", {"template": template()}),
        job("TFJob", "pytorchReplicaSpecs", "Worker"),
        mpi({"spec": {"containers": []}}),
    ],
    ids=["elsewhere", "another kind's field", "no container"],
)
def test_nothing_is_added_elsewhere(value: dict[str, Any]) -> None:
    """Only the kind's own field holds its replicas."""
    (pod,) = created_pods(value)
    assert "labels" not in pod.get("metadata", {})
