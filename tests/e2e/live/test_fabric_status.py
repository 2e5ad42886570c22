"""What `kubectl get fabrics` shows of the configuration of a running cluster."""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.cluster.fabrics import OBJECT, apply_fabrics
from tests.cluster.install import NAME, Webhook
from tests.e2e.fabrics_bypass import patch_fabrics, unchecked
from tests.waiting import until


def status(webhook: Webhook) -> dict[str, Any]:
    """Return the object's status, its conditions by their types."""
    item = json.loads(webhook.cluster.kubectl("get", OBJECT, "--output=json"))
    found: dict[str, Any] = item.get("status", {})
    conditions = {one["type"]: one for one in found.get("conditions", ())}
    current = found.get("observedGeneration") == item["metadata"]["generation"]
    return {**found, "conditions": conditions, "current": current}


def holds(webhook: Webhook, **wanted: str) -> bool:
    """Return whether the status is about the present object, and its conditions are these."""
    found = status(webhook)
    states = {name: one["status"] for name, one in found["conditions"].items()}
    return found["current"] and states == wanted


def test_the_status_follows_the_object(webhook: Webhook) -> None:
    """Valid and in use; then one that cannot be used, with the place; then valid again."""
    good = webhook.fabrics.read_text(encoding="utf-8")
    apply_fabrics(webhook.cluster, good)
    until(lambda: holds(webhook, Valid="True", Active="True"))
    found = status(webhook)
    names = [one["name"] for one in yaml.safe_load(good)["spec"]["fabrics"]]
    assert found["fabricNames"] == ", ".join(names)
    heading, row = webhook.cluster.kubectl("get", "fabrics").splitlines()
    assert heading.split()[:2] == ["NAME", "FABRICS"]
    assert "VALID" in heading
    assert "True" in row
    since = found["conditions"]["Valid"]["lastTransitionTime"]

    fabrics = yaml.safe_load(good)["spec"]["fabrics"]
    fabrics[0]["resources"][0]["name"] = "rdma/rdma-v100"
    with unchecked(webhook):
        assert patch_fabrics(webhook.cluster, fabrics).code == 200
    until(lambda: holds(webhook, Valid="False", Active="False"))
    valid, active = (status(webhook)["conditions"][one] for one in ("Valid", "Active"))
    assert valid["reason"] == "NotUsable"
    assert "spec.fabrics[0].resources[0].name" in valid["message"]
    assert active["reason"] == "LastGoodInUse"
    assert valid["lastTransitionTime"] >= since

    apply_fabrics(webhook.cluster, good)
    until(lambda: holds(webhook, Valid="True", Active="True"))


def test_one_replica_writes_it(webhook: Webhook) -> None:
    """The holder of the Lease, and it is one of the replicas."""
    read = ("get", "lease", NAME, f"--namespace={NAME}", "--output=json")
    lease = json.loads(webhook.cluster.kubectl(*read))
    assert lease["spec"]["holderIdentity"] in webhook.replicas()
