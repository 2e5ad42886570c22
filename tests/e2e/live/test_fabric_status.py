"""The status of a running cluster's configuration, as `kubectl get fabrics` shows it."""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.cluster.fabrics import OBJECT, apply_fabrics
from tests.cluster.install import NAME, Webhook
from tests.e2e.configuration_events import delete_events, event_created
from tests.e2e.fabrics_bypass import patch_fabrics, unchecked
from tests.waiting import until


def status(webhook: Webhook) -> dict[str, Any]:
    """Return the object's status, its conditions by their types."""
    item = json.loads(webhook.cluster.kubectl("get", OBJECT, "--output=json"))
    object_status: dict[str, Any] = item.get("status", {})
    conditions = {condition["type"]: condition for condition in object_status.get("conditions", ())}
    current = object_status.get("observedGeneration") == item["metadata"]["generation"]
    return {**object_status, "conditions": conditions, "current": current}


def holds(webhook: Webhook, **expected: str) -> bool:
    """Return whether the status is about the present object, and has these conditions."""
    actual = status(webhook)
    states = {name: condition["status"] for name, condition in actual["conditions"].items()}
    return actual["current"] and expected.items() <= states.items()


def test_the_status_follows_the_object(webhook: Webhook) -> None:
    """Valid and in use; then one that cannot be used, with the place; then valid again."""
    usable = webhook.fabrics.read_text(encoding="utf-8")
    apply_fabrics(webhook.cluster, usable)
    until(lambda: holds(webhook, Valid="True", Active="True", Ready="True"))
    actual = status(webhook)
    names = [fabric["name"] for fabric in yaml.safe_load(usable)["spec"]["fabrics"]]
    assert actual["fabricNames"] == ", ".join(names)
    heading, row = webhook.cluster.kubectl("get", "fabrics").splitlines()
    assert heading.split()[:2] == ["NAME", "FABRICS"]
    assert "READY" in heading
    assert "True" in row
    since = actual["conditions"]["Valid"]["lastTransitionTime"]

    fabrics = yaml.safe_load(usable)["spec"]["fabrics"]
    fabrics[0]["resources"][0]["name"] = "rdma/rdma-v100"
    with unchecked(webhook):
        assert patch_fabrics(webhook.cluster, fabrics).code == 200
    until(lambda: holds(webhook, Valid="False", Active="False"))
    valid, active = (status(webhook)["conditions"][condition] for condition in ("Valid", "Active"))
    assert valid["reason"] == "NotUsable"
    assert "spec.fabrics[0].resources[0].name" in valid["message"]
    assert active["reason"] == "LastGoodInUse"
    assert valid["lastTransitionTime"] >= since
    for reason, words in (("NotUsable", "spec.fabrics[0]"), ("LastGoodInUse", "stays in use")):
        assert event_created(webhook.cluster, reason, words)["type"] == "Warning"

    delete_events(webhook.cluster)
    config = apply_fabrics(webhook.cluster, usable)
    until(lambda: holds(webhook, Valid="True", Active="True"))
    event = event_created(webhook.cluster, "InUse", f"(config {config})")
    assert event["type"] == "Normal"
    described = webhook.cluster.kubectl("describe", "fabrics", "default")
    assert (
        f"The webhook uses this configuration (config {config})."
        in described.partition("\nEvents:")[2]
    )


def test_a_single_replica_writes_it(webhook: Webhook) -> None:
    """The holder of the Lease writes it, and is one of the replicas."""
    read = ("get", "lease", NAME, f"--namespace={NAME}", "--output=json")

    def holder() -> str:
        lease = json.loads(webhook.cluster.kubectl(*read))
        return str(lease["spec"].get("holderIdentity", ""))

    until(lambda: holder() in webhook.replicas(), holder)
