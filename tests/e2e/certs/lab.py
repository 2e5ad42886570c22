"""An installation whose replicas are processes of this machine, separate from the cluster's.

The processes are the endpoints of its Service, and its ServiceAccount has only the shipped rights.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.cluster import Cluster
from tests.integration.replica import Replica
from tests.integration.serving import pod
from tests.waiting import until
from webhook.kube.client import Client
from webhook.model.pod import read_mapping

Document = dict[str, Any]
RBAC = Path(__file__).parents[3] / "manifests" / "overlays" / "self-managed" / "rbac.yaml"
#: Replaces `rdma-webhook` in all names here.
NAME = "own-certificates"
SERVER_NAME = f"{NAME}.{NAME}.svc"
CONFIGURATION = f"zz-{NAME}"
#: The options that give `serve` and `certs` these names.
FLAGS = (
    "--service", NAME, "--ca-secret", f"{NAME}-ca", "--webhook-configuration", CONFIGURATION,
    "--validating-webhook-configuration", NAME,
)  # fmt: skip

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_PATH = f"{_ADMISSION}/mutatingwebhookconfigurations/{CONFIGURATION}"
_VALIDATING = f"{_ADMISSION}/validatingwebhookconfigurations/{NAME}"
PATHS = (_PATH, _VALIDATING)
_SECRET = f"/api/v1/namespaces/{NAME}/secrets/{NAME}-ca"
_PODS = f"/api/v1/namespaces/{NAME}-lab/pods"


class Installation:
    """The objects of the installation, as an administrator sees and breaks them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._api = Client(cluster.kubeconfig)

    @property
    def bundle(self) -> str:
        """The CAs that the API server trusts; "" if none."""
        return self._bundle(_PATH)

    @property
    def validating_bundle(self) -> str:
        """The CAs in the ValidatingWebhookConfiguration."""
        return self._bundle(_VALIDATING)

    def _bundle(self, path: str) -> str:
        client = self._read(path)["webhooks"][0]["clientConfig"]
        return str(client.get("caBundle", ""))

    @property
    def secret(self) -> Document:
        """The Secret of the CA; empty if it is missing."""
        return self._api.read(_SECRET) or {}

    def configure(self) -> None:
        """Install both webhook configurations."""
        self.apply(_configuration(), _validation())

    def delete_validating_configuration(self) -> None:
        """Delete the ValidatingWebhookConfiguration."""
        status, _ = self._api.send("DELETE", _VALIDATING)
        assert status == 200

    def trust(self, pem: bytes | None) -> None:
        """Replace `caBundle` in both configurations; None removes it."""
        bundle = {} if pem is None else {"caBundle": b64encode(pem).decode()}

        def change(configuration: Document) -> None:
            client = configuration["webhooks"][0]["clientConfig"]
            client.pop("caBundle", None)
            client |= bundle

        for path in PATHS:
            self._change(path, change)

    def delete(self, kind: str) -> None:
        """Delete the Secret or the configuration."""
        status, _ = self._api.send("DELETE", {"secret": _SECRET, "configuration": _PATH}[kind])
        assert status == 200

    def overwrite(self) -> None:
        """Write garbage into the Secret."""
        garbage = b64encode(b"garbage").decode()
        self._change(
            _SECRET, lambda secret: secret["data"].update(dict.fromkeys(secret["data"], garbage))
        )

    def freeze(self) -> None:
        """Make the Secret immutable."""
        self._change(_SECRET, lambda secret: secret.update(immutable=True))

    def _change(self, path: str, change: Callable[[Document], None]) -> None:
        """Change an object; try again if a replica has written it since it was read."""

        def is_changed() -> bool:
            document = self._read(path)
            change(document)
            return self._api.replace(path, document)

        until(is_changed)

    def patched(self) -> bool:
        """Dry-run a pod; return False if the API server could not reach the webhook."""
        manifest = deepcopy(pod())
        manifest["spec"]["containers"][0]["image"] = "example.com/trainer"
        status, answer = self._api.send(
            "POST", _PODS, manifest, "application/json", [("dryRun", "All")]
        )
        annotations = read_mapping(answer, ("metadata", "annotations"))
        return status == 201 and "rdma.lab/status" in annotations

    def lead_to(self, replicas: Sequence[Replica]) -> None:
        """Make these replicas the only endpoints of the Service."""
        self.cluster.kubectl("delete", "endpointslices", "--all", "-n", NAME)
        host = self.cluster.network.machine
        self.apply(_service(), *(_endpoint(replica, host) for replica in replicas))

    def apply(self, *objects: Document) -> None:
        """Apply objects."""
        self.cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(objects))

    def published(self) -> Document:
        """Return the configuration with the owners of its fields."""
        return self._read(_PATH)

    def validation(self) -> Document:
        """Return the ValidatingWebhookConfiguration with the owners of its fields."""
        return self._read(_VALIDATING)

    def _read(self, path: str) -> Document:
        document = self._api.read(path)
        assert document is not None
        return document


def all_ready(replicas: Sequence[Replica]) -> float:
    """Wait until all replicas are ready, and return how long it took."""
    return until(lambda: all(replica.ready()[0] == 200 for replica in replicas))


def _service() -> Document:
    """Write a Service without a selector: its endpoints are processes on this machine."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "namespace": NAME},
        "spec": {"ports": [{"name": "https", "port": 443}]},
    }


def _endpoint(replica: Replica, host: str) -> Document:
    port = replica.ports["mutate"]
    labels = {"kubernetes.io/service-name": NAME}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{NAME}-{port}", "namespace": NAME, "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [host]}],
        "ports": [{"name": "https", "port": port}],
    }


def _validation() -> Document:
    """Write a configuration for a kind that does not exist: it is there for its `caBundle`."""
    rule = {"apiGroups": [NAME], "apiVersions": ["v1"], "operations": ["CREATE"]}
    webhook = {
        "name": "fabrics.rdma.lab",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": {"name": NAME, "namespace": NAME, "path": "/validate"}},
        "rules": [{**rule, "resources": ["nothing"]}],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [webhook],
    }


def _configuration() -> Document:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    webhook = {
        "name": "pods.rdma.lab",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": {"name": NAME, "namespace": NAME, "path": "/mutate"}},
        "rules": [{**rule, "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": f"{NAME}-lab"}},
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": CONFIGURATION},
        "webhooks": [webhook],
    }
