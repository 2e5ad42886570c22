"""Nodes of the API server, from a file or live."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.diagnose.discover.cluster import cluster_findings, items_of, kube_nodes, read_cluster
from webhook.errors import ClusterError
from webhook.kube.api import Query, StatusError

NODE = {
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.product": "A100-SXM4-40GB-SHARED"}},
    "status": {"allocatable": {"cpu": "80", "nvidia.com/gpu": "8", "rdma/ib": 63, "x/y": "many",
                               "nvidia.com/hostdev": "2", "nvidia.com/mig-1g.5gb": "1",
                               "x/odd": "9" * 5000, "x/most": "9" * 18}},
}  # fmt: skip


def test_a_node_has_labels_and_extended_resources() -> None:
    """GPUs and RDMA resources are distinguished; only integers count."""
    node = kube_nodes([NODE, {"kind": "Pod", "metadata": {"name": "p"}}])["n1"]
    assert node.gpu_product == "A100-SXM4-40GB"
    assert node.gpu_resources == ("nvidia.com/gpu",)
    assert node.rdma_resources == ("rdma/ib",)
    assert "cpu" not in node.resources
    assert "x/y" not in node.resources
    assert "x/odd" not in node.resources  # a kubelet may report it, and Python reads 4,300 digits
    assert node.resources["x/most"] == 10**18 - 1


@pytest.mark.parametrize(
    "label",
    ["NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "NVIDIA-H100-80GB-HBM3-MIG-INVALID"],
    ids=["slice", "mixed"],
)
def test_slices_do_not_change_the_product(label: str) -> None:
    """The product has the form that the fabrics file compares."""
    node = {"kind": "Node", "metadata": {"name": "n", "labels": {"nvidia.com/gpu.product": label}}}
    assert kube_nodes([node])["n"].gpu_product == "NVIDIA-H100-80GB-HBM3"


def test_lists_are_taken_apart() -> None:
    """Lists of kubectl, and typed lists, whose items have no kind."""
    typed = {"kind": "NodeList", "items": [{"metadata": {"name": "n1"}}, "no object"]}
    mixed = {"kind": "List", "items": [NODE, typed]}
    assert [kube_object.get("kind") for kube_object in items_of(mixed)] == ["Node", "Node"]
    assert list(items_of("text")) == []


def test_objects_of_device_plugins_are_reported() -> None:
    """Notes name a replaced driver, configured resources, and DRA drivers."""
    config = '{"configList": [{"resourceName": "ib"}, {"resourceName": 3}]}'
    findings = cluster_findings(
        [
            {"kind": "NicClusterPolicy", "metadata": {"name": "p"}, "spec": {
                "ofedDriver": {"image": "x"}, "rdmaSharedDevicePlugin": {"config": config}}},
            {"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "lab"},
             "data": {"config.json": config}},
            {"kind": "ConfigMap", "metadata": {"name": "other"}, "data": {"config.json": "{"}},
            {"kind": "ConfigMap", "metadata": {"name": "none"}},
            {"kind": "ResourceSlice", "spec": {"driver": "dra.net", "nodeName": "n1"}},
            {"kind": "ResourceSlice", "spec": {"driver": "gpu.nvidia.com", "nodeName": "n1"}},
        ]
    )  # fmt: skip
    assert [finding.text for finding in findings] == [
        "NicClusterPolicy p has ofedDriver, which replaces the nodes' RDMA driver",
        "NicClusterPolicy p configures the RDMA shared device plugin for rdma/ib",
        "ConfigMap lab/c configures the RDMA shared device plugin for rdma/ib",
        "the DRA driver dra.net offers devices, but none is known as an RDMA device",
    ]
    assert all(finding.level == "info" for finding in findings)


class _Api:
    """An API server that answers lists, and refuses unknown ones with a code."""

    def __init__(self, lists: dict[str, list[list[Any]]], code: int = 403) -> None:
        self._lists = lists
        self._code = code

    def get(self, path: str, query: Query) -> dict[str, Any]:
        if path not in self._lists:
            raise StatusError(self._code, "refused")
        pages = self._lists[path]
        at = int(query.get("continue", 0))
        after = {"continue": str(at + 1)} if at + 1 < len(pages) else {}
        return {"items": pages[at], "metadata": after}

    def stream(self, path: str, query: Query, silence: float) -> Any:
        raise NotImplementedError


NODES = {"/api/v1/nodes": [[{"metadata": {"name": "n1"}}], [{"metadata": {"name": "n2"}}]]}


def test_all_pages_of_a_cluster_are_read() -> None:
    """Items of a typed list get its kind; of ConfigMaps, only those of a plugin stay."""
    config = {"config.json": '{"configList": [{"resourceName": "ib"}]}'}
    config_maps = [{"data": {"config.json": "{}"}}, {"data": config}, {}]
    live = read_cluster(_Api({**NODES, "/api/v1/configmaps": [config_maps]}, 404))
    assert [item["kind"] for item in live.items] == ["Node", "Node", "ConfigMap"]
    assert live.items[2]["data"] == config
    assert set(kube_nodes(live.items)) == {"n1", "n2"}
    assert live.unread_messages == ()


def test_refused_lists_are_reported() -> None:
    """Each refused list has a sentence; a missing kind would have none."""
    assert read_cluster(_Api(NODES)).unread_messages == tuple(
        f"cannot list {name}, so they are not used: the API server answered 403: refused"
        for name in ("nicclusterpolicies", "configmaps", "resourceslices", "deviceclasses")
    )


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (403, "403: refused; --nodes needs only the right to list nodes"),
        (401, "401: refused"),
    ],
    ids=["forbidden", "unauthorized"],
)
def test_without_nodes_there_is_nothing(code: int, message: str) -> None:
    """One sentence has the refusal, and the right that is enough."""
    with pytest.raises(ClusterError) as raised:
        read_cluster(_Api({}, code))
    assert str(raised.value) == f"cannot list nodes: the API server answered {message}"
