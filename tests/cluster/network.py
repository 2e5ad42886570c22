"""A cluster's addresses, the link that connects it to the machine, and its bridge."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from ipaddress import IPv4Network

from tests.cluster.namespaces import NamespaceError, Namespaces

#: The number of clusters that can run at the same time.
CLUSTERS = 64
BRIDGE = "kube0"


@dataclass(frozen=True)
class Network:
    """The addresses of the cluster with this number."""

    number: int

    @property
    def device(self) -> str:
        """The machine's end of the link; only one cluster can have it."""
        return f"rdma-k8s{self.number}"

    @property
    def link(self) -> IPv4Network:
        """The link's two addresses: the machine's and the cluster's."""
        return IPv4Network(f"10.198.{self.number}.0/30")

    @property
    def pods(self) -> IPv4Network:
        """The addresses of pods."""
        return IPv4Network(f"10.244.{self.number}.0/24")

    @property
    def services(self) -> IPv4Network:
        """The addresses of Services, which can be reached from the machine, too."""
        return IPv4Network(f"10.96.{self.number}.0/24")

    @property
    def machine(self) -> str:
        """The machine's address for pods and the API server."""
        return str(self.link[1])

    @property
    def inside(self) -> str:
        """The cluster's end of the link."""
        return str(self.link[2])

    @property
    def gateway(self) -> str:
        """The node's address: its bridge, where API server, kubelet and DNS listen."""
        return str(self.pods[1])

    @property
    def kubernetes(self) -> str:
        """The address of the API server's Service."""
        return str(self.services[1])

    def remove(self) -> None:
        """Remove the link, and with it the routes; do nothing if it is gone."""
        _ip(f"link del {self.device}", check=False)


def claim(namespaces: Namespaces) -> Network:
    """Take the first free addresses, and connect the cluster to the machine with them."""
    routes = _routes()
    for number in range(CLUSTERS):
        network = Network(number)
        ranges = (network.link, network.pods, network.services)
        if not any(ours.overlaps(theirs) for ours in ranges for theirs in routes) and _linked(
            network, namespaces.init.pid
        ):
            _inside(network, namespaces)
            _outside(network)
            return network
    raise NamespaceError("10.198.N.0/30, 10.244.N.0/24 and 10.96.N.0/24 are taken for every N")


def _routes() -> list[IPv4Network]:
    routes = json.loads(_ip("-json -4 route show table all") or "[]")
    return [IPv4Network(route["dst"]) for route in routes if route["dst"] != "default"]


def _linked(network: Network, pid: int) -> bool:
    """Make the link, which claims the number; return False if another cluster has it."""
    arguments = f"link add {network.device} type veth peer name up0 netns {pid}"
    return _ip(arguments, check=False) is not None


def _inside(network: Network, namespaces: Namespaces) -> None:
    commands = f"""\
link set lo up
addr add {network.inside}/30 dev up0
link set up0 up
route add default via {network.machine}
link add {BRIDGE} type bridge
addr add {network.gateway}/24 dev {BRIDGE}
link set {BRIDGE} up
"""
    namespaces.run(["ip", "-batch", "-"], stdin=commands)
    namespaces.run(["sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"])


def _outside(network: Network) -> None:
    _ip(f"addr add {network.machine}/30 dev {network.device}")
    _ip(f"link set {network.device} up")
    for reached in (network.pods, network.services):
        _ip(f"route add {reached} via {network.inside}")


def _ip(arguments: str, *, check: bool = True) -> str | None:
    """Run ip(8) on the machine; return its output, or None if it failed."""
    argv = ["ip", *arguments.split()]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    if ran.returncode and check:
        raise NamespaceError(f"{' '.join(argv)}: {ran.stderr.strip()}")
    return None if ran.returncode else ran.stdout
