"""Shared fixtures: an account with the shipped rights, and replicas that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.cluster.cluster import Cluster
from tests.e2e.certs.lab import CONFIGURATION, FLAGS, NAME, RBAC, Installation
from tests.e2e.documents import namespace
from tests.e2e.rights import service_account, wait_for_right
from tests.integration.replica import Replica

#: Starts a number of replicas at once, with these flags, and makes them the Service's endpoints.
Start = Callable[..., list[Replica]]


@pytest.fixture(scope="session")
def account(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make the namespace, and a kubeconfig of a ServiceAccount with only the shipped rights."""
    lab = Installation(cluster)
    metadata = {"name": NAME, "namespace": NAME}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    lab.apply(namespace(NAME, None), namespace(f"{NAME}-lab", None), account)
    rights = RBAC.read_text().replace("rdma-webhook", NAME)
    cluster.kubectl("apply", "-f", "-", input=rights)
    resource = "validatingwebhookconfigurations.admissionregistration.k8s.io"
    wait_for_right(cluster, service_account(NAME, NAME), "patch", resource, name=NAME)
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    token = cluster.kubectl("create", "token", NAME, "-n", NAME).strip()
    for user in config["users"]:
        user["user"] = {"token": token}
    path = tmp_path_factory.mktemp(NAME) / "config"
    path.write_text(yaml.safe_dump(config))
    yield path
    cluster.kubectl("delete", "-f", "-", "--ignore-not-found", input=rights)
    cluster.kubectl("delete", "namespace", NAME, f"{NAME}-lab", "--wait=false")


@pytest.fixture
def lab(cluster: Cluster, account: Path) -> Iterator[Installation]:
    """Return the installation; afterwards delete everything that a replica made or read."""
    assert account.is_file()
    yield Installation(cluster)
    for kind, name in (("mutating", CONFIGURATION), ("validating", NAME)):
        cluster.kubectl("delete", f"{kind}webhookconfigurations", name, "--ignore-not-found")
    kinds = "services,endpointslices,secrets"
    cluster.kubectl("delete", kinds, "--all", "-n", NAME)


@pytest.fixture
def start(lab: Installation, account: Path, tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts replicas; stop them after the test."""
    with ExitStack() as running:
        started: list[Replica] = []

        def begin(count: int, *flags: str, clock: int = 0) -> list[Replica]:
            host = lab.cluster.network.machine
            new = []
            for _ in range(count):
                folder = tmp_path / str(len(started))
                options = (*FLAGS, *flags)
                replica = Replica(account, folder, NAME, *options, host=host, clock=clock)
                replica.launch()
                running.callback(replica.end)
                started.append(replica)
                new.append(replica)
            for replica in new:
                replica.wait_for_ports()
            lab.lead_to(new)
            return new

        yield begin
