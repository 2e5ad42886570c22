"""Tell whether the API server would call us for a pod, by emulating our webhook configuration.

    namespaceSelector   rdma.lab/enable: "true", and not one of the excluded namespaces
    matchConditions     the annotation rdma.lab/enable is there and not "false";
                        not a mirror pod, not a Windows pod

The order is the API server's: first the namespace, then the conditions. If the namespace's labels
are unknown, so is the answer (None), unless something else decides it.
"""

from __future__ import annotations

from typing import Any

from webhook.decision.annotations import ENABLE
from webhook.decision.facts import LABEL, NamespaceFacts
from webhook.pod.manifest import PodManifest, at

#: The namespace that this webhook runs in; it must never wait for itself.
OWN_NAMESPACE = "rdma-webhook"
EXCLUDED = frozenset({"kube-system", "kube-public", "kube-node-lease", OWN_NAMESPACE})
#: The kubelet sets this on the mirror pod of a static pod in the API server.
MIRROR = "kubernetes.io/config.mirror"


def called(pod: PodManifest, namespace: NamespaceFacts) -> tuple[bool | None, str]:
    """Return whether the API server would call us (None if unknown), and a sentence that says why.

    Never raise: a field with a wrong type counts as absent.
    """
    obstacle = _excluded(namespace) or _condition(pod)
    if obstacle:
        return False, obstacle
    shown = f"namespace {namespace.name}" if namespace.name else "the namespace"
    if namespace.labels is None or not namespace.known:
        return None, f'the labels of {shown} are not known; it needs {LABEL}: "true"'
    value = namespace.labels.get(LABEL)
    if value != "true":
        found = "is not labelled" if value is None else f"has the label {LABEL}: {value!r:.80}"
        return False, f'{shown} {found}; it needs {LABEL}: "true"'
    return True, f"{shown} has the label and the pod the annotation {ENABLE}"


def _excluded(namespace: NamespaceFacts) -> str:
    if namespace.name in EXCLUDED:
        return f"namespace {namespace.name} is never touched"
    return ""


def _condition(pod: PodManifest) -> str:
    """Say which of the matchConditions fails; return "" if none does."""
    annotations: Any = at(pod, ("metadata", "annotations"))
    if not isinstance(annotations, dict) or annotations.get(ENABLE) is None:
        return f'the pod has no annotation {ENABLE}: "true"'
    if annotations[ENABLE] == "false":
        return f'the pod has the annotation {ENABLE}: "false"'
    if MIRROR in annotations:
        return "the pod is the mirror of a static pod"
    if at(pod, ("spec", "os", "name")) == "windows":
        return "the pod runs on Windows"
    return ""
