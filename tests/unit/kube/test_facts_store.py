"""Tests of the store that makes facts of the objects of informers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.kube.cluster import limit_range, namespace, quota
from webhook.kube.informers import Batch, FactsStore
from webhook.kube.reflector import Change
from webhook.kube.watched_resources import LIMIT_RANGES, NAMESPACES, QUOTAS, WatchedResource
from webhook.model.facts import Facts, NamespaceFacts, key_of

MAX: Any = {"max": {"memory": "1Gi"}}


def put(kind: WatchedResource[object], *items: dict[str, Any]) -> Batch:
    """Return a batch that delivers objects."""
    return kind, [Change(key_of(item), kind.project(item) or None) for item in items]


def deleted(kind: WatchedResource[object], *items: dict[str, Any]) -> Batch:
    """Return a batch that deletes objects."""
    return kind, [Change(key_of(item), None) for item in items]


def test_before_anything_came_every_namespace_is_unknown() -> None:
    """The source of facts has delivered nothing yet."""
    assert FactsStore().facts.namespace("lab") == NamespaceFacts(name="lab", is_loaded=False)


def test_a_kind_that_is_no_part_of_the_facts_is_an_error() -> None:
    """It is not mistaken for a part."""
    alien = WatchedResource(resource="pods", project=lambda item: item)
    with pytest.raises(LookupError, match="pods are not part of the facts"):
        FactsStore().apply([put(alien, namespace("lab"))])


def test_rules_and_namespaces_come_in_any_order() -> None:
    """A rule alone does not make its namespace known."""
    store = FactsStore()
    assert store.apply([put(LIMIT_RANGES, limit_range(**MAX))]) == set()
    assert store.facts == Facts(unlisted_is_unknown=True)
    assert store.apply([put(NAMESPACES, namespace("lab"), namespace("x"))]) == {"lab", "x"}
    says = "LimitRange sizes sets max.memory"
    assert store.facts.namespace("lab").memory_limit_rejection == says
    assert store.facts.namespace("x").memory_limit_rejection == ""


def test_facts_are_new_only_where_something_changed() -> None:
    """Earlier facts do not change, and neither does any other namespace."""
    store = FactsStore()
    store.apply([put(NAMESPACES, namespace("lab"), namespace("x"))])
    before = store.facts
    assert store.apply([put(NAMESPACES, namespace("lab", labels={"team": "a"}))]) == set()
    assert store.apply([deleted(QUOTAS, quota("never", "lab"))]) == set()
    assert store.facts is before

    assert store.apply([put(QUOTAS, quota(limits_memory="1Ti"))]) == {"lab"}
    assert before.namespace("lab").memory_limit_rejection == ""
    assert store.facts.namespace("lab").memory_limit_rejection != ""
    assert store.facts.namespaces["x"] is before.namespaces["x"]
    assert store.facts.nodes is before.nodes


def test_what_is_deleted_is_forgotten() -> None:
    """A rule and its namespace may be deleted in either order; other rules stay."""
    store = FactsStore()
    strict, team = limit_range(**MAX), quota(limits_memory="1Ti")
    rules = [put(LIMIT_RANGES, strict), put(QUOTAS, team)]
    store.apply([put(NAMESPACES, namespace("lab")), *rules])
    store.apply([deleted(LIMIT_RANGES, strict)])
    says = "ResourceQuota team counts limits.memory"
    assert store.facts.namespace("lab").memory_limit_rejection == says
    assert store.apply([deleted(NAMESPACES, namespace("lab"))]) == {"lab"}
    assert store.facts == Facts(unlisted_is_unknown=True)
    store.apply([deleted(QUOTAS, team), put(NAMESPACES, namespace("lab"))])
    assert store.facts.namespace("lab").memory_limit_rejection == ""


SPACES, RULES = ("a", "b"), ("x", "y")
#: Kind → a function that makes an object; `full`: with the values that the facts keep.
OBJECTS: dict[WatchedResource[object], Callable[..., Any]] = {
    NAMESPACES: lambda space, _, full: namespace(
        space, annotations={"rdma.lab/fabric": "north"} if full else {}
    ),
    LIMIT_RANGES: lambda space, name, full: limit_range(name, space, **(MAX if full else {})),
    QUOTAS: lambda space, name, full: quota(
        name, space, **({"limits_memory": "1"} if full else {})
    ),
}
STEP = st.tuples(
    st.sampled_from(sorted(OBJECTS, key=lambda kind: kind.resource)),
    st.sampled_from(SPACES),
    st.sampled_from(RULES),
    st.sampled_from(["deleted", "empty", "full"]),
)


@given(st.lists(st.lists(STEP, max_size=6), max_size=8))
def test_the_facts_are_those_of_what_is_there(batches: list[list[Any]]) -> None:
    """After any batches, the facts equal a single read of all remaining objects."""
    store = FactsStore()
    existing: dict[tuple[str, tuple[str, str]], dict[str, Any]] = {}
    for batch in batches:
        delivered = []
        before = dict(store.facts.namespaces)
        for kind, space, name, state in batch:
            item = OBJECTS[kind](space, name, state == "full")
            key = (kind.resource, key_of(item))
            delivered.append((deleted if state == "deleted" else put)(kind, item))
            existing.pop(key, None)
            if state != "deleted":
                # A list of mixed kinds names the kind of each object.
                existing[key] = {**item, "kind": KIND_NAMES[kind.resource]}
        changed = store.apply(delivered)
        now = store.facts.namespaces
        assert now == Facts.from_objects(existing.values()).namespaces
        assert changed == {
            space_name for space_name in SPACES if before.get(space_name) != now.get(space_name)
        }


KIND_NAMES = {
    "namespaces": "Namespace",
    "limitranges": "LimitRange",
    "resourcequotas": "ResourceQuota",
}
