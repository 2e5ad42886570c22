"""AMD's NICs: the fabric lists what AMD's Network Operator offers, or is to offer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import webhook
from tests.unit.diagnose.discover.observed_nodes import (
    discovered,
    down,
    ethernet,
    gpus,
    ionic,
    observed,
    only_entry,
    plugin_objects,
)
from webhook.diagnose.discover.plugin.files import plugin_files
from webhook.diagnose.discover.site import DiscoverOptions, KubeNode, SourcedObservation
from webhook.diagnose.tools.observations import PortObservation

EXAMPLE = Path(webhook.__file__).parent / "config/examples/amd-pollara.yaml"
NIC, VNIC = "amd.com/nic", "amd.com/vnic"


def function(device: str, **fields: Any) -> PortObservation:
    """Return a RoCE port of a virtual function of AMD's Pollara."""
    return ionic(device, **{"device_id": 0x1003, **fields})


NICS = [ionic(f"ionic_{number}") for number in range(8)]
FUNCTIONS = [function(f"ionic_{number}") for number in range(8, 16)]


def nodes(*ports: PortObservation) -> dict[str, list[SourcedObservation]]:
    """Return a node with eight A100 and these ports."""
    return {"n1": observed(ports, gpus())}


def network_config(kind_of_nodes: str = "amd-nic") -> dict[str, Any]:
    """Return the NetworkConfig for nodes with a label of Node Feature Discovery."""
    return {
        "apiVersion": "amd.com/v1alpha1",
        "kind": "NetworkConfig",
        "metadata": {"name": kind_of_nodes, "namespace": "kube-amd-network"},
        "spec": {
            "driver": {"enable": False},
            "secondaryNetwork": {"cniPlugins": {"enable": True}},
            "selector": {f"feature.node.kubernetes.io/{kind_of_nodes}": "true"},
        },
    }


@pytest.mark.parametrize(
    ("ports", "mode", "chosen", "resource", "kind_of_nodes"),
    [
        (NICS, None, "host-device", NIC, "amd-nic"),
        (NICS, "host-device", "host-device", NIC, "amd-nic"),
        (NICS, "sr-iov", "sr-iov", VNIC, "amd-nic"),
        ([*NICS, *FUNCTIONS], None, "sr-iov", VNIC, "amd-nic"),
        ([*NICS, *FUNCTIONS], "host-device", "host-device", NIC, "amd-nic"),
        (FUNCTIONS, None, "sr-iov", VNIC, "amd-vnic"),
        (FUNCTIONS, "host-device", "host-device", VNIC, "amd-vnic"),
    ],
    ids=["NICs", "whole", "SR-IOV", "both", "whole of both", "machine", "whole of machine"],
)
def test_the_fabric_lists_what_the_operator_offers(
    ports: list[PortObservation], mode: Any, chosen: str, resource: str, kind_of_nodes: str
) -> None:
    """Fabric, NetworkConfig and network agree, and no vendor-neutral files are written."""
    discovery = discovered(nodes(*ports), mode=mode, namespace="lab")
    entry = only_entry(discovery)
    assert entry["mode"] == chosen
    assert entry["resources"] == [
        {"name": resource, "count": "per-gpu", "network": "lab/a100-roce"}
    ]
    objects = plugin_objects(discovery, namespace="lab", ofed=True)
    assert set(objects) == {"network-config.yaml", "network-a100-roce.yaml"}
    assert objects["network-config.yaml"] == [network_config(kind_of_nodes)]
    (network,) = objects["network-a100-roce.yaml"]
    assert network["metadata"] == {
        "name": "a100-roce",
        "namespace": "lab",
        "annotations": {"k8s.v1.cni.cncf.io/resourceName": resource},
    }


def test_the_reasons_name_the_operator() -> None:
    """The report says where the resource comes from, and what must be there first."""
    (plan,) = discovered(nodes(*NICS)).fabrics
    offered = "offered by AMD's Network Operator with the NetworkConfig that --plugin writes"
    assert plan.reason_by_field["resources"] == offered
    assert plan.reason_by_field["mode"] == (
        "AMD's Network Operator offers amd.com/nic, a unit for each NIC"
    )
    operator = (
        "AMD's Network Operator, which supports Pollara cards, with Multus (--plugin writes its "
        "NetworkConfig and the network)"
    )
    unused_cards = "cards that nothing else on the node uses, since a pod gets the whole device"
    assert plan.requirements[:-1] == (operator, unused_cards)
    (plan,) = discovered(nodes(*FUNCTIONS)).fabrics
    assert plan.reason_by_field["mode"] == (
        "AMD's Network Operator offers virtual functions as amd.com/vnic"
    )
    none_created = "virtual functions with RDMA on each node; a NetworkConfig creates none"
    assert plan.requirements[:-1] == (operator, none_created)


def test_the_file_says_what_it_leaves_to_the_operator() -> None:
    """It explains the absence of selectors for NICs, and the driver that is kept."""
    plugin = plugin_files(discovered(nodes(*NICS)).accepted_fabrics, DiscoverOptions())
    text = " ".join(plugin.files[0].text.replace("#", "").split())
    assert "There are no selectors for NICs" in text
    assert "driver.enable is false, so the nodes keep the RDMA driver that they have" in text
    assert "amd.com/nic: 1 node (n1): NVIDIA-A100-SXM4-40GB, Pensando DSC or Pollara" in text


def test_virtual_functions_of_another_vendor_do_not_count() -> None:
    """AMD's device plugin does not offer them as amd.com/vnic."""
    function_of_mlx5 = ethernet("mlx5_1", device_id=0x101E, virtual=True)
    assert only_entry(discovered(nodes(*NICS, function_of_mlx5)))["mode"] == "host-device"


def test_all_nodes_need_virtual_functions() -> None:
    """A pod with amd.com/vnic could not run on the node without them."""
    unlike = {"n1": observed(NICS, FUNCTIONS, gpus()), "n2": observed(NICS, gpus())}
    entry = only_entry(discovered(unlike))
    assert (entry["mode"], entry["resources"][0]["name"]) == ("host-device", NIC)


def test_machines_and_nodes_have_a_network_config_each() -> None:
    """Node Feature Discovery labels virtual machines and other nodes differently."""
    machines = {"n1": observed(NICS, gpus()), "m1": observed(FUNCTIONS, gpus("NVIDIA L40S"))}
    discovery = discovered(machines)
    assert sorted(entry["resources"][0]["name"] for entry in discovery.entries) == [NIC, VNIC]
    configs = plugin_objects(discovery)["network-config.yaml"]
    assert sorted(configs, key=lambda config: str(config["metadata"]["name"])) == [
        network_config("amd-nic"),
        network_config("amd-vnic"),
    ]


def test_fabrics_share_a_network_config() -> None:
    """Its label selects the nodes of both."""
    discovery = discovered({"a": observed(NICS, gpus()), "b": observed(NICS, gpus("NVIDIA L40S"))})
    assert len(discovery.entries) == 2
    assert plugin_objects(discovery)["network-config.yaml"] == [network_config()]


def test_a_nic_that_the_fabric_does_not_use_is_noted() -> None:
    """Nothing in a NetworkConfig excludes it, so a pod could get it."""
    ports = [*NICS, down("ionic_8", link_layer="Ethernet", vendor_id=0x1DD8, device_id=0x1002)]
    plugin = plugin_files(discovered(nodes(*ports)).accepted_fabrics, DiscoverOptions())
    (note,) = plugin.notes
    assert note == (
        "fabric a100-roce: AMD's device plugin also offers NICs that the fabric does not use: "
        "ionic_8 on n1"
    )
    options = DiscoverOptions(mode="sr-iov")
    assert plugin_files(discovered(nodes(*ports), mode="sr-iov").fabrics, options).notes == ()


def test_modes_without_nics_for_pods_need_no_operator() -> None:
    """AMD's operator has no plugin that shares devices, so the shared device plugin stays."""
    networks = tuple(f"rail{rail}" for rail in range(8))
    discovery = discovered(nodes(*NICS), networks=networks)
    entry = only_entry(discovery)
    assert (entry["mode"], entry["resources"]) == ("shared-device", [{"name": "rdma/a100_roce"}])
    discovery = discovered(nodes(*NICS), mode="host-network")
    assert set(plugin_objects(discovery)) == {"rdma-devices.yaml"}


@pytest.mark.parametrize(("resource", "mode"), [("nic", "host-device"), ("vnic", "sr-iov")])
def test_amds_nics_that_nodes_offer_are_used(resource: str, mode: str) -> None:
    """amd.com/nic are whole NICs, amd.com/vnic virtual functions; nothing is invented for them."""
    offered = {f"amd.com/{resource}": 8, "amd.com/gpu": 8}
    discovery = discovered(
        {"n1": observed(ionic("ionic_0"))}, {"n1": KubeNode("n1", {}, offered)}, namespace="lab"
    )
    entry = only_entry(discovery)
    assert (entry["name"], entry["mode"]) == ("rdma-roce", mode)
    assert entry["match"] == {"gpuResources": ["amd.com/gpu"]}
    assert entry["resources"] == [
        {"name": f"amd.com/{resource}", "count": "per-gpu", "network": "lab/rdma-roce"}
    ]
    objects = plugin_objects(discovery, namespace="lab")
    assert set(objects) == {"network-rdma-roce.yaml"}
    ((network,),) = objects.values()
    assert network["kind"] == "NetworkAttachmentDefinition"
    assert network["metadata"] == {
        "name": "rdma-roce",
        "namespace": "lab",
        "annotations": {"k8s.v1.cni.cncf.io/resourceName": f"amd.com/{resource}"},
    }
    assert json.loads(network["spec"]["config"]) == {
        "cniVersion": "0.3.1",
        "name": "rdma-roce",
        "type": "amd-host-device",
    }
    (plan,) = discovery.fabrics
    assert plan.requirements[:-1] == (
        f"Multus, and a network for amd.com/{resource} (--plugin writes it)",
    )


def test_an_offer_of_another_mode_is_not_used() -> None:
    """With --mode, the resource is one that this mode can have."""
    cluster_nodes = {"n1": KubeNode("n1", {}, {"amd.com/nic": 8})}
    networks = tuple(f"lab/r{rail}" for rail in range(1))
    discovery = discovered(
        {"n1": observed(ionic("ionic_0"))}, cluster_nodes, mode="shared-device", networks=networks
    )
    assert only_entry(discovery)["resources"] == [{"name": "rdma/cpu_roce"}]


def test_an_offer_on_one_node_is_not_enough() -> None:
    """The other node needs the NetworkConfig."""
    cluster_nodes = {"n1": KubeNode("n1", {}, {NIC: 8}), "n2": KubeNode("n2", {}, {})}
    discovery = discovered({name: observed(NICS, gpus()) for name in cluster_nodes}, cluster_nodes)
    assert only_entry(discovery)["resources"][0]["name"] == NIC
    assert plugin_objects(discovery)["network-config.yaml"] == [network_config()]


@pytest.mark.parametrize(
    ("offered", "files", "need"),
    [
        ({NIC: 8, VNIC: 8}, {"network-cpu-roce.yaml"}, "Multus, and a network for amd.com/vnic"),
        (
            {NIC: 8},
            {"network-cpu-roce.yaml", "network-config.yaml"},
            "AMD's Network Operator, which supports Pollara cards",
        ),
    ],
)
def test_the_offer_of_the_mode_counts(offered: dict[str, int], files: set[str], need: str) -> None:
    """Nodes that offer whole NICs may offer virtual functions, too."""
    cluster_nodes = {"n1": KubeNode("n1", {}, offered)}
    discovery = discovered({"n1": observed(NICS)}, cluster_nodes, mode="sr-iov")
    assert only_entry(discovery)["resources"][0]["name"] == VNIC
    assert set(plugin_objects(discovery)) == files
    (plan,) = discovery.fabrics
    assert plan.requirements[0].startswith(need)


def test_the_example_agrees() -> None:
    """The example for AMD's operator has what discover proposes."""
    example = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))["spec"]["fabrics"][0]
    cluster_nodes = {"n1": KubeNode("n1", {}, {"amd.com/gpu": 8})}
    entry = only_entry(discovered({"n1": observed(NICS)}, cluster_nodes))
    for field in ("mode", "linkLayer", "socketInterface"):
        assert entry[field] == example[field]
    assert entry["match"]["gpuResources"] == example["match"]["gpuResources"]
    (proposed,), (listed,) = entry["resources"], example["resources"]
    assert (proposed["name"], proposed["count"]) == (listed["name"], listed["count"])
