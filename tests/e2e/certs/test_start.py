"""Self-managed certificates, with a real API server and the rights that the manifests grant."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from tests.e2e.certs.conftest import Start
from tests.e2e.certs.lab import CONFIGURATION, SERVER_NAME, Installation, all_ready
from tests.waiting import until

REPLICAS = 5


def test_replicas_that_start_at_once_are_all_trusted(lab: Installation, start: Start) -> None:
    """In an empty namespace there is one CA, one Secret, and the API server trusts every replica.

    They wait for the MutatingWebhookConfiguration, never make one, and own only its `caBundle`.
    """
    replicas = start(REPLICAS)
    missing = f"MutatingWebhookConfiguration {CONFIGURATION} does not exist yet"
    until(lambda: all(missing in replica.ready()[1] for replica in replicas))
    lab.configure()
    took = all_ready(replicas)

    bundle = lab.bundle
    until(lambda: lab.validating_bundle == bundle)
    assert bundle == lab.secret["data"]["ca.crt"]
    assert b64decode(bundle).count(b"BEGIN CERTIFICATE") == 1
    for replica in replicas:
        assert replica.handshake(bundle, SERVER_NAME)[0] == SERVER_NAME
    until(lab.patched)
    print(f"{REPLICAS} replicas at once: one CA, all trusted after {took:.1f} s")  # noqa: T201
    owned = {
        entry["manager"]: entry["fieldsV1"]["f:webhooks"]['k:{"name":"pods.rdma.lab"}']
        for entry in lab.published()["metadata"]["managedFields"]
    }
    ours: dict[str, Any] = {".": {}, "f:name": {}, "f:clientConfig": {"f:caBundle": {}}}
    assert owned["rdma-webhook"] == ours
