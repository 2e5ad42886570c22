"""A second real node: another containerd and kubelet in the same namespaces, for pods of two nodes.

Both use the cluster's bridge. Folders, sockets, ports and cgroups are the second node's own; only
the sockets of device plugins have a fixed place, so that no plugin can register on two nodes here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import yaml

from tests.cluster.binaries import binary
from tests.cluster.cluster import Cluster
from tests.cluster.images import Image, pause_image
from tests.cluster.namespaces import INSIDE
from tests.cluster.processes import Process

NAME = "real-1"
#: Keeps the pods of other tests away, whose images are on the first node only.
TAINT = "rdma.lab/test"
_HOME = INSIDE / "second"
_SOCKET = _HOME / "containerd.sock"
_CGROUP = "second-node"
_MAKE_CGROUP = (
    f"for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do "
    f'[ -e "$hierarchy/cgroup.procs" ] && mkdir -p "$hierarchy/{_CGROUP}"; done; true'
)


@contextmanager
def second_node(cluster: Cluster, *images: Image) -> Iterator[str]:
    """Yield the name of a node that is ready and has these images."""
    _write(cluster)
    cluster.exec("sh", "-c", _MAKE_CGROUP)
    containerd = cluster.start(
        "containerd-1", ["containerd", "--config", _HOME / "containerd.toml"]
    )
    cluster.processes.until("the second containerd", lambda: _answers(cluster))
    kubelet = cluster.start("kubelet-1", _kubelet(cluster))
    try:
        for image in (pause_image(), *images):
            _load(cluster, image)
        cluster.processes.until("the second node", lambda: _is_ready(cluster, kubelet))
        yield NAME
    finally:
        kubelet.stop()
        containerd.stop()
        cluster.kubectl("delete", "node", NAME, "--ignore-not-found")


def _write(cluster: Cluster) -> None:
    """Derive the configuration from the first node's."""
    home = cluster.directory / "second"
    home.mkdir(exist_ok=True)
    text = (cluster.directory / "containerd.toml").read_text()
    for old, new in (
        ("/var/lib/containerd", f"{_HOME}/containerd"),
        ("/run/containerd/containerd.sock", str(_SOCKET)),
        ("/run/containerd", f"{_HOME}/state"),
        (f"{INSIDE}/opt", f"{_HOME}/opt"),
    ):
        text = text.replace(f'"{old}"', f'"{new}"')
    (home / "containerd.toml").write_text(text)
    settings = yaml.safe_load((cluster.directory / "kubelet.yaml").read_text())
    settings |= {
        "containerRuntimeEndpoint": f"unix://{_SOCKET}",
        "cgroupRoot": f"/{_CGROUP}",
        "port": 10260,
        "healthzPort": 10258,
        "podLogsDir": f"{_HOME}/logs",
        "volumePluginDir": f"{_HOME}/volume-plugins",
        "registerWithTaints": [{"key": TAINT, "value": "second", "effect": "NoSchedule"}],
    }
    (home / "kubelet.yaml").write_text(yaml.safe_dump(settings))


def _kubelet(cluster: Cluster) -> list[str]:
    return [
        str(binary("kubelet", cluster.minor)),
        f"--config={_HOME}/kubelet.yaml",
        f"--kubeconfig={INSIDE}/kubeconfig",
        f"--root-dir={_HOME}/kubelet",
        f"--cert-dir={_HOME}/kubelet-pki",
        f"--hostname-override={NAME}",
        f"--node-ip={cluster.network.gateway}",
    ]


def _answers(cluster: Cluster) -> bool:
    ready = f"ctr --address {_SOCKET} version >/dev/null 2>&1 && echo yes || echo no"
    return cluster.exec("sh", "-c", ready).strip() == "yes"


def _load(cluster: Cluster, image: Image) -> None:
    argv = ["ctr", "--address", str(_SOCKET), "--namespace", "k8s.io", "images", "import", "-"]
    with image.archive.open("rb") as file:
        cluster.namespaces.run(argv, file=file)


def _is_ready(cluster: Cluster, kubelet: Process) -> bool:
    assert not kubelet.ended(), kubelet.tail()
    condition = '{.status.conditions[?(@.type=="Ready")].status}'
    get = ("get", "node", NAME, "--ignore-not-found", f"--output=jsonpath={condition}")
    return cluster.kubectl(*get) == "True"
