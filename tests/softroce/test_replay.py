"""The whole way on real verbs: from a node's tools to pods that register memory, or fail to.

The node is an emulated machine with a soft-RoCE device (`node`), and everything else is what a
site has: `discover` reads the node and writes the fabrics file and the device plugin's
configuration; the real plugin offers the device to the kubelet; the webhook patches the pod that
asks for it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.images import perftest_image
from tests.cluster.install import LAB, install
from tests.softroce.machine import require
from tests.softroce.node import NAME, SoftNode, soft_node
from webhook.discover.collection import collect_script

#: 64 MiB in all, eight times what a container may lock without IPC_LOCK. With plain 64 KiB the
#: missing capability would go unnoticed.
_TEST = "ib_write_bw -d rxe0 -x 1 -F -n 5 -s 33554432 --report_gbits"
#: Whether the server waits for its client: 4853 is perftest's port, 18515, and 0A is LISTEN.
_LISTENS = "cat /proc/net/tcp /proc/net/tcp6 | grep -q ':4853 0*:0000 0A'"
#: The server in the background and the client beside it, both in one container. A server that has
#: failed never listens; then the client says so.
_SCRIPT = f"{_TEST} & for _ in $(seq 120); do {_LISTENS} && break; sleep 1; done; {_TEST} 127.0.0.1"
#: In seconds, for a pod of an emulated machine.
_PATIENCE = 600.0


def rdma_webhook(*words: str | Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does."""
    argv = [sys.executable, "-m", "webhook", *words]
    return subprocess.run(argv, input=text, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def node(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SoftNode]:
    """Add the node to the cluster."""
    require()
    share = tmp_path_factory.mktemp("node")
    with soft_node(cluster, share, collect_script(), perftest_image()) as started:
        yield started


@pytest.fixture(scope="module")
def fabric(cluster: Cluster, node: SoftNode, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Discover the node, start the plugin and the webhook with that; return the fabric's name."""
    folder = tmp_path_factory.mktemp("discovered")
    wishes = ("--mode", "host-network", "--plugin", folder)
    ran = rdma_webhook("discover", "-", "-o", "yaml", *wishes, text=node.collected)
    assert ran.returncode in (0, 1), ran.stderr
    (folder / "fabrics.yaml").write_text(ran.stdout)
    checked = rdma_webhook("check-config", "--strict", folder / "fabrics.yaml")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    node.start_plugin(_plugin_configuration(folder))
    (found,) = yaml.safe_load(ran.stdout)["fabrics"]
    (resource,) = found["resources"]
    cluster.processes.until(
        f"{NAME} offering {resource['name']}",
        lambda: resource["name"] in _allocatable(cluster),
        _PATIENCE,
    )
    install(cluster, fabrics=folder / "fabrics.yaml")
    name: str = found["name"]
    return name


def _plugin_configuration(folder: Path) -> str:
    """Return the plugin's JSON from the ConfigMap that `discover --plugin` wrote."""
    for path in folder.rglob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text()):
            if document and document.get("kind") == "ConfigMap":
                (text,) = document["data"].values()
                return str(text)
    raise AssertionError(sorted(folder.rglob("*")))


def _allocatable(cluster: Cluster) -> dict[str, str]:
    found = json.loads(cluster.kubectl("get", "node", NAME, "--output=json"))
    return {name: count for name, count in found["status"]["allocatable"].items() if count != "0"}


def _pod(name: str, annotations: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": LAB, "annotations": annotations},
        "spec": {
            "hostNetwork": True,
            "dnsPolicy": "ClusterFirstWithHostNet",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {"kubernetes.io/hostname": NAME},
            "tolerations": [{"key": "rdma.lab/test", "operator": "Exists"}],
            "containers": [
                {
                    "name": "perftest",
                    "image": perftest_image().name,
                    "command": ["sh", "-c", _SCRIPT],
                    "resources": {"limits": limits},
                }
            ],
        },
    }


def _ended(cluster: Cluster, pod: dict[str, Any]) -> tuple[str, str]:
    """Run a pod to its end; return its phase and its log."""
    cluster.kubectl("create", "--filename=-", input=json.dumps(pod))
    name = pod["metadata"]["name"]
    get = ("get", "pod", name, f"--namespace={LAB}", "--output=jsonpath={.status.phase}")
    cluster.processes.until(
        f"pod {name} ended", lambda: cluster.kubectl(*get) in ("Succeeded", "Failed"), _PATIENCE
    )
    return cluster.kubectl(*get), cluster.kubectl("logs", name, f"--namespace={LAB}")


def _why(cluster: Cluster, pod: str) -> dict[str, Any]:
    where = ("-n", LAB, "--kubeconfig", cluster.kubeconfig)
    ran = rdma_webhook("why", pod, "--logs", "-o", "json", *where)
    assert ran.returncode in (0, 1), ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def _verified(log: str) -> dict[str, Any]:
    ran = rdma_webhook("verify", "judge", "--rate", "10", "-o", "json", "-", text=log)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_an_annotated_pod_registers_memory_and_measures(cluster: Cluster, fabric: str) -> None:
    """The annotation alone brings the device and IPC_LOCK, and the transfer runs over RDMA."""
    asked = {"rdma.lab/enable": "true", "rdma.lab/fabric": fabric}
    phase, log = _ended(cluster, _pod("annotated", asked, {}))
    assert phase == "Succeeded", log
    judged = _verified(log)
    assert (judged["verdict"], judged["code"]) == ("inconclusive", "Loopback"), log
    assert all(one["gbps"] > 0 for one in judged["measurements"])


@pytest.mark.usefixtures("fabric")
def test_without_the_annotation_memory_is_refused(cluster: Cluster) -> None:
    """The same pod, with the device but without IPC_LOCK, fails, and both commands say why."""
    (resource,) = [name for name in _allocatable(cluster) if name.startswith("rdma/")]
    phase, log = _ended(cluster, _pod("without-ipc-lock", {}, {resource: "1"}))
    assert phase == "Failed", log
    judged = _verified(log)
    assert (judged["verdict"], judged["code"]) == ("fail", "PerftestNoMemory"), log
    explained = json.dumps(_why(cluster, "without-ipc-lock"))
    assert "PerftestNoMemory" in explained
    assert "rdma.lab/enable" in explained


@pytest.mark.usefixtures("fabric")
def test_without_the_annotation_there_is_no_device(cluster: Cluster) -> None:
    """The same pod, without the resource, has no device at all, and both commands say so."""
    phase, log = _ended(cluster, _pod("without-device", {}, {}))
    assert phase == "Failed", log
    assert _verified(log)["verdict"] == "fail"
    explained = json.dumps(_why(cluster, "without-device"))
    assert "NoRdmaDevice" in explained or "DeviceNotFound" in explained
