from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import V100, container, decision_input, fabric, gpu, pod, quantities
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.decide.analysis import DecisionInput
from webhook.model.equivalent_nodes import NO_CLASSES
from webhook.model.fabric import RdmaResource
from webhook.model.facts import Facts
from webhook.model.nodes import FabricIndex

EQUIPPED = ("yes", "Equipped")
V100_NODE = {"nvidia.com/gpu.product": "Tesla-V100-SXM2"}
H100_NODE = {"nvidia.com/gpu.product": "NVIDIA-H100-SXM5"}
#: Names the fabric, which is then certain.
NAMED = {"rdma.lab/fabric": "v100-ib"}


def node(name: str, labels: dict[str, str], **offered: str) -> dict[str, Any]:
    """Make a Node; `v100=…` is nvidia.com/v100, `rdma=…` is rdma/v100."""
    full = {"rdma": "rdma/v100", "v100": "nvidia.com/v100", "h100": "nvidia.com/h100"}
    written = {full.get(key, key): amount for key, amount in offered.items()}
    metadata = {"name": name, "labels": labels}
    return {"kind": "Node", "metadata": metadata, "status": {"allocatable": written}}


def knowing(*nodes: dict[str, Any], defaults: dict[str, Any] | None = None) -> DecisionInput:
    """Return a decision input with these nodes in the index."""
    empty = decision_input(defaults=defaults)
    fabric_index = Facts.from_objects(nodes).fabric_index(empty.configuration)
    return decision_input(defaults=defaults, fabric_index=fabric_index)


SUFFICIENT = node("good", V100_NODE, v100="8", rdma="63")
ELSEWHERE = node("elsewhere", H100_NODE, h100="8", rdma="63")
CASES: list[tuple[str, list[dict[str, Any]], dict[str, Any], str, str, str]] = [
    (
        "no node",
        [ELSEWHERE],
        pod(annotations=NAMED),
        "FabricWithoutNodes",
        "FabricNowhere",
        "no node belongs to fabric v100-ib",
    ),
    (
        "not offered",
        [node("bare", V100_NODE, v100="8"), ELSEWHERE],
        pod(),
        "ResourceNotOffered",
        "ResourceNowhere",
        "no node of fabric v100-ib offers rdma/v100",
    ),
    (
        "apart",
        [
            node("half", V100_NODE, **{"v100": "8", "nvidia.com/gpu": "8"}),
            node("shared", V100_NODE, v100="8", rdma="63"),
        ],
        pod(container(resources=quantities({"nvidia.com/gpu": "1"})), annotations=NAMED),
        "ResourceNotBesideGpu",
        "ResourceNeverBesideGpu",
        "no node of fabric v100-ib offers both nvidia.com/gpu and rdma/v100",
    ),
    (
        "too many",
        [node("a", V100_NODE, v100="8", rdma="2"), node("b", V100_NODE, v100="8", rdma="4")],
        pod(annotations={"rdma.lab/devices": "5"}),
        "ResourceExceedsNodes",
        "ResourceExceedsStaticNodes",
        "the pod requests 5 of rdma/v100, but no node of fabric v100-ib offers more than 4",
    ),
]


def without_classes(cluster: DecisionInput) -> DecisionInput:
    """Return the input of a cluster with more classes of nodes than are compared."""
    return cluster._replace(fabric_index=replace(cluster.fabric_index, node_classes=NO_CLASSES))


@pytest.mark.parametrize("compared", [True, False])
@pytest.mark.parametrize("mode", ["elastic", "static"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].replace(" ", "-"))
def test_what_no_node_has(case: tuple[Any, ...], mode: str, *, compared: bool) -> None:
    """Nodes and plugins come and go, so it is not certain; if they do not, there is no RDMA.

    It is the same in a cluster with too many classes of nodes to compare each.
    """
    _, nodes, asking, elastic, static, message = case
    cluster = knowing(*nodes, defaults={"nodes": mode})
    verdict = verdict_on(asking, cluster if compared else without_classes(cluster))
    if mode == "elastic":
        assert (verdict.rdma, verdict.because.code) == ("unsure", elastic)
        assert verdict.message == f"{message} now"
    else:
        assert (verdict.rdma, verdict.because.code) == ("no", static)
        assert verdict.message == f"{message}, and the configuration sets `nodes: static`"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].replace(" ", "-"))
def test_a_single_sufficient_node_is_enough(case: tuple[Any, ...]) -> None:
    """The lack of the others does not matter."""
    _, nodes, asking, *_ = case
    additional = node("more", V100_NODE, **{"v100": "8", "nvidia.com/gpu": "8", "rdma": "63"})
    assert judged(asking, knowing(*nodes, additional)) == EQUIPPED


def test_without_an_inventory_nothing_is_missing() -> None:
    """The nodes have not been read, or may not be; static or not, this is not evidence."""
    for mode in ("elastic", "static"):
        cluster = decision_input(defaults={"nodes": mode}, fabric_index=FabricIndex())
        assert judged(pod(annotations=NAMED), cluster) == EQUIPPED


def test_as_many_as_a_node_has_are_not_too_many() -> None:
    """The whole node may be free."""
    for count, expected in (("63", EQUIPPED), ("64", ("unsure", "ResourceExceedsNodes"))):
        asking = pod(annotations={"rdma.lab/devices": count})
        assert judged(asking, knowing(SUFFICIENT)) == expected
        assert judged(asking, without_classes(knowing(SUFFICIENT))) == expected


def test_containers_of_a_pod_share_its_node() -> None:
    """Their requests are added up; another container's GPU has to be on the same node."""
    two = pod(gpu("a", limits={"rdma/v100": "32"}), gpu("b", limits={"rdma/v100": "32"}))
    verdict = verdict_on(two, knowing(SUFFICIENT))
    assert verdict.because.code == "ResourceExceedsNodes"
    assert "64 of rdma/v100" in verdict.message


def test_a_privileged_pod_needs_a_node_of_its_fabric() -> None:
    """It requests no device, so what the nodes offer does not matter."""
    privileged: dict[str, Any] = {"securityContext": {"privileged": True}}
    skipping = {**NAMED, "rdma.lab/skip": "rdma-resources"}
    asking = pod(gpu(**privileged), annotations=skipping)
    assert judged(asking, knowing(node("bare", V100_NODE, v100="8"))) == EQUIPPED
    assert judged(asking, knowing(ELSEWHERE)) == ("unsure", "FabricWithoutNodes")


def test_without_a_fabric_the_nodes_do_not_matter() -> None:
    """The verdict has the actual problem: no fabric matches."""
    unclaimed = pod(container(resources=quantities({"nvidia.com/gpu": "1"})))
    assert judged(unclaimed, knowing(ELSEWHERE)) == ("no", "FabricUnknown")


def test_each_resource_of_the_fabric_counts() -> None:
    """With two rails, a node that offers only one of them is not enough."""
    rails = fabric(
        "rails",
        gpu_resources=V100.gpu_resources,
        resources=(RdmaResource(name="rdma/rail0"), RdmaResource(name="rdma/rail1")),
    )
    empty = decision_input(rails)
    first_rail_only = node("one", {}, **{"v100": "8", "rdma/rail0": "1"})
    fabric_index = Facts.from_objects([first_rail_only]).fabric_index(empty.configuration)
    verdict = verdict_on(pod(), decision_input(rails, fabric_index=fabric_index))
    assert verdict.message == "no node of fabric rails offers rdma/rail1 now"
