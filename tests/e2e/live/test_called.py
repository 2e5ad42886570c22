"""The condition `Called`: whether the webhook configurations make the API server call us."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cluster import progress
from tests.cluster.fabrics import stored
from tests.cluster.install import CONFIGURATION, VALIDATION, Webhook, called, site
from tests.e2e.configuration_events import delete_events, event_created
from tests.waiting import until


def condition(webhook: Webhook) -> tuple[str, str]:
    """Return status and reason of the condition."""
    for item in stored(webhook).get("status", {}).get("conditions", ()):
        if item["type"] == "Called":
            return item["status"], item["reason"]
    return "", ""


def becomes(webhook: Webhook, status: str, reason: str) -> None:
    """Wait for the condition, and say how long it took."""
    took = until(lambda: condition(webhook) == (status, reason))
    progress.say(f"{reason} after {took:.1f} s")


@pytest.fixture
def registered(webhook: Webhook) -> Iterator[Webhook]:
    """Wait until the webhook is called, and restore its configurations after the test."""
    becomes(webhook, "True", "Called")
    delete_events(webhook.cluster)
    yield webhook
    with site(webhook.image) as folder:
        webhook.cluster.kubectl("apply", "-k", str(folder))
    becomes(webhook, "True", "Called")
    event_created(webhook.cluster, "Called")
    called(webhook.cluster)


def counted(webhook: Webhook, label: str) -> int:
    """Return how many replicas report that the configuration of a kind makes us called."""
    return webhook.counted("rdma_webhook_called", "webhook")[(label,)]


@pytest.mark.parametrize(
    ("configuration", "label"), [(CONFIGURATION, "mutating"), (VALIDATION, "validating")]
)
def test_a_deleted_configuration(registered: Webhook, configuration: str, label: str) -> None:
    """The status, an Event and a metric of each replica report it, and its end."""
    registered.cluster.kubectl("delete", configuration)
    becomes(registered, "False", "NoWebhookConfiguration")
    event = event_created(registered.cluster, "NoWebhookConfiguration", "does not exist")
    assert event["type"] == "Warning"
    described = registered.cluster.kubectl("describe", "fabrics", "default")
    assert "NoWebhookConfiguration" in described.partition("\nEvents:")[2]
    until(lambda: counted(registered, label) == 0)
    others = {"mutating": "validating", "validating": "mutating"}
    assert counted(registered, others[label]) == len(registered.replicas())


def test_a_configuration_that_selects_nothing(registered: Webhook) -> None:
    """The namespaces that opted in are excluded."""
    selector = {"matchLabels": {"rdma.lab/enable": "no"}}
    operation = {"op": "replace", "path": "/webhooks/0/namespaceSelector", "value": selector}
    patch = ("--type=json", f"--patch={json.dumps([operation])}")
    registered.cluster.kubectl("patch", CONFIGURATION, *patch)
    becomes(registered, "False", "SelectsTooLittle")
