"""Namespaces with different rules, and processes of this checkout that are called for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.e2e.admission import places
from tests.e2e.admission.by_url import Webhook, register
from tests.e2e.admission.pods import create, pod, trainer
from tests.e2e.documents import wait_for_accounts
from tests.waiting import until

Webhooks = dict[str, Webhook]


@pytest.fixture(scope="session")
def webhooks(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhooks]:
    """Make the namespaces, and a webhook for each value of their label; return them by value."""
    places.make(cluster)
    folder = tmp_path_factory.mktemp("webhooks")
    with ExitStack() as stack:
        stack.callback(_remove, cluster)
        started = _start(cluster, folder)
        for webhook in started:
            stack.callback(webhook.stop)
        by_label = {webhook.name: webhook for webhook in started}
        by_label["once"] = by_label["informed"]
        for webhook in started:
            webhook.wait_for_ports()
        for label, webhook in by_label.items():
            policy = "Never" if label == "once" else ""
            name = register(cluster, label, webhook, policy)
            stack.callback(
                cluster.kubectl, "delete", "mutatingwebhookconfiguration", name, "--wait=false"
            )
        _settled(cluster)
        yield by_label


def _start(cluster: Cluster, folder: Path) -> list[Webhook]:
    facts = folder / "facts.yaml"
    # As in docs/configuration.md, except for the nodes, which other tests make.
    facts.write_text(cluster.kubectl("get", "ns,limitrange,quota", "-A", "-o", "yaml"))
    with_facts = ("--facts", str(facts))
    strict = {"podSecurity": "deny", "memoryLimit": "keep-guaranteed"}
    return [
        Webhook(cluster, "informed", folder / "informed", *with_facts),
        Webhook(cluster, "uninformed", folder / "uninformed"),
        Webhook(cluster, "strict", folder / "strict", *with_facts, **strict),
    ]


def _settled(cluster: Cluster) -> None:
    """Wait until controllers have completed the namespaces and the webhooks are called."""
    wait_for_accounts(cluster, *(places.named(place) for place in places.PLACES))
    until(lambda: all("hard" in status for status in _quotas(cluster)))
    for place in ("plain", "plain-once", "plain-strict", "maximum-uninformed"):
        probe = pod(place, trainer(), annotations={"rdma.lab/memory-limit": "keep"})
        until(lambda probe=probe: "rdma.lab/status" in str(create(cluster, probe).object))  # type: ignore[misc]


def _quotas(cluster: Cluster) -> list[dict[str, object]]:
    quotas = json.loads(cluster.kubectl("get", "quota", "-A", "-o", "json"))["items"]
    return [quota.get("status", {}) for quota in quotas]


def _remove(cluster: Cluster) -> None:
    names = (places.named(place) for place in places.PLACES)
    cluster.kubectl("delete", "--wait=false", "namespace", *names)
