from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.builders import H100, V100, decide_on, decision_input, gpu, pod, quantities
from tests.unit.kube.cluster import limit_range, namespace, node, quota
from webhook.kube.reflector import SILENCE
from webhook.kube.watched_resources import (
    CLAIM_TEMPLATES,
    CONFIGURATIONS,
    KINDS,
    LIMIT_RANGES,
    NAMESPACES,
    NODES,
    QUOTAS,
    WatchedResource,
)
from webhook.model.facts import NamespaceFacts, namespace_of

LABELS = {
    "kubernetes.io/metadata.name": "lab",
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/warn": "restricted",
    "rdma.lab/enable": "true",
    "team": "x",
}
ANNOTATIONS = {
    "rdma.lab/fabric": "h100-roce",
    "rdma.lab/enable": "true",
    "rdma.lab/memory-limit": "keep",
    "rdma.lab/skip": "env",
    "kubectl.kubernetes.io/last-applied-configuration": "{}",
}


def test_where_the_kinds_are() -> None:
    """Each kind is watched in the whole cluster, under its name in RBAC."""
    assert [kind.path for kind in KINDS] == [
        "/api/v1/namespaces",
        "/api/v1/limitranges",
        "/api/v1/resourcequotas",
    ]


def test_a_configuration_is_what_was_written_and_when() -> None:
    """Labels and managedFields are left out, also if a field is missing."""
    spec = {"apiVersion": "rdma.lab/v1alpha1", "kind": "FabricConfiguration", "spec": {"a": 1}}
    fields = [
        {"manager": "a", "time": "2026-01-01T00:00:01Z"},
        {"manager": "b", "time": "2026-01-01T00:00:02Z"},
        {"manager": "c", "time": "2026-01-01T00:00:03Z", "subresource": "status"},
        {"manager": "d"},
    ]
    metadata = {"name": "default", "uid": "u", "generation": 7, "resourceVersion": "9"}
    other_metadata = {"labels": {"a": "b"}, "managedFields": fields}
    status = {"kept": [1], "replicas": {"a": 2}, "nodes": 3}
    projection = CONFIGURATIONS.project(
        {**spec, "status": status, "metadata": {**metadata, **other_metadata}}
    )
    assert projection == {
        **spec,
        "status": status,
        "metadata": {**metadata, "written": "2026-01-01T00:00:02Z"},
    }
    absent: list[dict[str, object]] = [{}, {"status": None}, {"status": {}}]
    for missing in absent:
        assert CONFIGURATIONS.project({"metadata": {"name": "default"}, "odd": 1, **missing}) == {
            "metadata": {"name": "default", "written": ""},
            "odd": 1,
            "status": {},
        }
    assert CONFIGURATIONS.query == {"fieldSelector": "metadata.name=default"}
    assert (CONFIGURATIONS.optional, CONFIGURATIONS.forbidden_is_error) == (True, True)


def test_a_namespace_is_two_values() -> None:
    """They are the enforced Pod Security level and the fabric."""
    item = namespace("lab", labels=LABELS, annotations=ANNOTATIONS)
    assert NAMESPACES.project(item) == NamespaceFacts(
        name="lab",
        labels={"pod-security.kubernetes.io/enforce": "restricted"},
        annotations={"rdma.lab/fabric": "h100-roce"},
    )
    assert NAMESPACES.project(namespace("x")) == NamespaceFacts(name="x", labels={})
    long = namespace("x", annotations={"rdma.lab/fabric": "x" * (256 << 10)})
    cut = {"rdma.lab/fabric": "x" * 253}
    assert NAMESPACES.project(long) == NamespaceFacts(name="x", labels={}, annotations=cut)


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [
        *product([{key: LABELS[key]} for key in LABELS], [{}]),
        *product([{}], [{key: ANNOTATIONS[key]} for key in ANNOTATIONS]),
        (LABELS, ANNOTATIONS),
    ],
)
def test_what_is_not_kept_decides_nothing(labels: Any, annotations: Any) -> None:
    """A decision is the same with the whole namespace and with its projection."""
    item = namespace("lab", labels=labels, annotations=annotations)
    requested = pod(gpu(resources=quantities({"nvidia.com/gpu": "1", "memory": "64Gi"})))
    from_object, from_projection = (
        decide_on(requested, decision_input(V100, H100, namespace=facts))
        for facts in (namespace_of(item), NAMESPACES.project(item))
    )
    assert from_object == from_projection


def test_of_rules_the_sentence_is_kept_that_decisions_say() -> None:
    """A rule that requires no memory limit has no projection."""
    assert LIMIT_RANGES.project(limit_range(max={"memory": "1Gi"})) == (
        "LimitRange sizes sets max.memory"
    )
    assert QUOTAS.project(quota(limits_memory="1Ti")) == "ResourceQuota team counts limits.memory"
    assert not LIMIT_RANGES.project(limit_range(default={"memory": "1Gi"}))
    assert not QUOTAS.project(quota(pods="5"))


@pytest.mark.parametrize("kind", [CONFIGURATIONS, CLAIM_TEMPLATES], ids=lambda kind: kind.resource)
def test_watches_of_quiet_kinds_end_before_they_count_as_lost(
    kind: WatchedResource[object],
) -> None:
    """Nobody else reads these kinds, and the API server then sends no bookmarks."""
    shortest, longest = kind.watch_seconds
    assert 30 < shortest < longest < SILENCE
    assert all(watched.watch_seconds[0] > SILENCE for watched in KINDS)


@pytest.mark.parametrize("field", ["allocatable", "capacity"])
@pytest.mark.parametrize("amount", ["1e30", "1e3000", "100E", str(2**63), "9" * 70])
def test_amounts_that_cannot_be_counted_are_left_out(amount: str, field: str) -> None:
    """The API server accepts them from a kubelet; the others, and the other nodes, count."""
    item = node("n1", v100="8", odd=amount)
    offered = item["status"].pop("allocatable")
    expected = node("n1", v100="8")
    item["status"] |= {"allocatable": {}, field: {**offered, "memory": "1e30"}}
    assert NODES.project(item) == NODES.project(expected)
    assert NODES.project({**item, "spec": {"unschedulable": True}}) != NODES.project(expected)
