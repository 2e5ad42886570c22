"""Nodes of a real cluster that change all the time, while pods are created."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from typing import Any

import pytest

from tests.cluster.install import A100, NAME, V100, Webhook
from tests.cluster.kwok import FAKE
from tests.e2e.admission.pods import Answer, create
from tests.e2e.documents import apply
from tests.e2e.live.lab import ChangingNamespace, send, trainer
from tests.fabrics_file import load_fabrics
from tests.waiting import until
from webhook.model.facts import Facts
from webhook.model.inventory import build_inventory
from webhook.preview.fabrics.record import anonymous_form

NODES = [f"changing-{number}" for number in range(4)]
EVENTS, PODS = 300, 100
#: Requests at once: for changes of nodes, and for pods.
AT_ONCE = 6
PRODUCT = "nvidia.com/gpu.product"
#: The value of a node's label, and the fabric of a pod on the node.
HOMES = {"Tesla-V100-SXM2-32GB": "v100-ib", "NVIDIA-A100-SXM4-40GB": "a100-ib", "L40S": None}
EITHER = {**V100, **A100}


@pytest.fixture
def nodes(webhook: Webhook) -> Iterator[list[str]]:
    """Make nodes that have GPUs of both kinds; their labels determine their fabrics."""
    cluster = webhook.cluster
    cluster.skip_if_existing("nodes that nobody runs")
    apply(cluster, *map(node, NODES))
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=300s", "nodes", *NODES)
    for name in NODES:
        cluster.advertise(EITHER, name)
    yield NODES
    cluster.kubectl("delete", "nodes", *NODES, "--wait=false")


def node(name: str) -> dict[str, Any]:
    """Return a ready node that only pods with a toleration are scheduled to."""
    taint = {"key": FAKE, "value": "fake", "effect": "NoSchedule"}
    labels, annotations = {PRODUCT: next(iter(HOMES))}, {FAKE: "fake"}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": [taint]}}


def ask(lab: ChangingNamespace, name: str) -> Answer:
    """Dry-run a pod whose fabric only the node determines."""
    pod = trainer(lab.name)
    pod["metadata"]["annotations"]["rdma.lab/containers"] = "trainer"
    pod["spec"]["nodeName"] = name
    del pod["spec"]["containers"][0]["resources"]
    return create(lab.webhook.cluster, pod)


def change(webhook: Webhook, number: int) -> None:
    """Give a node another label, or other amounts."""
    name = NODES[number % len(NODES)]
    if number % 3:
        product = [*HOMES][number // len(NODES) % len(HOMES)]
        send(webhook, "PATCH", f"nodes/{name}", {"metadata": {"labels": {PRODUCT: product}}})
    else:
        amounts = {resource: str(number % 7 + 1) for resource in EITHER}
        send(webhook, "PATCH", f"nodes/{name}/status", {"status": {"allocatable": amounts}})


def current_nodes(webhook: Webhook) -> dict[str, Any]:
    """Return the nodes as the API server has them now, by name."""
    items = json.loads(webhook.read("/api/v1/nodes"))["items"]
    return {item["metadata"]["name"]: item for item in items}


def _knows_the_nodes(webhook: Webhook, replica: str) -> bool:
    """Return whether a replica has the same nodes as the API server now."""
    objects = ({**item, "kind": "Node"} for item in current_nodes(webhook).values())
    configuration = load_fabrics(webhook.fabrics).compiled
    expected = anonymous_form(build_inventory(Facts.from_objects(objects).nodes, configuration))
    path = f"/api/v1/namespaces/{NAME}/pods/https:{replica}:8444/proxy/fabrics"
    return bool(json.loads(webhook.read(path)) == expected)


def test_no_decision_is_missed_while_nodes_change(lab: ChangingNamespace, nodes: list[str]) -> None:
    """All pods are created, and in the end each replica has the same nodes as the API server.

    A pod that is created then is on the current fabric of its node.
    """
    webhook = lab.webhook
    with ThreadPoolExecutor(AT_ONCE) as changing, ThreadPoolExecutor(AT_ONCE) as creating:
        changes = changing.map(lambda number: change(webhook, number), range(EVENTS))
        pending = creating.map(lambda name: ask(lab, name), islice(cycle(nodes), PODS))
        answers = [*pending]
        assert len([*changes]) == EVENTS
    assert [answer.refusal for answer in answers] == [""] * PODS
    assert {answer.status["fabric"] for answer in answers} <= set(HOMES.values())

    for replica in webhook.replicas():
        until(lambda replica=replica: _knows_the_nodes(webhook, replica))  # type: ignore[misc]
    now = current_nodes(webhook)
    for name in nodes:
        home = HOMES[now[name]["metadata"]["labels"][PRODUCT]]
        assert ask(lab, name).status["fabric"] == home, name
