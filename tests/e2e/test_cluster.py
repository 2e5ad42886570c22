"""The cluster itself: a node that runs pods, the network of pods and machine, and the cleanup."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import cgroups, lifetime, state
from tests.cluster.cluster import Cluster, KubectlError, attach, running
from tests.cluster.images import pause_image, webhook_image
from tests.cluster.namespaces import NamespaceError
from tests.cluster.network import BRIDGE, Network
from tests.cluster.node import NAME
from tests.waiting import until

_ROOT = Path(__file__).parents[2]

#: The program of a pod that serves, and one that calls the API server from a pod.
_SERVE = "import http.server; http.server.test(http.server.SimpleHTTPRequestHandler, port=8000)"
_ASK_API_SERVER = """
import ssl, sys, urllib.request
mounted = "/var/run/secrets/kubernetes.io/serviceaccount/"
trusted = ssl.create_default_context(cafile=mounted + "ca.crt")
token = open(mounted + "token").read()
url = "https://kubernetes.default.svc/api/v1/namespaces/default"
request = urllib.request.Request(url, headers={"Authorization": "Bearer " + token})
try:
    urllib.request.urlopen(request, context=trusted)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


def _pod(name: str, image: str, **spec: Any) -> dict[str, Any]:
    resources = spec.pop("resources", {})
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["/app/bin/python", "-c", _SERVE],
        "resources": resources,
        "readinessProbe": {"tcpSocket": {"port": 8000}, "periodSeconds": 1},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def _service(name: str, app: str, **spec: Any) -> dict[str, Any]:
    ports = [{"port": 80, "targetPort": 8000}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": app}, "ports": ports, **spec},
    }


def _create(cluster: Cluster, *objects: dict[str, Any]) -> None:
    manifest = {"apiVersion": "v1", "kind": "List", "items": objects}
    cluster.kubectl("create", "--filename=-", input=json.dumps(manifest))


def _ready(cluster: Cluster, pod: str) -> None:
    cluster.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=300s")


def _python(cluster: Cluster, pod: str, program: str) -> str:
    """Run a program in a pod; return its output, with its error if it fails."""
    return cluster.kubectl("exec", pod, "--", "/app/bin/python", "-c", program, check=False)


@pytest.fixture(scope="module")
def image(cluster: Cluster) -> str:
    """Load an image with Python onto the node."""
    python_image = webhook_image()
    cluster.load(python_image.archive)
    return python_image.name


@pytest.fixture(scope="module")
def server(cluster: Cluster, image: str) -> Iterator[str]:
    """Run a pod that serves on port 8000, with a Service of the same name and a headless one."""
    _create(
        cluster,
        _pod("cluster-test", image, hostname="first", subdomain="cluster-test-headless"),
        _service("cluster-test", "cluster-test"),
        _service("cluster-test-headless", "cluster-test", clusterIP="None"),
    )
    _ready(cluster, "cluster-test")
    yield "cluster-test"
    cluster.kubectl("delete", "pod/cluster-test", "service/cluster-test", "--wait=false")
    cluster.kubectl("delete", "service/cluster-test-headless", "--wait=false")


def test_node_is_ready_and_has_the_requested_minor(cluster: Cluster) -> None:
    """Kubelet and API server have the requested minor version, and the node is ready."""
    node = json.loads(cluster.kubectl("get", "node", NAME, "--output=json"))
    version = json.loads(cluster.kubectl("get", "--raw=/version"))

    ready = [
        condition["status"]
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready"
    ]
    assert ready == ["True"]
    assert node["status"]["nodeInfo"]["kubeletVersion"].startswith(f"v{cluster.minor}.")
    assert f"{version['major']}.{version['minor']}" == cluster.minor
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == NAME


def test_pod_runs_and_can_be_inspected(cluster: Cluster, server: str) -> None:
    """`kubectl logs` and `exec` reach the kubelet."""
    assert _python(cluster, server, "print(6 * 7)") == "42\n"
    until(lambda: "Serving HTTP" in cluster.kubectl("logs", server))


def test_pod_finds_services_and_pods_by_name(cluster: Cluster, server: str) -> None:
    """A Service resolves to its address, a headless one to its pods', a host name to its pod's."""
    names = [server, f"{server}-headless", f"first.{server}-headless"]
    program = f"import socket; [print(socket.gethostbyname(name)) for name in {names}]"

    addresses: list[str] = []

    def all_resolved() -> bool:
        printed = _python(cluster, server, program)  # CoreDNS may not know a name yet
        addresses[:] = printed.split()
        return len(addresses) == len(names) and "Error" not in printed

    until(all_resolved, lambda: addresses)
    service, headless, pod = addresses
    assert service == _field(cluster, f"service/{server}", "{.spec.clusterIP}")
    assert headless == pod == _field(cluster, f"pod/{server}", "{.status.podIP}")


def test_pod_reaches_the_api_server_as_its_service_account(cluster: Cluster, server: str) -> None:
    """It uses the Service kubernetes.default, whose certificate is valid, with its token."""
    printed = [""]

    def is_answered() -> bool:
        printed[0] = _python(cluster, server, _ASK_API_SERVER)
        return "URLError" not in printed[0]  # CoreDNS may not know the name yet

    until(is_answered)
    assert printed[0].startswith("403 ")
    assert "system:serviceaccount:default:default" in printed[0]


def test_service_is_reached_from_everywhere(cluster: Cluster, server: str) -> None:
    """It is reached from the machine, from the API server's proxy and from the pod behind it."""
    address = _field(cluster, f"service/{server}", "{.spec.clusterIP}")

    # Endpoints and kube-proxy's rules follow the pod's readiness after a moment.
    until(lambda: _connects(address))
    proxy = f"--raw=/api/v1/namespaces/default/services/{server}:80/proxy/"
    until(lambda: "Directory listing" in cluster.kubectl("get", proxy, check=False))
    program = f"import urllib.request; print(urllib.request.urlopen('http://{server}/').status)"
    until(lambda: _python(cluster, server, program) == "200\n")


def _connects(address: str) -> bool:
    with socket.create_connection((address, 80), timeout=60):
        return True


def test_pod_reaches_the_machine(cluster: Cluster, server: str) -> None:
    """Pods can call test servers on the machine."""
    with socket.create_server((cluster.network.machine, 0)) as listener:
        port = listener.getsockname()[1]
        call = f"socket.create_connection(('{cluster.network.machine}', {port}), timeout=60)"
        assert _python(cluster, server, f"import socket; {call}") == ""


def test_node_has_the_resources_that_it_advertises(cluster: Cluster, image: str) -> None:
    """The scheduler counts the resources, and the kubelet admits the pod that requests them."""
    cluster.advertise({"example.com/thing": "2"})
    limits = {"limits": {"example.com/thing": "2"}}
    _create(cluster, _pod("things", image, resources=limits))
    _ready(cluster, "things")
    _create(cluster, _pod("more-things", image, resources=limits))

    until(lambda: "Insufficient example.com/thing" in _scheduling(cluster, "more-things"))
    cluster.kubectl("delete", "pod/things", "pod/more-things", "--wait=false")


def _scheduling(cluster: Cluster, pod: str) -> str:
    return _field(cluster, f"pod/{pod}", "{.status.conditions[?(@.type=='PodScheduled')].message}")


def test_fake_nodes_take_the_pods_that_ask_for_them_and_no_others(
    cluster: Cluster, image: str
) -> None:
    """Fake nodes have labels and resources like others, and a taint."""
    nodes = cluster.fake_nodes(2, {"example.com/kind": "fake"}, {"example.com/other": "1"})
    selector = {"nodeSelector": {"example.com/kind": "fake"}}
    asks = {"resources": {"limits": {"example.com/other": "1"}}}
    tolerates = {"tolerations": [{"operator": "Exists"}]}
    _create(
        cluster,
        _pod("welcome", image, **selector, **asks, **tolerates),
        _pod("unwelcome", image, **selector, **asks),
    )

    _ready(cluster, "welcome")
    assert _field(cluster, "pod/welcome", "{.spec.nodeName}") in nodes
    until(lambda: "untolerated taint" in _scheduling(cluster, "unwelcome"))
    cluster.kubectl("delete", "pod/welcome", "pod/unwelcome", "--wait=false")
    cluster.kubectl("delete", "node", *nodes)


def test_a_program_next_to_the_cluster_can_be_started_and_stopped(cluster: Cluster) -> None:
    """It runs inside, uses the administrator's kubeconfig, and logs its output."""
    program = "import sys, time; print(open(sys.argv[1]).read(), flush=True); time.sleep(600)"
    process = cluster.start("beside", [sys.executable, "-c", program, cluster.kubeconfig])

    until(lambda: cluster.network.gateway in process.log.read_text())
    assert not process.ended()
    process.stop()
    assert process.ended()


def test_failures_show_the_commands_message(cluster: Cluster) -> None:
    """An error has the command's own message, unless the failure was expected."""
    with pytest.raises(KubectlError, match=r'namespaces "nowhere" not found'):
        cluster.kubectl("get", "namespace", "nowhere")
    assert "not found" in cluster.kubectl("get", "namespace", "nowhere", check=False)
    with pytest.raises(NamespaceError, match=r"no-such-file"):
        cluster.exec("cat", "/no-such-file")


def test_machine_does_not_notice(cluster: Cluster) -> None:
    """Bridge, packet filter and kernel settings are the cluster's own."""
    settings = ("panic", "panic_on_oops")
    files = [f"/proc/sys/kernel/{name}" for name in settings]

    assert BRIDGE in cluster.exec("ip", "link")
    assert BRIDGE not in _machine("ip", "link")
    assert "kube-proxy" in cluster.exec("nft", "list", "tables")
    assert "kube-proxy" not in _machine("nft", "list", "tables")
    assert cluster.exec("cat", *files) == "10\n1\n"
    assert cluster.exec("ls", "/run/containerd") != ""
    mounts = Path("/proc/self/mountinfo").read_text()
    assert str(cluster.directory) not in mounts


def test_nothing_is_left_of_a_cluster_that_was_taken_down(cluster: Cluster, tmp_path: Path) -> None:
    """No process, mount, device, route, cgroup or file is left; the other cluster keeps running."""
    with running(cluster.minor, tmp_path / "second") as second:
        for target in (second, cluster):
            _create(target, _small_pod("small"))
        _ready(second, "small")
        assert _traces(second) == {"process", "mount", "cgroup", "device", "route", "file"}

    assert _traces(second) == set()
    _ready(cluster, "small")
    cluster.kubectl("delete", "pod/small", "--wait=false")


def _small_pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": pause_image().name, "imagePullPolicy": "Never"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }


@pytest.fixture
def victim(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[subprocess.Popen[str], Cluster]]:
    """Start a cluster in a separate process, with its own folder of clusters."""
    monkeypatch.setenv(
        "XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME") or f"{Path.home()}/.cache"
    )
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    program = (
        "import sys, time; from tests.cluster.cluster import running\n"
        "with running(sys.argv[1]) as cluster:\n"
        "    print(cluster.directory, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, cluster.minor], cwd=_ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            attached = attach(Path(process.stdout.readline().strip()))
            assert attached is not None
            yield process, attached
        finally:
            process.kill()


def test_nothing_is_left_of_a_cluster_whose_owner_was_killed(
    victim: tuple[subprocess.Popen[str], Cluster],
) -> None:
    """Nothing is left even if the owner had no chance to clean up."""
    process, cluster = victim
    assert _traces(cluster) != set()

    process.kill()

    until(lambda: not _traces(cluster))


def test_next_start_removes_what_is_left_of_a_cluster_without_a_guard(
    victim: tuple[subprocess.Popen[str], Cluster],
) -> None:
    """Its processes end with their owner; the next start removes its cgroup and files."""
    process, cluster = victim
    for guard in _processes(lambda argv: "tests.cluster.guard" in argv and _names(cluster, argv)):
        os.kill(guard, signal.SIGKILL)

    process.kill()

    until(lambda: _traces(cluster) == {"cgroup", "file"})
    assert cluster.directory.parent == state.home()
    lifetime.sweep()
    assert _traces(cluster) == set()


def _traces(cluster: Cluster) -> set[str]:
    """Return the kinds of traces that a cluster has on this machine."""
    cgroup = cgroups.name_for(cluster.directory)
    network: Network = cluster.network
    traces = {
        "process": bool(_processes(lambda argv: _names(cluster, argv)) or _members(cgroup)),
        "mount": any(_mounts(cluster.directory)),
        "cgroup": any(path.exists() for path in cgroups.paths(cgroup)),
        "device": f"{network.device}@" in _machine("ip", "link"),
        "route": str(network.pods) in _machine("ip", "route"),
        "file": cluster.directory.exists(),
    }
    return {kind for kind, present in traces.items() if present}


def _processes(matches: Callable[[str], bool]) -> list[int]:
    """Return the processes with such a command line; a dead one has none."""
    pids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            argv = path.read_text()
        except OSError:
            continue
        if matches(argv):
            pids.append(int(path.parent.name))
    return pids


def _names(cluster: Cluster, argv: str) -> bool:
    return str(cluster.directory) in argv


def _members(cgroup: str) -> list[str]:
    procs = (file for path in cgroups.paths(cgroup) for file in path.rglob("cgroup.procs"))
    return [pid for file in procs for pid in file.read_text().split()]


def _mounts(directory: Path) -> Iterator[bool]:
    """Look for the directory in the mounts of every process."""
    for path in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            yield f"{directory}/" in path.read_text()
        except OSError:
            continue


def _field(cluster: Cluster, resource: str, path: str) -> str:
    return cluster.kubectl("get", resource, f"--output=jsonpath={path}")


def _machine(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
