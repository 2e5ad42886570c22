"""The fabrics of a running cluster: changed, unusable, deleted, and their kind with them.

There are two replicas, which notice each change at about the same moment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.fabrics import (
    KIND,
    OBJECT,
    PATH,
    apply_fabrics,
    define,
    hash_of,
    wait_until_in_use,
)
from tests.cluster.install import Webhook
from tests.e2e.configuration_events import event_created
from tests.e2e.documents import Document
from tests.e2e.fabrics_bypass import MERGE, patch_fabrics, unchecked
from tests.e2e.live.lab import ChangingNamespace
from tests.e2e.live.replica import Replica, replicas
from tests.e2e.wire import send
from tests.waiting import until
from webhook.admission.registration import NO_FABRICS_MESSAGE
from webhook.config import EXAMPLE
from webhook.serve.sources.configuration_object import NO_KIND, NO_OBJECT

USABLE = EXAMPLE.read_text()


@pytest.fixture(scope="module")
def restored(webhook: Webhook) -> Iterator[Webhook]:
    """Restore kind and fabrics after all tests; each test leaves usable fabrics."""
    yield webhook
    define(webhook.cluster)
    wait_until_in_use(webhook, apply_fabrics(webhook.cluster, webhook.fabrics.read_text()))


def changed(rate: int = 100, **first: Any) -> str:
    """Write the fabrics with other fields of the first."""
    document = yaml.safe_load(USABLE)
    document["spec"]["fabrics"][0] |= {"rateGbps": rate, **first}
    return yaml.safe_dump(document, sort_keys=False)


def unusable() -> str:
    """Write fabrics that the API server's schema allows, and the webhook's rules do not."""
    return changed(resources=[{"name": "rdma/rdma-v100"}])


def successful(replica: Replica) -> bool:
    """Return whether the present object is in use."""
    return replica.metric("rdma_webhook_config_last_reload_successful") == 1


def fabrics_of(text: str) -> list[Document]:
    """Return the list of fabrics in a file."""
    return list(yaml.safe_load(text)["spec"]["fabrics"])


def bypass(webhook: Webhook, text: str) -> None:
    """Store fabrics that are not checked first, as a restore of etcd does."""
    with unchecked(webhook):
        response = patch_fabrics(webhook.cluster, fabrics_of(text))
    assert response.code == 200, response


def test_an_applied_change_is_used_by_all_replicas(
    restored: Webhook, lab: ChangingNamespace
) -> None:
    """Three seconds after the apply; a change of the status does not count."""
    before = lab.ask().status["config"]
    took = wait_until_in_use(restored, config := apply_fabrics(restored.cluster, changed(200)))
    assert config != before
    assert {lab.ask().status["config"] for _ in range(10)} == {config}
    print(f"used after {took:.1f} s")  # noqa: T201

    counts = [replica.metric("rdma_webhook_config_loads_total") for replica in replicas(restored)]
    status = {"status": {"nodes": 7}}
    assert send(restored.cluster, "PATCH", f"{PATH}/status", status, MERGE).code == 200
    wait_until_in_use(restored, apply_fabrics(restored.cluster, changed(400)))
    after = [replica.metric("rdma_webhook_config_loads_total") for replica in replicas(restored)]
    assert after == [count + 1 for count in counts]


def test_an_unusable_object_leaves_the_last_good_fabrics_in_use(
    restored: Webhook, lab: ChangingNamespace
) -> None:
    """Each replica reports it where people look: `/readyz`, a metric, Events about the object."""
    used = lab.ask().status["config"]
    bypass(restored, unusable())
    until(lambda: not any(successful(replica) for replica in replicas(restored)))
    assert {lab.ask().status["config"] for _ in range(10)} == {used}
    for replica in replicas(restored):
        status, lines = replica.get("/readyz")
        assert (status, "still in use, because a newer one cannot be used: " in lines) == (
            200,
            True,
        )
    event_created(restored.cluster, "NotUsable", "spec.fabrics[0].resources[0].name")
    event_created(restored.cluster, "LastGoodInUse")

    config = apply_fabrics(restored.cluster, changed(200))
    wait_until_in_use(restored, config)
    assert all(successful(replica) for replica in replicas(restored))
    assert {lab.ask().status["config"] for _ in range(10)} == {config}


def test_without_fabrics_the_error_for_a_pod_names_what_to_apply(
    restored: Webhook, lab: ChangingNamespace
) -> None:
    """From kubectl, and in the events of a Job; replicas stay ready, and other pods pass."""
    restored.cluster.kubectl("delete", OBJECT)
    wait_until_in_use(restored, "")
    refusal = lab.ask().refusal
    assert refusal.startswith('Internal error occurred: failed calling webhook "pods.rdma.lab": ')
    assert refusal.endswith(f"{NO_FABRICS_MESSAGE}{NO_OBJECT}")
    printed = lab.kubectl("create", "--filename=-", input=json.dumps(_pod(lab)), check=False)
    assert f"{NO_FABRICS_MESSAGE}{NO_OBJECT}" in printed
    assert "Error from server (InternalError)" in printed
    plain = _pod(lab)
    del plain["metadata"]["annotations"]
    lab.kubectl("create", "--dry-run=server", "--filename=-", input=json.dumps(plain))

    lab.kubectl("create", "--filename=-", input=json.dumps(_job(lab)))
    until(lambda: f"{NO_FABRICS_MESSAGE}{NO_OBJECT}" in _events(lab, "Job"))
    for replica in replicas(restored):
        status, lines = replica.get("/readyz")
        assert (status, f"[+] configuration: {NO_OBJECT}\n" in lines) == (200, True)
        assert replica.metric("rdma_webhook_configured") == 0
    event_created(restored.cluster, "NothingInUse", "kubectl apply -f fabrics.yaml")

    wait_until_in_use(restored, apply_fabrics(restored.cluster, USABLE))
    until(lambda: "SuccessfulCreate" in _events(lab, "Job"))  # tried again by its controller


def test_the_kind_goes_and_comes_back(
    restored: Webhook, lab: ChangingNamespace, tmp_path: Path
) -> None:
    """Without the kind, all is as without the object, except that the text names the definition.

    It is the same if the program is installed before the kind. An object cannot be applied then.
    """
    restored.cluster.kubectl("delete", KIND)
    wait_until_in_use(restored, "")
    until(lambda: lab.ask().refusal.endswith(f"{NO_FABRICS_MESSAGE}{NO_KIND}"))
    assert {replica.get("/readyz")[0] for replica in replicas(restored)} == {200}
    afresh = ("apply", f"--cache-dir={tmp_path}", "--filename=-")  # kubectl remembers kinds
    printed = restored.cluster.kubectl(*afresh, input=USABLE, check=False)
    assert 'no matches for kind "FabricConfiguration" in version "rdma.lab/v1alpha1"' in printed
    define(restored.cluster)
    config = apply_fabrics(restored.cluster, USABLE)
    wait_until_in_use(restored, config)
    assert config == hash_of(yaml.safe_load(USABLE))
    assert lab.ask().status["config"] == config


def _pod(lab: ChangingNamespace) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "example.com/none"}]}
    metadata = {
        "name": "asks",
        "namespace": lab.name,
        "annotations": {"rdma.lab/enable": "true"},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _job(lab: ChangingNamespace) -> dict[str, Any]:
    pod = _pod(lab)
    template = {
        "metadata": {"annotations": pod["metadata"]["annotations"]},
        "spec": {**pod["spec"], "restartPolicy": "Never"},
    }
    metadata = {"name": "asks", "namespace": lab.name}
    spec = {"template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _events(lab: ChangingNamespace, kind: str) -> str:
    events = lab.kubectl("get", "events", f"--field-selector=involvedObject.kind={kind}", "-o=json")
    return "\n".join(
        f"{event['reason']} {event['message']}" for event in json.loads(events)["items"]
    )
