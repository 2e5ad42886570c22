from __future__ import annotations

from typing import Any

import pytest

from tests.case_names import case_name
from webhook.decide.launchers.commands import Commands
from webhook.decide.launchers.roles import (
    LauncherEvidence,
    launchers_of,
    may_lack_env,
    mentions_mpi,
)
from webhook.model.pod import Pod

ROLE = "training.kubeflow.org/job-role"
HEAD = "ray.io/node-type"


def container(name: str = "main", **fields: Any) -> dict[str, Any]:
    """Make a container; `env` maps names to values."""
    env = [{"name": key, "value": value} for key, value in fields.pop("env", {}).items()]
    return {"name": name, "env": env, **fields}


def launchings(*containers: dict[str, Any], labels: Any = None) -> dict[str, LauncherEvidence]:
    """Return the launchers in a pod with these labels: name → evidence."""
    pod = {"metadata": {"labels": labels}, "spec": {"containers": list(containers)}}
    launchers = launchers_of(Pod(pod), Commands(Pod(pod)))
    return {containers[index]["name"]: launching for index, launching in launchers.items()}


def launching(*containers: dict[str, Any], **labels: str) -> list[str]:
    """List the names of the launchers in a pod with these labels."""
    return list(launchings(*containers, labels=labels))


@pytest.mark.parametrize(
    ("labels", "env", "evidence"),
    [
        ({ROLE: "launcher"}, {}, f"label {ROLE}"),
        ({ROLE: "worker"}, {}, None),
        ({ROLE: "master"}, {}, None),
        ({"mpi-job-role": "launcher"}, {}, "label mpi-job-role"),
        ({"mpi_role_type": "launcher"}, {}, "label mpi_role_type"),
        ({"training-job-role": "launcher"}, {}, "label training-job-role"),
        (
            {"training.kubeflow.org/replica-type": "launcher"},
            {},
            "label training.kubeflow.org/replica-type",
        ),
        ({"training.kubeflow.org/replica-type": "worker"}, {}, None),
        ({HEAD: "head"}, {}, f"label {HEAD}"),
        ({HEAD: "worker"}, {}, None),
        ({}, {"K_MPI_JOB_ROLE": "launcher"}, "K_MPI_JOB_ROLE in env"),
        ({}, {"K_MPI_JOB_ROLE": "worker"}, None),
        ({ROLE: "worker"}, {"K_MPI_JOB_ROLE": "launcher"}, "K_MPI_JOB_ROLE in env"),
        ({ROLE: "launcher"}, {"K_MPI_JOB_ROLE": "worker"}, None),
        ({}, {"K_MPI_JOB_ROLE": "boss"}, None),
        ({"app": "launcher"}, {"ROLE": "launcher"}, None),
        (None, {}, None),
    ],
    ids=case_name,
)
def test_what_operators_say(labels: Any, env: dict[str, str], evidence: str | None) -> None:
    """They set labels or a variable; PyTorchJob workers are not MPI workers."""
    expected = {"main": LauncherEvidence(evidence, ranks_in_other_pods=True)} if evidence else {}
    assert launchings(container(env=env), labels=labels) == expected


@pytest.mark.parametrize(
    ("fields", "evidence"),
    [
        ({"env": {"HYDRA_HOST_FILE": "/etc/mpi/hostfile"}}, "HYDRA_HOST_FILE in env"),
        ({"env": {"I_MPI_HYDRA_HOST_FILE": "/h"}}, "I_MPI_HYDRA_HOST_FILE in env"),
        (
            {"env": {"OMPI_MCA_btl": "tcp", "OMPI_MCA_orte_default_hostfile": "/h"}},
            "OMPI_MCA_orte_default_hostfile in env",
        ),
        ({"env": {"PRTE_MCA_plm_ssh_agent": "ssh -q"}}, "PRTE_MCA_plm_ssh_agent in env"),
        ({"env": {"OMPI_MCA_plm_rsh_args": "-q"}}, "OMPI_MCA_plm_rsh_args in env"),
        (
            {"command": ["mpirun", "-np", "2", "--hostfile", "h", "a"]},
            "mpirun --hostfile in its command",
        ),
        (
            {"command": ["sh", "-c", "mpirun a; /opt/bin/mpiexec -f hosts a"]},
            "mpiexec -f in its command",
        ),
        (
            {"command": ["sudo", "-u", "mpi", "mpirun", "-H", "a,b", "x"]},
            "mpirun -H in its command",
        ),
        ({"command": ["su", "mpi", "-c", "mpirun -H a,b x"]}, "mpirun -H in its command"),
        ({"command": ["deepspeed", "train.py"]}, "deepspeed in its command"),
        (
            {"args": ["sh", "-c", "deepspeed --hostfile=/job/hostfile train.py"]},
            "deepspeed --hostfile in its command",
        ),
        (
            {"command": ["horovodrun", "-np", "2", "-H", "a:1,b:1", "python", "x.py"]},
            "horovodrun -H in its command",
        ),
        (
            {
                "command": ["sh", "-c"],
                "args": ["horovodrun --log-level DEBUG --host-discovery-script /d.sh python x.py"],
            },
            "horovodrun --host-discovery-script in its command",
        ),
        ({"command": ["ray", "start", "--head"]}, "ray start --head in its command"),
        (
            {
                "command": ["/bin/bash", "-c", "--"],
                "args": ["ulimit -n 65536; ray start --num-cpus=0  --head --block"],
            },
            "ray start --head in its command",
        ),
    ],
    ids=case_name,
)
def test_ranks_that_run_in_other_pods(fields: dict[str, Any], evidence: str) -> None:
    """Hosts, or a launcher that needs them, are evidence of ranks in other pods."""
    assert launchings(container(**fields)) == {
        "main": LauncherEvidence(evidence, ranks_in_other_pods=True)
    }


@pytest.mark.parametrize(
    ("fields", "evidence"),
    [
        ({"env": {"OMPI_MCA_btl": "tcp"}}, "OMPI_MCA_btl in env"),
        ({"env": {"OMPI_MCA_plm_rsh_agent": ""}}, "OMPI_MCA_plm_rsh_agent in env"),
        ({"env": {"OMPI_MCA_plm_rsh_agent": "/bin/sh"}}, "OMPI_MCA_plm_rsh_agent in env"),
        ({"command": ["mpirun", "-np", "2", "a"]}, "mpirun in its command"),
        ({"command": ["mpirun", "-H", "localhost:8", "a"]}, "mpirun in its command"),
        ({"args": ["mpiexec.hydra", "-n", "2", "a"]}, "mpiexec.hydra in its command"),
        ({"command": ["sh", "-c", "sleep 5; sudo mpirun a"]}, "mpirun in its command"),
        ({"command": ["horovodrun", "-np", "4", "python", "x"]}, "horovodrun in its command"),
        (
            {"command": ["mpirun", "a"], "env": {"OMPI_MCA_btl": "tcp"}},
            "mpirun in its command",
        ),
    ],
    ids=case_name,
)
def test_ranks_that_may_run_here(fields: dict[str, Any], evidence: str) -> None:
    """Without hosts, a launcher starts all ranks in its own container."""
    assert launchings(container(**fields)) == {
        "main": LauncherEvidence(evidence, ranks_in_other_pods=False)
    }


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"command": ["bash", "-c", "echo mpirun; which mpiexec"]},
        {"command": ["bash", "-c", "mpirun a\n" * 5000]},
        {"env": {"OMPI_MCA_coll_hcoll_enable": "0", "NCCL_DEBUG": "INFO", "UCX_TLS": "rc"}},
        {"env": {"OMPI_MCA_btl": "tcp", "K_MPI_JOB_ROLE": "worker"}},
        {"env": {"PRTE_MCA_prte_tmpdir_base": "/tmp"}},
        {"command": ["python", "train.py", "--deepspeed", "zero.json"]},
        {"command": ["bash", "-c", "ray start --address=head:6379; echo ray start --head"]},
        {"command": ["array", "start", "--head"]},
        {"command": ["ray", "stop", "--head"]},
        {"command": ["bash", "-c", "# ray start --head\nray start --address=a"]},
        {"command": ["bash", "-c", "ray start --head )"]},
    ],
    ids=case_name,
)
def test_no_evidence(fields: dict[str, Any]) -> None:
    """Variables that this webhook writes are not evidence, and a worker is never a launcher."""
    assert launching(container(**fields)) == []


def test_a_label_marks_a_single_container() -> None:
    """A label means the container with evidence, or the first container if none has any."""
    plain, proxy = container("plain"), container("proxy")
    mpi = container("mpi", command=["mpirun", "a"])
    assert launching(plain, **{ROLE: "launcher"}) == ["plain"]
    assert launching(plain, proxy, **{ROLE: "launcher"}) == ["plain"]
    assert launching(proxy, mpi, **{ROLE: "launcher"}) == ["mpi"]
    assert launching(proxy, mpi, **{ROLE: "worker"}) == []
    assert launching(plain, proxy, **{HEAD: "head"}) == ["plain"]
    assert launching(**{ROLE: "launcher"}) == []


def test_with_a_label_the_ranks_run_elsewhere() -> None:
    """An operator writes the hostfile, regardless of the command."""
    mpi = container("mpi", command=["mpirun", "a"])
    expected = {"mpi": LauncherEvidence(f"label {ROLE}", ranks_in_other_pods=True)}
    assert launchings(container("proxy"), mpi, labels={ROLE: "launcher"}) == expected


@pytest.mark.parametrize("name", ["OMPI_MCA_btl", "HYDRA_HOST_FILE", "K_MPI_JOB_ROLE"])
def test_what_a_fabric_writes_is_no_evidence(name: str) -> None:
    """On the second call, every target has the fabric's own env."""
    pod = Pod({"spec": {"containers": [container(env={name: "launcher"})]}})
    commands = Commands(pod)
    assert list(launchers_of(pod, commands)) == [0]
    assert launchers_of(pod, commands, frozenset({name, "NCCL_DEBUG"})) == {}


@pytest.mark.parametrize(
    ("labels", "fields", "starts"),
    [
        ({ROLE: "worker"}, {}, True),
        ({ROLE: "worker"}, {"env": {"K_MPI_JOB_ROLE": "launcher"}}, False),
        ({}, {"env": {"K_MPI_JOB_ROLE": "worker"}}, True),
        ({}, {"command": ["sshd", "-D"]}, True),
        ({}, {"command": ["/entry.sh", "bash", "-c", "service ssh start; sleep 1d"]}, True),
        ({ROLE: "launcher"}, {"command": ["mpirun", "a"]}, False),
        ({ROLE: "launcher"}, {"command": ["ssh", "a", "mpirun"]}, False),
    ],
    ids=case_name,
)
def test_processes_without_the_env(labels: Any, fields: dict[str, Any], starts: bool) -> None:
    """These are workers by their role, and containers whose command names sshd."""
    pod = Pod({"metadata": {"labels": labels}, "spec": {"containers": [container(**fields)]}})
    path = ("spec", "containers", 0)
    assert may_lack_env(pod, path, Commands(pod), pod.container(path).env) is starts


@pytest.mark.parametrize(
    ("labels", "fields", "speaks"),
    [
        ({}, {}, False),
        (
            {},
            {"command": ["python", "train.py", "--compile"], "env": {"NCCL_DEBUG": "INFO"}},
            False,
        ),
        ({}, {"command": ["sh", "-c", "which mpiexec"]}, True),
        ({}, {"command": ["python", "-m", "mpi4py", "a.py"]}, True),
        ({}, {"command": ["srun", "a"]}, True),
        ({}, {"command": ["deepspeed", "a.py"]}, True),
        ({}, {"env": {"OMPI_COMM_WORLD_SIZE": "2"}}, True),
        ({}, {"env": {"I_MPI_FABRICS": "shm"}}, True),
        ({}, {"env": {"K_MPI_JOB_ROLE": "launcher"}}, True),
        ({}, {"command": ["/usr/sbin/sshd", "-De"]}, True),
        ({ROLE: "worker"}, {}, True),
        ({ROLE: "launcher"}, {}, False),
    ],
    ids=case_name,
)
def test_what_speaks_of_mpi(labels: Any, fields: dict[str, Any], speaks: bool) -> None:
    """Words, variables and the role of a worker do; letters within other words do not."""
    pod = Pod({"metadata": {"labels": labels}, "spec": {"containers": [container(**fields)]}})
    path = ("spec", "containers", 0)
    commands, env = Commands(pod), pod.container(path).env
    assert mentions_mpi(pod, path, commands, commands.text(path), env) is speaks
