"""The fabrics ConfigMap of a running cluster: changed, broken, repaired."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.install import NAME, Webhook
from tests.e2e.live.lab import Lab
from tests.e2e.live.replica import Replica, replicas
from tests.waiting import until
from webhook.config import EXAMPLE

GOOD = EXAMPLE.read_text()


@pytest.fixture
def restored(webhook: Webhook) -> Iterator[Webhook]:
    """Restore the replicas' fabrics after the test."""
    yield webhook
    _until(webhook, webhook.fabrics.read_text(), successful)


def put(webhook: Webhook, text: str) -> None:
    """Change the ConfigMap as docs/installation.md says."""
    metadata = {"name": f"{NAME}-fabrics", "namespace": NAME}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    webhook.kubectl(
        "apply", "--filename=-", input=json.dumps({**made, "data": {"fabrics.yaml": text}})
    )


def look(webhook: Webhook) -> None:
    """Make the kubelet sync its pods now, as it does when one of them changes."""
    now = f"rdma.lab/test-looked={time.monotonic_ns()}"
    webhook.kubectl("annotate", "pods", "--all", "--overwrite", now)


def successful(replica: Replica) -> bool:
    """Return whether the current file is in use."""
    return replica.metric("rdma_webhook_config_last_reload_successful") == 1


def generation(replica: Replica) -> float:
    """Return how many configurations the replica has used."""
    return replica.metric("rdma_webhook_config_generation")


def changed(rate: Any) -> str:
    """Write the fabrics with another rate."""
    document = yaml.safe_load(GOOD)
    document["spec"]["fabrics"][0]["rateGbps"] = rate
    return yaml.safe_dump(document, sort_keys=False)


def test_the_configuration_changes_under_running_replicas(restored: Webhook, lab: Lab) -> None:
    """A good file is used, a broken one is reported and not used, and the next good one is used."""
    running = replicas(restored)
    first = {one.name: generation(one) for one in running}
    before = lab.ask().status["config"]

    took = [_until(restored, changed(200), lambda one: generation(one) == first[one.name] + 1)]
    used = lab.ask().status["config"]
    assert used != before
    assert all(lab.ask().status["config"] == used for _ in range(10))

    took.append(_until(restored, changed("fast"), lambda one: not successful(one)))
    assert all(lab.ask().status["config"] == used for _ in range(10))
    for replica in running:
        status, lines = replica.get("/readyz")
        assert (status, "still in use, because its file is now broken" in lines) == (200, True)
        _told(restored, replica)

    took.append(_until(restored, changed(400), successful))
    assert lab.ask().status["config"] not in (before, used)
    good, broken, repaired = took
    print(f"used after {good:.0f} s, told after {broken:.0f} s, repaired after {repaired:.0f} s")  # noqa: T201


def _until(webhook: Webhook, text: str, seen: Any) -> float:
    """Change the ConfigMap, and return how long it takes until all replicas have seen it.

    That the kubelet syncs without help is tested in tests/faults, where there is time for it.
    """
    put(webhook, text)
    began = time.monotonic()
    look(webhook)
    until(lambda: all(seen(one) for one in replicas(webhook)))
    return time.monotonic() - began


def _told(webhook: Webhook, replica: Replica) -> None:
    """Wait for the one Event about the pod, and check it."""
    of = f"--field-selector=involvedObject.name={replica.name},reason=ConfigurationNotUsable"

    def events() -> list[Any]:
        found: list[Any] = json.loads(webhook.kubectl("get", "events", of, "-o", "json"))["items"]
        return found

    until(lambda: len(events()) == 1)
    (event,) = events()
    assert event["type"] == "Warning"
    assert event["involvedObject"]["kind"] == "Pod"
    assert "fabrics[0].rateGbps" in event["message"]
