"""The start of a cluster, from an empty directory to a node that runs pods."""

from __future__ import annotations

import socket
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from tests.cluster import cgroups, namespaces, network, progress, state
from tests.cluster.access import by_certificate
from tests.cluster.api import Api
from tests.cluster.binaries import provide
from tests.cluster.controlplane import server, start_api_server, start_controllers
from tests.cluster.dns import start_dns
from tests.cluster.identities import Identities
from tests.cluster.images import Image
from tests.cluster.namespaces import Namespaces
from tests.cluster.network import Network
from tests.cluster.node import NAME, configure, load, start_node, start_runtime, wait_runtime
from tests.cluster.pki import Authority
from tests.cluster.processes import Processes
from tests.cluster.state import State

#: The programs of a cluster. Kubernetes' are first, since their build compiles most of the
#: libraries that the others share.
PROGRAMS = (
    "kube-apiserver",
    "etcd",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
    "coredns",
)


@dataclass(frozen=True)
class Site:
    """The place of a cluster: directory, namespaces and network."""

    directory: Path
    minor: str
    namespaces: Namespaces
    network: Network
    outer: subprocess.Popen[str]
    """Waits outside for the end of the namespaces."""


def build(minor: str) -> None:
    """Build the programs that the cache lacks, before starting anything; this takes minutes."""
    provide(PROGRAMS, minor)


def enter(directory: Path, minor: str, *, bound: bool) -> Site:
    """Make the cluster's namespaces, connect them to the machine, and update the record."""
    record = _record(directory)
    cgroup = cgroups.name_for(directory)
    cgroups.create(cgroup)
    inside, outer = namespaces.create(directory, cgroup, bound=bound)
    record = replace(record, init=inside.init)
    record.write(directory)
    claimed = network.claim(inside)
    replace(record, network=claimed.number).write(directory)
    return Site(directory, minor, inside, claimed, outer)


def start(site: Site, processes: Processes, pause: Image) -> None:
    """Start every program of the cluster; raise ClusterError with logs if one does not come up."""
    identities = _configure(site, pause)
    with progress.step(f"starting Kubernetes {site.minor}"):
        start_runtime(processes)
        start_api_server(processes, site.network, site.minor)
        wait_runtime(processes, site.namespaces)
        load(site.namespaces, pause.archive)
        api = Api(by_certificate(identities.server, site.directory / "pki"))
        processes.until("API server ready", lambda: api.text("/readyz") is not None)
    with progress.step("waiting for the node"):
        start_controllers(processes, identities, site.minor)
        start_node(processes, identities, site.network, site.minor)
        start_dns(processes, site.network, site.directory)
        _wait(site, processes, api)
    replace(_record(site.directory), complete=True).write(site.directory)


def _record(directory: Path) -> State:
    record = state.read(directory)
    assert record is not None
    return record


def _configure(site: Site, pause: Image) -> Identities:
    (site.directory / "log").mkdir()
    addresses = site.network
    identities = Identities(site.directory, server(addresses), Authority())
    names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    identities.prepare(
        [*names, "127.0.0.1", addresses.gateway, addresses.inside, addresses.kubernetes]
    )
    identities.admin()
    configure(site.directory, addresses, identities.kubeconfig("system:kube-proxy"), pause.name)
    return identities


def _wait(site: Site, processes: Processes, api: Api) -> None:
    processes.until("node ready", lambda: api.ready(f"/api/v1/nodes/{NAME}"))
    # Without it, no pod is admitted to the namespace.
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    processes.until("service account", lambda: api.ready(account))
    processes.until("DNS", lambda: _listens(site.network.gateway, 53))
    # Shows that kube-proxy's rules work from the machine.
    processes.until("service addresses", lambda: _listens(site.network.kubernetes, 443))


def _listens(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=1):
            return True
    except OSError:
        return False
