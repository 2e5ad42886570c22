"""Warn of what surrounds the pod's containers and concerns RDMA, whatever the fabric."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from webhook.decide.draft import Draft
from webhook.decide.scope import Scope
from webhook.model.decision import Reason
from webhook.model.networking import istio_sidecar, lacks_cluster_dns
from webhook.model.pod import flag
from webhook.model.volumes import infiniband_volumes, mounted_path

ISTIO = Reason(
    "IstioSidecar", "Istio's proxy intercepts the TCP connections between ranks.", rdma="unsure"
)
HOST_DNS = Reason(
    "HostNetworkDNS",
    "A pod with hostNetwork resolves Service names only with dnsPolicy: ClusterFirstWithHostNet.",
)
HOST_PATH = Reason(
    "HostPathDevices",
    "A hostPath shows RDMA devices; the container can open only those of a plugin's resource.",
)
SURROUNDINGS = (ISTIO, HOST_DNS, HOST_PATH)


class Surroundings(NamedTuple):
    """What was found around a pod's containers."""

    #: The evidence that Istio puts its proxy into the pod; "" if there is none.
    sidecar: str = ""
    #: The volumes that show RDMA devices of the node: name → the node's path.
    infiniband_volumes: Mapping[str, str] = MappingProxyType({})


def note_surroundings(draft: Draft, scope: Scope) -> Surroundings:
    """Warn of a sidecar, of DNS in the host's network, and of devices by hostPath.

    Return what was found, for the verdict.
    """
    pod = scope.original
    if not scope.targets and not scope.launchers:
        return Surroundings()
    sidecar = istio_sidecar(pod, scope.containers, scope.namespace.labels or {})
    if sidecar:
        message = f'Istio ({sidecar}) proxies the ranks\' TCP: sidecar.istio.io/inject: "false"'
        draft.warned("", ISTIO, message)
    if lacks_cluster_dns(pod):
        message = (
            "with hostNetwork, Service names resolve only with dnsPolicy: ClusterFirstWithHostNet"
        )
        draft.warned("", HOST_DNS, message)
    shown = infiniband_volumes(pod)
    for target in scope.targets if shown else ():
        where = mounted_path(pod, target.path, shown)
        if where and not flag(pod, (*target.path, "securityContext", "privileged")):
            message = f"hostPath {where} shows devices that only a device plugin's resource opens"
            draft.warned(target.name, HOST_PATH, message)
    return Surroundings(sidecar, shown)
