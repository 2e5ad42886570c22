"""The device plugins' files select exactly the devices that the fabrics use."""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.unit.diagnose.discover.observed_nodes import (
    discovered,
    down,
    ethernet,
    gpus,
    ionic,
    observed,
    plugin_objects,
    port,
)
from webhook.diagnose.discover.discovery import Discovery
from webhook.diagnose.discover.plugin.files import plugin_files
from webhook.diagnose.discover.site import DiscoverOptions, KubeNode

BOND = ethernet("mlx5_bond_0", device_id=0x1015, rate_gbps=10.0, netdevs=("bond0", "ens9"))


def configured(discovery: Discovery) -> list[dict[str, Any]]:
    """Return the entries of the RDMA shared device plugin."""
    written_fabrics = plugin_objects(discovery)
    (config_map,) = written_fabrics["rdma-devices.yaml"]
    config = config_map["data"]["config.json"]
    (policy,) = written_fabrics["nic-cluster-policy.yaml"]
    assert policy["spec"]["rdmaSharedDevicePlugin"]["config"] == config
    listed: list[dict[str, Any]] = json.loads(config)["configList"]
    return listed


def test_ids_are_enough_if_they_distinguish_the_cards() -> None:
    """The bond is another card, so its id is left out; interfaces may then have any name."""
    nodes = {"n1": observed(port("mlx5_0", netdevs=("ib0",)), BOND, gpus())}
    assert configured(discovered(nodes)) == [
        {
            "resourceName": "a100_ib",
            "rdmaHcaMax": 63,
            "selectors": {"vendors": ["15b3"], "deviceIDs": ["101b"]},
        }
    ]


def test_link_types_distinguish_ports_of_a_card() -> None:
    """A VPI card runs InfiniBand on one function and Ethernet on the other."""
    other = ethernet("mlx5_1", device_id=0x101B, netdevs=("ens1",), rate_gbps=100.0)
    nodes = {"n1": observed(port("mlx5_0", netdevs=("ib0",)), other, gpus())}
    (entry,) = configured(discovered(nodes))
    assert entry["selectors"] == {
        "vendors": ["15b3"],
        "deviceIDs": ["101b"],
        "linkTypes": ["infiniband"],
    }


def test_interfaces_distinguish_the_nodes_of_two_fabrics() -> None:
    """The same card in both; without ifNames each node would offer both resources."""
    nodes = {
        "v1": observed(port("mlx5_0", netdevs=("ibv0",)), gpus("Tesla V100-SXM2-32GB")),
        "a1": observed(port("mlx5_0", netdevs=("iba0",)), gpus()),
    }
    plugin_entries = configured(discovered(nodes))
    assert [plugin_entry["selectors"]["ifNames"] for plugin_entry in plugin_entries] == [
        ["ibv0"],
        ["iba0"],
    ] or [plugin_entry["selectors"]["ifNames"] for plugin_entry in plugin_entries] == [
        ["iba0"],
        ["ibv0"],
    ]


def test_fabrics_that_no_selector_distinguishes_have_a_configuration_each() -> None:
    """The same card with the same interface: only a nodeSelector helps."""
    nodes = {
        "v1": observed(port("mlx5_0", netdevs=("ib0",)), gpus("Tesla V100-SXM2-32GB")),
        "a1": observed(port("mlx5_0", netdevs=("ib0",)), gpus()),
    }
    written_fabrics = plugin_objects(discovered(nodes))
    assert set(written_fabrics) == {"rdma-devices-v100-ib.yaml", "rdma-devices-a100-ib.yaml"}


def test_a_name_that_two_fabrics_share_is_not_written_twice() -> None:
    """The plugin refuses a configuration with two entries of the same resourceName."""
    cluster_nodes = {name: KubeNode(name, {}, {"rdma/hca": 63}) for name in ("v1", "a1")}
    nodes = {
        "v1": observed(port("mlx5_0", device_id=0x1017), gpus("Tesla V100-SXM2-32GB")),
        "a1": observed(port("mlx5_0"), gpus()),
    }
    written_fabrics = plugin_objects(discovered(nodes, cluster_nodes))
    assert set(written_fabrics) == {"rdma-devices-v100-ib.yaml", "rdma-devices-a100-ib.yaml"}


def test_a_bond_is_selected_by_the_ids_of_its_card() -> None:
    """The plugin compares the PCI device's own interface, so bond0 would never match."""
    nodes = {"n1": observed(ethernet("mlx5_bond_0", netdevs=("bond0",)), gpus())}
    (entry,) = configured(discovered(nodes))
    assert entry["selectors"] == {"vendors": ["15b3"], "deviceIDs": ["101d"]}


def test_an_unused_port_is_reported_if_it_cannot_be_excluded() -> None:
    """One of two ports with the same id and no interface is down on all nodes."""
    nodes = {"n1": observed(port("mlx5_0"), down("mlx5_1"), gpus())}
    plugin = plugin_files(discovered(nodes).accepted_fabrics, DiscoverOptions())
    assert plugin.notes == (
        "fabric a100-ib: the device plugin's selectors wrongly include or omit mlx5_1 on n1",
    )
    assert "# WRONG: no selectors fit exactly" in plugin.files[0].text


def test_devices_without_ids_and_interfaces_cannot_be_selected() -> None:
    """No file is written for them, and a note names the missing output."""
    nodes = {"n1": observed(port("mlx5_0", vendor_id=None, device_id=None), gpus())}
    plugin = plugin_files(discovered(nodes).accepted_fabrics, DiscoverOptions())
    assert plugin.files == ()
    assert "add the output of lspci -nn" in plugin.notes[0]


def test_the_driver_is_replaced_only_where_asked() -> None:
    """The file then warns of the consequences for nodes."""
    discovery = discovered({"n1": observed(port("mlx5_0"), gpus())})
    (policy,) = plugin_objects(discovery)["nic-cluster-policy.yaml"]
    assert "ofedDriver" not in policy["spec"]
    (policy,) = plugin_objects(discovery, ofed=True)["nic-cluster-policy.yaml"]
    assert policy["spec"]["ofedDriver"]["upgradePolicy"]["autoUpgrade"] is False
    text = next(
        file.text
        for file in plugin_files(discovery.accepted_fabrics, DiscoverOptions(ofed=True)).files
        if file.name == "nic-cluster-policy.yaml"
    )
    assert "# ofedDriver replaces the RDMA driver of EVERY node" in text


def test_sr_iov_has_a_policy_and_a_network_for_each_device() -> None:
    """The fabric has the resources and networks that these objects create."""
    observations = observed(
        ethernet("mlx5_0", netdevs=("ens1",)), ethernet("mlx5_1", netdevs=("ens2",)), gpus()
    )
    discovery = discovered({"n1": observations}, mode="sr-iov", namespace="lab")
    objects = plugin_objects(discovery, mode="sr-iov", namespace="lab")["sriov-a100-roce.yaml"]
    policies = [manifest for manifest in objects if manifest["kind"] == "SriovNetworkNodePolicy"]
    networks = [manifest for manifest in objects if manifest["kind"] == "SriovNetwork"]
    assert [policy["spec"]["nicSelector"] for policy in policies] == [
        {"vendor": "15b3", "deviceID": "101d", "pfNames": ["ens1"]},
        {"vendor": "15b3", "deviceID": "101d", "pfNames": ["ens2"]},
    ]
    assert all(policy["spec"]["linkType"] == "eth" for policy in policies)
    (entry,) = discovery.entries
    assert [resource["name"] for resource in entry["resources"]] == [
        f"nvidia.com/{policy['spec']['resourceName']}" for policy in policies
    ]
    assert [resource["network"] for resource in entry["resources"]] == [
        f"{network['spec']['networkNamespace']}/{network['metadata']['name']}"
        for network in networks
    ]


def test_sr_iov_on_infiniband_has_networks_of_infiniband() -> None:
    """They have a kind of their own; without an interface, the PCI address selects the card."""
    discovery = discovered(
        {"n1": observed(port("mlx5_0", pci="0000:3b:00.0"), gpus())}, mode="sr-iov"
    )
    policy, network = plugin_objects(discovery, mode="sr-iov")["sriov-a100-ib.yaml"]
    assert policy["spec"]["linkType"] == "ib"
    assert policy["spec"]["nicSelector"]["rootDevices"] == ["0000:3b:00.0"]
    assert network["kind"] == "SriovIBNetwork"
    assert json.loads(network["spec"]["ipam"])["type"] == "nv-ipam"


def test_host_device_offers_whole_devices() -> None:
    """The SR-IOV device plugin offers them under the name of the fabric's resource."""
    discovery = discovered({"n1": observed(port("mlx5_0"), gpus())}, mode="host-device")
    written_fabrics = plugin_objects(discovery, mode="host-device")
    (policy,) = written_fabrics["nic-cluster-policy.yaml"]
    (entry,) = json.loads(policy["spec"]["sriovDevicePlugin"]["config"])["resourceList"]
    assert entry == {
        "resourcePrefix": "nvidia.com",
        "resourceName": "a100_ib_hostdev",
        "selectors": {"vendors": ["15b3"], "devices": ["101b"], "isRdma": True},
    }
    (network,) = written_fabrics["host-device-a100-ib.yaml"]
    assert network["spec"]["resourceName"] == "a100_ib_hostdev"
    assert discovery.entries[0]["resources"][0]["network"] == "default/a100-ib"


def test_roce_in_pods_has_a_macvlan_for_each_device() -> None:
    """Each network has the interface of its device as master."""
    observations = observed(
        ethernet("mlx5_0", netdevs=("ens1",)), ethernet("mlx5_1", netdevs=("ens2",)), gpus()
    )
    networks = ("rdma/rail0", "rail1")
    discovery = discovered({"n1": observations}, networks=networks)
    objects = plugin_objects(discovery, networks=networks)["networks-a100-roce.yaml"]
    assert [
        (network["metadata"]["namespace"], network["metadata"]["name"]) for network in objects
    ] == [
        ("rdma", "rail0"),
        ("default", "rail1"),
    ]
    assert [json.loads(network["spec"]["config"])["master"] for network in objects] == [
        "ens1",
        "ens2",
    ]


def test_a_macvlan_needs_the_same_interface_on_all_nodes() -> None:
    """A NetworkAttachmentDefinition has one master, so nothing is written if names differ."""
    nodes = {
        "n1": observed(ethernet("mlx5_0", netdevs=("ens1",)), gpus()),
        "n2": observed(ethernet("mlx5_0", netdevs=("ens7",)), gpus()),
    }
    discovery = discovered(nodes, networks=("rail0",))
    plugin = plugin_files(discovery.accepted_fabrics, DiscoverOptions(networks=("rail0",)))
    text = next(file.text for file in plugin.files if file.name == "networks-a100-roce.yaml")
    assert list(yaml.safe_load_all(text)) in ([], [None])
    assert "the interface of mlx5_0 differs between nodes: ens1, ens7" in text
    nodes = {"n1": observed(ethernet("mlx5_0"), gpus())}
    discovery = discovered(nodes, networks=("rail0",))
    plugin = plugin_files(discovery.accepted_fabrics, DiscoverOptions(networks=("rail0",)))
    text = next(file.text for file in plugin.files if file.name == "networks-a100-roce.yaml")
    assert "rail0 is missing here, since no tool shows the interface of mlx5_0." in text


#: The fields of the operators' CRDs that are used here, and the required fields.
_FIELDS = {
    "SriovNetworkNodePolicy": (
        {"resourceName", "nodeSelector", "nicSelector", "numVfs", "deviceType", "isRdma",
         "linkType"},
        {"nicSelector", "nodeSelector", "numVfs", "resourceName"},
    ),
    "SriovNetwork": ({"resourceName", "networkNamespace", "ipam"}, {"resourceName"}),
    "SriovIBNetwork": ({"resourceName", "networkNamespace", "ipam", "linkState"}, {"resourceName"}),
    "HostDeviceNetwork": ({"resourceName", "networkNamespace", "ipam"}, set()),
    "NicClusterPolicy": ({"ofedDriver", "rdmaSharedDevicePlugin", "sriovDevicePlugin"}, set()),
    "NetworkConfig": ({"driver", "devicePlugin", "secondaryNetwork", "selector"}, set()),
}  # fmt: skip


def test_objects_have_the_fields_of_their_kinds() -> None:
    """They have only fields of the CRDs of sriov-network-operator and the vendors' operators."""
    nodes = {
        "i": observed(port("mlx5_0", netdevs=("ib0",)), gpus()),
        "e": observed(ethernet("mlx5_0", netdevs=("ens1",)), gpus("NVIDIA L40S")),
        "a": observed(ionic("ionic_0"), gpus("NVIDIA H200")),
    }
    kinds = set()
    for mode in ("sr-iov", "host-device", "host-network"):
        written_fabrics = plugin_objects(discovered(nodes, mode=mode), mode=mode, ofed=True)
        for manifest in (manifest for objects in written_fabrics.values() for manifest in objects):
            if manifest["kind"] in _FIELDS:
                allowed, needed = _FIELDS[manifest["kind"]]
                assert needed <= manifest["spec"].keys() <= allowed
                kinds.add(manifest["kind"])
    assert kinds == set(_FIELDS)


def test_ids_stay_text() -> None:
    """Some YAML parsers read 10e5 as a number, and all of them 1017."""
    observations = observed(port("mlx5_0", device_id=0x1017, netdevs=("ib0",)), gpus())
    plugin = plugin_files(
        discovered({"n": observations}, mode="sr-iov").accepted_fabrics,
        DiscoverOptions(mode="sr-iov"),
    )
    assert 'deviceID: "1017"' in plugin.files[0].text
