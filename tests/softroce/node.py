"""A node of a test cluster that has a real RDMA device: an emulated machine with a kubelet.

Control plane and webhook run outside of it, as always; its pods use the host's network, since rxe
carried no data on a macvlan's GID.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import Template

from tests.cluster.binaries import binary
from tests.cluster.cluster import Cluster
from tests.cluster.images import Image, pause_image
from tests.cluster.network import BRIDGE
from tests.softroce.machine import prepare, qemu

NAME = "soft-0"
#: The fifth address of the pod network; addresses below the tenth are not given to pods.
_ADDRESS = 5
_TAP = "soft0"
_CONFIGURATION = Path(__file__).with_name("kubelet.yaml")
#: In seconds, on a busy machine.
_READY = 900.0


@dataclass(frozen=True)
class SoftNode:
    """A running node."""

    cluster: Cluster
    share: Path

    @property
    def collected(self) -> str:
        """The output of `discover script` on it."""
        return (self.share / "collected.txt").read_text()

    def start_plugin(self, configuration: str) -> None:
        """Start the RDMA shared device plugin with this configuration, a JSON text."""
        new = self.share / "plugin.json.new"
        new.write_text(configuration)
        new.rename(self.share / "plugin.json")


@contextmanager
def soft_node(cluster: Cluster, share: Path, script: str, *images: Image) -> Iterator[SoftNode]:
    """Yield a ready node that has these images; `script`: the output of `discover script`."""
    _fill(cluster, share, script, images)
    cluster.exec("ip", "tuntap", "add", "dev", _TAP, "mode", "tap")
    cluster.exec("ip", "link", "set", _TAP, "master", BRIDGE, "up")
    nic = ("-nic", f"tap,ifname={_TAP},script=no,downscript=no,model=virtio-net-pci")
    machine = cluster.start("soft-node", qemu(share, nic, memory=3072))
    try:
        cluster.processes.until("the node of soft-RoCE", lambda: _is_ready(cluster, share), _READY)
        yield SoftNode(cluster, share)
    finally:
        (share / "stop").touch()
        machine.stop(60.0)
        cluster.kubectl("delete", "node", NAME, "--ignore-not-found")
        cluster.exec("ip", "link", "del", _TAP)


def _fill(cluster: Cluster, share: Path, script: str, images: tuple[Image, ...]) -> None:
    network, pause = cluster.network, pause_image()
    prepare(share, "node")
    (share / "collect.sh").write_text(script)
    for name in ("kubelet", "k8s-rdma-shared-dp"):
        shutil.copy(binary(name, cluster.minor), share / name)
    configuration = Template(_CONFIGURATION.read_text()).substitute(gateway=network.gateway)
    (share / "kubelet.yaml").write_text(configuration)
    shutil.copy(cluster.directory / "pki" / "ca.crt", share)
    shutil.copy(cluster.kubeconfig, share / "node.kubeconfig")
    (share / "resolv.conf").write_text(f"nameserver {network.gateway}\n")
    (share / "images").mkdir()
    for image in (pause, *images):
        shutil.copy(image.archive, share / "images" / image.archive.name)
    settings = {
        "ADDRESS": str(network.pods[_ADDRESS]),
        "PREFIX": str(network.pods.prefixlen),
        "GATEWAY": network.gateway,
        "NODE": NAME,
        "PAUSE": pause.name,
    }
    lines = "".join(f"{name}={value}\n" for name, value in settings.items())
    (share / "node.env").write_text(lines)


def _is_ready(cluster: Cluster, share: Path) -> bool:
    if not (share / "ready").exists():
        return False
    condition = '{.status.conditions[?(@.type=="Ready")].status}'
    status = cluster.kubectl(
        "get", "node", NAME, "--ignore-not-found", f"--output=jsonpath={condition}"
    )
    return status == "True"
