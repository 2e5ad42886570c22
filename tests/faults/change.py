"""Change and read objects behind the webhook's back; kubectl would take a second for each."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

from tests.cluster.install import NAME, Webhook
from tests.e2e.wire import send

SECRET = f"/api/v1/namespaces/{NAME}/secrets/{NAME}-ca"
CONFIGURATION = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/zz-{NAME}"


def delete(webhook: Webhook, path: str) -> None:
    """Delete an object."""
    send(webhook.cluster, "DELETE", path)


def patch(webhook: Webhook, path: str, *operations: dict[str, Any]) -> None:
    """Apply a JSON patch."""
    response = send(webhook.cluster, "PATCH", path, operations, "application/json-patch+json")
    assert not response.refusal, response.refusal


def authorities(webhook: Webhook) -> dict[str, str]:
    """Return the Secret's data; {} if there is no Secret."""
    secrets = json.loads(webhook.read(SECRET.rpartition("/")[0]))["items"]
    matches = [
        secret for secret in secrets if secret["metadata"]["name"] == SECRET.rpartition("/")[2]
    ]
    return dict(matches[0].get("data") or {}) if matches else {}


def trusted(webhook: Webhook) -> str:
    """Return `caBundle`, in base64."""
    (hook,) = json.loads(webhook.read(CONFIGURATION))["webhooks"]
    return str(hook["clientConfig"].get("caBundle", ""))


def count_of(bundle: str) -> int:
    """Return the number of certificates in it."""
    return b64decode(bundle).count(b"BEGIN CERTIFICATE")
