from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.builders import H100, V100, container, fabric, fabrics
from tests.growth import DOUBLE, lines
from webhook.model.fabric import Fabrics
from webhook.model.inventory import (
    FabricInventory,
    NodeProblem,
    UnassignedNodes,
    build_inventory,
    natural_key,
    reservation_of,
    reserved_on_nodes,
)
from webhook.model.nodes import Node, node_of

PRODUCT = "nvidia.com/gpu.product"
VOLTA = "Tesla-V100-SXM2"


def node(product: str = "", labels: dict[str, str] | None = None, **offered: int) -> Node:
    """Make a node; `v100=8` is nvidia.com/v100, `rdma=63` is rdma/v100."""
    full = {"rdma": "rdma/v100", "rail": "nvidia.com/rail0"}
    amounts = {full.get(key, f"nvidia.com/{key}"): many for key, many in offered.items()}
    shown = {**({PRODUCT: product} if product else {}), **(labels or {})}
    return node_of({"metadata": {"labels": shown}, "status": {"allocatable": amounts}})


def good(**offered: int) -> Node:
    """Make a node of the fabric v100-ib."""
    return node(VOLTA, None, **{"v100": 8, "rdma": 63, **offered})


def taken(nodes: dict[str, Node], known: Fabrics | None = None) -> FabricInventory:
    """Take the inventory, with the fabrics V100 and H100 if no others are given."""
    return build_inventory(nodes, known or fabrics(V100, H100))


def problems(found: FabricInventory) -> dict[str, list[str]]:
    """Return the sentences by fabric, of those that have any."""
    return {
        one.name: [problem.text for problem in one.problems]
        for one in found.fabrics
        if one.problems
    }


def test_a_fabric_has_what_its_nodes_offer() -> None:
    """Amounts are added up; nodes are sorted as people count."""
    h100 = node("NVIDIA-H100-SXM5", h100=8, rail=8)
    found = taken({"n10": good(), "n2": good(v100=7), "h": h100})
    v100, roce = found.fabrics
    assert (v100.name, v100.nodes) == ("v100-ib", ("n2", "n10"))
    assert (v100.gpus, v100.resources) == ({"nvidia.com/v100": 15}, {"rdma/v100": 126})
    assert (roce.nodes, roce.gpus, roce.resources) == (
        *(("h",), {"nvidia.com/h100": 8}, {"nvidia.com/rail0": 8}),
    )
    assert v100.free is None
    assert (found.well, found.nodes, found.others, found.unassigned_nodes) == (True, 3, 0, ())


def test_what_pods_have_reserved_is_not_free() -> None:
    """Of each node by itself; a node that has lost devices has none free, not fewer than none."""
    nodes = {"a": good(), "b": good(), "c": good(rdma=1)}
    reserved = {"a": {"nvidia.com/v100": 8, "rdma/v100": 3}, "c": {"rdma/v100": 5}, "x": {}}
    (found,) = build_inventory(nodes, fabrics(V100), reserved).fabrics
    assert found.free == {"nvidia.com/v100": 16, "rdma/v100": 123}


def test_a_node_that_lacks_a_resource_adds_none() -> None:
    """Whether pods are known or not."""
    nodes = {"a": good(), "b": node(VOLTA, v100=4)}
    reserved = {"a": {"rdma/v100": 3}}
    (found,) = build_inventory(nodes, fabrics(V100), reserved).fabrics
    assert found.resources == {"rdma/v100": 63}
    assert found.free == {"nvidia.com/v100": 12, "rdma/v100": 60}


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


def test_a_fabric_without_nodes() -> None:
    """It is a problem, and nothing else is then said of it."""
    found = taken({"a": good()})
    assert problems(found) == {"h100-roce": ["no node belongs to the fabric"]}
    assert not found.well


def test_a_resource_that_no_node_offers() -> None:
    """One sentence, not one for each node."""
    found = taken({"a": node(VOLTA, v100=8), "b": node(VOLTA, v100=4)}, fabrics(V100))
    assert problems(found) == {"v100-ib": ["resource rdma/v100 is offered by no node"]}


def test_nodes_that_lack_the_resource() -> None:
    """Some are named, the others counted; the same sentence goes without names."""
    bare = {f"n{number}": node(VOLTA, v100=8) for number in range(5)}
    found = taken({"good": good(), **bare}, fabrics(V100))
    lacking = "the GPU nvidia.com/v100, but not rdma/v100"
    assert problems(found) == {"v100-ib": [f"5 nodes (n0, n1, n2 and 2 more) have {lacking}"]}
    (problem,) = found.fabrics[0].problems
    assert problem.anonymous == f"5 nodes have {lacking}"
    assert problem.nodes == tuple(bare)

    pair = taken({"good": good(), "n1": bare["n1"], "n2": bare["n2"]}, fabrics(V100))
    assert problems(pair) == {"v100-ib": [f"2 nodes (n1, n2) have {lacking}"]}
    for many, named in ((3, "n0, n1, n2"), (4, "n0, n1, n2 and 1 more")):
        some = {name: bare[name] for name in [*bare][:many]}
        several = taken({"good": good(), **some}, fabrics(V100))
        assert problems(several) == {"v100-ib": [f"{many} nodes ({named}) have {lacking}"]}
    found = taken({"good": good(), "n7": node(VOLTA, v100=8)}, fabrics(V100))
    (problem,) = found.fabrics[0].problems
    assert (problem.text, problem.anonymous) == (f"node n7 has {lacking}", f"1 node has {lacking}")
    empty = taken({}, fabrics(V100)).fabrics[0].problems[0]
    assert empty.text == empty.anonymous == "no node belongs to the fabric"


def test_each_problem_has_its_code() -> None:
    """A resource that nobody offers does not hide what a node lacks of the next one."""
    both = fabric(
        "both", node_labels={"net": ("ib",)}, resources=(*H100.resources, *V100.resources)
    )
    first = node(labels={"net": "ib"}, v100=8, h100=8)
    found = taken({"a": first, "b": node(labels={"net": "ib"}, rdma=1)}, fabrics(both, H100))
    assert found.fabrics[0].problems == (
        NodeProblem("ResourceNotOffered", (), "resource nvidia.com/rail0 is offered by no node"),
        NodeProblem("NodeWithoutResource", ("a",), "the GPU nvidia.com/h100, but not rdma/v100"),
    )
    assert [one.code for one in found.fabrics[1].problems] == ["FabricWithoutNodes"]


def test_names_are_sorted_as_people_count() -> None:
    """A number in a name counts as a number, wherever it stands, unless it is a very long one."""
    long = ["1234567890", "200000000"]
    names = ["n10-1", "n2-10", "n2-9", "n", "n1", "m3", "2", "10", *long, "n1a"]
    expected = [
        "2",
        "10",
        "1234567890",
        "200000000",
        "m3",
        "n",
        "n1",
        "n1a",
        "n2-9",
        "n2-10",
        "n10-1",
    ]
    assert sorted(names, key=natural_key) == expected


def test_a_node_without_gpus_may_lack_the_resource() -> None:
    """Its fabric is told by a label."""
    cpu = fabric("cpu", node_labels={"net": ("ib",)}, resources=V100.resources)
    nodes = {"a": node(labels={"net": "ib"}), "b": node(labels={"net": "ib"}, rdma=1)}
    assert problems(taken(nodes, fabrics(cpu))) == {"cpu": ["node a has no rdma/v100"]}


def misfit(found: FabricInventory) -> UnassignedNodes:
    """Return the only misfits."""
    (only,) = found.unassigned_nodes
    return only


def test_a_node_that_fits_no_fabric_says_what_is_missing() -> None:
    """The nearest fabric is the one for which the least is missing."""
    found = taken({"p10": node("Tesla-P100", v100=8), "p9": node("Tesla-P100", v100=8)})
    why = f"label {PRODUCT} is Tesla-P100, not Tesla-V100-*"
    assert misfit(found) == UnassignedNodes(("p9", "p10"), (), "v100-ib", why)
    assert (found.nodes, found.others) == (2, 0)
    assert misfit(taken({"p": node(v100=8)})).why == f"label {PRODUCT} is missing (Tesla-V100-*)"
    neither = "nvidia.com/v100 or rdma/v100 is not offered"
    assert misfit(taken({"p": node(VOLTA)})).why == neither
    both = f"label {PRODUCT} is missing (Tesla-V100-*); {neither}"
    assert misfit(taken({"p": node(gpu=1)})) == UnassignedNodes(("p",), (), "v100-ib", both)


def test_a_node_with_rdma_and_no_gpu_is_meant_for_a_fabric() -> None:
    """Each of the fabric's names would do, and each product."""
    two = fabric(
        "two",
        node_labels={PRODUCT: ("Tesla-V100-*", VOLTA)},
        gpu_resources=frozenset({"nvidia.com/v100", "nvidia.com/gpu"}),
        resources=V100.resources,
    )
    assert misfit(taken({"n": node(rdma=1)}, fabrics(two))).why == (
        f"label {PRODUCT} is missing (Tesla-V100-* or {VOLTA})"
    )


def test_a_node_without_gpus_belongs_to_the_fabric_whose_resource_it_offers() -> None:
    """Then it counts as any other node of the fabric, with nothing wrong."""
    loose = fabric("loose", gpu_resources=V100.gpu_resources, resources=V100.resources)
    found = taken({"c": node(rdma=63), "g": node(v100=8, rdma=63)}, fabrics(loose))
    (only,) = found.fabrics
    assert (only.nodes, only.resources, found.well) == (("c", "g"), {"rdma/v100": 126}, True)


def test_a_resource_of_several_fabrics_brings_no_node_to_any() -> None:
    """The GPU is what is missing, since the resource could be that of each."""
    twins = [
        fabric(name, gpu_resources=V100.gpu_resources, resources=V100.resources) for name in "ab"
    ]
    found = taken({"c": node(rdma=63)}, fabrics(*twins))
    assert misfit(found) == UnassignedNodes(("c",), (), "a", "nvidia.com/v100 is not offered")


def test_a_fabric_without_match_misses_its_resource() -> None:
    """Nothing else leads a node to it."""
    loose = fabric("loose", resources=V100.resources)
    assert misfit(taken({"g": node(gpu=8)}, fabrics(loose))).why == "rdma/v100 is not offered"


def test_a_fabric_that_labels_are_enough_for_misses_no_resource() -> None:
    """A node with its label would belong to it without offering anything."""
    labelled = fabric("labelled", node_labels={"net": ("ib",)}, resources=V100.resources)
    found = taken({"g": node(gpu=8)}, fabrics(labelled))
    assert misfit(found).why == "label net is missing (ib)"


def test_of_two_fabrics_as_near_the_one_whose_resource_is_there() -> None:
    """The fabric's own resource counts as a condition that is met, as its GPU does."""
    first = fabric("first", gpu_resources=frozenset({"nvidia.com/x"}))
    second = fabric("second", node_labels={"net": ("ib",)}, gpu_resources=V100.gpu_resources)
    second = replace(second, resources=V100.resources)
    found = taken({"n": node(rdma=1)}, fabrics(first, second))
    assert misfit(found) == UnassignedNodes(("n",), (), "second", "label net is missing (ib)")


def test_shared_gpus_have_the_product_that_they_are_shares_of() -> None:
    """NVIDIA's device plugin adds a word to the product's name."""
    exact = fabric("exact", node_labels={PRODUCT: (VOLTA,)}, resources=V100.resources)
    found = taken({"n": node(f"{VOLTA}-SHARED", rdma=1)}, fabrics(exact))
    assert (found.fabrics[0].nodes, found.unassigned_nodes) == (("n",), ())
    other = fabric("other", node_labels={PRODUCT: (VOLTA,), "net": ("ib",)})
    found = taken({"n": node(f"{VOLTA}-SHARED", rdma=1)}, fabrics(other))
    assert misfit(found).why == "label net is missing (ib)"


def test_of_two_fabrics_as_near_the_one_whose_gpu_is_there() -> None:
    """A GPU counts as a condition that is met, as a label does."""
    first = fabric("first", node_labels={"net": ("ib",)})
    second = fabric("second", node_labels={"net": ("ib",)}, gpu_resources=V100.gpu_resources)
    assert misfit(taken({"n": node(v100=8)}, fabrics(first, second))).nearest == "second"


def test_of_two_fabrics_as_near_the_one_that_fits_more() -> None:
    """One condition is missing for each; the second fabric has another one that is met."""
    plain = fabric("plain", gpu_resources=frozenset({"nvidia.com/x"}))
    found = taken({"n": node(VOLTA)}, fabrics(plain, V100))
    assert misfit(found).nearest == "v100-ib"


def test_a_node_that_fits_two_fabrics_says_what_they_have_in_common() -> None:
    """Then a pod for it is ambiguous."""
    one, two = (fabric(name, gpu_resources=frozenset({"nvidia.com/gpu"})) for name in "ab")
    found = taken({"n": node(gpu=8)}, fabrics(one, two))
    assert misfit(found) == UnassignedNodes(
        ("n",), ("a", "b"), "", "nvidia.com/gpu fits all of them"
    )
    labelled = [fabric(name, node_labels={"net": ("i*",)}) for name in "ab"]
    found = taken({"n": node(labels={"net": "ib"})}, fabrics(*labelled))
    assert misfit(found).why == "label net=ib fits all of them"
    loose = fabric("loose")
    found = taken({"n": good()}, fabrics(V100, loose))
    assert misfit(found).why == "nothing in their match tells them apart"
    north, south = (
        fabric("north", resources=V100.resources),
        fabric("south", resources=H100.resources),
    )
    found = taken({"n": node(rdma=1, rail=8)}, fabrics(north, south))
    offered = "a resource of each is offered: rdma/v100, nvidia.com/rail0"
    assert misfit(found) == UnassignedNodes(("n",), ("north", "south"), "", offered)
    found = taken({"n": good()}, fabrics(V100, loose, replace(loose, name="tight")))
    assert misfit(found).why == "nothing in their match tells them apart"
    twice = [
        fabric(f"v{n}", gpu_resources=V100.gpu_resources, node_labels=V100.node_labels)
        for n in (1, 2)
    ]
    expected = f"nvidia.com/v100 and label {PRODUCT}={VOLTA} fit all of them"
    assert misfit(taken({"n": good()}, fabrics(*twice))).why == expected


def test_nodes_that_no_fabric_means_are_counted() -> None:
    """A control plane has neither GPU nor RDMA, and no label of a fabric."""
    found = taken({"a": good(), "cp": node(labels={"role": "x"})}, fabrics(V100))
    assert (found.nodes, found.others, found.unassigned_nodes, found.well) == (2, 1, (), True)


def test_without_fabrics_there_is_none_to_be_near() -> None:
    """GPUs are still told."""
    empty = fabrics(V100)
    none = type(empty)(fabrics={}, defaults=empty.defaults, config_hash="x")
    found = build_inventory({"a": node(gpu=8)}, none)
    assert found.unassigned_nodes == (UnassignedNodes(("a",), (), "", "there are no fabrics"),)


def test_each_node_takes_little() -> None:
    """Nodes that are the same are done once: twice the nodes are at most twice the work."""

    def run(many: int) -> int:
        nodes = {f"n{number}": good(v100=number % 3 + 6) for number in range(many)}
        reserved = {name: {"rdma/v100": 1} for name in nodes}
        return lines(lambda: build_inventory(nodes, fabrics(V100, H100), reserved))

    assert run(400) < DOUBLE * run(200)
