from __future__ import annotations

from webhook.model import equivalent_nodes
from webhook.model.equivalent_nodes import (
    MAX_CLASSES,
    NO_CLASSES,
    EquivalenceClasses,
    EquivalentNodes,
    refine,
)
from webhook.model.node_availability import AVAILABLE, CORDON, Availability

HOSTNAME = "kubernetes.io/hostname"
FABRIC = frozenset({"a"})


def coarse(*names: str, fabrics: frozenset[str] = FABRIC, **amounts: int) -> EquivalentNodes:
    """Make a class that labels do not divide yet."""
    return EquivalentNodes(frozenset(names), {}, amounts, AVAILABLE, fabrics)


def described(
    classes: EquivalenceClasses, fabric: str = "a"
) -> list[tuple[list[str], dict[str, str]]]:
    """Return the nodes and labels of a fabric's classes."""
    listed = classes.by_fabric[fabric]
    return sorted((sorted(nodes.names), dict(nodes.labels)) for nodes in listed)


def test_labels_divide_nodes() -> None:
    """Nodes with equal labels are one class, whatever the order of the labels."""
    labels = {
        "n1": {"pool": "x", "zone": "1"},
        "n2": {"zone": "1", "pool": "x"},
        "n3": {"pool": "y", "zone": "1"},
        "n4": {"zone": "1"},
        "n5": {},
    }
    classes = refine([coarse(*labels)], labels)
    assert described(classes) == [
        (["n1", "n2"], {"pool": "x", "zone": "1"}),
        (["n3"], {"pool": "y", "zone": "1"}),
        (["n4"], {"zone": "1"}),
        (["n5"], {}),
    ]
    assert classes.individual_label_keys == frozenset()


def test_what_a_coarse_class_says_stays() -> None:
    """Resources and availability are those of the nodes; nodes of no fabric have no class."""
    cordoned = coarse("n1", gpu=8)._replace(availability=Availability((CORDON,)))
    of_two_fabrics = coarse("n2", fabrics=frozenset({"a", "b"}))
    labels: dict[str, dict[str, str]] = {"n1": {}, "n2": {}, "n3": {}}
    classes = refine([cordoned, of_two_fabrics, coarse("n3", fabrics=frozenset())], labels)
    assert classes.by_fabric == {"a": (cordoned, of_two_fabrics), "b": (of_two_fabrics,)}


def test_host_names_do_not_divide_many_nodes() -> None:
    """A label with more than 32 values is individual: the classes have the host names apart."""
    for count, individual in ((32, False), (33, True)):
        labels = {f"n{i}": {HOSTNAME: f"n{i}.lab", "pool": "x"} for i in range(count)}
        classes = refine([coarse(*labels)], labels)
        assert classes.individual_label_keys == (
            frozenset({HOSTNAME}) if individual else frozenset()
        )
        first = classes.by_fabric["a"][0]
        if individual:
            assert described(classes) == [(sorted(labels), {"pool": "x"})]
            assert first.host_names == {f"n{i}.lab" for i in range(count)}
        else:
            assert len(classes.by_fabric["a"]) == count
            assert first.host_names == frozenset()


def test_the_host_name_of_a_node_with_labels_of_its_own() -> None:
    """No other node has the same label keys."""
    labels = {f"n{i}": {HOSTNAME: f"n{i}"} for i in range(40)}
    labels["n0"] = {HOSTNAME: "n0.lab", "pool": "x"}
    classes = refine([coarse(*labels)], labels).by_fabric["a"]
    alone = next(nodes for nodes in classes if nodes.labels)
    assert alone.names == {"n0"}
    assert alone.host_names == {"n0.lab"}


def test_values_of_nodes_with_different_keys_count_together() -> None:
    """A host name divides no nodes, whatever other labels they have."""
    labels = {f"n{i}": {HOSTNAME: f"n{i}.lab", f"example.org/n{i}": ""} for i in range(33)}
    classes = refine([coarse(*labels)], labels)
    assert classes.individual_label_keys == {HOSTNAME}


def test_a_node_without_the_label_has_its_name_as_host_name() -> None:
    """So a set of names that equals the host names is kept once."""
    labels = {f"n{i}": {HOSTNAME: f"n{i}"} for i in range(40)}
    labels["n0"] = {}
    for nodes in refine([coarse(*labels)], labels).by_fabric["a"]:
        assert nodes.host_names is nodes.names


def test_too_many_combinations() -> None:
    """Labels with fewer and fewer values become individual, until there are few classes."""
    labels = {
        f"n{i}": {"rack": f"r{i % 30}", "row": f"o{i % 7}", "zone": f"z{i % 2}"}
        for i in range(30 * 7 * 4)
    }
    names = list(labels)
    assert len(refine([coarse(*names[:400])], labels).by_fabric["a"]) == 210
    for node, own in labels.items():
        own["slot"] = f"s{int(node[1:]) % 11}"
    classes = refine([coarse(*names)], labels)
    assert classes.individual_label_keys == {"rack", "slot"}
    assert len(classes.by_fabric["a"]) == 14


def test_labels_with_two_values_are_the_last_to_become_individual() -> None:
    """Labels with three values each make too many classes."""
    labels = {
        f"n{i}": {"zone": f"z{i % 2}", **{f"k{j}": f"v{i // 3**j % 3}" for j in range(6)}}
        for i in range(MAX_CLASSES + 1)
    }
    classes = refine([coarse(*labels)], labels)
    assert classes.individual_label_keys == {f"k{j}" for j in range(6)}
    assert [own for _, own in described(classes)] == [{"zone": "z0"}, {"zone": "z1"}]


def test_labels_that_only_some_nodes_have() -> None:
    """With a key of its own on each node, all labels are individual in the end."""
    labels = {f"n{i}": {f"example.org/n{i}": "", "pool": "x"} for i in range(MAX_CLASSES + 1)}
    classes = refine([coarse(*labels)], labels)
    assert described(classes) == [(sorted(labels), {})]
    assert classes.individual_label_keys == {"pool", *(f"example.org/n{i}" for i in range(513))}
    assert refine([coarse(*list(labels)[1:])], labels).individual_label_keys == frozenset()


def test_above_the_last_limit_there_are_no_classes() -> None:
    """The nodes offer too many different amounts."""
    nodes = [coarse(f"n{i}", gpu=i) for i in range(MAX_CLASSES + 1)]
    labels: dict[str, dict[str, str]] = {f"n{i}": {} for i in range(MAX_CLASSES + 1)}
    assert refine(nodes, labels) is NO_CLASSES
    assert len(refine(nodes[1:], labels).by_fabric["a"]) == MAX_CLASSES
    assert EquivalenceClasses({}, frozenset()) == equivalent_nodes.NO_CLASSES
