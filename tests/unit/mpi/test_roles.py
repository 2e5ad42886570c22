from __future__ import annotations

from typing import Any

import pytest

from webhook.mpi.commands import Commands
from webhook.mpi.roles import launchers_of, role_of, starts_without_env
from webhook.pod.container_env import env_of

ROLE = "training.kubeflow.org/job-role"


def container(name: str = "main", **fields: Any) -> dict[str, Any]:
    """Make a container; `env` maps names to values."""
    env = [{"name": key, "value": value} for key, value in fields.pop("env", {}).items()]
    return {"name": name, "env": env, **fields}


def launching(*containers: dict[str, Any], **labels: str) -> list[str]:
    """List the names of the launchers in a pod with these labels."""
    pod = {"metadata": {"labels": labels}, "spec": {"containers": list(containers)}}
    return [containers[index]["name"] for index in sorted(launchers_of(pod, Commands(pod)))]


@pytest.mark.parametrize(
    ("labels", "env", "role"),
    [
        ({ROLE: "launcher"}, {}, "launcher"),
        ({ROLE: "worker"}, {}, "worker"),
        ({ROLE: "master"}, {}, None),
        ({"mpi-job-role": "launcher"}, {}, "launcher"),
        ({"mpi_role_type": "worker"}, {}, "worker"),
        ({"training.kubeflow.org/replica-type": "launcher"}, {}, "launcher"),
        ({"training.kubeflow.org/replica-type": "worker"}, {}, None),
        ({}, {"K_MPI_JOB_ROLE": "worker"}, "worker"),
        ({ROLE: "worker"}, {"K_MPI_JOB_ROLE": "launcher"}, "launcher"),
        ({}, {"K_MPI_JOB_ROLE": "boss"}, None),
        ({"app": "launcher"}, {"ROLE": "launcher"}, None),
        (None, {}, None),
    ],
)
def test_roles(labels: Any, env: dict[str, str], role: str | None) -> None:
    """Operators set labels or a variable; PyTorchJob workers are not MPI workers."""
    assert role_of({"metadata": {"labels": labels}}, container(env=env)) == role


@pytest.mark.parametrize(
    "fields",
    [
        {"env": {"OMPI_MCA_btl": "tcp"}},
        {"env": {"HYDRA_HOST_FILE": "/etc/mpi/hostfile"}},
        {"env": {"I_MPI_HYDRA_HOST_FILE": "/etc/mpi/hostfile"}},
        {"env": {"K_MPI_JOB_ROLE": "launcher"}},
        {"command": ["mpirun", "-np", "2", "a"]},
        {"args": ["mpiexec.hydra", "-n", "2", "a"]},
        {"command": ["sh", "-c", "sleep 5; sudo mpirun a"]},
    ],
)
def test_evidence_of_a_container(fields: dict[str, Any]) -> None:
    """A launcher's word, a hostfile or Open MPI's parameters are evidence, for any MPI."""
    assert launching(container(**fields)) == ["main"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"command": ["bash", "-c", "echo mpirun; which mpiexec"]},
        {"command": ["bash", "-c", "mpirun a\n" * 5000]},
        {"env": {"OMPI_MCA_coll_hcoll_enable": "0", "NCCL_DEBUG": "INFO", "UCX_TLS": "rc"}},
        {"env": {"OMPI_MCA_btl": "tcp", "K_MPI_JOB_ROLE": "worker"}},
    ],
)
def test_no_evidence(fields: dict[str, Any]) -> None:
    """What this webhook writes is not evidence, and a worker is not a launcher in any case."""
    assert launching(container(**fields)) == []


def test_labels_speak_of_one_container() -> None:
    """A label stands for the container with evidence, or for the first one if none has any."""
    plain, proxy = container("plain"), container("proxy")
    mpi = container("mpi", command=["mpirun", "a"])
    assert launching(plain, **{ROLE: "launcher"}) == ["plain"]
    assert launching(plain, proxy, **{ROLE: "launcher"}) == ["plain"]
    assert launching(proxy, mpi, **{ROLE: "launcher"}) == ["mpi"]
    assert launching(proxy, mpi, **{ROLE: "worker"}) == []
    assert launching(plain, proxy, **{"ray.io/node-type": "head"}) == ["plain"]
    assert launching(plain, **{"ray.io/node-type": "worker"}) == []


@pytest.mark.parametrize("name", ["OMPI_MCA_btl", "HYDRA_HOST_FILE", "K_MPI_JOB_ROLE"])
def test_what_a_fabric_writes_is_no_evidence(name: str) -> None:
    """On the second pass, every target has the fabric's own env."""
    pod = {"spec": {"containers": [container(env={name: "launcher"})]}}
    commands = Commands(pod)
    assert launchers_of(pod, commands) == {0}
    assert launchers_of(pod, commands, frozenset({name, "NCCL_DEBUG"})) == frozenset()


@pytest.mark.parametrize(
    ("labels", "fields", "starts"),
    [
        ({ROLE: "worker"}, {}, True),
        ({ROLE: "worker"}, {"env": {"K_MPI_JOB_ROLE": "launcher"}}, False),
        ({}, {"env": {"K_MPI_JOB_ROLE": "worker"}}, True),
        ({}, {"command": ["sshd", "-D"]}, True),
        ({ROLE: "launcher"}, {"command": ["mpirun", "a"]}, False),
    ],
)
def test_processes_without_the_env(labels: Any, fields: dict[str, Any], starts: bool) -> None:
    """These are workers by their role, and containers that run sshd."""
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container(**fields)]}}
    path = ("spec", "containers", 0)
    assert starts_without_env(pod, path, Commands(pod), env_of(pod, path)) is starts
