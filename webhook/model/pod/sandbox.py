"""The sandbox of a pod: the parts of its network and container runtime that affect RDMA."""

from __future__ import annotations

import re
from collections.abc import Mapping

from webhook.model.json import Json
from webhook.model.names import MAX_SUBDOMAIN_LENGTH
from webhook.model.pod.pod import Pod

#: On a pod, a label or the older annotation; `false` disables the namespace's injection.
_INJECT = "sidecar.istio.io/inject"
#: Labels of a namespace that make Istio inject its proxy into all pods.
_NAMESPACE = {"istio-injection": "enabled"}
_PROXY = "istio-proxy"
#: Policies with which names of Services resolve in the host's network, or as the user specifies.
_RESOLVING = ("ClusterFirstWithHostNet", "None")


def istio_evidence(pod: Pod, namespace: Mapping[str, str]) -> str:
    """Return the evidence that Istio injects its proxy into a pod, or "".

    `namespace` has the namespace's labels. The proxy takes over all TCP connections of the pod,
    even between ranks. Source: Istio, pkg/kube/inject/inject.go, injectRequired.
    """
    if _PROXY in [container.name for container in pod.containers]:
        return f"container {_PROXY}"
    field, value = "label", pod.labels.get(_INJECT)
    if value is None:
        field, value = "annotation", pod.annotations.get(_INJECT)
    if value is not None:
        return f"{field} {_INJECT}" if value == "true" else ""
    for label, value in _NAMESPACE.items():
        if namespace.get(label) == value:
            return f"namespace label {label}"
    return ""


def lacks_cluster_dns(pod: Pod) -> bool:
    """Return whether the pod uses the host's network, and names of Services do not resolve there.

    With hostNetwork, the kubelet reads `ClusterFirst`, the default, as `Default`, the node's DNS.
    """
    return pod.host_network and pod.spec.get("dnsPolicy") not in _RESOLVING


# The container runtime that a pod selects with `runtimeClassName`, as far as the name shows it.
#
# A RuntimeClass names a handler of the node; its own name is the site's choice, but the
# installers of gVisor and Kata Containers, and the clouds, use descriptive names.

#: `gvisor` (GKE Sandbox, gvisor.dev), `runsc`, and either with a suffix.
_GVISOR = re.compile(r"(gvisor|runsc)([.-].*)?")
#: `kata`, `kata-qemu-nvidia-gpu`, … (kata-deploy); `kata-vm-isolation`, `kata-cc-isolation` (AKS).
_KATA = re.compile(r"kata([.-].*)?")


def is_gvisor(name: Json) -> bool:
    """Return whether a pod with this runtimeClassName runs in gVisor, which has no RDMA devices."""
    return _matches(_GVISOR, name)


def is_kata(name: Json) -> bool:
    """Return whether a pod with this runtimeClassName runs in a Kata virtual machine.

    RDMA works there only with a NIC that is passed through (VFIO), which no pod field shows.
    """
    return _matches(_KATA, name)


def _matches(pattern: re.Pattern[str], name: Json) -> bool:
    return (
        isinstance(name, str)
        and len(name) <= MAX_SUBDOMAIN_LENGTH
        and pattern.fullmatch(name) is not None
    )
