"""The devices that DRA drivers offer, by ResourceSlices and DeviceClasses."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.case_names import case_name
from tests.unit.diagnose.discover.observed_nodes import discovered, gpus, observed, port
from webhook.diagnose.discover.cluster import claimable_devices, cluster_findings, kube_nodes
from webhook.diagnose.discover.fabric_entry import FabricEntryForm
from webhook.diagnose.discover.plugin.files import plugin_files
from webhook.diagnose.discover.site import ClaimableDevices, DiscoverOptions, KubeNode

ROOT = "resource.kubernetes.io/pcieRoot"
A100 = "NVIDIA-A100-SXM4-40GB"


def device(root: str = "", **attributes: Any) -> dict[str, Any]:
    """Make a device; `rdma=True` is an attribute of the driver's own domain."""
    flags = {f"dra.net/{key}": {"bool": value} for key, value in attributes.items()}
    return {"name": "x", "attributes": {**flags, **({ROOT: {"string": root}} if root else {})}}


def slices(driver: str, *devices: Any, node: Any = "n1") -> dict[str, Any]:
    """Make a ResourceSlice."""
    spec = {"driver": driver, "nodeName": node, "devices": [*devices]}
    return {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}


def class_of(name: str, *expressions: str) -> dict[str, Any]:
    """Make a DeviceClass."""
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return {"kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": selectors}}


NICS = slices("dra.net", device("a", rdma=True), device("b", rdma=True), device(rdma=False))
NIC_CLASS = class_of("rdma-nic", 'device.driver == "dra.net"')
GPUS = slices("gpu.nvidia.com", device("b"), device("a"))
GPU_CLASS = class_of("gpus", "device.driver == 'gpu.nvidia.com'")


def test_rdma_devices_are_distinguished() -> None:
    """The attribute decides; without it, the name of the driver."""
    assert claimable_devices([NICS, NIC_CLASS]) == {
        "n1": ClaimableDevices("dra.net", "rdma-nic", 2)
    }
    assert claimable_devices([slices("sriov.example.com", device(), {"name": "y"})]) == {
        "n1": ClaimableDevices("sriov.example.com", "", 2)
    }
    beta = {"name": "x", "basic": {"attributes": {"rdma": {"bool": True}}}}
    assert claimable_devices([slices("net.lab", beta)])["n1"].nic_count == 1
    assert claimable_devices([slices("net.lab", device()), slices("gpu.lab", device())]) == {}


@pytest.mark.parametrize(
    "item",
    [
        slices("dra.net", device(rdma=True), node=None),
        slices("dra.net", "text", {"attributes": []}),
        {"kind": "ResourceSlice"},
        {"kind": "ResourceSlice", "spec": {"driver": 1, "nodeName": "n1", "devices": [{}]}},
        {"kind": "ResourceSlice", "spec": {"driver": "dra.net", "nodeName": "n1"}},
        {"kind": "DeviceClass", "spec": {"selectors": "x"}},
    ],
    ids=case_name,
)
def test_what_is_of_no_use_is_left_out(item: Any) -> None:
    """Devices of no node, and objects in another form than the API server's."""
    assert claimable_devices([item]) == {}


def test_two_drivers_of_nics_leave_the_choice_open() -> None:
    """Neither of them is preferable for a pod."""
    assert claimable_devices([NICS, slices("sriov.example.com", device())]) == {}


@pytest.mark.parametrize(
    ("gpu", "aligned"),
    [
        (GPUS, True),
        (slices("gpu.nvidia.com", device("a"), device("c")), False),
        (slices("gpu.nvidia.com", device()), False),
    ],
    ids=("same roots", "another root", "no root"),
)
def test_gpus_are_aligned_if_each_has_a_nic_at_its_root(gpu: Any, aligned: bool) -> None:
    """The order of devices has no influence."""
    offer = claimable_devices([NICS, NIC_CLASS, gpu, GPU_CLASS])["n1"]
    assert (offer.gpu_class, offer.aligned) == ("gpus", aligned)


def test_gpus_of_two_drivers_are_not_claimed() -> None:
    """A template requests one class."""
    offer = claimable_devices([NICS, GPUS, slices("gpu.amd.com", device("a")), GPU_CLASS])["n1"]
    assert (offer.gpu_class, offer.gpu_count, offer.aligned) == ("", 0, False)


def test_a_class_for_rdma_goes_before_others() -> None:
    """Its expression or its name decides, in any order."""
    plain = class_of("aaa", 'device.driver == "dra.net"')
    by_text = class_of("bbb", 'device.driver == "dra.net"', 'device.attributes["dra.net"].rdma')
    for classes in ([plain, by_text], [by_text, plain], [plain, NIC_CLASS]):
        named = claimable_devices([NICS, *classes])["n1"].nic_class
        assert named == classes[1 if classes[0] is plain else 0]["metadata"]["name"]


def nodes(*items: Any, names: tuple[str, ...] = ("n1",), **resources: str) -> dict[str, KubeNode]:
    """Return the nodes of a cluster with these objects."""
    listed = [
        {
            "kind": "Node",
            "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": A100}},
            "status": {
                "allocatable": {f"nvidia.com/{key}": amount for key, amount in resources.items()}
            },
        }
        for name in names
    ]
    return kube_nodes([*listed, *items])


def planned(cluster_nodes: dict[str, KubeNode]) -> FabricEntryForm:
    """Return the only fabric of nodes with the same output of tools."""
    discovery = discovered(
        {name: observed(port("mlx5_0"), port("mlx5_1"), gpus()) for name in cluster_nodes},
        cluster_nodes,
    )
    (entry,) = discovery.entries
    return entry


def test_claims_are_written_where_a_driver_offers_nics() -> None:
    """The claim has only NICs if a device plugin offers the GPUs."""
    entry = planned(nodes(NICS, NIC_CLASS, GPUS, GPU_CLASS, gpu="8"))
    assert entry["mode"] == "dra"
    assert entry["claims"] == [{"template": "a100-ib-nics", "request": "nic"}]
    assert "resources" not in entry
    assert "hcas" not in entry
    assert entry["match"]["gpuResources"] == ["nvidia.com/gpu"]


def test_a_gpu_comes_with_its_nic() -> None:
    """A claim has both if a driver offers the GPUs, too, and all are aligned."""
    entry = planned(nodes(NICS, NIC_CLASS, GPUS, GPU_CLASS))
    assert entry["claims"] == [{"template": "a100-ib-gpu-nic"}]
    assert entry["match"]["deviceClasses"] == ["gpus"]
    assert entry["match"]["gpuResources"] == []
    unaligned = slices("gpu.nvidia.com", device("c"))
    other = planned(nodes(NICS, NIC_CLASS, unaligned, GPU_CLASS))
    assert other["claims"] == [{"template": "a100-ib-nics", "request": "nic"}]
    assert other["match"]["deviceClasses"] == ["gpus"]


@pytest.mark.parametrize(
    "cluster_nodes",
    [
        nodes(NICS),
        nodes(NICS, NIC_CLASS, names=("n1", "n2")),
        nodes(
            *(NICS, NIC_CLASS, slices("sriov.lab", device(), node="n2")),
            *(class_of("sriov", '"sriov.lab"'),),
            names=("n1", "n2"),
        ),
        nodes(),
    ],
    ids=("no class", "one of two nodes", "two classes", "no slices"),
)
def test_all_nodes_must_offer_the_same(cluster_nodes: dict[str, KubeNode]) -> None:
    """Otherwise no template would fit all pods."""
    assert planned(cluster_nodes)["mode"] == "shared-device"


def test_a_device_plugin_that_is_there_stays() -> None:
    """The nodes offer its resource already."""
    cluster_nodes = nodes(NICS, NIC_CLASS)
    offering = {
        name: node._replace(resources={"rdma/ib": 63}) for name, node in cluster_nodes.items()
    }
    assert planned(offering)["mode"] == "shared-device"


def test_the_fewest_nics_of_all_nodes_are_claimed() -> None:
    """A claim for more would leave a node out."""
    small = slices("dra.net", device(rdma=True), node="n2")
    cluster_nodes = nodes(NICS, small, NIC_CLASS, names=("n1", "n2"), gpu="8")
    discovery = discovered(
        {name: observed(port("mlx5_0"), gpus()) for name in cluster_nodes}, cluster_nodes
    )
    plugin = plugin_files(discovery.accepted_fabrics, DiscoverOptions(namespace="lab"))
    (file,) = plugin.files
    assert (file.name, plugin.notes) == ("claims-a100-ib.yaml", ())
    (template,) = yaml.safe_load_all(file.text)
    assert template["metadata"] == {"name": "a100-ib-nics", "namespace": "lab"}
    assert template["spec"]["spec"]["devices"] == {
        "requests": [{"name": "nic", "exactly": {"deviceClassName": "rdma-nic", "count": 1}}]
    }


def test_drivers_without_claims_are_reported() -> None:
    """The text has the reason; the remedy depends on it."""
    findings = cluster_findings([NICS, slices("disk.lab", device())])
    assert [(finding.code, finding.text) for finding in findings] == [
        (
            "DraDriverWithoutClass",
            "the DRA driver dra.net offers devices, but no DeviceClass selects them",
        ),
        (
            "DraDevicesNotRdma",
            "the DRA driver disk.lab offers devices, but none is known as an RDMA device",
        ),
    ]
    assert cluster_findings([NICS, NIC_CLASS]) == []


def unnamed(*items: Any) -> FabricEntryForm:
    """Return the only fabric of a node without a GPU in any tool or label."""
    cluster_nodes = {name: node._replace(labels={}) for name, node in nodes(*items).items()}
    (entry,) = discovered({"n1": observed(port("mlx5_0"))}, cluster_nodes).entries
    return entry


def test_claims_without_gpus_need_a_label() -> None:
    """Neither a GPU nor a resource identifies the nodes."""
    entry = unnamed(NICS, NIC_CLASS)
    hostname = {"kubernetes.io/hostname": ["n1"]}
    assert entry["name"] == "cpu-ib"
    assert entry["match"] == {"gpuResources": [], "nodeLabels": hostname}


def test_gpus_that_can_be_claimed_are_gpus() -> None:
    """A node without a device plugin for GPUs may still have GPUs."""
    entry = unnamed(NICS, NIC_CLASS, GPUS, GPU_CLASS)
    assert entry["name"] == "rdma-ib"
    assert (entry["match"]["gpuResources"], entry["match"]["deviceClasses"]) == ([], ["gpus"])
