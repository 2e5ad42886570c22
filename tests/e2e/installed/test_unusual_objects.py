"""Objects that the API server accepts, and that other programs cannot read."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Iterator

import pytest

from tests.cluster.install import NAME, Webhook
from tests.e2e.documents import Document
from tests.e2e.installed.test_stolen_token import LEASE, SECRETS, Thief
from tests.e2e.wire import JSON
from tests.waiting import until

SECRET = f"{SECRETS}/{NAME}-ca"
GARBAGE = b64encode(b"garbage").decode()
#: More levels than JSON readers of Python read, in less than the guards allow for an entry.
LEVELS = 1_500


@pytest.fixture(autouse=True)
def depth() -> Iterator[None]:
    """Let this process write such a depth."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + 10 * LEVELS)
    yield
    sys.setrecursionlimit(before)


def _deep_entry(version: str) -> Document:
    fields: Document = {}
    for _ in range(LEVELS):
        fields = {"f:a": fields}
    identity = {"manager": NAME, "operation": "Update", "apiVersion": version}
    return {**identity, "fieldsType": "FieldsV1", "fieldsV1": fields}


def test_a_deep_entry_does_not_keep_replicas_from_the_lease(webhook: Webhook) -> None:
    """They read the Lease, and replace the entry at the next renewal."""
    thief = Thief(webhook)

    def deepen() -> bool:
        lease = thief.send("GET", LEASE).object
        lease["spec"]["holderIdentity"] = thief.pod
        lease["metadata"]["managedFields"] = [_deep_entry("coordination.k8s.io/v1")]
        response = thief.request("PUT", f"{LEASE}?fieldManager={NAME}", lease, JSON)
        assert response.code in {200, 409}, response.refusal  # 409: a replica has just renewed it
        return response.code == 200

    until(deepen)
    deepened = thief.send("GET", LEASE).object["spec"]
    until(lambda: thief.send("GET", LEASE).object["spec"]["renewTime"] > deepened["renewTime"])


def test_a_deep_entry_does_not_keep_replicas_from_the_secret(webhook: Webhook) -> None:
    """They restore the CA that a thief has removed."""
    thief = Thief(webhook)
    before = thief.secret()["data"]

    def deepen() -> bool:
        secret = thief.secret()
        secret["data"] = {"ca.crt": GARBAGE, "ca.key": GARBAGE}
        secret["metadata"]["managedFields"] = [_deep_entry("v1")]
        response = thief.request("PUT", f"{SECRET}?fieldManager={NAME}", secret, JSON)
        assert response.code in {200, 409}, response.refusal  # 409: a replica has just written it
        return response.code == 200

    until(deepen)
    until(lambda: thief.secret()["data"].get("ca.crt") == before["ca.crt"])


def test_an_amount_beyond_all_numbers_does_not_end_the_watch_of_nodes(webhook: Webhook) -> None:
    """The API server accepts it from a kubelet; replicas still see that node, and all others."""
    cluster = webhook.cluster
    count = len(cluster.kubectl("get", "nodes", "--output=name").split())
    (name,) = cluster.fake_nodes(1, {}, {"example.com/odd": "1e30"})
    try:
        for replica in webhook.replicas():
            line = f"[+] nodes: {count + 1} nodes, last"
            until(lambda replica=replica, line=line: line in webhook.ask(replica, "/readyz"))  # type: ignore[misc]
            assert "still in use" not in webhook.ask(replica, "/readyz")
    finally:
        cluster.kubectl("delete", "node", name)
