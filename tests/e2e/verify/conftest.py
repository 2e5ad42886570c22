"""Two real nodes of a fabric, with the images of a run, and a labeled namespace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.images import mpi_image, perftest_image, perftest_stand_in
from tests.cluster.install import V100, V100_PRODUCT, Webhook
from tests.cluster.second_node import second_node
from tests.e2e.documents import make_namespaces, namespace


@dataclass(frozen=True)
class RunNamespace:
    """A namespace for runs, and the images that the nodes have."""

    cluster: Cluster
    name: str
    #: Real perftest, which finds no RDMA device here.
    real: str
    #: A stand-in, which connects and prints a table.
    stand_in: str
    #: Open MPI, sshd, and a stand-in for nccl-tests in /opt/stand-in.
    mpi: str

    def pods(self, selector: str = "app.kubernetes.io/name=rdma-webhook-verify") -> list[str]:
        """Return the names of the pods with these labels."""
        get = ("get", "pods", "--output=json", f"--namespace={self.name}", f"--selector={selector}")
        pods = json.loads(self.cluster.kubectl(*get))["items"]
        return [pod["metadata"]["name"] for pod in pods]


@pytest.fixture(scope="package")
def lab(webhook: Webhook) -> Iterator[RunNamespace]:
    """Add a second node, and let both offer V100s and their RDMA resource."""
    cluster = webhook.cluster
    cluster.skip_if_existing("a second node of the test's own")
    images = real, stand_in, mpi = perftest_image(), perftest_stand_in(), mpi_image()
    with second_node(cluster, *images) as second:
        for image in images:
            cluster.load(image.archive)
        cluster.advertise(V100, second)
        cluster.kubectl("label", "node", second, V100_PRODUCT)
        make_namespaces(cluster, namespace("measured", "true"))
        lab = RunNamespace(cluster, "measured", real.name, stand_in.name, mpi.name)
        yield lab
        cluster.kubectl("delete", "namespace", lab.name, "--wait=false")
