"""The real node: containerd, kubelet and kube-proxy."""

from __future__ import annotations

from pathlib import Path
from string import Template

from tests.cluster.binaries import binary
from tests.cluster.identities import Identities
from tests.cluster.namespaces import INSIDE, TEMPLATES, NamespaceError, Namespaces
from tests.cluster.network import BRIDGE, Network
from tests.cluster.processes import Processes

NAME = "real-0"
#: Addresses of the pod network below this one are the node's own.
_FIRST_POD = 10


def configure(directory: Path, network: Network, kube_proxy: Path, pause: str) -> None:
    """Write the node's configuration files; `pause` is the image of a pod's first container."""
    values = {
        "gateway": network.gateway,
        "pods": str(network.pods),
        "first": str(network.pods[_FIRST_POD]),
        "bridge": BRIDGE,
        "pause": pause,
        "node": NAME,
        "kubeconfig": str(kube_proxy),
    }
    (directory / "cni").mkdir()
    (directory / "cni" / "10-cluster.conflist").write_text(render("cni.json", values))
    for name in ("containerd.toml", "kubelet.yaml", "kube-proxy.yaml"):
        (directory / name).write_text(render(name, values))
    # Pods that use the node's DNS use the cluster's, too: the machine's may not be reachable.
    (directory / "resolv.conf").write_text(f"nameserver {network.gateway}\n")


def render(template: str, values: dict[str, str]) -> str:
    """Fill in a template; raise KeyError if a value is missing."""
    return Template((TEMPLATES / template).read_text()).substitute(values)


def start_runtime(processes: Processes) -> None:
    """Start containerd, which depends on no other program."""
    processes.start("containerd", ["containerd", "--config", INSIDE / "containerd.toml"])


def wait_runtime(processes: Processes, namespaces: Namespaces) -> None:
    """Wait until containerd answers."""

    def answers() -> bool:
        try:
            namespaces.run(["ctr", "version"])
        except NamespaceError:
            return False
        return True

    processes.until("containerd ready", answers)


def load(namespaces: Namespaces, archive: Path) -> None:
    """Import an image archive; the path is on the machine, and the file is opened here."""
    with archive.open("rb") as file:
        namespaces.run(["ctr", "--namespace", "k8s.io", "images", "import", "-"], file=file)


def start_node(processes: Processes, identities: Identities, network: Network, minor: str) -> None:
    """Start kubelet and kube-proxy; API server and containerd must be ready."""
    kubelet = identities.kubeconfig(f"system:node:{NAME}", "system:nodes")
    processes.start(
        "kubelet",
        [
            binary("kubelet", minor),
            f"--config={INSIDE}/kubelet.yaml",
            f"--kubeconfig={kubelet}",
            f"--hostname-override={NAME}",
            f"--node-ip={network.gateway}",
        ],
    )
    processes.start(
        "kube-proxy", [binary("kube-proxy", minor), f"--config={INSIDE}/kube-proxy.yaml"]
    )
