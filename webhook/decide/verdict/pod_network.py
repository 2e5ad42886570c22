"""The network: whether the pod is in the network that its fabric's mode needs."""

from __future__ import annotations

from webhook.decide.examine import HOST_NETWORK_MISSING
from webhook.decide.mutations.networks import MUTATION as NETWORKS
from webhook.decide.surroundings import ISTIO
from webhook.decide.verdict.judged_pod import Seen
from webhook.model.decision import Reason, Verdict
from webhook.model.fabric import OWN_DEVICE, Fabric

HOST_NETWORK_WRONG = Reason(
    "HostNetworkWrong",
    "The pod has hostNetwork: true, and the fabric's devices reach only a pod's own network.",
    rdma="no",
)
ROCE_WITHOUT_NETWORKS = Reason(
    "RoceWithoutNetworks",
    "A RoCE device is shared and the fabric has no networks: with OFED's drivers the pod sees no"
    " GID, with the kernel's own it uses the host's.",
    rdma="unsure",
)
NETWORKS_NOT_ADDED = Reason(
    "NetworksNotAdded", "The fabric's networks could not be appended to the pod's.", rdma="unsure"
)
POD_NETWORK_REASONS = (HOST_NETWORK_WRONG, ROCE_WITHOUT_NETWORKS, NETWORKS_NOT_ADDED)


def judge_pod_network(seen: Seen) -> Verdict | None:
    """Return what is wrong with the pod's network, None if nothing is."""
    fabric = seen.fabric
    return (_of_mode(seen, fabric) if fabric is not None else None) or _of_sidecar(seen)


def _of_sidecar(seen: Seen) -> Verdict | None:
    sidecar = seen.around.sidecar
    if not sidecar:
        return None
    # Short, since a warning is cut after 120 characters.
    message = f'Istio ({sidecar}) proxies TCP: set sidecar.istio.io/inject: "false"'
    return Verdict.of(ISTIO, message)


def _of_mode(seen: Seen, fabric: Fabric) -> Verdict | None:
    if seen.standing.lacks_host_network:
        message = f"fabric {fabric.name} needs hostNetwork: true, which the pod lacks"
        return Verdict.of(HOST_NETWORK_MISSING, message)
    if seen.scope.host_network:
        return _of_host_network(fabric)
    networks = bool(fabric.networks) or any(one.network for one in fabric.resources)
    if networks:
        return _if_not_added(seen)
    if fabric.link_layer == "Ethernet" and fabric.mode == "shared-device":
        where = f"RoCE fabric {fabric.name} has no networks"
        message = f"{where}: whether pods see GIDs depends on the driver"
        return Verdict.of(ROCE_WITHOUT_NETWORKS, message)
    return None


def _of_host_network(fabric: Fabric) -> Verdict | None:
    if fabric.mode not in OWN_DEVICE:
        return None
    message = (
        f"fabric {fabric.name} ({fabric.mode}) does not work with hostNetwork: true: remove it"
    )
    return Verdict.of(HOST_NETWORK_WRONG, message)


def _if_not_added(seen: Seen) -> Verdict | None:
    for one in seen.outcomes:
        if one.mutation == NETWORKS.name and one.status == "skipped" and not one.reason.quiet:
            message = f"the fabric's networks were not added: {one.message.removesuffix('.')}"
            return Verdict.of(NETWORKS_NOT_ADDED, message)
    return None
