"""A labeled namespace for one test file, the objects in it, and the resulting pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.cluster import Cluster, KubectlError
from tests.e2e.documents import make_namespaces, namespace
from tests.waiting import PATIENCE, until

WORKLOADS = Path(__file__).parent / "workloads"
#: The mutations applied to a container with a GPU of the v100 fabric, except for files.
TARGET = ["ipc-lock", "rdma-resources", "memory-limit", "env", "hcoll"]
#: The number of CAP_IPC_LOCK, capabilities(7).
IPC_LOCK = 14
Document = dict[str, Any]


@dataclass(frozen=True)
class WorkloadNamespace:
    """A namespace, and an image whose program `rank` prints what a process sees."""

    cluster: Cluster
    namespace: str
    image: str

    def kubectl(self, *arguments: str, **how: Any) -> str:
        """Run kubectl in the namespace."""
        return self.cluster.kubectl(f"--namespace={self.namespace}", *arguments, **how)

    def create(self, manifest: str) -> None:
        """Create the objects of a manifest in `workloads`, with the image."""
        text = (WORKLOADS / f"{manifest}.yaml").read_text()
        self.kubectl(
            "create", "-f", "-", input=text.replace("image: mpi\n", f"image: {self.image}\n")
        )

    def pods(self, selector: str = "") -> list[Document]:
        """Return the pods, sorted by name."""
        text = self.kubectl("get", "pods", f"--selector={selector}", "--output=json")
        return sorted(json.loads(text)["items"], key=lambda pod: str(pod["metadata"]["name"]))

    def wait(self, *arguments: str) -> None:
        """Run a kubectl command that waits; if it fails, show pods and events."""
        try:
            self.kubectl(*arguments, f"--timeout={PATIENCE:g}s")
        except KubectlError as error:
            commands = (("get", "pods", "--output=wide"), ("get", "events"))
            outputs = (self.kubectl(*command, check=False) for command in commands)
            raise AssertionError("\n".join((str(error), *outputs))) from None

    def ranks(self, pod: Document) -> list[Document]:
        """Wait for the output of `rank` in a pod, and return it."""
        name = pod["metadata"]["name"]
        until(lambda: '"capEff"' in self.kubectl("logs", name, check=False))
        lines = self.kubectl("logs", name).splitlines()
        printed = (json.loads(line) for line in lines if line.startswith("{"))
        return sorted(printed, key=lambda rank: int(rank["rank"]))

    def decisions(self, log: str) -> list[Document]:
        """Return the lines about decisions on this namespace in the webhook's log."""
        lines = (json.loads(line) for line in log.splitlines() if '"decided"' in line)
        return [line for line in lines if line["namespace"] == self.namespace]


@contextmanager
def opened(cluster: Cluster, image: str, name: str) -> Iterator[WorkloadNamespace]:
    """Make a labeled namespace for the duration of the block."""
    make_namespaces(cluster, namespace(name, "true"))
    yield WorkloadNamespace(cluster, name, image)
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def status(pod: Document) -> Document:
    """Return the webhook's status annotation."""
    status: Document = json.loads(pod["metadata"]["annotations"]["rdma.lab/status"])
    return status


def applied(pod: Document) -> list[str]:
    """Return the mutations that were applied to the pod."""
    names: list[str] = status(pod).get("applied", [])
    return names


def environment(pod: Document) -> dict[str, str]:
    """Return the literal variables of a pod's first container."""
    return {
        variable["name"]: variable.get("value", "")
        for variable in pod["spec"]["containers"][0]["env"]
    }


def locks_memory(rank: Document) -> bool:
    """Return whether the process may lock memory beyond its limit."""
    return bool(int(rank["capEff"], 16) >> IPC_LOCK & 1)


def check_target(lab: WorkloadNamespace, pod: Document) -> None:
    """Check that a pod with a V100 got all mutations, and that its process sees them."""
    resources = pod["spec"]["containers"][0]["resources"]
    (rank,) = lab.ranks(pod)

    assert applied(pod) == TARGET
    assert resources["limits"] == {"nvidia.com/v100": "1", "rdma/rdma_v100": "1"}
    assert resources["requests"]["memory"] == "256Mi"
    assert locks_memory(rank)
    assert rank["env"]["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1"
    assert rank["env"]["UCX_NET_DEVICES"] == "mlx5_0:1,mlx5_1:1,eth0"
    assert rank["env"]["OMPI_MCA_coll_hcoll_enable"] == "0"
