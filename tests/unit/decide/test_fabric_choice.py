from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, decision_input, fabric, pod, quantities
from tests.case_names import case_name
from webhook.decide.analysis import DecisionInput
from webhook.decide.examine.fabric_choice import (
    FABRIC_AMBIGUOUS,
    FABRIC_UNKNOWN,
    Resolution,
    resolve,
)
from webhook.model.annotations import FABRIC_ANNOTATION, UserAnnotations
from webhook.model.claims import ClaimFacts, claims_of
from webhook.model.decision import Denial
from webhook.model.fabric import ClaimTemplateReference, Fabric, RdmaResource
from webhook.model.facts import NamespaceFacts
from webhook.model.nodes import FabricIndex
from webhook.model.pod import Pod, PodManifest
from webhook.model.resources import requested_devices

PRODUCT = "nvidia.com/gpu.product"


def with_gpus(name: str, product: str, *resources: str, gpu: str = "nvidia.com/gpu") -> Fabric:
    """Make a fabric with GPUs of this product, and these resources."""
    return fabric(
        name,
        gpu_resources=frozenset({gpu}),
        node_labels={PRODUCT: (product,)},
        resources=tuple(RdmaResource(name=resource) for resource in resources),
    )


NORTH = with_gpus("north", "V100*", "rdma/north", "rdma/both")
SOUTH = with_gpus("south", "H100*", "rdma/south", "rdma/both")
EAST = with_gpus("east", "L40", "rdma/east", gpu="nvidia.com/l40")
ALL = (NORTH, SOUTH, EAST)


def resolved(
    manifest: PodManifest,
    cluster: DecisionInput | None = None,
    *,
    annotated: str | None = None,
    earlier: str | None = None,
) -> Resolution:
    """Resolve a pod whose containers are all targets."""
    at = cluster or decision_input(*ALL)
    pod = Pod(manifest)
    container_devices = [(app, requested_devices(app, at.configuration)) for app in pod.containers]
    claims = claims_of(pod, at.namespace.claim_facts)
    return resolve(
        pod, container_devices, UserAnnotations(fabric=annotated), at, earlier, claims=claims
    )


def using(*names: str, **spec: Any) -> PodManifest:
    """Make a pod with one of each resource."""
    return pod(container(resources=quantities(dict.fromkeys(names, "1"))), **spec)


def required(*values: str, operator: str = "In") -> dict[str, Any]:
    """Write a required node affinity of one term, on the GPU product."""
    expression = {"key": PRODUCT, "operator": operator, "values": list(values)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def test_nothing_says_which_fabric() -> None:
    """Not even with a single fabric: the pod's nodes may have none."""
    unknown = Resolution(
        None,
        "",
        FABRIC_UNKNOWN,
        (
            "the pod's fabric cannot be determined; set rdma.lab/fabric to the fabric of its "
            "nodes, north, south or east"
        ),
    )
    assert resolved(using()) == unknown
    assert resolved(using("nvidia.com/a100")) == unknown
    assert resolved(using(), decision_input(NORTH)).fabric is None


@pytest.mark.parametrize(
    "name", ["nvidia.com/mig-1g.5gb", "nvidia.com/gpu.shared", "rdma/elsewhere"]
)
def test_a_device_that_no_fabric_claims_is_named(name: str) -> None:
    """The message names the gap in the configuration; a quantity of zero is not a device."""
    assert resolved(using("example.com/npu", name)).message == (
        f"container trainer requests {name}, which no fabric lists; "
        + (
            "rename it to the fabric's resource, or remove it and set rdma.lab/fabric and "
            "rdma.lab/containers"
            if name.startswith("rdma/")
            else "set rdma.lab/fabric to the fabric of its nodes, north, south or east"
        )
    )
    without_device = pod(container(resources=quantities({name: "0"})))
    assert resolved(without_device).message.startswith("the pod's fabric cannot be determined; ")


def test_a_gpu_that_some_fabrics_may_have() -> None:
    """A fabric without gpuResources may have any GPU, until its nodes are known."""
    unlisting = fabric("west", node_labels={})
    assert resolved(using("nvidia.com/gpu"), decision_input(EAST, unlisting)).message == (
        "container trainer requests nvidia.com/gpu, which no fabric lists; "
        "set rdma.lab/fabric to the fabric of its nodes, west"
    )


@pytest.mark.parametrize(
    ("fabrics", "remedy"),
    [
        ((EAST,), "request nvidia.com/l40 (east), or add "),
        (
            (
                EAST,
                fabric("d", gpu_resources=frozenset({"a.b/d", "a.b/c", "a.b/e"}), node_labels={}),
                fabric("f", gpu_resources=frozenset({"a.b/f", "a.b/c"}), node_labels={}),
            ),
            "request nvidia.com/l40 (east), a.b/c and 2 more (d), a.b/c, a.b/f (f), or add ",
        ),
    ],
    ids=("one fabric", "several"),
)
def test_a_gpu_that_no_fabric_has(fabrics: tuple[Fabric, ...], remedy: str) -> None:
    """To name a fabric would leave the pod Pending: it has other GPUs."""
    assert resolved(using("nvidia.com/gpu"), decision_input(*fabrics)).message == (
        "container trainer requests nvidia.com/gpu, which no fabric lists; "
        f"{remedy}nvidia.com/gpu to gpuResources of the fabric that has it"
    )


def test_a_gpu_that_no_node_of_the_fabrics_offers() -> None:
    """A fabric without gpuResources is known by its nodes; it has no name of a GPU to propose."""
    base = decision_input(fabric("west", node_labels={}))
    cluster = base._replace(fabric_index=FabricIndex(inhabited_fabrics=frozenset({"west"})))
    assert resolved(using("nvidia.com/gpu"), cluster).message == (
        "container trainer requests nvidia.com/gpu, which no fabric lists; "
        "add nvidia.com/gpu to gpuResources of the fabric that has it"
    )


def test_without_any_fabric_the_message_is_different() -> None:
    """A new cluster starts like this."""
    empty = DecisionInput(
        configuration=decision_input().configuration.__class__(),
        namespace=NamespaceFacts(),
        fabric_index=FabricIndex(),
    )
    assert resolved(using("nvidia.com/gpu"), empty) == Resolution(
        None, "", FABRIC_UNKNOWN, "no fabric is configured"
    )


NODE = FabricIndex(
    by_node={"n1": frozenset({"south"}), "n2": frozenset({"north"})},
    by_gpu={"nvidia.com/gpu": frozenset({"south"})},
    fabrics_with_gpus=frozenset({"north", "south"}),
)


@pytest.mark.parametrize(
    ("manifest", "annotated", "name", "evidence"),
    [
        (using(), "south", "south", "annotation rdma.lab/fabric=south"),
        (using("rdma/south"), None, "south", "rdma/south in container trainer"),
        (using("nvidia.com/l40"), None, "east", "nvidia.com/l40 in container trainer"),
        (using(nodeSelector={PRODUCT: "L40"}), None, "east", f"nodeSelector {PRODUCT}=L40"),
        (
            using(nodeSelector={PRODUCT: "V100-SXM2-SHARED"}),
            None,
            "north",
            f"nodeSelector {PRODUCT}=V100-SXM2-SHARED",
        ),
        (
            using(nodeSelector={PRODUCT: "V100-MIG-1g.5gb"}),
            None,
            "north",
            f"nodeSelector {PRODUCT}=V100-MIG-1g.5gb",
        ),
        (using(affinity=required("H100")), None, "south", "the required node affinity"),
        (using(nodeName="n1"), None, "south", "the node that the pod names"),
        (using("nvidia.com/gpu"), None, "south", "the nodes that offer nvidia.com/gpu"),
    ],
    ids=case_name,
)
def test_each_evidence_alone_decides(
    manifest: PodManifest, annotated: str | None, name: str, evidence: str
) -> None:
    """Annotation, RDMA resource, GPU resource, selector, affinity, node, inventory."""
    resolution = resolved(manifest, decision_input(*ALL, fabric_index=NODE), annotated=annotated)
    assert resolution == Resolution({member.name: member for member in ALL}[name], evidence)


@pytest.mark.parametrize(
    ("manifest", "annotated", "evidence"),
    [
        (
            using("rdma/south", "nvidia.com/gpu", nodeName="n1"),
            "south",
            "annotation rdma.lab/fabric=south",
        ),
        (
            using("nvidia.com/gpu", "rdma/south", nodeSelector={PRODUCT: "H100"}),
            None,
            "rdma/south in container trainer",
        ),
        (
            using("nvidia.com/gpu", "rdma/both", nodeSelector={PRODUCT: "H100"}),
            None,
            f"nodeSelector {PRODUCT}=H100",
        ),
        (
            using("nvidia.com/gpu", affinity=required("V100*", operator="NotIn"), nodeName="n1"),
            None,
            "the required node affinity",
        ),
        (
            using("nvidia.com/gpu", affinity=required("H100", "L40"), nodeName="n1"),
            None,
            "the required node affinity",
        ),
        (
            using("nvidia.com/gpu", affinity=required("H100", "V100"), nodeName="n1"),
            None,
            "the node that the pod names",
        ),
    ],
    ids=case_name,
)
def test_the_first_that_leaves_a_single_fabric_wins(
    manifest: PodManifest, annotated: str | None, evidence: str
) -> None:
    """Each narrows what the stronger ones left; weaker ones only confirm it."""
    assert resolved(
        manifest, decision_input(*ALL, fabric_index=NODE), annotated=annotated
    ) == Resolution(SOUTH, evidence)


def test_an_rdma_resource_of_zero_is_no_evidence() -> None:
    """A resource that no fabric has is not evidence either."""
    zero = pod(container(resources=quantities({"rdma/north": "0", "rdma/x": "1", "rdma/south": 1})))
    assert resolved(zero) == Resolution(SOUTH, "rdma/south in container trainer")


@pytest.mark.parametrize(
    ("manifest", "annotated", "says"),
    [
        (
            using("nvidia.com/l40"),
            "north",
            (
                "annotation rdma.lab/fabric=north implies fabric north, "
                "but nvidia.com/l40 in container trainer implies fabric east; remove one of "
                "these two settings"
            ),
        ),
        (
            using("rdma/east"),
            "north",
            (
                "annotation rdma.lab/fabric=north implies fabric north, "
                "but rdma/east in container trainer implies fabric east; remove one of these two "
                "settings"
            ),
        ),
        (
            using("nvidia.com/gpu", "rdma/east"),
            None,
            (
                "rdma/east in container trainer implies fabric east, "
                "but nvidia.com/gpu in container trainer implies fabric north or south; "
                "remove one of these two settings"
            ),
        ),
        (
            using("nvidia.com/gpu", nodeSelector={PRODUCT: "L40"}),
            None,
            (
                "nvidia.com/gpu in container trainer implies fabric north or south, "
                f"but nodeSelector {PRODUCT}=L40 implies fabric east; remove one of these two "
                "settings"
            ),
        ),
        (
            using("nvidia.com/gpu", nodeSelector={PRODUCT: "H100"}, affinity=required("V100")),
            None,
            (
                f"nodeSelector {PRODUCT}=H100 implies fabric south, "
                "but the required node affinity implies fabric north; remove one of these two "
                "settings"
            ),
        ),
        (
            using("nvidia.com/gpu", nodeSelector={PRODUCT: "H100"}, nodeName="n2"),
            None,
            (
                f"nodeSelector {PRODUCT}=H100 implies fabric south, "
                "but the node that the pod names implies fabric north; remove one of these two "
                "settings"
            ),
        ),
    ],
    ids=case_name,
)
def test_a_contradiction_is_denied_naming_both(
    manifest: PodManifest, annotated: str | None, says: str
) -> None:
    """The contradictory pieces are named, not just the first evidence."""
    with pytest.raises(Denial) as raised:
        resolved(manifest, decision_input(*ALL, fabric_index=NODE), annotated=annotated)
    assert (raised.value.reason.code, str(raised.value)) == ("FabricConflict", says)


def test_three_may_contradict_each_other_only_together() -> None:
    """Then the first and the last are named."""
    nodes = FabricIndex(by_node={"n": frozenset({"north", "east"})})
    manifest = using("nvidia.com/gpu", affinity=required("H100", "L40"), nodeName="n")
    with pytest.raises(Denial) as raised:
        resolved(manifest, decision_input(*ALL, fabric_index=nodes))
    assert str(raised.value) == (
        "nvidia.com/gpu in container trainer implies fabric north or south, "
        "but the node that the pod names implies fabric east or north; remove one of these two "
        "settings"
    )


def no_fabric_matches(source: str) -> str:
    """Return the message about nodes that belong to no fabric."""
    remedy = "correct the pod's node selection, or set rdma.lab/fabric"
    return f"no fabric matches {source}; {remedy}"


@pytest.mark.parametrize(
    ("manifest", "source"),
    [
        (using(nodeSelector={PRODUCT: "A10"}), f"nodeSelector {PRODUCT}=A10"),
        (
            using("nvidia.com/gpu", nodeSelector={PRODUCT: "A10"}),
            f"nodeSelector {PRODUCT}=A10",
        ),
        (
            using("nvidia.com/gpu", affinity=required("A10")),
            "the required node affinity",
        ),
    ],
    ids=case_name,
)
def test_nodes_of_no_fabric_leave_it_unknown(manifest: PodManifest, source: str) -> None:
    """The pod goes to nodes without a configured fabric."""
    assert resolved(manifest) == Resolution(None, "", FABRIC_UNKNOWN, no_fabric_matches(source))
    assert resolved(manifest, annotated="north").fabric is not None  # the remedy


def test_a_node_of_no_fabric_leaves_it_unknown() -> None:
    """The index has the node that the pod names, and the node belongs to no fabric."""
    nodes = FabricIndex(by_node={"cpu-1": frozenset()})
    resolution = resolved(using(nodeName="cpu-1"), decision_input(*ALL, fabric_index=nodes))
    message = no_fabric_matches("the node that the pod names")
    assert resolution == Resolution(None, "", FABRIC_UNKNOWN, message)


@pytest.mark.parametrize(
    ("manifest", "annotated", "evidence"),
    [
        (using(), "south", "annotation rdma.lab/fabric=south"),
        (using("rdma/south"), None, "rdma/south in container trainer"),
    ],
    ids=case_name,
)
def test_what_the_user_typed_outweighs_labels_that_no_fabric_knows(
    manifest: PodManifest, annotated: str | None, evidence: str
) -> None:
    """A fabric's list of products may be older than its nodes."""
    manifest["spec"]["nodeSelector"] = {PRODUCT: "A10"}
    assert resolved(manifest, annotated=annotated) == Resolution(SOUTH, evidence)


def test_what_comes_after_labels_that_no_fabric_knows_may_contradict() -> None:
    """The labels are passed over, and nothing else."""
    manifest = using(nodeSelector={PRODUCT: "A10"}, nodeName="n2")
    with pytest.raises(Denial) as raised:
        resolved(manifest, decision_input(*ALL, fabric_index=NODE), annotated="south")
    assert str(raised.value) == (
        "annotation rdma.lab/fabric=south implies fabric south, "
        "but the node that the pod names implies fabric north; remove one of these two settings"
    )


def test_several_that_fit_are_ambiguous() -> None:
    """The message names the evidence and the fabrics that match it."""
    assert resolved(using("nvidia.com/gpu")) == Resolution(
        reason=FABRIC_AMBIGUOUS,
        message="nvidia.com/gpu in container trainer matches north and south; set rdma.lab/fabric",
        ambiguous=True,
    )


def test_a_fabric_without_gpu_nodes_keeps_a_gpu_resource_ambiguous() -> None:
    """The fabric may be scaled to zero, and be meant; nodes without GPUs do not matter."""
    nodes = FabricIndex(
        by_node={"n2": frozenset({"north"})},
        by_gpu={"nvidia.com/gpu": frozenset({"north"})},
        inhabited_fabrics=frozenset({"north", "south"}),
        fabrics_with_gpus=frozenset({"north"}),
    )
    assert resolved(
        using("nvidia.com/gpu"), decision_input(*ALL, fabric_index=nodes)
    ) == Resolution(
        reason=FABRIC_AMBIGUOUS,
        message="nvidia.com/gpu in container trainer matches north and south; set rdma.lab/fabric",
        ambiguous=True,
    )


def space(name: str, *, facts_known: bool = True) -> NamespaceFacts:
    """Make a namespace with a default fabric."""
    return NamespaceFacts(name="lab", is_loaded=facts_known, annotations={"rdma.lab/fabric": name})


OF_NAMESPACE = "annotation rdma.lab/fabric of the namespace"
OF_FILE = "defaults.fabric of the configuration"


@pytest.mark.parametrize(
    ("manifest", "namespace", "default", "expected"),
    [
        (using(), space("south"), None, (SOUTH, OF_NAMESPACE)),
        (using("nvidia.com/gpu"), space("south"), "north", (SOUTH, OF_NAMESPACE)),
        (using("nvidia.com/gpu"), space("east"), "north", (NORTH, OF_FILE)),
        (using("nvidia.com/gpu"), space("nobody"), "north", (NORTH, OF_FILE)),
        (using(), space("south", facts_known=False), "north", (NORTH, OF_FILE)),
        (using(), None, "north", (NORTH, OF_FILE)),
        (using("nvidia.com/l40"), space("south"), "north", (EAST, "nvidia.com/l40 in container")),
    ],
    ids=case_name,
)
def test_defaults_choose_among_the_remaining_fabrics(
    manifest: PodManifest, namespace: Any, default: str | None, expected: tuple[Fabric, str]
) -> None:
    """First the namespace's, if it is known, then the file's; never against evidence."""
    cluster = decision_input(*ALL, namespace=namespace, defaults={"fabric": default})
    resolution = resolved(manifest, cluster)
    assert (resolution.fabric, resolution.reason) == (expected[0], None)
    assert resolution.evidence.startswith(expected[1])


def test_a_default_that_does_not_fit_is_not_used() -> None:
    """It is not evidence, so it cannot contradict anything either."""
    cluster = decision_input(*ALL, namespace=space("east"), defaults={"fabric": "east"})
    assert resolved(using("nvidia.com/gpu"), cluster).reason is FABRIC_AMBIGUOUS


def test_a_second_call_keeps_the_fabric_of_the_first() -> None:
    """If the pod leaves a choice, nodes and namespace are not consulted again."""
    at = decision_input(
        *ALL, fabric_index=NODE, namespace=NamespaceFacts(annotations={FABRIC_ANNOTATION: "north"})
    )
    says = "annotation rdma.lab/status of an earlier call"
    assert resolved(using("nvidia.com/gpu"), at, earlier="south") == Resolution(SOUTH, says)
    assert resolved(using("nvidia.com/gpu", nodeName="n1"), at, earlier="north").fabric is NORTH
    assert resolved(using(), at, earlier="east") == Resolution(EAST, says)


def test_the_pods_evidence_counts_more_than_an_earlier_call() -> None:
    """The evidence is named if it suffices; a fabric that it excludes is not chosen."""
    at = decision_input(*ALL, fabric_index=NODE)
    resolution = resolved(using("rdma/north"), at, earlier="north")
    assert resolution == Resolution(NORTH, "rdma/north in container trainer")
    assert resolved(using("rdma/north"), at, earlier="south").fabric is NORTH
    assert resolved(using("nvidia.com/l40"), at, earlier="gone") == Resolution(
        EAST, "nvidia.com/l40 in container trainer"
    )


def test_an_earlier_call_does_not_make_peace() -> None:
    """Two parts of the pod that contradict each other are a conflict as before."""
    with pytest.raises(Denial):
        resolved(using("rdma/north", "nvidia.com/l40"), earlier="north")


#: Fabrics whose NICs come through a claim.
UP = fabric(
    "up",
    device_classes=frozenset({"up.gpu.lab"}),
    claim_templates=(ClaimTemplateReference(template="up"),),
)
DOWN = fabric("down", device_classes=frozenset({"down.gpu.lab"}))
CLAIMS = ClaimFacts(templates={"g": {"all": ("down.gpu.lab",)}, "up": {"all": ("down.gpu.lab",)}})


def claiming(template: str, *, use: bool = True) -> PodManifest:
    """Make a pod with one claim, which its container uses."""
    listed = [{"name": "x", "resourceClaimTemplateName": template}]
    used = [{"name": "x"}] if use else []
    return pod(container(resources={"claims": used}), resourceClaims=listed)


@pytest.mark.parametrize(
    ("template", "use", "name", "says"),
    [
        ("up", True, "up", "resource claim x in container trainer"),
        ("up", False, "up", "resource claim x"),
        ("g", True, "down", "down.gpu.lab of resource claim x in container trainer"),
    ],
    ids=("template", "of the pod", "device class"),
)
def test_claims_are_evidence(template: str, use: bool, name: str, says: str) -> None:
    """A fabric's template, whose device classes then do not matter; or a device class."""
    at = decision_input(UP, DOWN, namespace=NamespaceFacts(name="lab", claim_facts=CLAIMS))
    resolution = resolved(claiming(template, use=use), at)
    assert resolution.fabric is not None
    assert (resolution.fabric.name, resolution.evidence) == (name, says)


@pytest.mark.parametrize("template", ["up", "g"])
def test_the_first_claim_is_the_evidence(template: str) -> None:
    """A pod may use a template or a device class in thousands of places."""
    at = decision_input(UP, DOWN, namespace=NamespaceFacts(name="lab", claim_facts=CLAIMS))
    claims = [{"name": name, "resourceClaimTemplateName": template} for name in ("x", "y")]
    uses = [{"name": "y"}, {"name": "x"}]
    resolution = resolved(pod(container(resources={"claims": uses}), resourceClaims=claims), at)
    assert resolution.evidence.endswith("resource claim y in container trainer")


def test_a_template_and_an_annotation_may_contradict() -> None:
    """The user wrote both."""
    at = decision_input(UP, DOWN, namespace=NamespaceFacts(name="lab", claim_facts=CLAIMS))
    with pytest.raises(Denial, match="resource claim x in container trainer"):
        resolved(claiming("up"), at, annotated="down")
    with pytest.raises(Denial, match=r"down\.gpu\.lab of resource claim x"):
        resolved(claiming("g"), at, annotated="up")
