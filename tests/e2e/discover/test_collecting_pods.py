"""The manifest of `discover daemonset` collects on each node, and leaves nothing behind.

No node here has an RDMA device; the script's output for devices is tested with made-up ones.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.node import NAME as REAL
from tests.e2e.discover.running import discover
from tests.e2e.documents import apply
from tests.e2e.installed.space import Space
from tests.e2e.rights import service_account, wait_for_right
from tests.waiting import until
from webhook.diagnose.discover.inputs import NodeText, read_texts
from webhook.diagnose.tools.observations import InterfaceObservation, PropertyObservation

LABEL = "app.kubernetes.io/name=rdma-webhook-discover"
ACCOUNT = "collector"
#: The rights that the manifest's comment lists.
RULES = [
    {
        "apiGroups": ["", "apps"],
        "resources": ["configmaps", "daemonsets"],
        "verbs": ["get", "list", "watch", "create", "patch", "delete"],
    },
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
]


@pytest.fixture(scope="module")
def manifest(space: Space, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the printed manifest, for the test's namespace and an image of the cluster."""
    file = tmp_path_factory.mktemp("daemonset") / "discover.yaml"
    ran = discover("daemonset", "--namespace", space.name, "--image", space.image)
    assert ran.code == 0
    file.write_text(ran.out, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def account(space: Space) -> list[str]:
    """Give an account the rights that the manifest lists; return kubectl's options to act as it."""
    meta = {"name": ACCOUNT, "namespace": space.name}
    authorization = "rbac.authorization.k8s.io"
    apply(
        space.cluster,
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{authorization}/v1", "kind": "Role", "metadata": meta, "rules": RULES},
        {
            "apiVersion": f"{authorization}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": authorization, "kind": "Role", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", **meta}],
        },
    )
    user = service_account(space.name, ACCOUNT)
    wait_for_right(space.cluster, user, "get", "pods/log", space=space.name)
    return [f"--as={user}"]


def commands(manifest: Path) -> list[list[str]]:
    """Return kubectl's commands of the manifest's comment, as words."""
    head = manifest.read_text(encoding="utf-8").partition("apiVersion")[0]
    text = re.sub(r"\\\n#", " ", head)
    lines = re.findall(r"^#\s+kubectl (.+?)(?: \| .*)?$", text, re.MULTILINE)
    return [line.replace("FILE", str(manifest)).split() for line in lines]


@pytest.fixture(scope="module")
def collected(space: Space, manifest: Path, account: list[str], a100_node: str) -> str:
    """Run the commands of the comment, all but the last, and return the logs.

    A made-up node has no logs: it is like a node that does not answer. Another pod of the namespace
    has the label of all runs.
    """
    assert a100_node
    *before, logs, _ = commands(manifest)
    stranger(space)
    for words in before:
        space.cluster.kubectl(*account, *words)
    return space.cluster.kubectl(*account, *logs)


def stranger(space: Space) -> None:
    """Run a pod that pretends to be one of the DaemonSet's, and reports a node of its own."""
    claims = "echo '### rdma-webhook discover: 1'; echo '### host: made-up'"
    pod = space.pod("stranger", annotations={}, nodeName=REAL)
    pod["metadata"]["labels"] = {"app.kubernetes.io/name": "rdma-webhook-discover"}
    (main,) = pod["spec"]["containers"]
    pod["spec"]["initContainers"] = [{**main, "name": "collect", "command": ["sh", "-c", claims]}]
    space.create(pod)
    space.wait_until_started("stranger")
    assert "made-up" in space.kubectl("logs", "stranger", "--container=collect")


def pod_on_the_real_node(space: Space) -> dict[str, Any]:
    """Return the pod that collects on the real node."""
    on_it = f"--field-selector=spec.nodeName={REAL}"
    of_runs = f"{LABEL},app.kubernetes.io/instance"
    pods = json.loads(space.kubectl("get", "pods", "-l", of_runs, on_it, "--output=json"))
    (pod,) = pods["items"]
    assert isinstance(pod, dict)
    return pod


def test_the_logs_are_read_as_a_node(collected: str) -> None:
    """The node has its own name, and a finding that it has no RDMA device.

    A pod that is not of this run is not read.
    """
    ran = discover("-", "-o", "json", stdin=collected)
    assert ran.code == 1
    (node,) = ran.form["nodes"]
    assert node["name"] == REAL
    # kubectl complains about a pod on a node that does not exist, and discover quotes that.
    (finding,) = (entry for entry in ran.form["findings"] if entry["code"] != "LinesUnread")
    assert finding["code"] == "NodeWithoutRdmaDevice"
    assert finding["location"] == {"nodes": [REAL]}


def test_the_node_is_seen_from_its_pod(collected: str) -> None:
    """The node's interfaces, and the memory that containerd lets containers lock."""
    readings = read_texts([NodeText("logs", "stdin", collected)])
    assert readings.problems == ()
    observations = [sourced.observation for sourced in readings.nodes[REAL]]
    assert any(isinstance(observation, InterfaceObservation) for observation in observations)
    properties = {
        observation.name
        for observation in observations
        if isinstance(observation, PropertyObservation)
    }
    assert {"kernel", "memlock"} <= properties


def test_the_pods_may_do_nothing_else(space: Space, collected: str) -> None:
    """No token, no capability, no user with rights, and nothing of the node but its network."""
    assert collected
    spec = pod_on_the_real_node(space)["spec"]
    assert [set(volume) for volume in spec["volumes"]] == [{"name", "configMap"}]
    assert spec["securityContext"]["runAsUser"] == 65534
    assert {key for key in spec if key.startswith("host")} <= {"hostNetwork"}
    for container in (*spec["initContainers"], *spec["containers"]):
        context = container["securityContext"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["allowPrivilegeEscalation"] is False


def test_a_restricted_namespace_takes_it_without_the_nodes_network(
    space: Space, manifest: Path
) -> None:
    """The comment names the only line that Pod Security forbids."""
    level = "pod-security.kubernetes.io/enforce=restricted"
    space.cluster.kubectl("create", "namespace", "restricted-nodes")
    space.cluster.kubectl("label", "namespace", "restricted-nodes", level)
    (daemonset,) = (
        document
        for document in yaml.safe_load_all(manifest.read_text(encoding="utf-8"))
        if document["kind"] == "DaemonSet"
    )
    spec = daemonset["spec"]["template"]["spec"]
    answers = []
    for network in (True, False):
        pod = {**spec, "hostNetwork": network}
        meta = {"name": "collects", "namespace": "restricted-nodes"}
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod}
        dry = ("create", "--dry-run=server", "--filename=-")
        answers.append(space.cluster.kubectl(*dry, input=json.dumps(document), check=False))
    space.cluster.kubectl("delete", "namespace", "restricted-nodes", "--wait=false")
    assert "host namespaces (hostNetwork=true)" in answers[0]
    assert answers[1] == "pod/collects created (server dry run)\n"


def test_deleting_it_leaves_nothing(space: Space, manifest: Path, account: list[str]) -> None:
    """The last command of the comment removes the ConfigMap, the DaemonSet and its pods."""
    first, *_, delete = commands(manifest)
    space.cluster.kubectl(*account, *first)
    space.cluster.kubectl(*account, *delete)
    space.delete("stranger")
    kinds = "daemonsets,pods,configmaps,controllerrevisions"
    until(lambda: not space.cluster.kubectl("get", kinds, "-A", "-l", LABEL, "--output=name"))
