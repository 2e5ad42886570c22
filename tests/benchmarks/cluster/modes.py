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
_ADMISSION = "admissionregistration.k8s.io/v1"
_SHIPPED = Path(__file__).parents[3] / "manifests" / "base" / "admission" / "webhook.yaml"


@dataclass(frozen=True)
class Mode:
    """One way of admission."""

    key: str
    title: str
    #: The port of its server on the node; 0 if it has none.
    port: int = 0
    #: Whether it makes the same changes to the pod as our webhook.
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
POLICY = Mode("policy", "a MutatingAdmissionPolicy, two variables")

#: Ours is between the modes that it is compared with: neighbors in time have similar conditions.
MODES = (NONE, NOOP, RAW, OURS, FASTAPI, POLICY)


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


def registrations(address: str, ca: bytes) -> list[Document]:
    """Return the objects that register the webhooks, at this address, and the policy."""
    webhooks = [_webhook(mode, address, ca) for mode in MODES if mode.port]
    return [*webhooks, *_policy()]


def _webhook(mode: Mode, address: str, ca: bytes) -> Document:
    """Return the shipped configuration with this address; other modes have their own label."""
    shipped: Document = yaml.safe_load(_SHIPPED.read_text())
    webhook = shipped["webhooks"][0]
    assert webhook["name"] == OURS_NAME
    webhook["clientConfig"] = {
        "url": f"https://{address}:{mode.port}/mutate",
        "caBundle": base64.b64encode(ca).decode(),
    }
    if mode is not OURS:
        shipped["metadata"] = {"name": mode.namespace}
        webhook["name"] = mode.webhook
        webhook["namespaceSelector"] |= _selector(mode)
    return shipped


def _policy() -> list[Document]:
    """Return a policy of the cheaper kind, a JSON patch, and its binding.

    A patch with a list as its value makes Kubernetes 1.36.3 panic in the request; these do not.
    """
    name = {"metadata": {"name": POLICY.namespace}}
    added = f"e.name == '{VARIABLES[0]}'"
    matches = {
        "namespaceSelector": _selector(POLICY),
        "resourceRules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
            }
        ],
    }
    policy = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": matches,
        # A second call must not add them again.
        "matchConditions": [
            {
                "name": "not-yet",
                "expression": f"!object.spec.containers[0].env.exists(e, {added})",
            }
        ],
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": f"[{', '.join(map(_added, VARIABLES))}]"},
            }
        ],
    }
    kind = "MutatingAdmissionPolicy"
    binding = {"policyName": POLICY.namespace}
    return [
        {"apiVersion": _ADMISSION, "kind": kind, **name, "spec": policy},
        {"apiVersion": _ADMISSION, "kind": f"{kind}Binding", **name, "spec": binding},
    ]


#: The variables that the policy adds to the first container.
VARIABLES = ("NCCL_IB_HCA", "NCCL_SOCKET_IFNAME")


def _added(variable: str) -> str:
    value = f"Object.spec.containers.env{{name: '{variable}', value: 'mlx5_0'}}"
    return f"JSONPatch{{op: 'add', path: '/spec/containers/0/env/-', value: {value}}}"


def _selector(mode: Mode) -> Document:
    return {"matchLabels": {_LABEL: mode.key}}
