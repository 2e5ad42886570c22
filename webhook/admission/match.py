"""Would the API server call us for this pod? What our webhook configuration says, emulated.

    namespaceSelector   rdma.lab/enable: "true", and none of the namespaces left out
    matchConditions     the annotation rdma.lab/enable is there and not "false";
                        no mirror pod, no Windows pod

The order is the API server's: the namespace first, then the conditions. Labels that
nobody told us make the answer unknown (None), unless something else settles it.
"""

from __future__ import annotations

from typing import Any

from webhook.decision.annotations import ENABLE
from webhook.decision.facts import LABEL, NamespaceFacts
from webhook.pod.manifest import PodManifest, at

#: Where this webhook itself runs; it must never wait for itself.
OWN_NAMESPACE = "rdma-webhook"
EXCLUDED = frozenset({"kube-system", "kube-public", "kube-node-lease", OWN_NAMESPACE})
#: Set by the kubelet on the API server's image of a static pod.
MIRROR = "kubernetes.io/config.mirror"


def called(pod: PodManifest, namespace: NamespaceFacts) -> tuple[bool | None, str]:
    """Return whether the API server would call us (None: not known), and a sentence why.

    Never raises: what is not a pod's shape counts as absent.
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
    """Return which of the matchConditions fails, as a sentence; "" where none does."""
    annotations: Any = at(pod, ("metadata", "annotations"))
    if annotations.__class__ is not dict or annotations.get(ENABLE) is None:
        return f'the pod has no annotation {ENABLE}: "true"'
    if annotations[ENABLE] == "false":
        return f'the pod has the annotation {ENABLE}: "false"'
    if MIRROR in annotations:
        return "the pod is the mirror of a static pod"
    if at(pod, ("spec", "os", "name")) == "windows":
        return "the pod runs on Windows"
    return ""
