"""An MPIJob with mpi-operator: Open MPI's ranks really run over ssh in two worker pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.controllers import mpi_operator
from tests.e2e.controllers.compared import check_preview, previews_of
from tests.e2e.controllers.lab import (
    TARGET,
    Document,
    WorkloadNamespace,
    applied,
    environment,
    locks_memory,
    status,
)

ROLE = "training.kubeflow.org/job-role"
CONF = """\
NCCL_IB_HCA==mlx5_0,mlx5_1
NCCL_SOCKET_IFNAME=eth0
NCCL_DEBUG=WARN
"""
#: The launcher's command with the flag that switches hcoll off.
EDITED = ["mpirun", "-mca", "coll_hcoll_enable", "0", "-np", "2", "--map-by", "node", "rank"]


class Run(NamedTuple):
    """The pods of a completed MPIJob, and the output of its ranks."""

    launcher: Document
    workers: list[Document]
    ranks: list[Document]


@pytest.fixture(scope="module")
def run(cluster: Cluster, lab: WorkloadNamespace) -> Iterator[Run]:
    """Run the job to completion; the launcher may fail first, and is then made again."""
    with mpi_operator(cluster):
        lab.create("mpijob")
        lab.wait("wait", "--for=condition=Succeeded", "mpijob/ranks")
        launchers = lab.pods(f"{ROLE}=launcher")
        (launcher,) = (pod for pod in launchers if pod["status"]["phase"] == "Succeeded")
        yield Run(launcher, lab.pods(f"{ROLE}=worker"), lab.ranks(launcher))


def test_each_worker_runs_a_rank(run: Run) -> None:
    """The patched pods complete the job: the launcher reached sshd in both workers."""
    assert [(rank["rank"], rank["size"]) for rank in run.ranks] == [(0, 2), (1, 2)]
    assert [rank["host"] for rank in run.ranks] == ["ranks-worker-0", "ranks-worker-1"]


def test_ranks_find_the_settings_of_nccl_in_the_file(run: Run) -> None:
    """Processes of sshd have none of the container's variables, but they have /etc/nccl.conf."""
    for rank in run.ranks:
        assert not [name for name in rank["env"] if name.startswith(("NCCL_", "UCX_"))]
        assert rank["ncclConf"] == CONF


def test_ranks_have_hcoll_off(run: Run) -> None:
    """Open MPI passes the launcher's setting to its ranks."""
    assert [rank["env"]["OMPI_MCA_coll_hcoll_enable"] for rank in run.ranks] == ["0", "0"]


def test_ranks_can_lock_memory(run: Run) -> None:
    """Root processes of sshd have the container's IPC_LOCK, and need it: the limit is small."""
    for rank in run.ranks:
        assert locks_memory(rank)
        assert 0 <= rank["memlock"] < 1 << 30


def test_workers_are_patched_as_such(run: Run) -> None:
    """Workers get all mutations, including the file."""
    file = TARGET.index("hcoll")
    for worker in run.workers:
        resources = worker["spec"]["containers"][0]["resources"]
        assert applied(worker) == [*TARGET[:file], "config-files", *TARGET[file:]]
        assert resources["limits"] == {"nvidia.com/v100": "1", "rdma/rdma_v100": "1"}


def test_launcher_is_patched_as_such(run: Run) -> None:
    """It gets variables and the flag for hcoll, but no capability, no device and no file."""
    (container,) = run.launcher["spec"]["containers"]

    assert applied(run.launcher) == ["env", "hcoll"]
    assert status(run.launcher)["warned"] == ["NotForwarded"]
    assert container["command"] == EDITED
    assert environment(run.launcher)["OMPI_MCA_coll_hcoll_enable"] == "0"
    assert environment(run.launcher)["K_MPI_JOB_ROLE"] == "launcher"
    assert container["resources"] == {}
    assert "securityContext" not in container
    assert "/etc/nccl.conf" not in [mount["mountPath"] for mount in container["volumeMounts"]]


def test_preview_matches_the_pods(lab: WorkloadNamespace, run: Run) -> None:
    """The preview of the MPIJob has the decisions on its pods, and the pods, as they are here."""
    previews = previews_of(lab, "mpijob")

    check_preview(previews["spec.mpiReplicaSpecs.Launcher.template"], run.launcher)
    check_preview(previews["spec.mpiReplicaSpecs.Worker.template"], run.workers[0])
