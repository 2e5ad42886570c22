"""What in a pod's manifest concerns its network, besides interfaces and devices."""

from __future__ import annotations

from collections.abc import Mapping

from webhook.model.pod import Container, PodManifest, mapping

#: On a pod, a label or the older annotation; `false` keeps the namespace's injection away.
_INJECT = "sidecar.istio.io/inject"
#: Labels of a namespace by which Istio injects its sidecar into all pods.
_NAMESPACE = {"istio-injection": "enabled"}
_PROXY = "istio-proxy"
#: Policies by which names of Services resolve in the host's network, or as the user spells out.
_RESOLVING = ("ClusterFirstWithHostNet", "None")


def istio_sidecar(
    pod: PodManifest, containers: tuple[Container, ...], namespace: Mapping[str, str]
) -> str:
    """Name the evidence that Istio puts its proxy into a pod; return "" if there is none.

    `namespace` are the namespace's labels. The proxy takes over all TCP connections of the pod,
    also those between ranks. Source: Istio, pkg/kube/inject/inject.go, injectRequired.
    """
    if any(one.name == _PROXY for one in containers):
        return f"container {_PROXY}"
    for field in ("labels", "annotations"):
        value = mapping(pod, ("metadata", field)).get(_INJECT)
        if value is not None:
            return f"{field[:-1]} {_INJECT}" if value == "true" else ""
    for label, value in _NAMESPACE.items():
        if namespace.get(label) == value:
            return f"namespace label {label}"
    return ""


def lacks_cluster_dns(pod: PodManifest) -> bool:
    """Return whether the pod is in the host's network, and names of Services do not resolve there.

    With hostNetwork, the kubelet reads `ClusterFirst`, the default, as `Default`, the node's DNS.
    """
    spec = mapping(pod, ("spec",))
    return spec.get("hostNetwork") is True and spec.get("dnsPolicy") not in _RESOLVING
