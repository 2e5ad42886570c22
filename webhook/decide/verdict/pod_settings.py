"""The pod's settings: network and container runtime."""

from __future__ import annotations

from webhook.decide.admission_warnings import ISTIO
from webhook.decide.examine import HOST_NETWORK_MISSING
from webhook.decide.mutations.networks import MUTATION as NETWORKS
from webhook.decide.verdict.patched_pod import PatchedPod
from webhook.model.decision import Reason, Verdict
from webhook.model.fabric import MODES_WITH_OWN_DEVICE, Fabric
from webhook.model.pod.sandbox import is_gvisor, is_kata

# The network: whether the pod is in the network that its fabric's mode requires.

HOST_NETWORK_WRONG = Reason(
    "HostNetworkWrong",
    "The pod has hostNetwork: true, but the fabric's devices work only in a pod's own network "
    "namespace.",
    remedy=(
        "Remove hostNetwork: true from the pod, or set the annotation rdma.lab/fabric to a "
        "fabric that works in the host network."
    ),
    rdma="no",
)
ROCE_WITHOUT_NETWORKS = Reason(
    "RoceWithoutNetworks",
    "The fabric's RoCE devices are shared by pods, and the configuration lists no `networks` for "
    "the fabric. With OFED drivers, the pod sees no GID; with the kernel's own drivers, it uses "
    "the node's GIDs.",
    remedy=(
        "Ask the cluster administrator to configure a secondary network (`networks`). Until then, "
        "run `rdma-webhook why POD --logs`: `via NET/IB` in NCCL's log shows that NCCL uses RDMA."
    ),
    rdma="unsure",
)
NETWORKS_NOT_ADDED = Reason(
    "NetworksNotAdded",
    "The fabric's networks could not be added to the pod's annotations.",
    remedy=(
        "If Multus cannot read the pod's annotation k8s.v1.cni.cncf.io/networks, correct or remove "
        "it. If the pod's annotations leave no room for more (Kubernetes allows 256 KiB in total), "
        "shorten them. If the pod requests more than 256 devices, request fewer. Then create the "
        "pod again."
    ),
    rdma="unsure",
)
POD_NETWORK_REASONS = (HOST_NETWORK_WRONG, ROCE_WITHOUT_NETWORKS, NETWORKS_NOT_ADDED)


def judge_pod_network(pod: PatchedPod) -> Verdict | None:
    """Return the problem with the pod's network, or None."""
    fabric = pod.used_fabric
    return (_mode_verdict(pod, fabric) if fabric is not None else None) or _istio_verdict(pod)


def _istio_verdict(pod: PatchedPod) -> Verdict | None:
    istio = pod.hazards.istio
    if not istio:
        return None
    # Short, since a warning is cut after 120 characters.
    message = f'Istio ({istio}) proxies TCP; set sidecar.istio.io/inject: "false"'
    return Verdict.of(ISTIO, message)


def _mode_verdict(pod: PatchedPod, fabric: Fabric) -> Verdict | None:
    if pod.applicability.lacks_host_network:
        message = f"fabric {fabric.name} needs hostNetwork: true, which the pod lacks"
        return Verdict.of(HOST_NETWORK_MISSING, message)
    if pod.analysis.original.host_network:
        return _host_network_verdict(fabric)
    if _attaches_networks(fabric):
        return _if_not_added(pod)
    if _needs_networks(fabric):
        problem = f"RoCE fabric {fabric.name} has no networks"
        message = f"{problem}; whether pods see GIDs depends on the driver"
        return Verdict.of(ROCE_WITHOUT_NETWORKS, message)
    return None


def _attaches_networks(fabric: Fabric) -> bool:
    of_resources = any(resource.network for resource in fabric.resources)
    return bool(fabric.networks or fabric.annotations) or of_resources


def _works_in_any_network(fabric: Fabric) -> bool:
    """Return whether the device plugin alone brings the device, without an interface in the pod.

    EFA and InfiniBand have no GIDs that depend on the pod's interfaces. If the fabric has networks,
    or its mode is dra, then the devices are moved, and are missing in the host network.
    """
    if fabric.mode == "dra" or _attaches_networks(fabric):
        return False
    return fabric.transport == "libfabric" or fabric.link_layer == "InfiniBand"


def _needs_networks(fabric: Fabric) -> bool:
    """Return whether a pod sees a device's GIDs only through a secondary network: shared RoCE."""
    shared = fabric.mode == "shared-device" and fabric.transport != "libfabric"
    return shared and fabric.link_layer == "Ethernet"


def _host_network_verdict(fabric: Fabric) -> Verdict | None:
    if fabric.mode not in MODES_WITH_OWN_DEVICE or _works_in_any_network(fabric):
        return None
    message = (
        f"fabric {fabric.name} ({fabric.mode}) does not work in the host network; remove "
        "hostNetwork from the pod"
    )
    return Verdict.of(HOST_NETWORK_WRONG, message)


def _if_not_added(pod: PatchedPod) -> Verdict | None:
    for outcome in pod.outcomes:
        if (
            outcome.mutation == NETWORKS.name
            and outcome.status == "skipped"
            and outcome.reason.reportable
        ):
            message = f"the fabric's networks were not added, because {outcome.message}"
            return Verdict.of(NETWORKS_NOT_ADDED, message)
    return None


# The sandbox: whether the pod's container runtime gives a container access to RDMA devices.

GVISOR = Reason(
    "GvisorSandbox",
    "The pod's runtimeClassName chooses gVisor, whose kernel has no RDMA devices.",
    remedy="Remove runtimeClassName, or set it to a RuntimeClass that does not use gVisor.",
    rdma="no",
)
KATA = Reason(
    "KataSandbox",
    "The pod's runtimeClassName selects a Kata virtual machine, where RDMA works only with a "
    "passed-through NIC.",
    remedy=(
        "Ask the cluster administrator whether a NIC is passed through to Kata virtual machines. "
        "If not, remove runtimeClassName."
    ),
    rdma="unsure",
)
SANDBOX_REASONS = (GVISOR, KATA)


def judge_pod_sandbox(pod: PatchedPod) -> Verdict | None:
    """Return the obstacle to RDMA in the pod's runtimeClassName, or None."""
    name = pod.view.runtime_class
    if is_gvisor(name):
        message = (
            f"runtimeClassName {name} is gVisor, which has no RDMA devices; remove runtimeClassName"
        )
        return Verdict.of(GVISOR, message)
    if is_kata(name):
        message = f"runtimeClassName {name} is Kata, where only a passed-through NIC works"
        return Verdict.of(KATA, message)
    return None
