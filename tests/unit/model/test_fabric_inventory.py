from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import H100, READY, V100, container, fabric, fabrics
from tests.growth import MAX_LINES_RATIO, executed_lines
from webhook.model.fabric import CompiledConfiguration
from webhook.model.fabric_findings import without_nodes
from webhook.model.finding import Location
from webhook.model.inventory import (
    FabricInventory,
    UnassignedNodes,
    build_inventory,
    reservation_of,
    reserved_on_nodes,
)
from webhook.model.node_availability import CORDON, UNREADINESS, Availability
from webhook.model.nodes import Node, node_of
from webhook.model.pod.tolerations import Taint

PRODUCT = "nvidia.com/gpu.product"
VOLTA = "Tesla-V100-SXM2"


def node(product: str = "", labels: dict[str, str] | None = None, **offered: int) -> Node:
    """Make a node that takes pods; `v100=8` is nvidia.com/v100, `rdma=63` is rdma/v100."""
    full = {"rdma": "rdma/v100", "rail": "nvidia.com/rail0"}
    amounts = {full.get(key, f"nvidia.com/{key}"): count for key, count in offered.items()}
    all_labels = {**({PRODUCT: product} if product else {}), **(labels or {})}
    status = {"allocatable": amounts, "conditions": READY}
    return node_of({"metadata": {"labels": all_labels}, "status": status})


def volta(**offered: int) -> Node:
    """Make a node of the fabric v100-ib."""
    return node(VOLTA, None, **{"v100": 8, "rdma": 63, **offered})


def cordoned(like: Node) -> Node:
    """Cordon a node."""
    return replace(like, availability=Availability((CORDON,)))


def tainted(like: Node, *keys: str) -> Node:
    """Taint a node."""
    return replace(like, availability=Availability(tuple(map(Taint, keys))))


def build(nodes: dict[str, Node], site: CompiledConfiguration | None = None) -> FabricInventory:
    """Build the inventory, with the fabrics V100 and H100 by default."""
    return build_inventory(nodes, site or fabrics(V100, H100))


def texts(inventory: FabricInventory) -> dict[str, list[str]]:
    """Return the texts by fabric, for fabrics with findings."""
    return {
        capacity.name: [finding.text for finding in capacity.findings]
        for capacity in inventory.fabrics
        if capacity.findings
    }


def test_a_fabric_has_what_its_nodes_offer() -> None:
    """Amounts are added up; nodes are in natural order."""
    h100 = node("NVIDIA-H100-SXM5", h100=8, rail=8)
    inventory = build({"n10": volta(), "n2": volta(v100=7), "h": h100})
    v100, roce = inventory.fabrics
    assert (v100.name, v100.nodes) == ("v100-ib", ("n2", "n10"))
    assert (v100.gpus, v100.resources) == ({"nvidia.com/v100": 15}, {"rdma/v100": 126})
    assert (roce.nodes, roce.gpus, roce.resources) == (
        *(("h",), {"nvidia.com/h100": 8}, {"nvidia.com/rail0": 8}),
    )
    assert v100.free is None
    assert (
        inventory.is_healthy,
        inventory.nodes,
        inventory.unrelated_nodes,
        inventory.unassigned_nodes,
    ) == (
        True,
        3,
        0,
        (),
    )


def test_what_pods_have_reserved_is_not_free() -> None:
    """For each node by itself; a node that has lost devices has 0 free, not a negative number."""
    nodes = {"a": volta(), "b": volta(), "c": volta(rdma=1)}
    reserved = {"a": {"nvidia.com/v100": 8, "rdma/v100": 3}, "c": {"rdma/v100": 5}, "x": {}}
    (capacity,) = build_inventory(nodes, fabrics(V100), reserved).fabrics
    assert capacity.free == {"nvidia.com/v100": 16, "rdma/v100": 123}


def test_a_node_that_lacks_a_resource_adds_none() -> None:
    """Whether pods are known or not."""
    nodes = {"a": volta(), "b": node(VOLTA, v100=4)}
    reserved = {"a": {"rdma/v100": 3}}
    (capacity,) = build_inventory(nodes, fabrics(V100), reserved).fabrics
    assert capacity.resources == {"rdma/v100": 63}
    assert capacity.free == {"nvidia.com/v100": 12, "rdma/v100": 60}


def test_pods_that_are_finished_or_not_scheduled_have_reserved_nothing() -> None:
    """The others count as the scheduler counts them."""

    def pod(name: str, phase: str, **limits: str) -> dict[str, Any]:
        spec = {"containers": [container(resources={"limits": limits})], "nodeName": name}
        return {"spec": spec, "status": {"phase": phase}}

    waiting = pod("a", "Pending", **{"rdma/v100": "1"})
    del waiting["spec"]["nodeName"]
    pods = [
        pod("a", "Running", **{"rdma/v100": "2", "cpu": "1"}),
        pod("a", "Pending", **{"rdma/v100": "1"}),
        pod("a", "Succeeded", **{"rdma/v100": "4"}),
        pod("a", "Failed", **{"rdma/v100": "8"}),
        pod("b", "Running", cpu="1"),
        waiting,
    ]
    assert reserved_on_nodes(filter(None, map(reservation_of, pods))) == {"a": {"rdma/v100": 3}}


def test_nodes_that_take_no_pods_add_nothing() -> None:
    """They are apart: neither their GPUs nor their RDMA resources count, free or not."""
    lacking = node(VOLTA, v100=4)
    nodes = {"n10": volta(), "n9": volta(), "n2": cordoned(volta()), "n1": cordoned(lacking)}
    (capacity,) = build_inventory({**nodes, "n3": lacking}, fabrics(V100), {}).fabrics
    assert capacity.nodes == ("n3", "n9", "n10")
    assert capacity.unavailable_nodes == ("n1", "n2")
    assert capacity.nodes_without_resource == ("n3",)
    assert capacity.gpus == {"nvidia.com/v100": 20}
    assert capacity.resources == {"rdma/v100": 126}
    assert capacity.free == {"nvidia.com/v100": 20, "rdma/v100": 126}


def described(inventory: FabricInventory) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Return level, code, text and nodes of each finding of the first fabric."""
    return [
        (finding.level, finding.code, finding.text, finding.location.nodes)
        for finding in inventory.fabrics[0].findings
    ]


def test_why_nodes_take_no_pods() -> None:
    """A node is named for each reason, in natural order, whatever else distinguishes the nodes."""
    pressure = "node.kubernetes.io/disk-pressure"
    repelling = replace(volta(), availability=Availability((CORDON, UNREADINESS, Taint(pressure))))
    nodes = {"n10": repelling, "n9": cordoned(volta(v100=4)), "ok": volta()}
    inventory = build(nodes, fabrics(V100))
    assert described(inventory) == [
        ("warning", "NodeCordoned", "2 nodes are cordoned", ("n9", "n10")),
        ("error", "NodeNotReady", "1 node is not ready", ("n10",)),
        ("error", "NodeTaintedByKubernetes", f"1 node has the taint {pressure}", ("n10",)),
    ]
    assert not inventory.is_healthy


def test_a_fabric_whose_nodes_take_no_pods() -> None:
    """With the only node cordoned, all amounts are zero, and the fabric has a problem."""
    inventory = build({"a": cordoned(volta())}, fabrics(V100))
    assert described(inventory) == [
        ("error", "NoNodeTakesPods", "no node of the fabric takes pods", ()),
        ("warning", "NodeCordoned", "1 node is cordoned", ("a",)),
    ]
    (capacity,) = inventory.fabrics
    assert (capacity.gpus, capacity.resources) == ({"nvidia.com/v100": 0}, {"rdma/v100": 0})
    assert (capacity.nodes, capacity.problems) == ((), capacity.findings)


def test_the_only_nodes_with_the_resource_take_no_pods() -> None:
    """Then no pod gets it, although a node offers it."""
    inventory = build({"a": cordoned(volta()), "b": node(VOLTA, v100=8)}, fabrics(V100))
    lacking = "1 node has the GPU nvidia.com/v100, but not rdma/v100"
    assert [finding[1:] for finding in described(inventory)] == [
        ("NodeCordoned", "1 node is cordoned", ("a",)),
        ("ResourceNotOffered", "no node that takes pods offers rdma/v100", ()),
        ("NodeWithoutResource", lacking, ("b",)),
    ]


def test_a_taint_is_a_note() -> None:
    """Pods that tolerate it run there, so the nodes count; nothing is wrong."""
    inventory = build({"b": tainted(volta(), "dedicated"), "a": volta()}, fabrics(V100))
    text = "1 node has the taint dedicated, so only pods that tolerate it run there"
    assert described(inventory) == [("info", "NodeTainted", text, ("b",))]
    (capacity,) = inventory.fabrics
    assert (capacity.nodes, capacity.problems) == (("a", "b"), ())
    assert capacity.notes == capacity.findings
    assert inventory.is_healthy


@pytest.mark.parametrize("key", ["nvidia.com/gpu", "nvidia.com/v100", "rdma/v100"])
def test_taints_named_like_a_resource_are_tolerated(key: str) -> None:
    """Pods that request the resource have the toleration, from a cloud or an admission plugin."""
    assert described(build({"a": tainted(volta(), key)}, fabrics(V100))) == []


def test_many_taints_are_summed_up() -> None:
    """Each node might have a taint of its own, and the status has limited space."""
    nodes = {f"n{number}": tainted(volta(), f"pool-{number}") for number in range(4)}
    last = tainted(volta(), "pool-1", "pool-5", "pool-6")
    findings = build({**nodes, "n4": last, "n5": last}, fabrics(V100)).fabrics[0].findings
    assert [finding.text.partition(",")[0] for finding in findings] == [
        "1 node has the taint pool-0",
        "3 nodes have the taint pool-1",
        "1 node has the taint pool-2",
        "1 node has the taint pool-3",
        "2 nodes have still other taints",
    ]
    assert findings[-1].location.nodes == ("n4", "n5")


def test_a_fabric_without_nodes() -> None:
    """It is a problem, and the only one that is reported for the fabric."""
    inventory = build({"a": volta()})
    assert texts(inventory) == {"h100-roce": ["no node belongs to the fabric"]}
    assert not inventory.is_healthy


def test_a_resource_that_no_node_offers() -> None:
    """One sentence, not a sentence for each node."""
    inventory = build({"a": node(VOLTA, v100=8), "b": node(VOLTA, v100=4)}, fabrics(V100))
    assert texts(inventory) == {"v100-ib": ["no node offers rdma/v100"]}


def test_nodes_that_lack_the_resource() -> None:
    """The text only counts them; their names are in the finding's location."""
    bare = {f"n{number}": node(VOLTA, v100=8) for number in range(5)}
    inventory = build({"good": volta(), **bare}, fabrics(V100))
    lacking = "the GPU nvidia.com/v100, but not rdma/v100"
    assert texts(inventory) == {"v100-ib": [f"5 nodes have {lacking}"]}
    (finding,) = inventory.fabrics[0].findings
    assert finding.location == Location(nodes=tuple(bare))
    inventory = build({"good": volta(), "n7": node(VOLTA, v100=8)}, fabrics(V100))
    assert texts(inventory) == {"v100-ib": [f"1 node has {lacking}"]}


def test_a_finding_without_names_of_nodes_points_to_them() -> None:
    """The remedy for people who see the names differs from the one that says where they are."""
    nodes = {"n1": volta(), "n2": volta(rdma=0)}
    (finding,) = build_inventory(nodes, fabrics()).fabrics[0].problems
    assert "n2" in finding.location.nodes
    assert finding.remedy.endswith("on each node named above.")
    anonymous = without_nodes(finding)
    assert anonymous.location == Location()
    assert anonymous.remedy.endswith("which `rdma-webhook fabrics` names.")
    assert (anonymous.code, anonymous.text) == (finding.code, finding.text)


def test_each_finding_has_its_code() -> None:
    """A resource that no node offers does not hide that a node lacks the next one."""
    double = fabric(
        "both", node_labels={"net": ("ib",)}, resources=(*H100.resources, *V100.resources)
    )
    first = node(labels={"net": "ib"}, v100=8, h100=8)
    inventory = build({"a": first, "b": node(labels={"net": "ib"}, rdma=1)}, fabrics(double, H100))
    assert [
        (finding.level, finding.code, finding.text, finding.location.nodes)
        for finding in inventory.fabrics[0].findings
    ] == [
        ("error", "ResourceNotOffered", "no node offers nvidia.com/rail0", ()),
        (
            *("error", "NodeWithoutResource"),
            "1 node has the GPU nvidia.com/h100, but not rdma/v100",
            ("a",),
        ),
    ]
    assert [finding.code for finding in inventory.fabrics[1].findings] == ["FabricWithoutNodes"]


def test_a_node_without_gpus_may_lack_the_resource() -> None:
    """A label shows its fabric."""
    cpu = fabric("cpu", node_labels={"net": ("ib",)}, resources=V100.resources)
    nodes = {"a": node(labels={"net": "ib"}), "b": node(labels={"net": "ib"}, rdma=1)}
    assert texts(build(nodes, fabrics(cpu))) == {"cpu": ["1 node has no rdma/v100"]}


def unassigned(inventory: FabricInventory) -> UnassignedNodes:
    """Return the only unassigned nodes."""
    (only,) = inventory.unassigned_nodes
    return only


def test_a_node_that_fits_no_fabric_says_what_is_missing() -> None:
    """The nearest fabric has the fewest unmet conditions."""
    inventory = build({"p10": node("Tesla-P100", v100=8), "p9": node("Tesla-P100", v100=8)})
    reason = f"label {PRODUCT} is Tesla-P100, not Tesla-V100-*"
    assert unassigned(inventory) == UnassignedNodes(("p9", "p10"), (), "v100-ib", reason)
    assert (inventory.nodes, inventory.unrelated_nodes) == (2, 0)
    missing = f"label {PRODUCT} is missing (expected: Tesla-V100-*)"
    assert unassigned(build({"p": node(v100=8)})).why == missing
    neither = "neither nvidia.com/v100 nor rdma/v100 is offered"
    assert unassigned(build({"p": node(VOLTA)})).why == neither
    reasons = f"label {PRODUCT} is missing (expected: Tesla-V100-*); {neither}"
    assert unassigned(build({"p": node(gpu=1)})) == UnassignedNodes(("p",), (), "v100-ib", reasons)


@pytest.mark.parametrize(
    ("gpus", "why"),
    [
        ((), "rdma/v100 is not offered"),
        (("a.com/gpu", "b.com/gpu"), "none of a.com/gpu, b.com/gpu and rdma/v100 is offered"),
    ],
)
def test_resources_that_are_not_offered(gpus: tuple[str, ...], why: str) -> None:
    """Any of them would be enough, so the sentence states that nodes offer none of them."""
    alternatives = fabric("x", gpu_resources=frozenset(gpus), resources=V100.resources)
    assert unassigned(build({"n": node(gpu=1)}, fabrics(alternatives))).why == why


def test_a_node_with_rdma_and_no_gpu_may_belong_to_a_fabric() -> None:
    """Any GPU name of the fabric would be enough, and any product."""
    two = fabric(
        "two",
        node_labels={PRODUCT: ("Tesla-V100-*", VOLTA)},
        gpu_resources=frozenset({"nvidia.com/v100", "nvidia.com/gpu"}),
        resources=V100.resources,
    )
    assert unassigned(build({"n": node(rdma=1)}, fabrics(two))).why == (
        f"label {PRODUCT} is missing (expected: Tesla-V100-* or {VOLTA})"
    )


def test_a_node_without_gpus_belongs_to_the_fabric_whose_resource_it_offers() -> None:
    """Then it counts as any other node of the fabric, without a problem."""
    loose = fabric("loose", gpu_resources=V100.gpu_resources, resources=V100.resources)
    inventory = build({"c": node(rdma=63), "g": node(v100=8, rdma=63)}, fabrics(loose))
    (only,) = inventory.fabrics
    assert (only.nodes, only.resources, inventory.is_healthy) == (
        ("c", "g"),
        {"rdma/v100": 126},
        True,
    )


def test_a_resource_of_several_fabrics_brings_no_node_to_any() -> None:
    """The GPU is missing, since the resource could belong to either fabric."""
    twins = [
        fabric(name, gpu_resources=V100.gpu_resources, resources=V100.resources) for name in "ab"
    ]
    inventory = build({"c": node(rdma=63)}, fabrics(*twins))
    assert unassigned(inventory) == UnassignedNodes(
        ("c",), (), "a", "nvidia.com/v100 is not offered"
    )


def test_a_fabric_without_match_misses_its_resource() -> None:
    """Nothing else assigns a node to it."""
    loose = fabric("loose", resources=V100.resources)
    assert unassigned(build({"g": node(gpu=8)}, fabrics(loose))).why == "rdma/v100 is not offered"


def test_a_fabric_that_labels_are_enough_for_misses_no_resource() -> None:
    """A node with its label would belong to it without offering anything."""
    labeled = fabric("labeled", node_labels={"net": ("ib",)}, resources=V100.resources)
    inventory = build({"g": node(gpu=8)}, fabrics(labeled))
    assert unassigned(inventory).why == "label net is missing (expected: ib)"


def test_an_offered_resource_decides_between_equally_near_fabrics() -> None:
    """The fabric's own resource counts as a met condition, as its GPU does."""
    first = fabric("first", gpu_resources=frozenset({"nvidia.com/x"}))
    second = fabric("second", node_labels={"net": ("ib",)}, gpu_resources=V100.gpu_resources)
    second = replace(second, resources=V100.resources)
    inventory = build({"n": node(rdma=1)}, fabrics(first, second))
    assert unassigned(inventory) == UnassignedNodes(
        ("n",), (), "second", "label net is missing (expected: ib)"
    )


def test_shared_gpus_have_the_product_that_they_are_shares_of() -> None:
    """NVIDIA's device plugin adds a word to the product's name."""
    exact = fabric("exact", node_labels={PRODUCT: (VOLTA,)}, resources=V100.resources)
    inventory = build({"n": node(f"{VOLTA}-SHARED", rdma=1)}, fabrics(exact))
    assert (inventory.fabrics[0].nodes, inventory.unassigned_nodes) == (("n",), ())
    other = fabric("other", node_labels={PRODUCT: (VOLTA,), "net": ("ib",)})
    inventory = build({"n": node(f"{VOLTA}-SHARED", rdma=1)}, fabrics(other))
    assert unassigned(inventory).why == "label net is missing (expected: ib)"


def test_an_offered_gpu_decides_between_equally_near_fabrics() -> None:
    """A GPU counts as a met condition, as a label does."""
    first = fabric("first", node_labels={"net": ("ib",)})
    second = fabric("second", node_labels={"net": ("ib",)}, gpu_resources=V100.gpu_resources)
    assert unassigned(build({"n": node(v100=8)}, fabrics(first, second))).nearest == "second"


def test_more_met_conditions_decide_between_equally_near_fabrics() -> None:
    """One condition is missing for each; the second fabric also has a met condition."""
    plain = fabric("plain", gpu_resources=frozenset({"nvidia.com/x"}))
    inventory = build({"n": node(VOLTA)}, fabrics(plain, V100))
    assert unassigned(inventory).nearest == "v100-ib"


def test_a_node_that_fits_two_fabrics_says_what_they_have_in_common() -> None:
    """A pod for such a node is ambiguous."""
    first, second = (fabric(name, gpu_resources=frozenset({"nvidia.com/gpu"})) for name in "ab")
    inventory = build({"n": node(gpu=8)}, fabrics(first, second))
    assert unassigned(inventory) == UnassignedNodes(
        ("n",), ("a", "b"), "", "nvidia.com/gpu matches all of them"
    )
    labeled = [fabric(name, node_labels={"net": ("i*",)}) for name in "ab"]
    inventory = build({"n": node(labels={"net": "ib"})}, fabrics(*labeled))
    assert unassigned(inventory).why == "label net=ib matches all of them"
    loose = fabric("loose")
    inventory = build({"n": volta()}, fabrics(V100, loose))
    assert unassigned(inventory).why == "nothing in `match` distinguishes them"
    north, south = (
        fabric("north", resources=V100.resources),
        fabric("south", resources=H100.resources),
    )
    inventory = build({"n": node(rdma=1, rail=8)}, fabrics(north, south))
    offered = "they offer resources of each: rdma/v100, nvidia.com/rail0"
    assert unassigned(inventory) == UnassignedNodes(("n",), ("north", "south"), "", offered)
    inventory = build({"n": volta()}, fabrics(V100, loose, replace(loose, name="tight")))
    assert unassigned(inventory).why == "nothing in `match` distinguishes them"
    twice = [
        fabric(f"v{n}", gpu_resources=V100.gpu_resources, node_labels=V100.node_labels)
        for n in (1, 2)
    ]
    expected = f"nvidia.com/v100 and label {PRODUCT}={VOLTA} match all of them"
    assert unassigned(build({"n": volta()}, fabrics(*twice))).why == expected


def offering(**amounts: int) -> Node:
    """Make a node that offers resources; `amd_com__nic=8` is amd.com/nic."""
    names = {key.replace("__", "/").replace("_", "."): count for key, count in amounts.items()}
    return node_of({"metadata": {}, "status": {"allocatable": names, "conditions": READY}})


def test_devices_that_no_fabric_lists_are_counted() -> None:
    """GPUs of other vendors, other accelerators, and NICs by the globs of ours and of the site."""
    nodes = {
        "m1": offering(amd_com__gpu=8, amd_com__nic=8),
        "m2": offering(amd_com__gpu=8, amd_com__nic=8, example_com__fpga=1),
        "e": offering(vpc_amazonaws_com__efa=32, habana_ai__gaudi=8, example_com__ipu=4),
        "p": node(p100=8),
        "cp": node(),
        "a": volta(),
    }
    inventory = build(nodes, fabrics(V100, foreign_resources=("*/fpga",)))
    assert inventory.unrelated_nodes == 5
    assert dict(inventory.unlisted_devices) == {
        "amd.com/gpu": 2,
        "amd.com/nic": 2,
        "example.com/fpga": 1,
        "habana.ai/gaudi": 1,
        "nvidia.com/p100": 1,
        "vpc.amazonaws.com/efa": 1,
    }
    assert list(inventory.unlisted_devices) == sorted(inventory.unlisted_devices)
    assert inventory.is_healthy
    assert build({"a": volta(p100=8)}, fabrics(V100)).unlisted_devices == {}


def test_nodes_that_no_fabric_means_are_counted() -> None:
    """They offer no GPU and no RDMA resource of a fabric, and fit no label of one."""
    others = {"cp": node(labels={"role": "x"}), "p": node(p100=8)}
    inventory = build({"a": volta(), **others}, fabrics(V100))
    assert (
        inventory.nodes,
        inventory.unrelated_nodes,
        inventory.unassigned_nodes,
        inventory.is_healthy,
    ) == (
        3,
        2,
        (),
        True,
    )


def test_without_fabrics_there_is_none_to_be_near() -> None:
    """Nodes with GPUs are still reported."""
    empty = fabrics(V100)
    none = type(empty)(fabrics={}, defaults=empty.defaults, config_hash="x")
    inventory = build_inventory({"a": node(gpu=8)}, none)
    assert inventory.unassigned_nodes == (UnassignedNodes(("a",), (), "", "there are no fabrics"),)


def test_each_node_takes_little() -> None:
    """Equal nodes are handled once: twice the nodes are at most twice the work."""

    def run(count: int) -> int:
        nodes = {f"n{number}": volta(v100=number % 3 + 6) for number in range(count)}
        reserved = {name: {"rdma/v100": 1} for name in nodes}
        return executed_lines(lambda: build_inventory(nodes, fabrics(V100, H100), reserved))

    assert run(400) < MAX_LINES_RATIO * run(200)


def test_nodes_outside_fabrics_are_findings() -> None:
    """The text counts them and says what they lack, or what several fabrics have in common."""
    several = UnassignedNodes(("a", "b"), ("x", "y"), "", "nvidia.com/gpu matches all of them")
    without = UnassignedNodes(("c",), (), "", "there are no fabrics")
    near = without._replace(nearest="x", why="label net is missing (expected: ib)")
    inventory = FabricInventory((), (several, without, near), 4, 0)
    assert [
        (finding.level, finding.code, finding.text, finding.location.nodes)
        for finding in inventory.findings
    ] == [
        (
            *("error", "NodeInSeveralFabrics"),
            "2 nodes match x and y: nvidia.com/gpu matches all of them",
            ("a", "b"),
        ),
        ("error", "NodeWithoutFabric", "1 node matches no fabric: there are no fabrics", ("c",)),
        (
            *("error", "NodeWithoutFabric"),
            "1 node matches no fabric (nearest: x): label net is missing (expected: ib)",
            ("c",),
        ),
    ]
