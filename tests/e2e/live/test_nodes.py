"""The nodes of a real cluster, as replicas know them, and their effect on decisions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.install import A100, NAME, Webhook
from tests.cluster.kwok import FAKE
from tests.e2e.admission.pods import create
from tests.e2e.live.lab import ChangingNamespace, trainer
from tests.e2e.live.replica import replicas
from tests.waiting import until
from webhook.kube.access import Overrides
from webhook.kube.client import Client

RESOURCE = "rdma/rdma_a100"
FLOW = "X-Kubernetes-Pf-Flowschema-Uid"
ACCOUNT = f"system:serviceaccount:{NAME}:{NAME}"
GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{NAME}", "system:authenticated")


def verdict(lab: ChangingNamespace) -> tuple[str, str]:
    """Return the verdict on a pod with an A100 that tolerates a fake node, and its reason."""
    pod = trainer(lab.name)
    pod["spec"]["tolerations"] = [{"key": FAKE, "operator": "Exists"}]
    pod["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/a100": "1"}
    status: dict[str, Any] = create(lab.webhook.cluster, pod).status
    return status["rdma"], status.get("because", "")


def decided(lab: ChangingNamespace, rdma: str) -> set[str]:
    """Wait until all replicas come to this verdict, and return its reasons."""
    reasons: set[str] = set()

    def has_come() -> bool:
        verdicts = {verdict(lab) for _ in range(10)}
        reasons.clear()
        reasons.update(because for _, because in verdicts)
        return {answer for answer, _ in verdicts} == {rdma}

    until(has_come)
    return reasons


def test_offered_resources_decide_the_verdict(lab: ChangingNamespace, a100_node: str) -> None:
    """The verdict is certain only while a device plugin offers the resource."""
    cluster = lab.webhook.cluster
    decided(lab, "yes")
    cluster.advertise({**A100, RESOURCE: "0"}, a100_node)
    try:
        assert decided(lab, "unsure") == {"ResourceNotOffered"}
    finally:
        cluster.advertise(A100, a100_node)
    decided(lab, "yes")


def test_each_replica_knows_the_nodes(webhook: Webhook) -> None:
    """The metric and the line of `/readyz` have their number; heartbeats do not change it."""
    nodes = webhook.cluster.kubectl("get", "nodes", "--output=name").split()
    for replica in replicas(webhook):
        until(lambda replica=replica: f"{len(nodes)} nodes, last" in replica.get("/readyz")[1])  # type: ignore[misc]
        metrics = replica.get("/metrics")[1]
        assert f'rdma_webhook_facts_objects{{resource="nodes"}} {len(nodes)}.0' in metrics


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("/api/v1/namespaces", NAME),
        ("/api/v1/limitranges", NAME),
        (f"/api/v1/namespaces/{NAME}/secrets/{NAME}-ca", NAME),
        ("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/zz-x", NAME),
        ("/api/v1/nodes", "service-accounts"),
    ],
    ids=["namespaces", "limitranges", "secret", "registration", "nodes"],
)
def test_lists_of_nodes_yield_to_requests_for_pods(
    webhook: Webhook, path: str, schema: str
) -> None:
    """The API server reports the FlowSchema that queued a request of the webhook's account."""
    flow_schemas = json.loads(webhook.cluster.kubectl("get", "flowschemas", "--output=json"))[
        "items"
    ]
    names = {
        flow_schema["metadata"]["uid"]: flow_schema["metadata"]["name"]
        for flow_schema in flow_schemas
    }
    levels = {
        flow_schema["metadata"]["name"]: flow_schema["spec"]["priorityLevelConfiguration"]["name"]
        for flow_schema in flow_schemas
    }
    overrides = Overrides(acting_as=ACCOUNT, acting_groups=GROUPS)
    answer = Client(webhook.cluster.kubeconfig, overrides).open("GET", path, query=[("limit", "1")])
    assert names[answer.headers[FLOW]] == schema
    assert levels[schema] == (NAME if schema == NAME else "workload-low")
