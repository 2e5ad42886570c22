from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, fabric, fabrics, pod
from tests.case_names import case_name
from webhook.decide.examine.node_selection import (
    FabricConstraint,
    from_affinity,
    from_fabric_index,
    from_selector,
    unknown_label_messages,
)
from webhook.errors import ShapeError
from webhook.model.nodes import FabricIndex
from webhook.model.pod import Pod, PodManifest

PRODUCT = "nvidia.com/gpu.product"
NORTH = fabric(
    "north", gpu_resources=frozenset({"nvidia.com/gpu"}), node_labels={PRODUCT: ("Tesla-V100-*",)}
)
SOUTH = fabric(
    "south",
    gpu_resources=frozenset({"nvidia.com/gpu"}),
    node_labels={PRODUCT: ("NVIDIA-H100", "NVIDIA-H200"), "site.lab/rail": ("r1",)},
)
EAST = fabric("east", gpu_resources=frozenset({"nvidia.com/l40"}))
CONFIGURATION = fabrics(NORTH, SOUTH, EAST)


def allowed(*names: str, out: tuple[str, ...] = ()) -> FabricConstraint:
    """Make a constraint that names `names` and excludes `out`."""
    return FabricConstraint(frozenset(names), frozenset(out))


def expression(operator: str, *values: Any, key: str = PRODUCT) -> dict[str, Any]:
    """Make one match expression."""
    return {"key": key, "operator": operator, "values": list(values)}


def affinity(*terms: Any, field: str = "matchExpressions") -> dict[str, Any]:
    """Make a pod whose required node affinity has these terms, each a list of expressions."""
    written = {"nodeSelectorTerms": [{field: list(term)} for term in terms]}
    node = {"requiredDuringSchedulingIgnoredDuringExecution": written}
    return pod(container(), affinity={"nodeAffinity": node})


@pytest.mark.parametrize(
    ("constraint", "remaining"),
    [
        (FabricConstraint(), {"north", "south"}),
        (allowed("north", "east"), {"north"}),
        (allowed(out=("north",)), {"south"}),
        (allowed("north", out=("north",)), set()),
        (allowed("east"), set()),
    ],
    ids=case_name,
)
def test_a_constraint_names_some_and_excludes_others(
    constraint: FabricConstraint, remaining: set[str]
) -> None:
    """If it names none, all fabrics that it does not exclude remain."""
    assert constraint.filter(frozenset({"north", "south"})) == remaining


@pytest.mark.parametrize(
    ("selector", "evidence"),
    [
        (None, []),
        ({}, []),
        ({"zone": "a"}, []),
        (
            {PRODUCT: "Tesla-V100-SXM2-16GB"},
            [(f"nodeSelector {PRODUCT}=Tesla-V100-SXM2-16GB", allowed("north", out=("south",)))],
        ),
        (
            {PRODUCT: "NVIDIA-H100-MIG-1g.5gb"},
            [(f"nodeSelector {PRODUCT}=NVIDIA-H100-MIG-1g.5gb", allowed("south", out=("north",)))],
        ),
        (
            {PRODUCT: "L40"},
            [(f"nodeSelector {PRODUCT}=L40", allowed(out=("north", "south")))],
        ),
        ({PRODUCT: None}, [(f"nodeSelector {PRODUCT}=None", allowed(out=("north", "south")))]),
        (
            {"zone": "a", "site.lab/rail": "r1", PRODUCT: "NVIDIA-H200"},
            [
                ("nodeSelector site.lab/rail=r1", allowed("south")),
                (f"nodeSelector {PRODUCT}=NVIDIA-H200", allowed("south", out=("north",))),
            ],
        ),
    ],
    ids=case_name,
)
def test_node_selector_labels_name_fabrics(selector: Any, evidence: Any) -> None:
    """A label names or excludes a fabric that has its key; other fabrics stay."""
    assert list(from_selector(Pod(pod(nodeSelector=selector)), CONFIGURATION)) == evidence


@pytest.mark.parametrize(
    ("terms", "constraint"),
    [
        ([], None),
        ([[]], None),
        ([[expression("In", "a", key="zone")]], None),
        ([[expression("Exists")]], None),
        ([[expression("Gt", "1")]], None),
        ([[expression("In", "NVIDIA-H100")]], allowed("south", out=("north",))),
        (
            [[expression("In", "NVIDIA-H100", "Tesla-V100-PCIE")]],
            allowed("north", "south"),
        ),
        ([[expression("In", "L40")]], allowed(out=("north", "south"))),
        ([[expression("NotIn", "NVIDIA-H100")]], None),
        ([[expression("NotIn", "NVIDIA-H100", "NVIDIA-H200")]], allowed(out=("south",))),
        ([[expression("NotIn", "Tesla-V100-SXM2-16GB")]], None),
        ([[expression("DoesNotExist", key="site.lab/rail")]], allowed(out=("south",))),
        (
            [[expression("In", "NVIDIA-H100"), expression("In", "r1", key="site.lab/rail")]],
            allowed("south", out=("north",)),
        ),
        (
            [[expression("In", "NVIDIA-H100"), expression("In", "Tesla-V100-PCIE")]],
            allowed(out=("north", "south")),
        ),
        (
            [[expression("In", "NVIDIA-H100"), expression("DoesNotExist", key="site.lab/rail")]],
            allowed(out=("north", "south")),
        ),
        (
            [[expression("In", "NVIDIA-H100")], [expression("In", "NVIDIA-H200")]],
            allowed("south", out=("north",)),
        ),
        (
            [[expression("In", "NVIDIA-H100")], [expression("In", "Tesla-V100-PCIE")]],
            allowed("north", "south"),
        ),
        ([[expression("In", "NVIDIA-H100")], [expression("In", "a", key="zone")]], None),
        ([[expression("In", "NVIDIA-H100")], [expression("In", "L40")]], allowed(out=("north",))),
    ],
    ids=case_name,
)
def test_all_terms_of_the_required_affinity_must_agree(
    terms: Any, constraint: FabricConstraint | None
) -> None:
    """Expressions in a term are ANDed and terms are ORed; NotIn needs the exact values."""
    assert from_affinity(Pod(affinity(*terms)), CONFIGURATION) == constraint


@pytest.mark.parametrize(
    "written", [None, {}, [], "x", {"nodeAffinity": None}, {"podAffinity": {}}]
)
def test_other_affinity_is_no_evidence(written: Any) -> None:
    """Only what the scheduler requires of the node counts."""
    assert from_affinity(Pod(pod(affinity=written)), CONFIGURATION) is None


def test_preferred_affinity_is_no_evidence() -> None:
    """A preference does not rule out any node."""
    preferred = [{"weight": 1, "preference": {"matchExpressions": [expression("In", "L40")]}}]
    node = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    assert from_affinity(Pod(pod(affinity={"nodeAffinity": node})), CONFIGURATION) is None


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        ([[1]], "matchExpressions[0] must be a mapping, but is a number (1)"),
        ([[{"key": 1}]], "matchExpressions[0].key must be a string, but is a number (1)"),
        (
            [[], [expression("In", 1)]],
            "matchExpressions[0].values[0] must be a string, but is a number (1)",
        ),
    ],
    ids=case_name,
)
def test_a_malformed_term_is_refused_with_its_place(terms: Any, says: str) -> None:
    """The path is complete, since several terms look alike."""
    place = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    with pytest.raises(ShapeError) as raised:
        from_affinity(Pod(affinity(*terms)), CONFIGURATION)
    assert str(raised.value) == f"{place}.nodeSelectorTerms[{len(terms) - 1}].{says}"


INVENTORY = FabricIndex(
    by_node={
        "n1": frozenset({"north"}),
        "n1.host": frozenset({"north"}),
        "n2": frozenset({"south"}),
        "cpu": frozenset(),
    },
    by_gpu={"nvidia.com/gpu": frozenset({"north"})},
)
BY_NODE = "the node that the pod names"
HOSTNAME = "kubernetes.io/hostname"


@pytest.mark.parametrize(
    ("manifest", "evidence"),
    [
        (pod(), []),
        (pod(nodeName=None), []),
        (pod(nodeName="nobody"), []),
        (pod(nodeName="n1"), [(BY_NODE, allowed("north"))]),
        (pod(nodeName="n1", nodeSelector={HOSTNAME: "n2"}), [(BY_NODE, allowed("north"))]),
        (pod(nodeSelector={HOSTNAME: "n1.host"}), [(BY_NODE, allowed("north"))]),
        (pod(nodeName="cpu"), [(BY_NODE, allowed(out=("north", "south", "east")))]),
        (affinity([expression("In", "n1", key=HOSTNAME)]), [(BY_NODE, allowed("north"))]),
        (
            affinity([expression("In", "n1", "n2", key=HOSTNAME)]),
            [(BY_NODE, allowed("north", "south"))],
        ),
        (affinity([expression("NotIn", "n1", key=HOSTNAME)]), []),
        (affinity([expression("In", "n1", key=HOSTNAME)], [expression("In", "a", key="zone")]), []),
        (
            affinity([expression("In", "n2", key="metadata.name")], field="matchFields"),
            [(BY_NODE, allowed("south"))],
        ),
    ],
    ids=case_name,
)
def test_a_named_node_is_evidence_of_its_fabric(manifest: dict[str, Any], evidence: Any) -> None:
    """A node may be named by spec.nodeName or host name, and must be in every alternative."""
    assert list(from_fabric_index(Pod(manifest), [], CONFIGURATION, INVENTORY)) == evidence


@pytest.mark.parametrize(
    ("with_gpus", "evidence"),
    [
        ({"north", "south"}, [("the nodes that offer nvidia.com/gpu", allowed("north"))]),
        ({"north"}, []),
        ({"north", "east"}, []),
    ],
    ids=case_name,
)
def test_the_gpu_resource_is_evidence_if_every_fabric_has_gpus(
    with_gpus: set[str], evidence: Any
) -> None:
    """The user may mean a fabric that has no nodes with GPUs at the moment."""
    fabric_index = FabricIndex(
        by_node=INVENTORY.by_node, by_gpu=INVENTORY.by_gpu, fabrics_with_gpus=frozenset(with_gpus)
    )
    assert (
        list(from_fabric_index(Pod(pod()), ["nvidia.com/gpu"], CONFIGURATION, fabric_index))
        == evidence
    )


def test_a_gpu_that_no_node_offers_is_no_evidence() -> None:
    """The fabric has nodes, but they do not offer this GPU resource any more."""
    fabric_index = FabricIndex(
        by_node=INVENTORY.by_node,
        by_gpu={},
        fabrics_with_gpus=frozenset({"north", "south", "east"}),
    )
    assert (
        list(from_fabric_index(Pod(pod()), ["nvidia.com/l40"], CONFIGURATION, fabric_index)) == []
    )


def test_without_an_inventory_there_is_no_evidence() -> None:
    """A preview on a laptop has no inventory."""
    assert list(from_fabric_index(Pod(pod(nodeName="n1")), [], CONFIGURATION, FabricIndex())) == []


def test_a_node_name_of_another_type_is_refused() -> None:
    """The API server would reject it too."""
    with pytest.raises(ShapeError) as raised:
        list(from_fabric_index(Pod(pod(nodeSelector={HOSTNAME: 1})), [], CONFIGURATION, INVENTORY))
    assert str(raised.value) == (
        'spec.nodeSelector["kubernetes.io/hostname"] must be a string, but is a number (1)'
    )


def sentences_on(manifest: PodManifest, *keys: str, fabric_known: bool = False) -> list[str]:
    """List the sentences on a pod's labels, for nodes with these label keys."""
    fabric_index = FabricIndex(label_keys=frozenset(keys))
    pinning = fabric("west", pin_selector={"site.lab/pool": "west"})
    members = fabrics(NORTH, SOUTH, EAST, pinning)
    return list(
        unknown_label_messages(Pod(manifest), members, fabric_index, fabric_known=fabric_known)
    )


NO_NODE = "no node has the label {}, which the pod requires"


@pytest.mark.parametrize(
    ("manifest", "missing"),
    [
        (pod(), []),
        (pod(nodeSelector=None, affinity=None), []),
        (pod(nodeSelector={"zone": "a"}), []),
        (pod(nodeSelector={"zone": "a", "pool": 1}), ["pool"]),
        (pod(nodeSelector={"site.lab/pool": "west"}), []),
        (pod(nodeSelector=dict.fromkeys("abcde", "")), ["a", "b", "c"]),
        (affinity([expression("In", "x", key="pool")]), ["pool"]),
        (
            affinity([expression("Exists", key="pool"), expression("Gt", "1", key="x")]),
            ["pool", "x"],
        ),
        (affinity([expression("Lt", "1", key="pool")]), ["pool"]),
        (affinity([expression("NotIn", "x", key="pool")]), []),
        (affinity([expression("DoesNotExist", key="pool")]), []),
        (affinity([expression("In", "x", key="pool")], [expression("In", "x", key="zone")]), []),
        (affinity([], field="matchFields"), []),
    ],
    ids=case_name,
)
def test_labels_that_no_node_has_are_named(manifest: PodManifest, missing: list[str]) -> None:
    """The first three, if the pod requires all; a fabric's pinned labels may be ours."""
    for fabric_known in (False, True):
        sentences = sentences_on(manifest, "zone", PRODUCT, fabric_known=fabric_known)
        assert sentences == [NO_NODE.format(key) for key in missing]


@pytest.mark.parametrize(
    ("manifest", "key"),
    [
        (pod(nodeSelector={"nvidia.com/gpu": "NVIDIA-H200"}), "nvidia.com/gpu"),
        (pod(nodeSelector={"gpu": "Tesla-V100-SXM2-16GB-SHARED"}), "gpu"),
        (affinity([expression("In", "x", "NVIDIA-H200", key="nvidia.com/gpu")]), "nvidia.com/gpu"),
        (pod(nodeSelector={PRODUCT: "NVIDIA-H200"}), ""),
        (pod(nodeSelector={"site.lab/rail": "NVIDIA-H200"}), ""),
        (pod(nodeSelector={"gpu": "H200"}), ""),
    ],
    ids=case_name,
)
def test_without_nodes_a_product_under_another_label_is_named(
    manifest: PodManifest, key: str
) -> None:
    """A key that no fabric lists is not evidence; a known fabric needs none."""
    sentence = f"no fabric lists the label {key}; a GPU's product is in {PRODUCT}"
    assert sentences_on(manifest) == ([sentence] if key else [])
    assert sentences_on(manifest, fabric_known=True) == []
    assert (
        list(
            unknown_label_messages(Pod(manifest), fabrics(EAST), FabricIndex(), fabric_known=False)
        )
        == []
    )
