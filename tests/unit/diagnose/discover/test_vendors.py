"""Cards of other vendors than NVIDIA keep their vendor, and get nothing of NVIDIA's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import webhook
from tests.unit.diagnose.discover.observed_nodes import (
    discovered,
    ethernet,
    gpus,
    interface,
    ionic,
    observed,
    only_entry,
    plugin_objects,
    port,
)
from webhook.diagnose.discover.plugin.files import plugin_files
from webhook.diagnose.discover.site import (
    ClaimableDevices,
    DiscoverOptions,
    KubeNode,
    SourcedObservation,
)
from webhook.diagnose.tools.observations import PortObservation

EXAMPLE = Path(webhook.__file__).parent / "config/examples/alibaba-erdma.yaml"
EFA = "vpc.amazonaws.com/efa"


def efa(device: str, **fields: Any) -> PortObservation:
    """Return a port of EFA, as an older ibv_devinfo shows it."""
    return port(device, **{"vendor_id": 0x1D0F, "device_id": 0xEFA2, "rate_gbps": 100.0, **fields})


def thor(device: str, **fields: Any) -> PortObservation:
    """Return a RoCE port of Broadcom's Thor 2."""
    return ethernet(device, **{"vendor_id": 0x14E4, "device_id": 0x1760, **fields})


def efa_nodes(devices: int = 2) -> dict[str, list[SourcedObservation]]:
    """Return a node with eight H100."""
    ports = [efa(f"rdmap{number}s0") for number in range(devices)]
    return {"n1": observed(*ports, gpus("NVIDIA H100 80GB HBM3"))}


@pytest.mark.parametrize(
    ("offered", "number", "resource"),
    [
        (32, 8, {"count": "per-gpu", "devicesPerGpu": 4}),
        (8, 8, {"count": "per-gpu"}),
        (4, 8, {"count": "per-gpu", "gpusPerDevice": 2}),
        (3, 8, {"count": 3}),
        (4, 0, {"count": 4}),
    ],
)
def test_efa_is_reached_through_libfabric(
    offered: int, number: int, resource: dict[str, Any]
) -> None:
    """Its fabric has the resource that nodes offer, a GPU's share, and no HCA and no link layer."""
    resources = {EFA: offered, **({"nvidia.com/gpu": number} if number else {})}
    cluster_nodes = {"n1": KubeNode("n1", {}, resources)}
    nodes = {"n1": observed(efa("rdmap0s0"), gpus("NVIDIA H100 80GB HBM3", number))}
    entry = only_entry(discovered(nodes, cluster_nodes))
    assert entry["name"] == ("h100-efa" if number else "cpu-efa")
    assert (entry["mode"], entry["transport"], entry["rateGbps"]) == (
        "host-device",
        "libfabric",
        100,
    )
    assert entry["resources"] == [{"name": EFA, **resource}]
    assert not {"linkLayer", "hcas", "networks"} & set(entry)


def test_gpus_that_only_tools_list_share_the_nics() -> None:
    """Before the GPUs' device plugin runs, nvidia-smi has their number."""
    cluster_nodes = {"n1": KubeNode("n1", {}, {EFA: 16})}
    entry = only_entry(discovered(efa_nodes(), cluster_nodes))
    assert entry["resources"] == [{"name": EFA, "count": "per-gpu", "devicesPerGpu": 2}]


def test_the_node_with_the_fewest_nics_decides() -> None:
    """Each pod must fit on each node."""
    cluster_nodes = {name: KubeNode(name, {}, {EFA: nics}) for name, nics in (("a", 16), ("b", 8))}
    node = efa_nodes()["n1"]
    entry = only_entry(discovered({"a": node, "b": node}, cluster_nodes))
    assert entry["resources"] == [{"name": EFA, "count": "per-gpu"}]


def test_efa_that_a_node_does_not_offer_has_no_resource() -> None:
    """No resource is invented; the file says what is missing, and --plugin writes nothing."""
    cluster_nodes = {"a": KubeNode("a", {}, {EFA: 16}), "b": KubeNode("b", {}, {})}
    node = [*efa_nodes()["n1"], *observed(interface("ens32"))]
    discovery = discovered({"a": node, "b": node}, cluster_nodes)
    entry = only_entry(discovery)
    assert (entry["mode"], entry["transport"]) == ("host-network", "libfabric")
    assert entry["hostSocketInterface"] == "ens32"
    assert "resources" not in entry
    assert "install the EFA device plugin" in " ".join(discovery.text.replace("#", "").split())
    plugin = plugin_files(discovery.accepted_fabrics, DiscoverOptions(ofed=True))
    assert plugin.files == ()
    assert plugin.notes == (
        "fabric h100-efa: nothing is written for EFA; the EFA device plugin finds the devices",
    )


def test_efa_without_a_known_interface_has_none() -> None:
    """Nothing takes the place of the interface that no tool shows."""
    assert "hostSocketInterface" not in only_entry(discovered(efa_nodes()))


@pytest.mark.parametrize("mode", ["shared-device", "host-network", "sr-iov", "host-device"])
def test_no_mode_gives_efa_nvidias_files(mode: str) -> None:
    """With --mode too, there is neither a resource nor a file for EFA, and libfabric has no HCA."""
    discovery = discovered(efa_nodes(), mode=mode)
    (plan,) = discovery.fabrics
    assert not {"resources", "hcas", "excludeHcas", "hcaPrefixes", "libraries"} & set(plan.entry)
    assert plugin_files([plan], DiscoverOptions()).files == ()


def test_efa_is_no_virtual_function() -> None:
    """An instance has the device itself, and no other pod's part of it."""
    (node,) = discovered(efa_nodes()).nodes
    assert [port.virtual for port in node.ports] == [None, None]


def test_efa_is_described_once() -> None:
    """The model and the network have the same name."""
    (plan,) = discovered(efa_nodes()).fabrics
    assert plan.description == "1 node (n1): NVIDIA-H100-80GB-HBM3, EFA 100 Gb/s"
    assert plan.requirements == (
        "libfabric and aws-ofi-nccl in the image, which admission cannot see",
        "the EFA device plugin (aws-efa-k8s-device-plugin)",
    )


def test_a_rate_with_a_fraction_is_explained_beside_the_transport() -> None:
    """EFA has no link layer that could have the comment."""
    nodes = {"n1": observed(efa("rdmap0s0", rate_gbps=12.5), gpus())}
    (plan,) = discovered(nodes).fabrics
    assert plan.reason_by_field["transport"].endswith(
        "; rateGbps is omitted, since 12.5 Gb/s is not a whole number"
    )


def test_efa_beside_an_infiniband_card_is_named() -> None:
    """The comment on an unused port has its network, not the link layer that no tool shows."""
    nodes = {"n1": observed(port("mlx5_2"), efa("rdmap0s0"), gpus())}
    (node_ports,) = discovered(nodes).ports_of_nodes
    assert list(node_ports.other_ports.values()) == ["EFA, 100 Gb/s; the fabric is InfiniBand"]


@pytest.mark.parametrize("mode", [None, "shared-device", "sr-iov", "host-device"])
@pytest.mark.parametrize("vendor_id", [0x1DED, None])
def test_erdma_has_the_resource_of_alibabas_controller(
    mode: str | None, vendor_id: int | None
) -> None:
    """No other plugin offers it; the driver's name for the device shows it, also without an id."""
    erdma = ethernet("erdma_0", vendor_id=vendor_id, device_id=None)
    nodes = {"n1": observed(erdma, interface("eth0"))}
    discovery = discovered(nodes, mode=mode)
    entry = only_entry(discovery)
    assert entry["mode"] == "host-network"
    assert entry["resources"] == [{"name": "aliyun/erdma"}]
    assert entry["libraries"] == ["nccl", "gloo"]
    assert (entry["hcas"], entry["hostSocketInterface"]) == (["erdma_0"], "eth0")
    needs = " ".join(discovery.fabrics[0].requirements)
    assert "ACK eRDMA Controller" in needs
    assert "hostNetwork: true" in needs
    assert "shared device plugin" not in needs
    assert "qos.trafficClass" not in needs
    plugin = plugin_files(discovery.accepted_fabrics, DiscoverOptions(ofed=True))
    assert plugin.files == ()
    (note,) = plugin.notes
    assert note.endswith("nothing is written for eRDMA; the ACK eRDMA Controller finds the devices")


def test_erdma_that_a_dra_driver_offers_is_claimed() -> None:
    """The claim, not the controller's resource, is what pods need then."""
    node = KubeNode("n1", {}, {}, ClaimableDevices("erdma.example.com", "erdma", 1))
    nodes = {"n1": observed(ethernet("erdma_0", vendor_id=0x1DED))}
    (plan,) = discovered(nodes, {"n1": node}).fabrics
    assert plan.mode == "dra"
    assert plan.requirements[0].startswith("the ResourceClaimTemplate")


def test_erdma_agrees_with_the_example() -> None:
    """The example has the resource, mode and libraries that discover proposes."""
    example = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))["spec"]["fabrics"][0]
    entry = only_entry(discovered({"n1": observed(ethernet("erdma_0", vendor_id=0x1DED))}))
    for field in ("mode", "resources", "linkLayer", "libraries"):
        assert entry[field] == example[field]


each_vendor = pytest.mark.parametrize(
    ("nic", "vendor", "device_id"), [(ionic, "1dd8", "1002"), (thor, "14e4", "1760")]
)


def test_only_amds_cards_have_amds_operator() -> None:
    """Nodes with AMD's GPUs and Broadcom's cards keep the vendor-neutral ConfigMap."""
    cluster_nodes = {"n1": KubeNode("n1", {}, {"amd.com/gpu": 8})}
    nodes = {"n1": observed(thor("bnxt_re0"), interface("eno1"))}
    discovery = discovered(nodes, cluster_nodes)
    assert only_entry(discovery)["mode"] == "host-network"
    assert set(plugin_objects(discovery)) == {"rdma-devices.yaml"}


@each_vendor
def test_the_shared_plugin_selects_the_vendors_ids(nic: Any, vendor: str, device_id: str) -> None:
    """The ConfigMap has the real ids; NVIDIA's operator would not run the plugin for them."""
    nodes = {"n1": observed(nic("rocep1s0"), gpus(), interface("eno1"))}
    discovery = discovered(nodes, mode="host-network")
    (name,), (objects,) = zip(*plugin_objects(discovery, ofed=True).items(), strict=True)
    assert name == "rdma-devices.yaml"
    (entry,) = json.loads(objects[0]["data"]["config.json"])["configList"]
    assert entry["selectors"] == {"vendors": [vendor], "deviceIDs": [device_id]}
    plugin = plugin_files(discovery.accepted_fabrics, DiscoverOptions())
    assert "nic-cluster-policy" not in plugin.files[0].text


def test_sriov_has_the_vendors_ids() -> None:
    """The policy is for the SR-IOV Network Operator alone, whose resources have its prefix."""
    nodes = {"n1": observed(thor("rocep1s0", netdevs=("ens1",)), gpus())}
    discovery = discovered(nodes, mode="sr-iov")
    assert only_entry(discovery)["resources"] == [
        {"name": "openshift.io/a100_roce_rail0", "network": "default/a100-roce-rail0"}
    ]
    (name,), ((policy, network),) = zip(*plugin_objects(discovery).items(), strict=True)
    assert name == "sriov-a100-roce.yaml"
    assert policy["spec"]["nicSelector"] == {
        "vendor": "14e4",
        "deviceID": "1760",
        "pfNames": ["ens1"],
    }
    assert policy["metadata"]["namespace"] == "sriov-network-operator"
    assert network["metadata"]["namespace"] == "sriov-network-operator"
    (file,) = plugin_files(discovery.accepted_fabrics, DiscoverOptions()).files
    text = " ".join(file.text.replace("#", "").split())
    assert "with resourcePrefix openshift.io, its default; check that its list" in text


def test_nvidias_sriov_stays_with_its_operator() -> None:
    """The resources and the namespace are those of NVIDIA's Network Operator."""
    nodes = {"n1": observed(ethernet("mlx5_0"), gpus())}
    discovery = discovered(nodes, mode="sr-iov")
    (resource,) = only_entry(discovery)["resources"]
    assert resource["name"] == "nvidia.com/a100_roce_rail0"
    (file,) = plugin_files(discovery.accepted_fabrics, DiscoverOptions()).files
    assert "namespace: nvidia-network-operator" in file.text
    text = " ".join(file.text.replace("#", "").split())
    assert "with resourcePrefix nvidia.com, as NVIDIA's Network Operator installs it" in text


def test_whole_devices_come_from_the_sriov_plugin() -> None:
    """Its ConfigMap is the vendor-neutral form; NVIDIA's kinds are not written."""
    nodes = {"n1": observed(thor("rocep1s0", netdevs=("ens1",)), gpus())}
    discovery = discovered(nodes, mode="host-device")
    (resource,) = only_entry(discovery)["resources"]
    assert resource == {
        "name": "openshift.io/a100_roce_hostdev",
        "count": 1,
        "network": "default/a100-roce",
    }
    objects = plugin_objects(discovery)
    assert set(objects) == {"sriovdp-config.yaml", "network-a100-roce.yaml"}
    (config_map,) = objects["sriovdp-config.yaml"]
    (entry,) = json.loads(config_map["data"]["config.json"])["resourceList"]
    assert (entry["resourcePrefix"], entry["resourceName"]) == ("openshift.io", "a100_roce_hostdev")
    assert entry["selectors"]["vendors"] == ["14e4"]
    assert entry["selectors"]["devices"] == ["1760"]
    (network,) = objects["network-a100-roce.yaml"]
    assert network["metadata"]["annotations"] == {
        "k8s.v1.cni.cncf.io/resourceName": "openshift.io/a100_roce_hostdev"
    }
    config = json.loads(network["spec"]["config"])
    assert (config["type"], config["ipam"]["poolName"]) == ("host-device", "a100-roce")
    (plan,) = discovery.fabrics
    assert plan.requirements[0].startswith("the SR-IOV network device plugin")


def test_a_policy_has_only_nvidias_cards() -> None:
    """NVIDIA's operator gets no entry for the nodes with Broadcom's cards."""
    nodes = {
        "a": observed(port("mlx5_0"), gpus()),
        "b": observed(thor("bnxt_re0"), gpus("NVIDIA H100 80GB HBM3"), interface("eno1")),
    }
    objects = plugin_objects(discovered(nodes))
    (config_map,), (policy,) = objects["rdma-devices.yaml"], objects["nic-cluster-policy.yaml"]
    entries = json.loads(config_map["data"]["config.json"])["configList"]
    assert [entry["selectors"]["vendors"] for entry in entries] == [["15b3"], ["14e4"]]
    config = json.loads(policy["spec"]["rdmaSharedDevicePlugin"]["config"])
    assert config["configList"] == entries[:1]


def test_equal_ids_of_two_vendors_are_two_cards() -> None:
    """The device id 1003 is AMD's virtual function, and NVIDIA's ConnectX-3."""
    nodes = {
        "a": observed(ethernet("roce0", device_id=0x1003), gpus()),
        "b": observed(ionic("roce0", device_id=0x1003), gpus()),
    }
    discovery = discovered(nodes)
    assert len(discovery.fabrics) == 2
    models = {port.model for node in discovery.nodes for port in node.ports}
    assert models == {"ConnectX-3", "Pensando DSC or Pollara"}
