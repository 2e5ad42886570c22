from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, decide_on, decision_input, fabric, pod, quantities
from webhook.decide.analysis import DecisionInput
from webhook.decide.examine.gpu_conflict import lacks_gpu
from webhook.model.decision import Decision
from webhook.model.fabric import Fabric, RdmaResource
from webhook.model.facts import Facts
from webhook.model.nodes import FabricIndex

RESOURCES = (RdmaResource(name="rdma/x", aliases=("rdma/ib",)),)
LISTED = fabric("listed", gpu_resources=frozenset({"nvidia.com/gpu"}), resources=RESOURCES)
PRODUCT = fabric("product", node_labels={"nvidia.com/gpu.product": ("*H100*",)})
LABELED = fabric("labeled", node_labels={"pool": ("x",)}, resources=RESOURCES)


def knowing(
    *offered: dict[str, str], fabric: Fabric = LISTED, mode: str = "static"
) -> DecisionInput:
    """Return a decision input with a node for each of these amounts."""
    empty = decision_input(fabric, defaults={"nodes": mode})
    nodes = [
        {
            "kind": "Node",
            "metadata": {"name": f"n{number}", "labels": {"pool": "x"}},
            "status": {"allocatable": amounts},
        }
        for number, amounts in enumerate(offered)
    ]
    fabric_index = Facts.from_objects(nodes).fabric_index(empty.configuration)
    return empty._replace(fabric_index=fabric_index)


def requesting(annotations: Any = None, **limits: str) -> dict[str, Any]:
    """Make a pod with these limits: `nvidia`, `amd`, `ib`, `x`."""
    names = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "ib": "rdma/ib", "x": "rdma/x"}
    written = {names[name]: amount for name, amount in limits.items()}
    return pod(container(resources=quantities(written)), annotations=annotations)


NODE = {"nvidia.com/gpu": "8", "rdma/x": "4"}
NAMED = {"rdma.lab/fabric": "listed"}


@pytest.mark.parametrize(
    ("site", "gpu", "expected"),
    [
        (LISTED, "nvidia.com/gpu", False),
        (LISTED, "nvidia.com/mig-1g.5gb", False),
        (LISTED, "nvidia.com/gpu.shared", False),
        (LISTED, "nvidia.com/v100", True),
        (LISTED, "amd.com/gpu", True),
        (PRODUCT, "nvidia.com/gpu", False),
        (PRODUCT, "google.com/tpu", True),
        (LABELED, "amd.com/gpu", False),
        (fabric(gpu_resources=frozenset({"amd.com/gpu"})), "nvidia.com/mig-1g.5gb", True),
    ],
)
def test_what_the_configuration_says(site: Fabric, gpu: str, *, expected: bool) -> None:
    """`gpuResources` lists the GPUs; a product of NVIDIA's names the vendor; else it is unknown."""
    assert lacks_gpu(site, gpu, FabricIndex()) is expected


def test_what_the_nodes_say() -> None:
    """A GPU that a node of the fabric offers is on the fabric, whatever the configuration lists."""
    known = knowing({**NODE, "amd.com/gpu": "1"}).fabric_index
    assert not lacks_gpu(LISTED, "amd.com/gpu", known)
    labeled = knowing(NODE, fabric=LABELED).fabric_index
    assert lacks_gpu(LABELED, "amd.com/gpu", labeled)
    assert not lacks_gpu(LABELED, "nvidia.com/gpu", labeled)
    assert not lacks_gpu(LABELED, "nvidia.com/mig-1g.5gb", labeled)


def outcome_of(decision: Decision) -> tuple[bool, str, str | None]:
    """Return whether a pod is allowed, the reason, and the fabric."""
    return decision.allowed, decision.reason.code, decision.fabric


UNSURE = (True, "GPUNotOnFabric", None)
DENIED = (False, "FabricConflict", None)


@pytest.mark.parametrize("name", ["ib", "x"])
def test_the_resource_contradicts_the_gpu(name: str) -> None:
    """With static nodes, the pod is denied; else nothing of the fabric is added or renamed."""
    asking = requesting(amd="8", **{name: "1"})
    denied = decide_on(asking, knowing(NODE))
    assert outcome_of(denied) == DENIED
    written = {"ib": "rdma/ib", "x": "rdma/x"}[name]
    assert denied.message == (
        f"{written} in container trainer implies fabric listed, but no known node of the fabric "
        f"offers amd.com/gpu, which container trainer requests; remove {written} or amd.com/gpu"
    )
    for site in (knowing(NODE, mode="elastic"), knowing(), decision_input(LISTED)):
        decision = decide_on(asking, site)
        assert outcome_of(decision) == UNSURE
        resources = decision.pod["spec"]["containers"][0]["resources"]
        assert resources == asking["spec"]["containers"][0]["resources"]


def test_static_nodes_that_are_not_of_the_fabric() -> None:
    """What the fabric's nodes offer is then unknown."""
    assert outcome_of(decide_on(requesting(amd="8", x="1"), knowing({"cpu": "8"}))) == UNSURE


def test_the_named_fabric_contradicts_the_gpu() -> None:
    """Denied with static nodes; else the user is believed, but the verdict is not certain."""
    asking = requesting(NAMED, nvidia="0", amd="8")
    asking["spec"]["containers"][0]["resources"]["limits"].pop("nvidia.com/gpu")
    asking["metadata"]["annotations"]["rdma.lab/containers"] = "trainer"
    denied = decide_on(asking, knowing(NODE))
    assert outcome_of(denied) == DENIED
    assert denied.message.startswith("annotation rdma.lab/fabric=listed implies fabric listed, ")
    assert denied.message.endswith("; remove the annotation or amd.com/gpu")
    elastic = decide_on(asking, knowing(NODE, mode="elastic"))
    assert outcome_of(elastic) == (True, "Patched", "listed")
    assert elastic.verdict is not None
    assert elastic.verdict.because.code == "GPUNotOnFabric"


def test_the_named_fabric_with_its_own_resource() -> None:
    """The resource is renamed: the nodes are this fabric's, according to the user."""
    decision = decide_on(requesting(NAMED, amd="8", ib="1"), decision_input(LISTED))
    assert outcome_of(decision) == (True, "Patched", "listed")


def test_the_gpu_and_the_resource_are_on_different_nodes() -> None:
    """Both are the fabric's, but no node will ever have both."""
    apart = ({"nvidia.com/gpu": "8"}, {"rdma/x": "4", "nvidia.com/mig-1g.5gb": "1"})
    conflicting = requesting(nvidia="8", ib="1")
    denied = decide_on(conflicting, knowing(*apart, fabric=LABELED))
    assert outcome_of(denied) == DENIED
    assert denied.message == (
        "rdma/ib in container trainer implies fabric labeled, but no node of the fabric offers "
        "both rdma/ib and nvidia.com/gpu, which container trainer requests; remove rdma/ib or "
        "nvidia.com/gpu"
    )
    elastic = decide_on(conflicting, knowing(*apart, fabric=LABELED, mode="elastic"))
    assert outcome_of(elastic) == (True, "Patched", "labeled")
    assert outcome_of(decide_on(conflicting, knowing(*apart, NODE, fabric=LABELED))) == (
        (True, "Patched", "labeled")
    )


def test_a_plugin_that_offers_nothing_is_no_contradiction() -> None:
    """The pod is right, and the verdict names the missing resource."""
    decision = decide_on(requesting(nvidia="8", x="1"), knowing({"nvidia.com/gpu": "8"}))
    assert outcome_of(decision) == (True, "Patched", "listed")
    assert decision.verdict is not None
    assert decision.verdict.because.code == "ResourceNowhere"


def test_a_gpu_alone_is_no_contradiction() -> None:
    """The fabric is then the site's default, so nothing of the pod contradicts it."""
    site = knowing(NODE)
    site = site._replace(
        configuration=decision_input(
            LISTED, defaults={"nodes": "static", "fabric": "listed"}
        ).configuration
    )
    asking = requesting(amd="8")
    asking["metadata"]["annotations"]["rdma.lab/containers"] = "trainer"
    assert outcome_of(decide_on(asking, site)) == (True, "Patched", "listed")
    assert outcome_of(decide_on(requesting(amd="0", x="1"), site)) == (True, "Patched", "listed")
    assert outcome_of(decide_on(requesting(amd="8", nvidia="1", x="0"), site)) == (
        (True, "Patched", "listed")
    )


def test_a_second_call_denies_nothing() -> None:
    """An earlier call, with other nodes or another configuration, may have added the resource."""
    status = {"rdma.lab/status": '{"rdma":"yes","fabric":"listed","config":"fedcba987654"}'}
    assert outcome_of(decide_on(requesting(status, amd="8", x="1"), knowing(NODE))) == UNSURE
