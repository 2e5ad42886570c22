"""The webhooks and policies that may change a pod after this webhook."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.why.pods import Item, pod_in_cluster
from webhook.diagnose.why.later_admission import later_mutators
from webhook.model.facts import NamespaceFacts

CREATION = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["pods"],
}
UPDATES = {**CREATION, "operations": ["UPDATE"]}
NAMESPACE = NamespaceFacts(name="lab", labels={"rdma.lab/enable": "true"})
OURS: Item = {"metadata": {"name": "zz-rdma-webhook"}, "webhooks": [{"name": "pods.rdma.lab"}]}


def webhook(configuration: str, name: str = "mesh.example", **fields: Any) -> Item:
    """Return a configuration with one webhook for the creation of pods."""
    hook = {"name": name, "rules": [CREATION], **fields}
    return {"metadata": {"name": configuration}, "webhooks": [hook, "x"]}


def policy(name: str, again: str = "IfNeeded", **constraints: Any) -> Item:
    """Return a policy for the creation of pods."""
    return {
        "metadata": {"name": name},
        "spec": {
            "reinvocationPolicy": again,
            "matchConstraints": {"resourceRules": [CREATION], **constraints},
        },
    }


def later(*configurations: Item, policies: tuple[Item, ...] = ()) -> list[str]:
    """List what comes after ours."""
    return later_mutators((OURS, *configurations), policies, pod_in_cluster(), NAMESPACE)


def test_webhooks_come_in_the_order_of_their_names() -> None:
    """Those with later names, and earlier ones that are called once more."""
    assert later(
        webhook("zzz-b"),
        webhook("aa-once"),
        webhook("zzz-a", name="a.example"),
        webhook("aa-again", reinvocationPolicy="IfNeeded"),
    ) == [
        "webhook mesh.example of aa-again",
        "webhook a.example of zzz-a",
        "webhook mesh.example of zzz-b",
    ]


@pytest.mark.parametrize(
    ("fields", "listed"),
    [
        ({"rules": [UPDATES]}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"rdma.lab/enable": "true"}}}, True),
        ({"objectSelector": {"matchLabels": {"app": "x"}}}, False),
        ({"matchConditions": [{"name": "cel", "expression": "object.x"}]}, True),
    ],
    ids=str,
)
def test_only_those_that_may_select_the_pod(fields: Item, listed: bool) -> None:
    """A condition in CEL may be true."""
    assert bool(later(webhook("zzz", **fields))) is listed


def test_policies() -> None:
    """All come before the webhooks; those that are called once more come after them, too."""
    other = {"matchLabels": {"team": "a"}}
    policies = (policy("a"), policy("b", "Never"), policy("c", namespaceSelector=other))
    assert later(policies=policies) == ["MutatingAdmissionPolicy a"]


def test_any_shape() -> None:
    """An object may have any shape; without our webhook, all others count."""
    shapes: list[Item] = [{}, {"webhooks": 5}, {"metadata": 1, "webhooks": [{}]}]
    assert later_mutators(shapes, [{}, {"spec": 1}], pod_in_cluster(), NAMESPACE) == []
    assert later_mutators([webhook("a")], [], pod_in_cluster(), NAMESPACE) == [
        "webhook mesh.example of a"
    ]
