"""The DaemonSet that collects the output of tools on nodes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from webhook.diagnose.discover.inputs import collect_script, daemonset

IMAGE = "registry.example.com:5000/tools@sha256:0123"
RUN = "1a2b3c4d"
NAME = f"rdma-webhook-discover-{RUN}"


@pytest.fixture
def documents() -> list[dict[str, Any]]:
    """Return the documents of the manifest."""
    return list(yaml.safe_load_all(daemonset(IMAGE, "rdma-tools", RUN)))


def test_the_script_is_mounted_as_it_is(documents: list[dict[str, Any]]) -> None:
    """The pods run the printed script from a ConfigMap: the kubelet would change `$$`."""
    config_map, daemon_set = documents
    spec = daemon_set["spec"]["template"]["spec"]
    (collect,) = spec["initContainers"]
    assert config_map["data"]["collect.sh"] == collect_script()
    assert spec["volumes"][0]["configMap"]["name"] == config_map["metadata"]["name"]
    mount = collect["volumeMounts"][0]["mountPath"]
    assert collect["command"] == ["sh", f"{mount}/collect.sh"]


def test_image_and_namespace_are_those_that_were_given(documents: list[dict[str, Any]]) -> None:
    """Both containers have the image, and all objects the namespace."""
    spec = documents[1]["spec"]["template"]["spec"]
    images = {
        container["image"] for kind in ("initContainers", "containers") for container in spec[kind]
    }
    assert images == {IMAGE}
    assert {document["metadata"]["namespace"] for document in documents} == {"rdma-tools"}
    assert "kubectl -n rdma-tools logs" in daemonset(IMAGE, "rdma-tools", RUN)


def test_the_node_is_named_by_kubernetes(documents: list[dict[str, Any]]) -> None:
    """The header of the output has the node's name in the API server."""
    (collect,) = documents[1]["spec"]["template"]["spec"]["initContainers"]
    (node,) = collect["env"]
    assert node["name"] == "DISCOVER_NODE"
    assert node["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"
    assert "${DISCOVER_NODE:-}" in collect_script()


def test_the_pods_have_no_rights_that_they_do_not_need(documents: list[dict[str, Any]]) -> None:
    """They have the node's network, and no other access: no token, root or capability."""
    spec = documents[1]["spec"]["template"]["spec"]
    assert spec["hostNetwork"] is True
    assert not {"hostPID", "hostIPC"} & spec.keys()
    assert [set(volume) - {"name"} for volume in spec["volumes"]] == [{"configMap"}]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    for container in (*spec["initContainers"], *spec["containers"]):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_it_runs_on_every_linux_node(documents: list[dict[str, Any]]) -> None:
    """GPU nodes are often tainted."""
    daemon_set = documents[1]["spec"]
    assert daemon_set["template"]["spec"]["tolerations"] == [{"operator": "Exists"}]


def test_only_pods_of_this_run_are_selected(documents: list[dict[str, Any]]) -> None:
    """Names, labels, selector and commands have the run's random digits."""
    labels = {
        "app.kubernetes.io/name": "rdma-webhook-discover",
        "app.kubernetes.io/instance": NAME,
    }
    for document in documents:
        assert (document["metadata"]["name"], document["metadata"]["labels"]) == (NAME, labels)
    spec = documents[1]["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"] == labels
    comment = daemonset(IMAGE, "x", RUN).partition("apiVersion")[0]
    for words in (f"status daemonset/{NAME} ", f"logs -l app.kubernetes.io/instance={NAME} ",
                  "--tail=-1"):  # fmt: skip
        assert words in comment


@pytest.mark.parametrize("image", ['a"b', "a: b", "x # y", "@NAMESPACE@"])
def test_an_image_cannot_change_the_manifest(image: str) -> None:
    """Any text given as an image stays a single value."""
    spec = list(yaml.safe_load_all(daemonset(image, "x", RUN)))[1]["spec"]["template"]["spec"]
    assert spec["containers"][0]["image"] == image
