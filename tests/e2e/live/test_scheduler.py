"""The real scheduler and our reading of node selection accept the same nodes.

Each generated pod requests a resource that no node offers. So the scheduler places none, and its
message has the number of nodes that fail on this resource alone: those that the pod's nodeSelector,
affinity and tolerations leave.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.kwok import FAKE
from tests.e2e.documents import Document, apply, make_namespaces, namespace
from tests.e2e.wire import send
from tests.waiting import until
from webhook.model.equivalent_nodes import EquivalentNodes
from webhook.model.node_availability import availability_of
from webhook.model.objects import ClusterNode
from webhook.model.placement import Placement
from webhook.model.pod import Pod

SEED, PODS = 20, 200
SPACE = "scheduler"
DOMAIN = "placed.test"
RESOURCE = f"{DOMAIN}/none"
POOL, SIZE, TEAM, LAST = (f"{DOMAIN}/{name}" for name in ("pool", "size", "team", "last"))
HOSTNAME = "kubernetes.io/hostname"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
NODES = [f"placed-{number}" for number in range(6)]
#: The labels of the nodes, their taints apart from FAKE, and whether they are cordoned.
LABELS: list[dict[str, str]] = [
    {POOL: "x", SIZE: "2"},
    {POOL: "x", SIZE: "10"},
    {POOL: "y", SIZE: "03"},
    {POOL: "y", SIZE: "big"},
    {SIZE: "10"},
    {POOL: "x"},
]
TAINTS: list[tuple[str, str, str]] = [
    (TEAM, "ml", "NoSchedule"),
    (TEAM, "web", "NoSchedule"),
    (TEAM, "ml", "NoExecute"),
    (TEAM, "ml", "PreferNoSchedule"),
    ("", "", ""),
    ("", "", ""),
]
CORDONED = "placed-5"
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_INSUFFICIENT = re.compile(rf"(\d+) Insufficient {re.escape(RESOURCE)}")


def node(number: int) -> Document:
    """Return a fake node."""
    taints = [{"key": FAKE, "value": "fake", "effect": "NoSchedule"}]
    key, value, effect = TAINTS[number]
    if key:
        taints.append({"key": key, "value": value, "effect": effect})
    labels = {**LABELS[number], HOSTNAME: f"{NODES[number]}.host"}
    metadata = {"name": NODES[number], "labels": labels, "annotations": {FAKE: "fake"}}
    spec = {"taints": taints, "unschedulable": NODES[number] == CORDONED}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec}


@pytest.fixture
def nodes(cluster: Cluster, a100_node: str) -> Iterator[list[EquivalentNodes]]:
    """Make the nodes; return all nodes of the cluster, each as a class of its own.

    `a100_node`: with it, kwok runs, which also keeps these nodes ready.
    """
    assert a100_node
    cluster.skip_if_existing("nodes that nobody runs")
    apply(cluster, *map(node, range(len(NODES))))
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=300s", "nodes", *NODES)
    until(lambda: not any(_is_new(item) for item in listed(cluster)))
    cluster.kubectl("label", "node", NODES[0], f"{LAST}=change")
    yield [_class_of(item) for item in listed(cluster)]
    cluster.kubectl("delete", "nodes", *NODES, "--wait=false")


def listed(cluster: Cluster) -> list[Document]:
    """Return the Nodes of the cluster."""
    items: list[Document] = json.loads(cluster.kubectl("get", "nodes", "--output=json"))["items"]
    return items


def _is_new(item: Document) -> bool:
    """Return whether the node controller has not yet removed the taint of a new node."""
    return any("not-ready" in taint["key"] for taint in item["spec"].get("taints", ()))


def _class_of(item: Document) -> EquivalentNodes:
    metadata = item["metadata"]
    availability = availability_of(ClusterNode(item))
    names = frozenset({metadata["name"]})
    return EquivalentNodes(names, metadata["labels"], {}, availability, frozenset({"any"}))


class Generator:
    """Random selections among the labels, names and taints of the nodes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pod(self, space: str, name: str) -> Document:
        """Return a pod that requests a resource of no node."""
        resources = {"limits": {RESOURCE: "1"}}
        container = {"name": "main", "image": "example.com/none", "resources": resources}
        spec: Document = {"containers": [container], "tolerations": self._tolerations()}
        if self._random.random() < 0.4:
            key = self._random.choice((POOL, SIZE, HOSTNAME))
            spec["nodeSelector"] = {key: self._value(key)}
        if self._random.random() < 0.8:
            terms = [self._term() for _ in range(self._random.choice((1, 1, 2, 3)))]
            required = {"nodeSelectorTerms": terms}
            kind = "requiredDuringSchedulingIgnoredDuringExecution"
            spec["affinity"] = {"nodeAffinity": {kind: required}}
        metadata = {"name": name, "namespace": space}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _value(self, key: str) -> str:
        values = {
            POOL: ("x", "y", "z"),
            SIZE: ("2", "10", "03", "big"),
            HOSTNAME: ("placed-1.host", "placed-4.host"),
        }
        return self._random.choice(values[key])

    def _tolerations(self) -> list[Document]:
        written: list[Document] = [{"key": FAKE, "operator": "Exists"}]
        for _ in range(self._random.choice((0, 0, 1, 2))):
            key = self._random.choice((TEAM, TEAM, UNSCHEDULABLE, "other"))
            toleration: Document = {"key": key}
            if self._random.random() < 0.5:
                toleration["operator"] = "Exists"
            else:
                toleration["value"] = self._random.choice(("ml", "web", ""))
            if self._random.random() < 0.5:
                toleration["effect"] = self._random.choice(("NoSchedule", "NoExecute"))
            written.append(toleration)
        if self._random.random() < 0.1:
            written.append({"operator": "Exists"})
        return written

    def _term(self) -> Document:
        term: Document = {}
        for _ in range(self._random.choice((0, 1, 1, 2))):
            term.setdefault("matchExpressions", []).append(self._requirement())
        if self._random.random() < 0.25:
            operator = self._random.choice(("In", "NotIn"))
            named = {"key": "metadata.name", "operator": operator}
            term["matchFields"] = [{**named, "values": [self._random.choice(NODES)]}]
        return term

    def _requirement(self) -> Document:
        key, operator = self._random.choice((POOL, SIZE, HOSTNAME)), self._random.choice(OPERATORS)
        if operator in ("Gt", "Lt"):
            return {"key": SIZE, "operator": operator, "values": [self._random.choice("0259")]}
        count = self._random.choice((1, 2)) if operator in ("In", "NotIn") else 0
        return {
            "key": key,
            "operator": operator,
            "values": sorted({self._value(key) for _ in range(count)}),
        }


def accepted(document: Document, nodes: list[EquivalentNodes]) -> int:
    """Return the number of nodes that we take to be left for a pod."""
    placement = Placement(Pod(document))
    return sum(placement.selects(node) and not placement.repelling(node) for node in nodes)


def judged(cluster: Cluster, space: str) -> dict[str, str]:
    """Return the scheduler's messages by the names of the pods."""
    path = f"/api/v1/namespaces/{space}/pods"
    items: list[Any] = send(cluster, "GET", path).object["items"]
    return {
        item["metadata"]["name"]: condition.get("message", "")
        for item in items
        for condition in item["status"].get("conditions", ())
        if condition["type"] == "PodScheduled"
    }


@pytest.fixture
def space(cluster: Cluster) -> Iterator[str]:
    """Make a namespace."""
    make_namespaces(cluster, namespace(SPACE, None))
    yield SPACE
    cluster.kubectl("delete", "namespace", SPACE, "--wait=false")


def test_the_scheduler_accepts_the_same_nodes(
    cluster: Cluster, space: str, nodes: list[EquivalentNodes]
) -> None:
    """For each pod, the number of nodes that lack only the resource equals ours."""
    _wait_for_scheduler(cluster, space)
    generator = Generator(SEED)
    pods = {f"pod-{number}": generator.pod(space, f"pod-{number}") for number in range(PODS)}
    for document in pods.values():
        response = send(cluster, "POST", f"/api/v1/namespaces/{space}/pods", document)
        assert not response.refusal, (document["spec"], response.refusal)
    until(lambda: judged(cluster, space).keys() >= pods.keys())
    messages = judged(cluster, space)
    numbers = {
        name: (lacking_only_the_resource(messages[name]), accepted(document, nodes))
        for name, document in pods.items()
    }
    assert {name: pair for name, pair in numbers.items() if pair[0] != pair[1]} == {}
    assert len({*numbers.values()}) > 4  # the pods are not all alike


def _wait_for_scheduler(cluster: Cluster, space: str) -> None:
    """Wait until the scheduler knows the last change of a node, and so all changes before it."""
    resources = {"limits": {RESOURCE: "1"}}
    container = {"name": "main", "image": "example.com/none", "resources": resources}
    spec = {
        "containers": [container],
        "tolerations": [{"operator": "Exists"}],
        "nodeSelector": {LAST: "change"},
    }
    metadata = {"name": "first", "namespace": space}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    assert not send(cluster, "POST", f"/api/v1/namespaces/{space}/pods", document).refusal
    until(lambda: lacking_only_the_resource(judged(cluster, space).get("first", "")) == 1)


def lacking_only_the_resource(message: str) -> int:
    """Return the number of nodes that the scheduler rejected for the resource alone."""
    match = _INSUFFICIENT.search(message.partition("preemption:")[0])
    return int(match[1]) if match else 0
