"""Fabrics from nodes: the groups of nodes, and the devices that their pods use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.diagnose.discover.observed_nodes import (
    discovered,
    down,
    ethernet,
    gpus,
    interface,
    near,
    node_property,
    observed,
    port,
)
from webhook.config.load import parse_fabrics
from webhook.diagnose.discover.cluster import DEVICE_PLUGIN_CONFIGURED
from webhook.diagnose.discover.discovery import Discovery, discover_site, unplaced_nodes
from webhook.diagnose.discover.fabric_entry import FabricEntryForm
from webhook.diagnose.discover.site import DiscoverOptions, KubeNode, SourcedObservation
from webhook.diagnose.discover.used_ports import equal_nodes
from webhook.diagnose.tools.observations import (
    CardObservation,
    CounterObservation,
    GidObservation,
    Origin,
    PortObservation,
)

V100 = "Tesla V100-SXM2-32GB"
H100 = "NVIDIA H100 80GB HBM3"
BOND = ethernet("mlx5_bond_0", device_id=0x1015, rate_gbps=10.0, netdevs=("bond0",))


def entries(discovery: Discovery) -> dict[str, FabricEntryForm]:
    """Return the fabrics by name; the file must load without any finding."""
    loaded = parse_fabrics(discovery.text, "fabrics.yaml")
    assert loaded.findings == ()
    assert set(loaded.compiled.fabrics) == {fabric["name"] for fabric in discovery.entries}
    return {fabric["name"]: fabric for fabric in discovery.entries}


def messages(discovery: Discovery, level: str) -> list[str]:
    """Return the texts of findings of a level, with their nodes."""
    return [
        f"{','.join(finding.location.nodes)}: {finding.text}"
        for finding in discovery.findings
        if finding.level == level
    ]


def a100_nodes() -> dict[str, list[SourcedObservation]]:
    """Return two nodes with two ports, a different one down on each node."""
    return {
        "a100-1": observed(port("mlx5_0"), down("mlx5_1", physical_state="Disabled"), BOND, gpus()),
        "a100-2": observed(down("mlx5_0", physical_state="Disabled"), port("mlx5_1"), BOND, gpus()),
    }


def test_a_bond_of_another_link_layer_is_left_out() -> None:
    """mlx5_bond_0 on an InfiniBand node is another, slow, Ethernet card."""
    discovery = discovered(a100_nodes())
    fabric = entries(discovery)["a100-ib"]
    assert fabric["hcas"] == ["mlx5_0", "mlx5_1"]
    assert fabric["linkLayer"] == "InfiniBand"
    assert fabric["rateGbps"] == 200
    assert fabric["mode"] == "shared-device"
    assert fabric["match"] == {"gpuProducts": ["NVIDIA-A100-SXM4-40GB"]}
    assert fabric["resources"] == [{"name": "rdma/a100_ib"}]
    assert "mlx5_bond_0 is unused: Ethernet bond, 10 Gb/s; the fabric is" in discovery.text


def test_a_port_that_is_down_on_some_nodes_stays_in_the_list() -> None:
    """NCCL skips it there; the state Down is an error."""
    discovery = discovered(a100_nodes())
    assert messages(discovery, "error") == [
        "a100-1: mlx5_1 is Down (Disabled)",
        "a100-2: mlx5_0 is Down (Disabled)",
    ]
    assert discovery.needs_a_fix


def test_a_port_that_is_down_on_all_nodes_is_left_out() -> None:
    """It is not connected anywhere, so the fabric does not use it."""
    nodes = {
        f"n{at}": observed(port("mlx5_0"), down("mlx5_1", physical_state="Polling"), gpus())
        for at in (1, 2)
    }
    discovery = discovered(nodes)
    assert entries(discovery)["a100-ib"]["hcas"] == ["mlx5_0"]
    assert "mlx5_1 is unused: Down on all nodes (Polling)" in discovery.text
    assert messages(discovery, "warning") == [
        "n1,n2: mlx5_1 is Down on all nodes (Polling), so the fabric does not use it"
    ]
    assert not discovery.needs_a_fix


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"state": "Initializing"}, "Initializing"),
        ({"rate_gbps": 100.0}, "100 Gb/s; the fabric's rate is 200 Gb/s"),
    ],
)
def test_only_ports_that_are_down_are_reported_as_never_up(
    fields: dict[str, Any], reason: str
) -> None:
    """A port in another state, or with another rate, is unused too, but is not Down."""
    discovery = discovered({"n1": observed(port("mlx5_0"), port("mlx5_1", **fields), gpus())})
    assert f"mlx5_1 is unused: {reason}" in discovery.text
    assert messages(discovery, "warning") == []


def test_a_port_that_only_some_nodes_show_is_not_down_on_all_nodes() -> None:
    """The port is Active on the other node, where no tool shows its link layer."""
    nodes = {
        "n1": observed(port("mlx4_0"), down("mlx4_0", port=2), gpus()),
        "n2": observed(port("mlx4_0"), port("mlx4_0", port=2, link_layer=None), gpus()),
    }
    discovery = discovered(nodes)
    (warning,) = messages(discovery, "warning")
    reason = "Down on 1 of 2 nodes and usable on none"
    assert warning == f"n1,n2: mlx4_0 port 2 is {reason}, so the fabric does not use it"


def test_the_first_port_of_a_card_with_two_ports_is_named() -> None:
    """The name of the device alone would stand for both of its ports."""
    nodes = {
        "n1": observed(down("mlx4_0", physical_state="Disabled"), port("mlx4_0", port=2), gpus()),
        "n2": observed(port("mlx4_0"), port("mlx4_0", port=2), gpus()),
    }
    assert messages(discovered(nodes), "error") == ["n1: mlx4_0 port 1 is Down (Disabled)"]


def test_a_node_with_fewer_devices_does_not_have_other_names() -> None:
    """With many devices that some node lacks, the comment does not list them."""
    names = [f"mlx5_{number}" for number in range(4)]
    nodes = {"n1": observed(*map(port, names), gpus()), "n2": observed(port("mlx5_0"), gpus())}
    text = " ".join(discovered(nodes).text.replace("#", "").split())
    assert "not every node has all of these; NCCL skips the names that a node lacks" in text


def test_a_slower_port_of_some_nodes_counts_them() -> None:
    """Its rate does not apply to nodes where it is down."""
    nodes = {
        "n1": observed(port("mlx5_0"), port("mlx5_1", rate_gbps=100.0), gpus()),
        "n2": observed(port("mlx5_0"), down("mlx5_1"), gpus()),
        "n3": observed(port("mlx5_0"), gpus()),
    }
    text = discovered(nodes).text
    assert "mlx5_1 is unused: 100 Gb/s on 1 of 3 nodes; the fabric's rate is 200 Gb/s" in text


def test_the_remedy_for_a_port_that_is_down_depends_on_its_link() -> None:
    """A cable is not to blame for a port whose physical link is up."""
    nodes = {
        "n1": observed(port("mlx5_0"), down("mlx5_1", physical_state="LinkUp"), gpus()),
        "n2": observed(port("mlx5_0"), port("mlx5_1"), gpus()),
    }
    (finding,) = (finding for finding in discovered(nodes).findings if finding.level == "error")
    assert finding.text == "mlx5_1 is Down (LinkUp)"
    assert finding.remedy.startswith("The physical link is up: check the subnet manager")


def test_a_port_of_unknown_state_on_a_node_stays_in_the_list() -> None:
    """It may be up there, so it is not down on all nodes."""
    nodes = {
        "n1": observed(port("mlx5_0"), port("mlx5_1", state=None, rate_gbps=None), gpus()),
        "n2": observed(port("mlx5_0"), down("mlx5_1"), gpus()),
    }
    discovery = discovered(nodes)
    assert entries(discovery)["a100-ib"]["hcas"] == ["mlx5_0", "mlx5_1"]
    assert "unused" not in discovery.text
    assert messages(discovery, "error") == ["n2: mlx5_1 is Down"]
    assert messages(discovery, "warning") == ["n1: the state of RDMA ports is unknown"]


def test_ports_that_are_never_up_share_a_warning() -> None:
    """They share one line; the comment on a device that is left out has its state, not its rate."""
    other_ports = [ethernet("mlx5_8", state="Down"), ethernet("mlx5_9", device_id=0x1015)]
    observations = observed(port("mlx5_0"), down("mlx5_1"), down("mlx5_2"), other_ports, gpus())
    discovery = discovered({"n1": observations})
    (warning,) = messages(discovery, "warning")
    assert warning == (
        "n1: 1 of 3 ConnectX-6 cards is up: mlx5_1, mlx5_2 are Down, so the fabric does not use "
        "them"
    )
    assert "mlx5_8 is unused: Ethernet, Down; the fabric is InfiniBand" in discovery.text


@pytest.mark.parametrize(
    ("down_port", "hcas", "named"),
    [(1, ["mlx4_0:2"], "mlx4_0 port 1"), (2, ["mlx4_0:1"], "mlx4_0 port 2")],
)
def test_the_unused_port_of_a_card_is_a_single_finding(
    down_port: int, hcas: list[str], named: str
) -> None:
    """The fabric uses the other port alone: this one is no error, and is named with its number."""
    ports = [port("mlx4_0", port=3 - down_port), down("mlx4_0", port=down_port)]
    discovery = discovered({"n1": observed(ports)})
    assert entries(discovery)["rdma-ib"]["hcas"] == hcas
    assert messages(discovery, "error") == []
    assert messages(discovery, "warning") == [
        f"n1: 1 of 2 ConnectX-6 ports is up: {named} is Down, so the fabric does not use it"
    ]
    (plan,) = discovery.fabrics
    conditions = {row.condition for nodes in equal_nodes(plan) for row in nodes.ports}
    assert conditions == {"fine", "unused"}


def test_an_active_port_of_unknown_link_layer_is_not_left_out_silently() -> None:
    """Of a cut output, port 2 may be the fabric's: its card's other port, Down, is no fabric."""
    card = [down("mlx4_0"), port("mlx4_0", port=2, link_layer=None)]
    discovery = discovered({"n1": observed(card)})
    assert discovery.entries == ()
    (error,) = messages(discovery, "error")
    assert error == (
        "n1: no tool shows the link layer of mlx4_0 port 2, which is Active, so discover assigns "
        "no fabric"
    )
    assert dict(unplaced_nodes(discovery)) == {
        "n1": "mlx4_0: Down, and the link layer of mlx4_0 port 2 is unknown; mlx4_0 port 2: link "
        "layer unknown (add the output of ibv_devinfo)"
    }


def test_a_single_port_of_unknown_link_layer_is_not_named() -> None:
    """None of the node's ports has a known link layer."""
    discovery = discovered({"n1": observed(port("mlx5_0", link_layer=None))})
    (error,) = messages(discovery, "error")
    assert error.startswith("n1: no tool shows the link layer of any port")


def test_a_card_of_unknown_link_layer_leaves_the_others_their_fabric() -> None:
    """Only its own ports wait for another tool's output."""
    card = [down("mlx4_0"), port("mlx4_0", port=2, link_layer=None)]
    discovery = discovered({"n1": observed(port("mlx5_0"), card)})
    assert entries(discovery)["rdma-ib"]["hcas"] == ["mlx5_0"]
    reason = "mlx4_0 is unused: Down, and the link layer of mlx4_0 port 2 is unknown"
    assert reason in discovery.text


def test_a_virtual_function_is_named_where_the_cards_link_layer_is_unknown() -> None:
    """Its own link layer is known; the card itself decides the fabric."""
    ports = [port("mlx5_0", virtual=True), port("mlx5_1", link_layer=None)]
    discovery = discovered({"n1": observed(ports)})
    reasons = dict(unplaced_nodes(discovery))["n1"]
    assert reasons.startswith("mlx5_0: a virtual function, which a single pod gets; mlx5_1: link")


@pytest.mark.parametrize(
    ("second", "name"),
    [
        (down("mlx4_0", port=2, link_layer=None), "mlx4_0 port 1"),
        (port("mlx5_7", link_layer=None), "mlx4_0"),
    ],
)
def test_a_port_that_is_down_stays_in_the_fabric(second: PortObservation, name: str) -> None:
    """Unless another port of its own card is Active."""
    discovery = discovered({"n1": observed(down("mlx4_0"), second)})
    assert messages(discovery, "error") == [f"n1: {name} is Down"]


def test_where_all_ports_are_down_all_are_listed() -> None:
    """There is no better guess, and each is an error; no rate is invented."""
    discovery = discovered({"n1": observed(down("mlx5_0"), down("mlx5_1"), gpus())})
    fabric = entries(discovery)["a100-ib"]
    assert fabric["hcas"] == ["mlx5_0", "mlx5_1"]
    assert "rateGbps" not in fabric
    assert len(messages(discovery, "error")) == 2


def test_a_node_whose_ports_are_all_down_joins_its_like() -> None:
    """Its rate is unknown, but only one group has its GPUs and its card."""
    nodes = {
        "n1": observed(port("mlx5_0"), gpus()),
        "n2": observed(down("mlx5_0"), gpus()),
    }
    discovery = discovered(nodes)
    assert [plan.group.nodes for plan in discovery.fabrics] == [("n1", "n2")]
    assert messages(discovery, "error") == ["n2: mlx5_0 is Down"]


def test_products_make_fabrics() -> None:
    """Two kinds of GPUs are two fabrics, distinguished by the label of the product."""
    nodes = {
        "v1": observed(port("mlx5_0", rate_gbps=100.0, device_id=0x1017), gpus(V100, 4)),
        **a100_nodes(),
    }
    fabrics = entries(discovered(nodes))
    assert fabrics["v100-ib"]["match"] == {"gpuProducts": ["Tesla-V100-SXM2-32GB"]}
    assert fabrics["v100-ib"]["rateGbps"] == 100
    assert set(fabrics) == {"v100-ib", "a100-ib"}


def test_fabrics_with_the_same_gpus_differ_by_hostnames() -> None:
    """A pod that requests these GPUs fits both, so the nodes are named."""
    nodes = {
        "n1": observed(port("mlx5_0"), gpus()),
        "n2": observed(ethernet("mlx5_0"), gpus()),
    }
    fabrics = entries(discovered(nodes))
    assert fabrics["a100-ib"]["match"]["nodeLabels"] == {"kubernetes.io/hostname": ["n1"]}
    assert fabrics["a100-roce"]["match"]["nodeLabels"] == {"kubernetes.io/hostname": ["n2"]}


def test_a_label_of_pools_is_better_than_hostnames() -> None:
    """It stays right when nodes come and go."""
    nodes = {"n1": observed(port("mlx5_0"), gpus()), "n2": observed(ethernet("mlx5_0"), gpus())}
    cluster_nodes = {
        name: KubeNode(name, {"cloud.google.com/gke-nodepool": pool}, {"nvidia.com/gpu": 8})
        for name, pool in (("n1", "ib"), ("n2", "roce"))
    }
    fabrics = entries(discovered(nodes, cluster_nodes))
    assert fabrics["a100-ib"]["match"]["nodeLabels"] == {"cloud.google.com/gke-nodepool": ["ib"]}


def test_a_label_that_a_node_lacks_is_not_used() -> None:
    """One of the two nodes of a fabric has no pool: hostnames are used."""
    nodes = {name: observed(port("mlx5_0"), gpus()) for name in ("n1", "n2")}
    nodes["n3"] = observed(ethernet("mlx5_0"), gpus())
    pools = {"n1": {"eks.amazonaws.com/nodegroup": "ib"}, "n2": {}, "n3": {}}
    pools["n3"] = {"eks.amazonaws.com/nodegroup": "roce"}
    cluster_nodes = {
        name: KubeNode(name, labels, {"nvidia.com/gpu": 8}) for name, labels in pools.items()
    }
    fabrics = entries(discovered(nodes, cluster_nodes))
    assert fabrics["a100-ib"]["match"]["nodeLabels"] == {"kubernetes.io/hostname": ["n1", "n2"]}


NO_GPU = node_property("gpus", "none")


def test_nodes_without_gpus_have_no_gpu_resource() -> None:
    """PCI functions show no GPU; the fabric's resource identifies them, so no label is needed."""
    nodes = {name: observed(port("mlx5_0"), NO_GPU) for name in ("c1", "c2")}
    discovery = discovered({**nodes, "n1": observed(port("mlx5_0"), gpus())})
    assert entries(discovery)["cpu-ib"]["match"] == {"gpuResources": []}
    assert entries(discovery)["a100-ib"]["match"] == {"gpuProducts": ["NVIDIA-A100-SXM4-40GB"]}
    assert "# 2 nodes (c1, c2): no GPU, ConnectX-6, InfiniBand 200 Gb/s" in discovery.text


def test_nodes_that_may_have_gpus_keep_the_usual_gpu_resource() -> None:
    """No tool shows whether one of two nodes has any; or a tool shows them."""
    unknown = discovered({"c1": observed(port("mlx5_0"), NO_GPU), "c2": observed(port("mlx5_0"))})
    assert "match" not in entries(unknown)["rdma-ib"]
    assert "2 nodes (c1, c2): GPUs unknown" in unknown.text
    with_topology = discovered({"n1": observed(port("mlx5_0"), NO_GPU, near("GPU0", "mlx5_0"))})
    assert "match" not in entries(with_topology)["rdma-ib"]


@pytest.mark.parametrize(
    ("node", "name", "match"),
    [
        pytest.param(KubeNode("n", {}, {"rdma/x": 1}), "cpu-ib", {"gpuResources": []}, id="no GPU"),
        pytest.param(
            KubeNode("n", {}, {"nvidia.com/gpu": 8}),
            "rdma-ib",
            {"gpuResources": ["nvidia.com/gpu"]},
            id="GPUs of an unknown product",
        ),
    ],
)
def test_gpus_of_the_api_server_come_first(
    node: KubeNode, name: str, match: dict[str, Any]
) -> None:
    """It has the resources that pods can request, even if PCI functions show no GPU."""
    fabrics = entries(discovered({"n": observed(port("mlx5_0"), NO_GPU)}, {"n": node}))
    assert {fabric: entry["match"] for fabric, entry in fabrics.items()} == {name: match}


def test_gpus_that_no_plugin_offers_yet_keep_the_usual_gpu_resource() -> None:
    """A tool shows them, whatever their product."""
    cluster_nodes = {"n": KubeNode("n", {}, {"rdma/x": 1})}
    fabrics = entries(
        discovered({"n": observed(port("mlx5_0"), near("GPU0", "mlx5_0"))}, cluster_nodes)
    )
    assert "match" not in fabrics["rdma-ib"]


def test_fabrics_without_gpus_that_offer_the_same_resource_differ_by_labels() -> None:
    """A node that offers it could belong to each."""
    nodes = {"c1": observed(port("mlx5_0")), "c2": observed(port("mlx5_0", rate_gbps=100.0))}
    cluster_nodes = {
        name: KubeNode(name, {"cloud.google.com/gke-nodepool": name}, {"rdma/hca": 1})
        for name in nodes
    }
    fabrics = entries(discovered(nodes, cluster_nodes))
    for name, fabric in (("c1", fabrics["cpu-ib-200"]), ("c2", fabrics["cpu-ib-100"])):
        assert fabric["resources"] == [{"name": "rdma/hca"}]
        labels = {"cloud.google.com/gke-nodepool": [name]}
        assert fabric["match"] == {"gpuResources": [], "nodeLabels": labels}
    cluster_nodes["c2"] = cluster_nodes["c2"]._replace(resources={"rdma/other": 1})
    distinct = entries(discovered(nodes, cluster_nodes))
    assert [fabric["match"] for fabric in distinct.values()] == [{"gpuResources": []}] * 2


def test_fabrics_without_a_rate_differ_by_their_cards() -> None:
    """Their ports are down everywhere, so their rate is unknown."""
    nodes = {
        "n1": observed(down("mlx5_0"), gpus()),
        "n2": observed(down("mlx5_0", device_id=0x1021), gpus()),
    }
    names = [plan.name for plan in discovered(nodes).fabrics]
    assert names == ["a100-ib-cx6", "a100-ib-cx7"]


def test_a_name_for_two_cards_makes_two_fabrics() -> None:
    """mlx5_1 is the fabric's on one node, and a slow Ethernet card on another."""
    slow = ethernet("mlx5_1", device_id=0x1015, rate_gbps=25.0)
    nodes = {
        "n1": observed(port("mlx5_0"), port("mlx5_1"), gpus()),
        "n2": observed(port("mlx5_0"), slow, port("mlx5_2"), gpus()),
    }
    discovery = discovered(nodes)
    hcas = sorted(fabric["hcas"] for fabric in entries(discovery).values())
    assert hcas == [["mlx5_0", "mlx5_1"], ["mlx5_0", "mlx5_2"]]
    assert (
        "mlx5_1 is ConnectX-6 InfiniBand 200 Gb/s on n1, but ConnectX-4 Lx Ethernet 25 Gb/s on n2"
    ) in " ".join(discovery.text.replace("#", "").split())


def test_a_name_that_was_another_card_before_makes_two_fabrics() -> None:
    """The node that comes first has the other card."""
    slow = ethernet("mlx5_1", device_id=0x1015, rate_gbps=25.0)
    nodes = {
        "n1": observed(port("mlx5_0"), slow, port("mlx5_2"), gpus()),
        "n2": observed(port("mlx5_0"), port("mlx5_1"), gpus()),
    }
    words = " ".join(discovered(nodes).text.replace("#", "").split())
    assert (
        "mlx5_1 is ConnectX-6 InfiniBand 200 Gb/s on n2, but ConnectX-4 Lx Ethernet 25 Gb/s on n1"
    ) in words


def test_names_that_some_nodes_lack_are_listed_for_all() -> None:
    """NCCL skips a name that a node lacks."""
    nodes = {
        "n1": observed(port("ibp12s0"), gpus()),
        "n2": observed(port("ibp14s0"), gpus()),
    }
    discovery = discovered(nodes)
    assert entries(discovery)["a100-ib"]["hcas"] == ["ibp12s0", "ibp14s0"]
    assert "ibp12s0 is missing on n2, where NCCL skips it" in discovery.text


def test_too_many_names_become_a_prefix() -> None:
    """NCCL takes 32 names; a prefix that only the fabric's devices have is enough."""
    nodes = {
        f"n{at}": observed(port(f"ibp{at}s0"), ethernet("rocep1s0"), gpus()) for at in range(40)
    }
    assert entries(discovered(nodes))["a100-ib"]["hcaPrefixes"] == ["ibp"]


def test_too_many_names_without_a_prefix_become_exclusions() -> None:
    """A prefix that another device has too would match it."""
    nodes = {
        f"n{at}": observed(port(f"ibp{at}s0"), ethernet("ibpslow0"), gpus()) for at in range(40)
    }
    assert entries(discovered(nodes))["a100-ib"]["excludeHcas"] == ["ibpslow0"]


def test_a_port_of_two_is_written_with_its_number() -> None:
    """Port 2 of a VPI card is Ethernet."""
    other = ethernet("mlx4_0", port=2, rate_gbps=40.0)
    nodes = {"n1": observed(port("mlx4_0", rate_gbps=56.0), other)}
    assert entries(discovered(nodes))["rdma-ib"]["hcas"] == ["mlx4_0:1"]


def test_a_port_that_topo_does_not_list_stays() -> None:
    """An unknown distance is no reason to leave out a port of the fabric's card."""
    cells = [near("GPU0", "mlx5_0"), near("GPU0", "mlx5_1", "SYS")]
    ports = map(port, ("mlx5_0", "mlx5_1", "mlx5_2"))
    discovery = discovered({"n1": observed(*ports, cells, gpus())})
    assert entries(discovery)["a100-ib"]["hcas"] == ["mlx5_0", "mlx5_2"]
    unused = [line for line in discovery.text.splitlines() if "unused" in line]
    assert unused == ["  # mlx5_1 is unused: not near a GPU (nvidia-smi topo -m: SYS)"]


def test_cards_near_gpus_are_the_fabrics() -> None:
    """Storage has the same cards, but no GPU under the same switch."""
    cells = [near("GPU0", "mlx5_0"), near("GPU1", "mlx5_1", "PXB"), near("GPU0", "mlx5_2", "SYS")]
    nodes = {"n1": observed(port("mlx5_0"), port("mlx5_1"), port("mlx5_2"), cells, gpus())}
    discovery = discovered(nodes)
    assert entries(discovery)["a100-ib"]["hcas"] == ["mlx5_0", "mlx5_1"]
    assert "mlx5_2 is unused: not near a GPU (nvidia-smi topo -m: SYS)" in discovery.text
    assert "rail 0: mlx5_0, near GPU0 (PIX)" in discovery.text
    assert "rail 1: mlx5_1, near GPU1 (PXB)" in discovery.text


def test_a_slower_port_is_an_error_where_others_are_faster() -> None:
    """The device stays in the list, since it is fast on other nodes."""
    nodes = {
        "n1": observed(port("mlx5_0"), port("mlx5_1"), gpus()),
        "n2": observed(port("mlx5_0"), port("mlx5_1", rate_gbps=100.0), gpus()),
    }
    discovery = discovered(nodes)
    assert entries(discovery)["a100-ib"]["hcas"] == ["mlx5_0", "mlx5_1"]
    assert messages(discovery, "error") == [
        "n2: mlx5_1 runs at 100 Gb/s, but the fabric runs at 200 Gb/s"
    ]


def test_virtual_functions_are_left_out_on_bare_metal() -> None:
    """They belong to the pods that get them; a virtual machine has nothing else."""
    virtual = port("mlx5_2", device_id=0x101C)
    discovery = discovered({"n1": observed(port("mlx5_0"), virtual)})
    assert entries(discovery)["rdma-ib"]["hcas"] == ["mlx5_0"]
    because = "# mlx5_2 is unused: a virtual function, which a single pod gets\n"
    assert because in discovery.text
    assert entries(discovered({"n1": observed(virtual)}))["rdma-ib"]["hcas"] == ["mlx5_2"]


def test_roce_without_networks_is_for_host_network() -> None:
    """A pod network has no GID of the port, so shared-device would fail there."""
    discovery = discovered({"n1": observed(ethernet("mlx5_0"), interface("eno1"), gpus())})
    fabric = entries(discovery)["a100-roce"]
    assert fabric["mode"] == "host-network"
    assert fabric["hostSocketInterface"] == "eno1"


def test_an_unknown_interface_leaves_ucx_out() -> None:
    """UCX_NET_DEVICES needs an interface for TCP, and two are possible."""
    nodes = {"n1": observed(ethernet("mlx5_0"), interface("eno1"), interface("eno2"), gpus())}
    fabric = entries(discovered(nodes))["a100-roce"]
    assert fabric["libraries"] == ["nccl", "gloo"]
    assert "hostSocketInterface" not in fabric


def test_the_interface_of_a_roce_port_carries_tcp_where_there_is_no_other() -> None:
    """It is not preferred, since a node with more interfaces has another for TCP."""
    roce = ethernet("mlx5_0", netdevs=("ens1np0",))
    discovery = discovered({"n1": observed(roce, interface("ens1np0"), gpus())})
    fabric = entries(discovery)["a100-roce"]
    assert fabric["hostSocketInterface"] == "ens1np0"
    assert "it belongs to an RDMA port" in " ".join(discovery.text.replace("#", "").split())
    two_interfaces = discovered(
        {"n1": observed(roce, interface("ens1np0"), interface("eno1"), gpus())}
    )
    assert entries(two_interfaces)["a100-roce"]["hostSocketInterface"] == "eno1"
    assert "belongs to an RDMA" not in two_interfaces.text


def test_an_interface_of_infiniband_is_not_taken_for_tcp() -> None:
    """IP over InfiniBand may have any name; such a node needs another interface."""
    infiniband = port("mlx5_0", netdevs=("rail0",))
    nodes = {"n1": observed(infiniband, interface("rail0"), gpus())}
    fabric = entries(discovered(nodes, mode="host-network"))["a100-ib"]
    assert "hostSocketInterface" not in fabric


def test_roce_in_shared_mode_needs_a_network_for_each_device() -> None:
    """Without them no fabric is written, and the message has the option to give."""
    nodes = {"n1": observed(ethernet("mlx5_0"), ethernet("mlx5_1"), gpus())}
    discovery = discovered(nodes, mode="shared-device", networks=("rdma/rail0",))
    assert entries(discovery) == {}
    (message,) = messages(discovery, "error")
    assert "needs 2 Multus networks (one for each device), but --network gives 1" in message
    enough = discovered(nodes, networks=("rdma/rail0", "rdma/rail1"))
    assert entries(enough)["a100-roce"]["mode"] == "shared-device"
    assert entries(enough)["a100-roce"]["networks"] == ["rdma/rail0", "rdma/rail1"]


@pytest.mark.parametrize("mode", ["sr-iov", "host-device"])
def test_modes_with_own_devices_name_none(mode: str) -> None:
    """Names differ between pods there; each device needs a network instead."""
    fabric = entries(discovered(a100_nodes(), mode=mode))["a100-ib"]
    assert not {"hcas", "excludeHcas", "hcaPrefixes"} & fabric.keys()
    assert all(
        resource["network"].startswith("default/a100-ib") for resource in fabric["resources"]
    )


def test_what_nodes_offer_is_used() -> None:
    """The resource that the plugin offers already, and the GPU resource that the site named."""
    resources = {"nvidia.com/v100": 8, "rdma/rdma_v100": 63, "nvidia.com/gpu": 0}
    cluster_nodes = {
        "v1": KubeNode("v1", {"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB"}, resources)
    }
    discovery = discovered({"v1": observed(port("mlx5_0"))}, cluster_nodes)
    fabric = entries(discovery)["v100-ib"]
    assert fabric["resources"] == [{"name": "rdma/rdma_v100"}]
    assert fabric["match"] == {
        "gpuResources": ["nvidia.com/v100"],
        "gpuProducts": ["Tesla-V100-SXM2-32GB"],
    }


def test_a_short_hostname_is_the_node_with_its_domain() -> None:
    """The full name of the cluster is used."""
    cluster_nodes = {"n1.lab.example": KubeNode("n1.lab.example", {}, {})}
    discovery = discovered({"n1": observed(port("mlx5_0"))}, cluster_nodes)
    assert [node.name for node in discovery.nodes] == ["n1.lab.example"]


def test_a_label_that_contradicts_the_output_is_reported() -> None:
    """The output may belong to another node; no product is chosen."""
    cluster_nodes = {"n1": KubeNode("n1", {"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB"}, {})}
    discovery = discovered({"n1": observed(port("mlx5_0"), gpus())}, cluster_nodes)
    assert discovery.nodes[0].product is None
    assert (
        "label nvidia.com/gpu.product is Tesla-V100-SXM2-32GB" in messages(discovery, "warning")[0]
    )


def test_without_a_link_layer_there_is_no_fabric() -> None:
    """ibdev2netdev alone shows neither state nor link layer, so nothing is guessed."""
    origin = Origin("ibdev2netdev", 1)
    observations = observed(
        PortObservation(origin, device="mlx5_0", port=1, netdevs=("ib0",), netdev_up=True)
    )
    discovery = discovered({"n1": observations})
    assert entries(discovery) == {}
    assert discovery.nodes[0].ports[0].state is None
    assert "no tool shows the link layer" in messages(discovery, "error")[0]


def test_an_unknown_state_is_reported() -> None:
    """The devices are listed, and the remedy names more output."""
    discovery = discovered({"n1": observed(port("mlx5_0", state=None, rate_gbps=None), gpus())})
    assert entries(discovery)["a100-ib"]["hcas"] == ["mlx5_0"]
    assert messages(discovery, "warning") == ["n1: the state of RDMA ports is unknown"]


def test_a_node_without_devices_is_an_error() -> None:
    """Other facts about it do not matter."""
    discovery = discovered({"n1": observed(gpus())})
    assert "no tool shows an RDMA device" in messages(discovery, "error")[0]


def test_a_card_without_a_device_is_reported_only_with_others() -> None:
    """Lspci alone never shows RDMA devices, so a card without one proves nothing."""
    card = CardObservation(Origin("lspci", 1), "5e:00.0", 0x0207, 0x15B3, 0x101B)
    both_cards = observed(port("mlx5_0", pci="3b:00.0"), card, gpus())
    assert messages(discovered({"n1": both_cards}), "warning") == [
        "n1: ConnectX-6 at 5e:00.0 has no RDMA device"
    ]
    assert messages(discovered({"n1": observed(card)}), "warning") == []


def test_a_rate_that_is_no_whole_number_is_not_written() -> None:
    """One lane of SDR has 2.5 Gb/s: 2 would be wrong, and rateGbps takes no fraction."""
    discovery = discovered({"n1": observed(port("mlx5_0", rate_gbps=2.5), gpus())})
    assert "rateGbps" not in entries(discovery)["a100-ib"]
    assert "rateGbps is omitted, since 2.5 Gb/s is not a whole" in discovery.text


def test_two_different_nodes_have_no_majority() -> None:
    """Neither version is that of most nodes, so each text compares with the others."""
    nodes = {
        "n1": observed(
            port("mlx5_0", firmware="20.28.1002"), gpus(), node_property("driver", "OFED")
        ),
        "n2": observed(
            port("mlx5_0", firmware="20.31.1014"), gpus(), node_property("driver", "inbox")
        ),
    }
    assert messages(discovered(nodes), "warning") == [
        "n1: the firmware is 20.28.1002, but other ConnectX-6 cards have 20.31.1014",
        "n1: the RDMA driver is OFED, but other nodes have inbox",
    ]


def test_unlimited_memlock_is_written() -> None:
    """If all nodes have it, pods that do not run as root have RDMA, too."""
    nodes = {"n1": observed(port("mlx5_0"), gpus(), node_property("memlock", "infinity"))}
    discovery = discovered(nodes)
    assert "defaults: {memlock: unlimited}" in discovery.text
    assert parse_fabrics(discovery.text, "f").compiled.defaults.memlock == "unlimited"


def test_findings_of_a_group() -> None:
    """Differences between nodes that should be equal are reported."""
    nodes = {
        "n1": observed(
            port("mlx5_0", firmware="20.31.1014"), gpus(), node_property("driver", "inbox")
        ),
        "n2": observed(
            port("mlx5_0", firmware="20.31.1014"), gpus(), node_property("driver", "inbox")
        ),
        "n3": observed(
            port("mlx5_0", firmware="20.28.1002"),
            gpus(),
            node_property("driver", "OFED 24.10-0.7.0"),
            node_property("netns", "exclusive"),
            node_property("memlock", "65536"),
            node_property("peermem", "no"),
            CounterObservation(Origin("sysfs", 0), "mlx5_0", 1, "symbol_error", 12),
        ),
    }
    discovery = discovered(nodes)
    assert [message.partition(",")[0] for message in messages(discovery, "warning")] == [
        "n3: the firmware is 20.28.1002",
        "n3: the RDMA driver is OFED 24.10-0.7.0",
        "n3: symbol_error of mlx5_0 is 12",
    ]
    assert messages(discovery, "error")[0].startswith("n3: RDMA devices belong to one network")
    assert messages(discovery, "info") == [
        (
            "n3: containerd limits locked memory to 65536 bytes, so RDMA fails in containers that "
            "do not run as root: IPC_LOCK has no effect there"
        ),
        "n3: nvidia_peermem is not loaded, so GPUDirect RDMA needs DMA-BUF",
    ]


def test_settings_that_two_files_show_differently_are_not_used() -> None:
    """The message names both, and the remedy."""
    nodes = {
        "n1": [
            *observed(port("mlx5_0"), gpus(), node_property("netns", "exclusive")),
            *observed(node_property("netns", "shared"), file="later.txt"),
        ]
    }
    (finding,) = discovered(nodes).findings
    assert finding.text == (
        "sysfs shows two values for the property netns: shared (later.txt) and exclusive (node.txt)"
    )
    assert finding.remedy.startswith(
        "Collect the output of all tools on the node again, in one go, "
    )


def test_a_missing_card_is_an_error() -> None:
    """Two nodes have two devices, the third has one."""
    two_devices = observed(port("mlx5_0"), port("mlx5_1"), gpus())
    discovery = discovered(
        {"n1": two_devices, "n2": two_devices, "n3": observed(port("mlx5_0"), gpus())}
    )
    assert messages(discovery, "error") == [
        "n3: mlx5_1 is missing: only 1 of the fabric's devices is present, but 2 other nodes have 2"
    ]


def test_of_two_nodes_the_one_with_fewer_than_ten_cards_lacks_some() -> None:
    """Counts are compared as numbers: ten devices are more than eight."""
    ten, eight = (observed(*(port(f"mlx5_{at}") for at in range(of)), gpus()) for of in (10, 8))
    (text,) = messages(discovered({"n1": ten, "n2": eight}), "error")
    assert text.startswith("n2: mlx5_8, mlx5_9 are missing: only 8 of ")


def test_the_number_of_missing_cards_is_in_the_text() -> None:
    """A node may have several of the devices, or none of them."""
    names = ("mlx5_0", "mlx5_1", "mlx5_2")
    full = observed(*map(port, names), gpus())
    two, other = observed(*map(port, names[:2]), gpus()), observed(down("mlx5_9"), gpus())
    discovery = discovered({"n1": full, "n2": full, "n3": full, "n4": two, "n5": other})
    others = "but 3 other nodes have 3"
    assert messages(discovery, "error") == [
        f"n4: mlx5_2 is missing: only 2 of the fabric's devices are present, {others}",
        f"n5: {', '.join(names)} are missing: none of the fabric's devices is present, {others}",
    ]
    (text,) = messages(discovered({"n1": full, "n2": two}), "error")
    assert text.endswith("but 1 other node has 3")


def test_the_most_severe_finding_comes_first() -> None:
    """Facts about the cluster are read first, but listed after errors of nodes."""
    fact = DEVICE_PLUGIN_CONFIGURED.finding("info", "a fact")
    discovery = discover_site({"n1": observed(gpus())}, {}, DiscoverOptions(), [fact])
    assert [finding.level for finding in discovery.findings] == ["error", "info"]


def test_unused_devices_share_a_line_for_each_reason() -> None:
    """They are in natural order; reasons that differ between nodes name the nodes."""
    slow = [ethernet(f"mlx5_{number}", rate_gbps=25.0) for number in (10, 9)]
    nodes = {
        "n1": observed(port("mlx5_0"), slow, ethernet("mlx5_11"), gpus()),
        "n2": observed(port("mlx5_0"), slow, ethernet("mlx5_11", state="Down"), gpus()),
    }
    text = " ".join(discovered(nodes).text.replace("#", "").split())
    assert "mlx5_9, mlx5_10 are unused: Ethernet, 25 Gb/s; the fabric is InfiniBand" in text
    other = "Ethernet, 100 Gb/s; the fabric is InfiniBand (on n1); Ethernet, Down; the fabric is"
    assert f"mlx5_11 is unused: {other} InfiniBand (on n2)" in text


def test_a_slower_port_is_unused_if_all_nodes_have_it() -> None:
    """The reason has both rates."""
    ports = [port("mlx5_0"), port("mlx5_1"), port("mlx5_2", rate_gbps=100.0)]
    text = discovered({"n1": observed(ports, gpus())}).text
    assert "mlx5_2 is unused: 100 Gb/s; the fabric's rate is 200 Gb/s" in text


def test_a_roce_port_without_an_address_is_an_error() -> None:
    """Without a RoCE v2 GID, nothing connects."""
    origin, gid = Origin("show_gids", 1), "fe80:0000:0000:0000:0e42:a1ff:fe00:0001"
    old = GidObservation(origin, "mlx5_0", 1, 0, gid, "v1")
    roce = ethernet("mlx5_0", netdevs=("ens1",))
    discovery = discovered({"n1": observed(roce, old, gpus())})
    assert messages(discovery, "error") == ["n1: mlx5_0 has no RoCE v2 GID"]
    two_gids = observed(roce, old, old._replace(version="v2", gid_index=1), gpus())
    assert messages(discovered({"n1": two_gids}), "error") == []
    no_version = observed(roce, old._replace(version=None), gpus())
    assert messages(discovered({"n1": no_version}), "error") == []


def test_slower_nodes_are_another_fabric_and_a_warning() -> None:
    """All ports of a node at half the rate: a cable standard, or the switch."""
    nodes = {
        "n1": observed(port("mlx5_0"), gpus()),
        "n2": observed(port("mlx5_0", rate_gbps=100.0), gpus()),
    }
    discovery = discovered(nodes)
    assert set(entries(discovery)) == {"a100-ib-200", "a100-ib-100"}
    message = messages(discovery, "warning")[0]
    assert message == (
        "n2: all ports run at 100 Gb/s, but those of nodes with the same GPUs and cards (n1) run "
        "at 200 Gb/s"
    )


def test_a_fabric_that_check_config_would_question_stands_in_comments() -> None:
    """A site with a device named eth0 must decide itself; the file loads anyway."""
    nodes: Mapping[str, list[SourcedObservation]] = {
        "n1": observed(port("eth0"), gpus(V100)),
        "n2": observed(port("mlx5_0"), gpus()),
    }
    discovery = discovered(nodes)
    assert set(entries(discovery)) == {"a100-ib"}
    assert "# - name: v100-ib" in discovery.text
    assert "looks like a network interface" in " ".join(discovery.text.replace("#", "").split())


def test_a_product_close_to_another_is_no_misspelling() -> None:
    """A node's product is right, even if check-config knows a product one letter away."""
    fabric = entries(discovered({"n1": observed(port("mlx5_0"), gpus("NVIDIA H20X"))}))
    assert len(fabric) == 1


def test_h100_is_called_h100() -> None:
    """Fabrics and resources have names that people type."""
    fabric = entries(discovered({"n1": observed(port("mlx5_0", device_id=0x1021), gpus(H100))}))
    assert set(fabric) == {"h100-ib"}


@pytest.mark.parametrize("products", [(V100, H100), (H100, V100)], ids=["V100", "H100"])
def test_a_gpu_with_two_products_has_none(products: tuple[str, str]) -> None:
    """In either order, no product is chosen, and both are named."""
    listed = [gpu for product in products for gpu in gpus(product, 1)]
    discovery = discovered({"n1": observed(port("mlx5_0"), listed)})
    assert [node.gpus for node in discovery.nodes] == [()]
    values = "1 NVIDIA-H100-80GB-HBM3 (node.txt:1) and 1 Tesla-V100-SXM2-32GB (node.txt:1)"
    message = f"n1: nvidia-smi -L shows two values for the GPUs: {values}"
    assert messages(discovery, "warning") == [message]


def test_faults_of_nodes_with_gpus_come_first() -> None:
    """Of equal severity: a node without GPUs follows, and so does a node whose GPUs are unknown."""
    nodes = {
        "login": observed(node_property("gpus", "none")),
        "new": observed(),
        "z1": observed(port("mlx5_0"), port("mlx5_1"), gpus()),
        "z2": observed(down("mlx5_0"), port("mlx5_1"), gpus()),
    }
    named = [finding.location.nodes for finding in discovered(nodes).findings]
    levels = [finding.level for finding in discovered(nodes).findings]
    assert named[:2] == [("z2",), ("login", "new")]
    assert levels[:2] == ["error", "error"]
