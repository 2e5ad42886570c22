"""An API server in memory: its objects by path, and the writes to them."""

from __future__ import annotations

import copy
import threading
from base64 import b64encode
from typing import Any

from certs.installation import Installation, WebhookConfiguration
from certs.pem import KeyPair

MUTATING = WebhookConfiguration(
    kind="MutatingWebhookConfiguration", name="zz-rdma-webhook", webhook="pods.rdma.lab"
)
VALIDATING = WebhookConfiguration(
    kind="ValidatingWebhookConfiguration", name="rdma-webhook", webhook="fabrics.rdma.lab"
)
INSTALLATION = Installation(
    namespace="rdma-webhook",
    service="rdma-webhook",
    ca_secret="rdma-webhook-ca",
    webhook_configurations=(MUTATING, VALIDATING),
)
SECRETS = "/api/v1/namespaces/rdma-webhook/secrets"
SECRET = f"{SECRETS}/rdma-webhook-ca"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CONFIGURATION = f"{ADMISSION}/mutatingwebhookconfigurations/zz-rdma-webhook"
VALIDATION = f"{ADMISSION}/validatingwebhookconfigurations/rdma-webhook"


class Objects:
    """The objects of an API server, with the methods that certificates need."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, Any]] = {}
        self.writes: list[tuple[str, str, dict[str, Any]]] = []
        self._lock = threading.Lock()
        self._stamp = 0
        #: The error of every request, if set.
        self.broken: Exception | None = None

    def configure(self, bundle: str | None = None) -> None:
        """Install both webhook configurations, as kubectl does."""
        self.install(MUTATING, bundle)
        self.install(VALIDATING, bundle)

    def install(self, configuration: WebhookConfiguration, bundle: str | None = None) -> None:
        """Install one webhook configuration, or replace it."""
        client: dict[str, Any] = {"service": {"name": "rdma-webhook"}}
        if bundle is not None:
            client["caBundle"] = bundle
        webhook = {"name": configuration.webhook, "clientConfig": client}
        self._store(configuration.path, {"metadata": {"uid": "7e57"}, "webhooks": [webhook]})

    @property
    def bundle(self) -> str:
        """Return the CAs that the API server trusts when it calls for pods."""
        return self.trusted(MUTATING)

    def trusted(self, configuration: WebhookConfiguration) -> str:
        """Return the CAs in a configuration; "" if there are none."""
        webhook = self.stored[configuration.path]["webhooks"][0]
        return str(webhook["clientConfig"].get("caBundle", ""))

    def read(self, path: str) -> dict[str, Any] | None:
        """Return a copy of an object."""
        self._answer()
        return copy.deepcopy(self.stored.get(path))

    def create(self, path: str, body: dict[str, Any]) -> bool:
        """Store an object, unless it exists."""
        self._answer()
        place = f"{path}/{body['metadata']['name']}"
        with self._lock:
            if place in self.stored:
                return False
            self.writes.append(("create", place, body))
            self._store(place, body)
        return True

    def _store(self, place: str, body: dict[str, Any]) -> None:
        self._stamp += 1
        metadata = {**body["metadata"], "resourceVersion": str(self._stamp)}
        before = self.stored.get(place)
        if before is None or before.get("webhooks") != body.get("webhooks"):
            metadata["generation"] = self._stamp
        self.stored[place] = copy.deepcopy({**body, "metadata": metadata})

    def replace(self, path: str, body: dict[str, Any]) -> bool:
        """Store an object, if it was made from the stored version."""
        self._answer()
        with self._lock:
            stored = self.stored.get(path)
            if stored is None or _identity(stored)[1] != _identity(body)[1]:
                return False
            self.writes.append(("replace", path, body))
            self._store(path, body)
        return True

    def apply(self, path: str, body: dict[str, Any]) -> bool:
        """Merge the webhook's client configuration by its name, as the API server does."""
        self._answer()
        with self._lock:
            self.writes.append(("apply", path, body))
            stored = copy.deepcopy(self.stored.get(path))
            if stored is None or _identity(stored) != _identity(body):
                return False
            for mine in body["webhooks"]:
                for theirs in stored["webhooks"]:
                    if theirs["name"] == mine["name"]:
                        theirs["clientConfig"].update(mine["clientConfig"])
            self._store(path, stored)
        return True

    def _answer(self) -> None:
        if self.broken is not None:
            raise self.broken


def _identity(body: dict[str, Any]) -> tuple[object, object]:
    metadata = body.get("metadata") or {}
    return metadata.get("uid"), metadata.get("resourceVersion")


def secret_of(ca: KeyPair, **changes: Any) -> dict[str, Any]:
    """Make a CA's Secret."""
    data = {"ca.crt": ca.certificate, "ca.key": ca.key}
    encoded = {key: b64encode(value).decode() for key, value in data.items()}
    return {"data": {**encoded, **changes}}
