"""The modes to compare: ways for an API server to admit a pod, each in its own namespace.

All are registered at once; each selects its namespace by a label, so one mode applies to a pod.
Our webhook selects by the label that it ships with, which no other namespace has.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Document = dict[str, Any]

#: The name of our webhook in the shipped manifests.
OURS_NAME = "pods.rdma.lab"
_LABEL = "rdma.lab/benchmark"
_ENABLE = "rdma.lab/enable"
ADMISSION = "admissionregistration.k8s.io/v1"
_SHIPPED = Path(__file__).parents[3] / "manifests" / "base" / "admission" / "webhook.yaml"


@dataclass(frozen=True)
class Mode:
    """One way of admission."""

    key: str
    title: str
    #: The port of its server on the node; 0 if it has none.
    port: int = 0
    #: The path of its webhook there.
    path: str = "/mutate"
    #: Whether it makes the same changes to the pod as our webhook; Gatekeeper's lack the removal.
    same_patch: bool = False

    @property
    def namespace(self) -> str:
        """The namespace where only this mode applies to pods."""
        return f"bench-{self.key}"

    @property
    def webhook(self) -> str:
        """Its name in the API server's metrics."""
        return OURS_NAME if self is OURS else f"{self.key}.benchmark.rdma.lab"


NONE = Mode("none", "no webhook")
NOOP = Mode("noop", "a FastAPI webhook that only allows", port=9001)
RAW = Mode("raw", "a bare ASGI webhook, constant patch", port=9002, same_patch=True)
OURS = Mode("ours", "rdma-webhook", port=8443, same_patch=True)
FASTAPI = Mode("fastapi", "a FastAPI webhook, constant patch", port=9003, same_patch=True)
POLICY = Mode("policy", "a MutatingAdmissionPolicy, constant patch", same_patch=True)
GATEKEEPER = Mode(
    "gatekeeper", "Gatekeeper's mutation", port=9004, path="/v1/mutate", same_patch=True
)

#: Ours is between the modes that it is compared with: neighbors in time have similar conditions.
MODES = (NONE, NOOP, RAW, OURS, FASTAPI, POLICY, GATEKEEPER)


def namespaces() -> list[Document]:
    """Return the namespaces of all modes."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": mode.namespace,
                "labels": {_ENABLE: "true"} if mode is OURS else {_LABEL: mode.key},
            },
        }
        for mode in MODES
    ]


def webhooks(address: str, ca: bytes) -> list[Document]:
    """Return the shipped configuration for each mode with a server, with its address and label."""
    return [_webhook(mode, address, ca) for mode in MODES if mode.port]


def _webhook(mode: Mode, address: str, ca: bytes) -> Document:
    webhook = shipped_webhook()
    webhook["clientConfig"] = {
        "url": f"https://{address}:{mode.port}{mode.path}",
        "caBundle": base64.b64encode(ca).decode(),
    }
    if mode is not OURS:
        webhook["name"] = mode.webhook
        webhook["namespaceSelector"] |= selector(mode)
    return {
        "apiVersion": ADMISSION,
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": mode.namespace},
        "webhooks": [webhook],
    }


def shipped_webhook() -> Document:
    """Return our webhook as it is in the shipped configuration."""
    (webhook,) = yaml.safe_load(_SHIPPED.read_text())["webhooks"]
    assert webhook["name"] == OURS_NAME
    shipped: Document = webhook
    return shipped


def selector(mode: Mode) -> Document:
    """Return the labels to select a mode's namespace by."""
    return {"matchLabels": {_LABEL: mode.key}}
