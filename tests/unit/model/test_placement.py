from __future__ import annotations

from typing import Any

import pytest

from tests.builders import pod
from webhook.model.equivalent_nodes import EquivalentNodes
from webhook.model.node_availability import AVAILABLE, CORDON, UNREADINESS, Availability
from webhook.model.placement import MAX_REQUIREMENTS, Placement
from webhook.model.pod import Pod
from webhook.model.pod.tolerations import Taint

HOSTNAME = "kubernetes.io/hostname"
LABELS = {"pool": "x", "size": "8", HOSTNAME: "n1.lab"}


def node(
    *taints: Taint, name: str = "n1", labels: dict[str, str] | None = None, **fields: Any
) -> EquivalentNodes:
    """Make a class of one node."""
    availability = Availability(taints) if taints else AVAILABLE
    node_labels = LABELS if labels is None else labels
    return EquivalentNodes(
        frozenset({name}), node_labels, {}, availability, frozenset({"a"}), **fields
    )


def placement(individual: frozenset[str] = frozenset(), **spec: Any) -> Placement:
    """Return the placement of a pod with these fields."""
    return Placement(Pod(pod(**spec)), individual)


def affinity(*terms: Any) -> dict[str, Any]:
    """Write a required node affinity."""
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def term(key: str, operator: str, *values: str, field: str = "matchExpressions") -> dict[str, Any]:
    """Write a term with one requirement."""
    return {field: [{"key": key, "operator": operator, "values": list(values)}]}


def selects(*terms: Any, **fields: Any) -> bool:
    """Return whether a pod with these terms selects a node."""
    return placement(affinity=affinity(*terms)).selects(node(**fields))


def test_a_pod_that_selects_nothing() -> None:
    """Preferred affinity, or an affinity to pods, is no selection."""
    assert placement().selects(node())
    assert placement(affinity={"podAffinity": {}}).selects(node())
    assert placement(affinity={"nodeAffinity": {"preferred": []}}).selects(node())


def test_a_node_selector_is_met_by_each_of_its_labels() -> None:
    """The values are compared as text."""
    assert placement(nodeSelector={"pool": "x", "size": "8"}).selects(node())
    assert not placement(nodeSelector={"pool": "x", "size": "9"}).selects(node())
    assert not placement(nodeSelector={"absent": ""}).selects(node())


OPERATORS = [
    ("In", ["w", "x"], True, False),
    ("In", ["w"], False, False),
    ("NotIn", ["w"], True, True),
    ("NotIn", ["x"], False, True),
    ("Exists", [], True, False),
    ("DoesNotExist", [], False, True),
]


@pytest.mark.parametrize(("operator", "values", "present", "absent"), OPERATORS)
def test_operators(operator: str, values: list[str], *, present: bool, absent: bool) -> None:
    """Each for a label that the node has, and for one that it lacks."""
    assert selects(term("pool", operator, *values)) is present
    assert selects(term("absent", operator, *values)) is absent


@pytest.mark.parametrize(
    ("operator", "bound", "expected"),
    [
        ("Gt", "7", True),
        ("Gt", "8", False),
        ("Lt", "9", True),
        ("Lt", "8", False),
        ("Gt", "-9223372036854775808", True),
        ("Gt", "-9223372036854775809", False),
        ("Lt", "9223372036854775807", True),
        ("Lt", "9223372036854775808", False),
        ("Gt", "+0000000000000000000000007", True),
        ("Gt", "7.5", False),
        ("Gt", " 7", False),
        ("Gt", "\u0667", False),
    ],
)
def test_numbers(operator: str, bound: str, *, expected: bool) -> None:
    """They are signed integers of 64 bits, as Go reads them; another text accepts no node."""
    assert selects(term("size", operator, bound)) is expected
    assert not selects(term("pool", operator, bound))
    assert not selects(term("absent", operator, bound))


@pytest.mark.parametrize(
    "invalid",
    [
        term("pool", "In"),
        term("absent", "NotIn"),
        term("pool", "Exists", "x"),
        term("absent", "DoesNotExist", "x"),
        term("size", "Gt", "1", "2"),
        term("size", "Gt"),
        term("pool", "Equals", "x"),
        term("metadata.name", "In", field="matchFields"),
        term("metadata.name", "In", "n1", "n2", field="matchFields"),
        term("metadata.name", "Exists", field="matchFields"),
        term("metadata.uid", "In", "n1", field="matchFields"),
        {},
        {"matchExpressions": [], "matchFields": None},
    ],
)
def test_an_invalid_or_empty_term_matches_nothing(invalid: dict[str, Any]) -> None:
    """Another term still counts; an invalid requirement makes its whole term invalid."""
    valid = term("pool", "In", "x")
    assert not selects(invalid)
    assert selects(invalid, valid)
    if invalid.get("matchExpressions"):
        joined = [*valid["matchExpressions"], *invalid["matchExpressions"]]
        assert not selects({"matchExpressions": joined})


def test_an_affinity_without_terms_matches_nothing() -> None:
    """It is not the same as no affinity."""
    assert not selects()
    required: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": None}
    assert placement(affinity={"nodeAffinity": required}).selects(node())


def test_terms_are_alternatives_and_requirements_are_not() -> None:
    """The nodeSelector is required in addition."""
    first, second = term("pool", "In", "w"), term("size", "In", "8")
    assert selects(first, second)
    joined = {"matchExpressions": [*first["matchExpressions"], *second["matchExpressions"]]}
    assert not selects(joined)
    narrowed = placement(affinity=affinity(second), nodeSelector={"pool": "w"})
    assert not narrowed.selects(node())


def test_the_name_of_a_node() -> None:
    """It is a field; the label for the host name may have another value."""
    assert selects(term("metadata.name", "In", "n1", field="matchFields"))
    assert not selects(term("metadata.name", "In", "n1.lab", field="matchFields"))
    assert not selects(term("metadata.name", "NotIn", "n1", field="matchFields"))
    assert selects(term("metadata.name", "NotIn", "n2", field="matchFields"))
    assert placement(nodeName="n1").selects(node())
    assert not placement(nodeName="n2").selects(node())
    assert not placement(nodeName="n1", nodeSelector={"pool": "w"}).selects(node())


def test_individual_labels_count_as_met() -> None:
    """Whether a node of the class has the value is unknown, except for the host name."""
    unknown = frozenset({"rack", HOSTNAME})
    several_nodes = node(labels={"pool": "x"}, host_names=frozenset({"n1.lab", "n2.lab"}))
    assert placement(unknown, nodeSelector={"rack": "7", "pool": "x"}).selects(several_nodes)
    assert not placement(unknown, nodeSelector={"rack": "7", "pool": "w"}).selects(several_nodes)
    assert placement(unknown, nodeSelector={HOSTNAME: "n2.lab"}).selects(several_nodes)
    assert not placement(unknown, nodeSelector={HOSTNAME: "n3.lab"}).selects(several_nodes)
    for key, operator, values, expected in (
        ("rack", "In", ["7"], True),
        ("rack", "DoesNotExist", [], True),
        (HOSTNAME, "In", ["n2.lab", "n3.lab"], True),
        (HOSTNAME, "In", ["n3.lab"], False),
        (HOSTNAME, "NotIn", ["n1.lab", "n2.lab"], True),
    ):
        chosen = placement(unknown, affinity=affinity(term(key, operator, *values)))
        assert chosen.selects(several_nodes) is expected


def test_more_requirements_than_are_read() -> None:
    """Then the affinity counts as met, so that no pod takes long; the nodeSelector still counts."""
    for count, expected in ((MAX_REQUIREMENTS, False), (MAX_REQUIREMENTS + 1, True)):
        fields = [{"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}]
        requirements = [{"key": "pool", "operator": "In", "values": ["w"]}] * (count - 1)
        over_limit = affinity({"matchExpressions": requirements, "matchFields": fields})
        assert placement(affinity=over_limit).selects(node()) is expected
        assert not placement(affinity=over_limit, nodeSelector={"pool": "w"}).selects(node())


DEDICATED = Taint("dedicated", "ml")


def test_taints_keep_a_pod_away() -> None:
    """Each that the pod does not tolerate, in the order of the node."""
    tainted = node(DEDICATED, Taint("example.org/gpu"), CORDON, UNREADINESS)
    assert placement().repelling(tainted) == list(tainted.availability.taints)
    tolerating = placement(tolerations=[{"key": "dedicated", "operator": "Exists"}])
    assert tolerating.repelling(tainted, ["example.org/gpu"]) == [CORDON, UNREADINESS]
    assert placement(tolerations=[{"operator": "Exists"}]).repelling(tainted) == []
    assert placement().repelling(node()) == []


def test_only_no_schedule_of_a_requested_resource_is_tolerated() -> None:
    """The admission plugin ExtendedResourceToleration adds no other toleration."""
    lasting = Taint("example.org/gpu", effect="NoExecute")
    assert placement().repelling(node(lasting), ["example.org/gpu"]) == [lasting]


def test_a_pod_with_a_node_name_is_not_scheduled() -> None:
    """Only NoExecute keeps it away: the kubelet stops it."""
    lasting = Taint("dedicated", effect="NoExecute")
    assert placement(nodeName="n1").repelling(node(DEDICATED, CORDON, lasting)) == [lasting]


def test_the_label_that_no_class_has() -> None:
    """The first of the nodeSelector, or of the only term; None if each label is met by itself."""
    classes = [node(), node(labels={"pool": "y", "size": "1"})]
    chosen = placement(nodeSelector={"pool": "x", "size": "2", "zone": "1"})
    assert chosen.unmet_label(classes) == ("size", "2")
    assert placement(nodeSelector={"pool": "y", "size": "8"}).unmet_label(classes) is None
    chosen = placement(affinity=affinity(term("zone", "In", "1")))
    assert chosen.unmet_label(classes) == ("zone", "")
    chosen = placement(affinity=affinity(term("zone", "In", "1"), term("zone", "In", "2")))
    assert chosen.unmet_label(classes) is None
    chosen = placement(affinity=affinity(term("pool", "In", "y")))
    assert chosen.unmet_label(classes) is None
