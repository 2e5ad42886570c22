from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import H100, READY, V100, fabric, fabrics
from tests.case_names import case_name
from webhook.errors import ShapeError
from webhook.model.equivalent_nodes import NO_CLASSES
from webhook.model.facts import Facts, NamespaceFacts
from webhook.model.nodes import FabricIndex, Node, comparable_value


def namespace(name: str = "lab", **metadata: Any) -> dict[str, Any]:
    """Make a Namespace."""
    return {"kind": "Namespace", "metadata": {"name": name, **metadata}}


def limit_range(*limits: dict[str, Any]) -> dict[str, Any]:
    """Make a LimitRange in namespace `lab`."""
    metadata = {"name": "sizes", "namespace": "lab"}
    return {"kind": "LimitRange", "metadata": metadata, "spec": {"limits": list(limits)}}


def quota(**hard: str) -> dict[str, Any]:
    """Make a ResourceQuota in namespace `lab`."""
    written = {name.replace("_", "."): amount for name, amount in hard.items()}
    metadata = {"name": "team", "namespace": "lab"}
    return {"kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": written}}


def node(name: str, product: str = "", status: Any = None, **resources: Any) -> dict[str, Any]:
    """Make a Node that has `nvidia.com/<name>` allocatable for each keyword without a slash."""
    labels = {"kubernetes.io/hostname": f"{name}.host"}
    if product:
        labels["nvidia.com/gpu.product"] = product
    amounts = {
        key if "/" in key else f"nvidia.com/{key}": count for key, count in resources.items()
    }
    offered = {"allocatable": {"cpu": "64", **amounts}} if status is None else status
    metadata = {"name": name, "labels": labels}
    return {"kind": "Node", "metadata": metadata, "status": {"conditions": READY, **offered}}


def test_no_objects_are_facts_too() -> None:
    """An empty list of objects is complete, so a namespace that is not in it is unknown."""
    facts = Facts.from_objects([])
    assert facts == Facts(unlisted_is_unknown=True)
    assert facts.namespace("lab") == NamespaceFacts(name="lab", is_loaded=False)


def test_given_facts_come_before_the_fallback() -> None:
    """`with_fallback` adds unknown namespaces, and no object then counts as missing."""
    given = Facts.from_objects([namespace("lab", labels={"from": "file"})])
    facts = given.with_fallback([namespace("lab", labels={"from": "cluster"}), namespace("other")])
    assert facts.namespace("lab").labels == {"from": "file"}
    assert facts.namespace("other").labels == {}
    assert facts.namespace("elsewhere") == NamespaceFacts(name="elsewhere", is_loaded=True)


def test_without_any_source_a_namespace_counts_as_known() -> None:
    """Without --facts, the command line has no facts to wait for."""
    assert Facts().namespace("lab") == NamespaceFacts(name="lab", is_loaded=True, labels=None)


def test_a_namespace_brings_labels_and_annotations() -> None:
    """Objects of other kinds are skipped."""
    facts = Facts.from_objects(
        [
            {"kind": "Pod", "metadata": {"name": "x", "namespace": "lab"}},
            {},
            namespace(labels={"a": "b"}, annotations={"rdma.lab/fabric": "north"}),
            namespace("other"),
        ]
    )
    assert facts.namespaces == {
        "lab": NamespaceFacts(
            name="lab", labels={"a": "b"}, annotations={"rdma.lab/fabric": "north"}
        ),
        "other": NamespaceFacts(name="other", labels={}),
    }
    assert facts.namespace("lab") is facts.namespaces["lab"]


@pytest.mark.parametrize(
    ("labels", "level"),
    [
        (None, ""),
        ({}, ""),
        ({"pod-security.kubernetes.io/enforce": "privileged"}, ""),
        ({"pod-security.kubernetes.io/enforce": "baseline"}, "baseline"),
        ({"pod-security.kubernetes.io/enforce": "restricted"}, "restricted"),
        ({"pod-security.kubernetes.io/warn": "restricted"}, ""),
        ({"pod-security.kubernetes.io/enforce": "strict"}, ""),
    ],
)
def test_two_pod_security_levels_refuse_capabilities(
    labels: dict[str, str] | None, level: str
) -> None:
    """Only enforced levels count; `privileged` and unknown levels reject no capability."""
    assert NamespaceFacts(labels=labels).enforced_pod_security == level


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([], ""),
        ([limit_range()], ""),
        ([limit_range({"type": "Container", "default": {"memory": "1Gi"}})], ""),
        ([limit_range({"type": "Container", "max": {"cpu": "8"}})], ""),
        ([limit_range({"type": "PersistentVolumeClaim", "max": {"memory": "1Gi"}})], ""),
        (
            [limit_range({"type": "Container", "max": {"memory": "1Gi"}})],
            "LimitRange sizes sets max.memory",
        ),
        (
            [limit_range({"type": "Pod", "max": {"memory": "1Gi"}})],
            "LimitRange sizes sets max.memory",
        ),
        (
            [limit_range({}, {"type": "Container", "maxLimitRequestRatio": {"memory": "2"}})],
            "LimitRange sizes sets maxLimitRequestRatio.memory",
        ),
        ([quota(requests_memory="1Ti", pods="5")], ""),
        ([quota(limits_memory="1Ti")], "ResourceQuota team counts limits.memory"),
        (
            [
                quota(limits_memory="1Ti"),
                limit_range({"type": "Container", "max": {"memory": "1Gi"}}),
            ],
            "LimitRange sizes sets max.memory",
        ),
    ],
    ids=case_name,
)
def test_rules_may_require_a_memory_limit(items: list[dict[str, Any]], reason: str) -> None:
    """A LimitRange's max or ratio, or a quota on limits.memory; always the same one of several."""
    for objects in ([namespace(), *items], [*items, namespace()]):
        assert Facts.from_objects(objects).namespace("lab").memory_limit_rejection == reason
    assert Facts.from_objects([namespace("x"), *items]).namespace("x").memory_limit_rejection == ""


def test_a_null_label_is_empty() -> None:
    """A null label counts as an empty one, as in Kubernetes' decoder."""
    item = {"kind": "Node", "metadata": {"name": "a", "labels": {"x": None, "y": "1"}}}
    assert Facts.from_objects([item]).nodes["a"].labels == {"x": "", "y": "1"}


def test_a_node_offers_its_extended_resources() -> None:
    """Only quantities above zero count; capacity is used if nothing is allocatable yet."""
    facts = Facts.from_objects(
        [
            node("a", "Tesla-V100-SXM2", v100="8", mig="0", other=0),
            node("b", status={"capacity": {"nvidia.com/h100": 4}}),
            node("c", status={}),
        ]
    )
    assert facts.nodes == {
        "a": Node(
            labels={
                "kubernetes.io/hostname": "a.host",
                "nvidia.com/gpu.product": "Tesla-V100-SXM2",
            },
            resources={"nvidia.com/v100": 8},
        ),
        "b": Node(labels={"kubernetes.io/hostname": "b.host"}, resources={"nvidia.com/h100": 4}),
        "c": Node(labels={"kubernetes.io/hostname": "c.host"}, resources={}),
    }


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ({"kind": "Node", "metadata": []}, "metadata must be a mapping, but is a list ([])"),
        (
            {"kind": "LimitRange", "spec": {"limits": {}}},
            "spec.limits must be a list, but is a mapping ({})",
        ),
        (
            {"kind": "LimitRange", "spec": {"limits": [{"type": "Pod", "max": 3}]}},
            "max must be a mapping, but is a number (3)",
        ),
        (
            {"kind": "Namespace", "metadata": {"name": "a", "labels": "x"}},
            "metadata.labels must be a mapping, but is a string ('x')",
        ),
        (
            {"kind": "Node", "metadata": {"name": "a", "labels": {"x/y": "1", "x/z": 5}}},
            'metadata.labels["x/z"] must be a string, but is a number (5)',
        ),
        (
            {"kind": "Node", "status": {"allocatable": {"a.io/b": "many", "cpu": "all"}}},
            (
                "status.allocatable[\"a.io/b\"]: 'many' is not a Kubernetes quantity (such as "
                '"1", 500m or 64Gi)'
            ),
        ),
    ],
    ids=case_name,
)
def test_an_object_of_another_shape_is_refused(item: dict[str, Any], says: str) -> None:
    """An object with another shape did not come from an API server."""
    with pytest.raises(ShapeError) as raised:
        Facts.from_objects([item])
    assert str(raised.value) == says


@pytest.mark.parametrize(
    ("key", "value", "product"),
    [
        ("nvidia.com/gpu.product", "Tesla-V100-SXM2-16GB", "Tesla-V100-SXM2-16GB"),
        ("nvidia.com/gpu.product", "Tesla-V100-SXM2-16GB-SHARED", "Tesla-V100-SXM2-16GB"),
        ("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "NVIDIA-A100-SXM4-40GB"),
        (
            "nvidia.com/gpu.product",
            "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED",
            "NVIDIA-A100-SXM4-40GB",
        ),
        ("other", "x-SHARED", "x-SHARED"),
    ],
)
def test_a_shared_gpu_is_the_same_product(key: str, value: str, product: str) -> None:
    """GPU feature discovery appends the kind of sharing, on which the fabric does not depend."""
    assert comparable_value(key, value) == product


def rules(name: str, kind: str = "LimitRange", space: str = "") -> dict[str, Any]:
    """Make a LimitRange or a quota under which a pod needs a memory limit."""
    spec: dict[str, Any] = {"limits": [{"type": "Pod", "max": {"memory": "1Gi"}}]}
    if kind == "ResourceQuota":
        spec = {"hard": {"limits.memory": "1Ti"}}
    metadata = {"name": name, **({"namespace": space} if space else {})}
    return {"kind": kind, "metadata": metadata, "spec": spec}


def test_more_objects_extend_facts() -> None:
    """A Namespace or Node replaces its namesake, and rules are added."""
    before = Facts.from_objects(
        [
            namespace("lab", labels={"a": "old"}),
            rules("z-limits", space="lab"),
            node("n1", **{"x.io/a": "1"}),
        ]
    )
    additions = [
        node("n2", **{"x.io/b": "1"}),
        namespace("lab", labels={"a": "new"}),
        rules("a-quota", "ResourceQuota", "lab"),
        rules("limits", space="other"),
        rules("limits"),
    ]
    facts = before.with_objects(additions, "here")
    assert facts.unlisted_is_unknown
    assert facts.nodes.keys() == {"n1", "n2"}
    assert facts.namespace("lab").labels == {"a": "new"}
    assert facts.namespace("lab").memory_limit_rejection == "LimitRange z-limits sets max.memory"
    required = "LimitRange limits sets max.memory"
    for name in ("other", "here"):
        unknown = facts.namespace(name)
        assert (unknown.memory_limit_rejection, unknown.is_loaded) == (required, False)
    assert before.namespace("lab").labels == {"a": "old"}


def test_objects_alone_do_not_make_other_namespaces_unknown() -> None:
    """Without a source of facts, a namespace counts as one without restrictions."""
    facts = Facts().with_objects([rules("limits"), namespace("lab", labels={})], "here")
    assert facts.namespace("here").is_loaded
    assert facts.namespace("here").labels is None
    assert facts.namespace("elsewhere") == NamespaceFacts(name="elsewhere")
    assert facts.namespace("lab").labels == {}


def test_the_inventory_sees_nodes_through_the_fabrics() -> None:
    """Nodes are found by name and host name; a GPU resource counts for fabrics that claim it."""
    facts = Facts.from_objects(
        [
            node("a", "Tesla-V100-SXM2-SHARED", v100="8", **{"rdma/v100": "1k"}),
            node("a2", "Tesla-V100-SXM2-SHARED", v100="7", **{"rdma/v100": "63"}),
            node("b", "NVIDIA-H100-SXM5", v100="8", h100="8"),
            node("c", "Tesla-V100-PCIE", h100="1"),
            node("d", v100="1"),
        ]
    )
    v100, h100, none = frozenset({"v100-ib"}), frozenset({"h100-roce"}), frozenset[str]()
    fabric_index = facts.fabric_index(fabrics(V100, H100))
    assert {
        fabric: [sorted(nodes.names) for nodes in classes]
        for fabric, classes in fabric_index.node_classes.by_fabric.items()
    } == {"v100-ib": [["a"], ["a2"]], "h100-roce": [["b"]]}
    assert replace(fabric_index, node_classes=NO_CLASSES) == FabricIndex(
        by_node={
            "a": v100,
            "a.host": v100,
            "a2": v100,
            "a2.host": v100,
            "b": h100,
            "b.host": h100,
            "c": none,
            "c.host": none,
            "d": none,
            "d.host": none,
        },
        by_gpu={"nvidia.com/v100": v100, "nvidia.com/h100": h100},
        offering={
            "nvidia.com/v100": {"v100-ib": 8, "h100-roce": 8},
            "nvidia.com/h100": {"h100-roce": 8},
            "rdma/v100": {"v100-ib": 1000},
        },
        offering_with_rdma={
            ("nvidia.com/v100", "rdma/v100"): v100,
            ("rdma/v100", "rdma/v100"): v100,
        },
        by_gpu_model={
            ("nvidia.com/gpu.product", "Tesla-V100-SXM2-SHARED"): v100,
            ("nvidia.com/gpu.product", "NVIDIA-H100-SXM5"): h100,
            ("nvidia.com/gpu.product", "Tesla-V100-PCIE"): none,
        },
        inhabited_fabrics=v100 | h100,
        fabrics_with_gpus=v100 | h100,
        label_keys=frozenset({"nvidia.com/gpu.product", "kubernetes.io/hostname"}),
    )


def test_nodes_with_the_same_gpu_model_may_be_on_several_fabrics() -> None:
    """Each label that names a model counts by itself."""
    labels = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
    items = [node("a", "Tesla-V100-SXM2", v100="8"), node("b", "NVIDIA-H100-SXM5", h100="8")]
    for item in items:
        item["metadata"]["labels"] |= labels
    fabric_index = Facts.from_objects(items).fabric_index(fabrics(V100, H100))
    names = fabric_index.by_gpu_model["cloud.google.com/gke-accelerator", "nvidia-l4"]
    assert names == frozenset({"v100-ib", "h100-roce"})


def test_a_node_may_fit_several_fabrics() -> None:
    """A fabric without labels and GPU resources matches every node."""
    anywhere = fabric("anywhere")
    facts = Facts.from_objects([node("a", "Tesla-V100-SXM2", v100="8")])
    fabric_index = facts.fabric_index(fabrics(V100, H100, anywhere))
    assert fabric_index.by_node["a"] == frozenset({"v100-ib", "anywhere"})
    assert fabric_index.by_gpu == {"nvidia.com/v100": frozenset({"v100-ib"})}


def test_without_nodes_the_inventory_is_empty() -> None:
    """An empty inventory is not evidence for any fabric."""
    assert Facts.from_objects([]).fabric_index(fabrics()) == FabricIndex()


def test_whether_a_namespace_is_labeled() -> None:
    """Any value but "true" does not opt in; unknown labels leave it open."""
    labels: tuple[dict[str, str] | None, ...] = (
        None,
        {},
        {"rdma.lab/enable": "false"},
        {"rdma.lab/enable": "true"},
    )
    namespaces = [NamespaceFacts(name="lab", labels=given) for given in labels]
    assert [namespace.is_labeled for namespace in namespaces] == [None, False, False, True]
