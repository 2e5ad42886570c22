"""The whole way on real verbs: from a node's tools to pods that register memory, or fail to.

The node is an emulated machine with a soft-RoCE device (`node`), and everything else is what a
site has: `discover` reads the node and writes the fabrics file and the device plugin's
configuration; the real plugin offers the device to the kubelet; the webhook patches the pod that
asks for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.images import perftest_image
from tests.cluster.install import LAB, install
from tests.softroce.kept import Transcript, keep, rdma_webhook
from tests.softroce.machine import require
from tests.softroce.node import NAME, SoftNode, soft_node
from webhook.diagnose.discover.inputs import collect_script

#: 64 MiB in total, eight times what a container may lock without IPC_LOCK. With plain 64 KiB the
#: missing capability would go unnoticed.
_TEST = "ib_write_bw -d rxe0 -x 1 -F -n 5 -q 16 -s 2097152 --report_gbits"
#: Whether the server waits for its client: 4853 is perftest's port, 18515, and 0A is LISTEN.
_LISTENS = "cat /proc/net/tcp /proc/net/tcp6 | grep -q ':4853 0*:0000 0A'"
#: The server in the background and the client next to it, both in one container; again if perftest
#: could not measure the processor's clock, as happens where the host is busy.
_SCRIPT = f"""\
cd /tmp
pair() {{
    {_TEST} >server 2>&1 &
    until {_LISTENS} || ! kill -0 $! 2>/dev/null; do sleep 1; done
    {_TEST} 127.0.0.1 >client 2>&1 && wait
}}
while :; do
    pair
    code=$?
    grep -q 'Correlation coefficient' client server || break
done
cat client server
exit $code
"""
#: A server that has registered 32 MiB, and waits for its client.
_WAITING = "exec ibv_rc_pingpong -d rxe0 -g 1 -s 33554432"
#: Less than perftest registers.
_MEMORY = {"memory": "48Mi"}
#: In seconds, for a pod of an emulated machine.
_PATIENCE = 1200.0


@pytest.fixture(scope="module")
def transcript() -> Transcript:
    """Keep the output of the commands."""
    return Transcript("replay")


@pytest.fixture(scope="module")
def node(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SoftNode]:
    """Add the node to the cluster."""
    require()
    share = tmp_path_factory.mktemp("node")
    try:
        with soft_node(cluster, share, collect_script(), perftest_image()) as started:
            yield started
    finally:
        keep("node", share)


@pytest.fixture(scope="module")
def fabric(
    cluster: Cluster,
    node: SoftNode,
    transcript: Transcript,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """Discover the node, start the plugin and the webhook with that; return the fabric's name."""
    folder = tmp_path_factory.mktemp("discovered")
    wishes = ("--mode", "host-network", "--plugin", folder)
    transcript.run("discover", "-", text=node.collected)
    ran = rdma_webhook("discover", "-", "-o", "yaml", *wishes, text=node.collected)
    assert ran.returncode in (0, 1), ran.stderr
    transcript.add("rdma-webhook discover - -o yaml --mode host-network --plugin DIR", ran.stdout)
    (folder / "fabrics.yaml").write_text(ran.stdout)
    checked = rdma_webhook("check-config", "--strict", folder / "fabrics.yaml")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    configuration = _plugin_configuration(folder)
    transcript.add("# the plugin's configuration", configuration)
    node.start_plugin(configuration)
    (discovered,) = yaml.safe_load(ran.stdout)["spec"]["fabrics"]
    assert discovered["match"] == {"gpuResources": []}
    assert discovered["hostSocketInterface"] == "eth0"
    (resource,) = discovered["resources"]
    cluster.processes.until(
        f"{NAME} offering {resource['name']}",
        lambda: resource["name"] in _allocatable(cluster),
        _PATIENCE,
    )
    install(cluster, fabrics=folder / "fabrics.yaml")
    name: str = discovered["name"]
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
    node = json.loads(cluster.kubectl("get", "node", NAME, "--output=json"))
    return {name: count for name, count in node["status"]["allocatable"].items() if count != "0"}


def _pod(
    name: str, annotations: dict[str, str], limits: dict[str, str], script: str = _SCRIPT
) -> dict[str, Any]:
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
                    "command": ["sh", "-c", script],
                    "resources": {"limits": limits},
                }
            ],
        },
    }


class PodRuns:
    """Runs pods on the node, and asks about them as a user does."""

    def __init__(self, cluster: Cluster, transcript: Transcript) -> None:
        self._cluster = cluster
        self._transcript = transcript

    def create(self, pod: dict[str, Any]) -> dict[str, Any]:
        """Create a pod, and return it."""
        self._cluster.kubectl("create", "--filename=-", input=json.dumps(pod))
        return self.read(pod["metadata"]["name"])

    def read(self, name: str) -> dict[str, Any]:
        """Return the present state of a pod."""
        text = self._cluster.kubectl("get", "pod", name, f"--namespace={LAB}", "--output=json")
        pod: dict[str, Any] = json.loads(text)
        return pod

    def until(self, goal: str, condition: Callable[[], bool]) -> None:
        """Wait."""
        self._cluster.processes.until(goal, condition, _PATIENCE)

    def run_to_end(self, pod: dict[str, Any]) -> tuple[str, str]:
        """Run a pod to its end; return its phase and its log."""
        name = self.create(pod)["metadata"]["name"]
        phases = ("Succeeded", "Failed")
        self.until(f"pod {name} ended", lambda: self.read(name)["status"]["phase"] in phases)
        log = self._cluster.kubectl("logs", name, f"--namespace={LAB}")
        phase: str = self.read(name)["status"]["phase"]
        self._transcript.add(f"kubectl logs {name}  # {phase}", log)
        return phase, log

    def explained(self, pod: str, *how: str) -> dict[str, Any]:
        """Return the explanation of a pod by `why`, as JSON."""
        ran = rdma_webhook(*self._why_command(pod, *how), "-o", "json")
        assert ran.returncode in (0, 1), ran.stderr
        (explanation,) = json.loads(ran.stdout)["pods"]
        return dict(explanation)

    def explained_text(self, pod: str, *how: str) -> str:
        """Return the explanation of a pod by `why`, as text, its lines joined."""
        return " ".join(self._transcript.run(*self._why_command(pod, *how)).split())

    def _why_command(self, pod: str, *how: str) -> tuple[str | Path, ...]:
        return ("why", pod, *how, "-n", LAB, "--kubeconfig", self._cluster.kubeconfig)

    def judged(self, log: str) -> dict[str, Any]:
        """Return the result of `verify judge` for a log."""
        words = ("verify", "judge", "--rate", "10")
        self._transcript.run(*words, "-", text=log)
        form: dict[str, Any] = json.loads(rdma_webhook(*words, "-o", "json", "-", text=log).stdout)
        return form

    def exec(self, pod: str, command: str) -> str:
        """Run a command of the shell in a pod; return its output."""
        arguments = (pod, f"--namespace={LAB}", "--", "sh", "-c", command)
        printed = self._cluster.kubectl("exec", *arguments)
        self._transcript.add(f"kubectl exec {pod} -- sh -c {command!r}", printed)
        return printed

    def delete(self, pod: str) -> None:
        """Delete a pod, and wait until it is gone."""
        self._cluster.kubectl("delete", "pod", pod, f"--namespace={LAB}", "--now")


@pytest.fixture
def lab(cluster: Cluster, transcript: Transcript, fabric: str) -> PodRuns:
    """Return the lab, once the node's fabric is known."""
    assert fabric
    return PodRuns(cluster, transcript)


def _codes(explained: dict[str, Any]) -> set[str]:
    return {finding["code"] for chapter in explained["chapters"] for finding in chapter["findings"]}


def _resource(cluster: Cluster) -> str:
    (resource,) = [name for name in _allocatable(cluster) if name.startswith("rdma/")]
    return resource


def _annotations(fabric: str, **extra: str) -> dict[str, str]:
    return {"rdma.lab/enable": "true", "rdma.lab/fabric": fabric, **extra}


def test_an_annotated_pod_registers_memory_and_measures(
    cluster: Cluster, lab: PodRuns, fabric: str
) -> None:
    """The annotation brings the device and IPC_LOCK, and drops a limit that would kill the pod."""
    phase, log = lab.run_to_end(_pod("annotated", _annotations(fabric), _MEMORY))
    assert phase == "Succeeded", log
    judged = lab.judged(log)
    assert (judged["level"], judged["code"]) == ("unsure", "Loopback"), log
    assert [result["gbps"] > 0 for result in judged["results"]] == [True, True]
    (container,) = lab.read("annotated")["spec"]["containers"]
    assert container["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    assert container["resources"]["limits"] == {_resource(cluster): "1"}
    explained = lab.explained("annotated", "--logs")
    assert (explained["rdma"], explained["answer"]["code"]) == ("yes", "Equipped")
    assert "equipped for RDMA over" in lab.explained_text("annotated", "--logs")


def test_without_the_annotation_memory_is_refused(cluster: Cluster, lab: PodRuns) -> None:
    """The same pod, with the device but without IPC_LOCK, fails, and both commands explain it."""
    phase, log = lab.run_to_end(_pod("without-ipc-lock", {}, {_resource(cluster): "1"}))
    assert phase == "Failed", log
    judged = lab.judged(log)
    assert (judged["level"], judged["code"]) == ("error", "PerftestNoMemory"), log
    explained = lab.explained("without-ipc-lock", "--logs")
    text = lab.explained_text("without-ipc-lock", "--logs")
    assert (explained["rdma"], explained["answer"]["code"]) == ("no", "PerftestNoMemory")
    assert "NotOptedIn" in _codes(explained)
    assert 'Set rdma.lab/enable: "true"' in text
    assert "Run the process as root with the capability IPC_LOCK" in text


def test_without_the_annotation_there_is_no_device(lab: PodRuns) -> None:
    """The same pod, without the resource, has no device at all, and both commands report it."""
    phase, log = lab.run_to_end(_pod("without-device", {}, {}))
    assert phase == "Failed", log
    judged = lab.judged(log)
    assert (judged["level"], judged["code"]) == ("error", "NoRdmaDevice"), log
    explained = lab.explained("without-device", "--logs")
    text = lab.explained_text("without-device", "--logs")
    assert (explained["rdma"], explained["answer"]["code"]) == ("no", "NotOptedIn")
    assert "NoRdmaDevice" in _codes(explained)
    assert 'Set rdma.lab/enable: "true"' in text


def test_a_limit_that_is_kept_kills(lab: PodRuns, fabric: str) -> None:
    """Registered memory counts against the limit; IPC_LOCK does not help against that."""
    annotations = _annotations(fabric, **{"rdma.lab/memory-limit": "keep"})
    phase, log = lab.run_to_end(_pod("limit-kept", annotations, _MEMORY))
    assert phase == "Failed", log
    assert "Couldn't allocate MR" not in log
    explained = lab.explained("limit-kept", "--logs")
    text = lab.explained_text("limit-kept", "--logs")
    assert "OOMKilled" in _codes(explained)
    assert "used more memory than its limit of 48Mi and was killed (OOMKilled)" in text


def test_registered_memory_is_seen(lab: PodRuns, fabric: str) -> None:
    """`why --exec` sees the memory that a process of the pod has registered: VmPin."""
    lab.create(_pod("waiting", _annotations(fabric), {}, _WAITING))
    lab.until("waiting runs", lambda: lab.read("waiting")["status"]["phase"] == "Running")
    lab.until(
        "memory registered",
        lambda: "MemoryRegistered" in _codes(lab.explained("waiting", "--exec")),
    )
    text = lab.explained_text("waiting", "--exec")
    assert "(ibv_rc_pingpong) has registered 32 MiB of memory: it uses RDMA." in text
    pinned = lab.exec("waiting", "grep VmPin /proc/[0-9]*/status")
    assert "32768 kB" in pinned
    lab.delete("waiting")
