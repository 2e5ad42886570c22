"""The pod's settings: pinned memory, network and container runtime."""

from __future__ import annotations

from webhook.decide.admission_warnings import ISTIO
from webhook.decide.examine import HOST_NETWORK_MISSING
from webhook.decide.mutations.ipc_lock import (
    CAPABILITY,
    NON_ROOT,
    POD_SECURITY,
    RUN_AS_ROOT,
    USER_NAMESPACE,
    ineffective_reason,
    memlock_annotation_key,
)
from webhook.decide.mutations.networks import MUTATION as NETWORKS
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model.decision import Reason, Verdict
from webhook.model.fabric import MODES_WITH_OWN_DEVICE, Fabric
from webhook.model.images import non_root_user
from webhook.model.pod.sandbox import is_gvisor, is_kata

MEMLOCK_LIMITED = Reason(
    "MemlockLimited",
    (
        "A container has no effective IPC_LOCK, and neither the nodes nor an annotation raise "
        "memlock."
    ),
    remedy=RUN_AS_ROOT,
    rdma="no",
)
MEMLOCK_UNKNOWN = Reason(
    "MemlockUnknown",
    "A container has no effective IPC_LOCK, and whether the nodes raise memlock is unknown.",
    remedy=(
        f"{RUN_AS_ROOT} If the nodes already raise memlock, the configuration should have "
        "`memlock: unlimited` or `nri`."
    ),
    rdma="unsure",
)
IPC_LOCK_FORBIDDEN = Reason(
    "IpcLockForbidden",
    (
        "The namespace enforces a Pod Security level that forbids IPC_LOCK, and neither the nodes "
        "nor an annotation raise memlock."
    ),
    remedy=POD_SECURITY.remedy,
    rdma="no",
)
#: The obstacle of a container whose command changes to another user.
CHANGES_USER = "gives up root"
PINNED_MEMORY_REASONS = (MEMLOCK_LIMITED, MEMLOCK_UNKNOWN, IPC_LOCK_FORBIDDEN, POD_SECURITY)


def judge_pinned_memory(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the obstacle to registering memory in a target, or None.

    A container whose image alone names its user counts as root: see `assumes_root`.
    """
    obstacle, name = pinned_memory_obstacle(pod, patched), patched.target.name
    if not obstacle:
        return None
    memlock, subject = pod.analysis.configuration.defaults.memlock, f"container {name}"
    if memlock == "unlimited" or _is_raised(pod, name):
        return None
    unknown, limited, way_out = MEMLOCK_UNKNOWN, MEMLOCK_LIMITED, f": {_way_out(obstacle)}"
    if level := _forbidding_level(pod, obstacle):
        unknown, limited, way_out = POD_SECURITY, IPC_LOCK_FORBIDDEN, ""
        obstacle = f"lacks IPC_LOCK: Pod Security {level} of the namespace forbids it"
    if memlock == "unknown":
        return Verdict.of(unknown, f"{subject} {obstacle}{way_out}")
    nodes = "the nodes limit memlock" if memlock == "limited" else "no annotation raises memlock"
    return Verdict.of(limited, f"{subject} {obstacle}, and {nodes}")


def _is_raised(pod: PatchedPod, container: str) -> bool:
    """Return whether the nodes raise memlock by an annotation, and the pod has it."""
    is_read = pod.analysis.configuration.defaults.memlock == "nri"
    return is_read and bool(memlock_annotation_key(pod.view.annotations, container))


def _forbidding_level(pod: PatchedPod, obstacle: str) -> str:
    """Return the Pod Security level that is why IPC_LOCK is missing, "" if it is not.

    `restricted` also forbids to run as root, without which IPC_LOCK would have no effect.
    """
    level = pod.analysis.namespace.enforced_pod_security
    forbidden = (_LACKS, _INERT[NON_ROOT.code]) if level == "restricted" else (_LACKS,)
    return level if obstacle in forbidden else ""


def assumes_root(pod: PatchedPod, patched: PatchedTarget) -> bool:
    """Return whether a target can register memory only if its image runs as root."""
    memlock = pod.analysis.configuration.defaults.memlock
    if memlock == "unlimited" or patched.target.user != "image":
        return False
    return not _is_raised(pod, patched.target.name)


def pinned_memory_obstacle(pod: PatchedPod, patched: PatchedTarget) -> str:
    """Return the reason why IPC_LOCK does not help a target, "" if it helps."""
    target, container = patched.target, patched.container
    defaults = pod.analysis.configuration.defaults
    reason = ineffective_reason(pod.view, target, defaults)
    if reason is NON_ROOT and patched.settings.user is not None:
        return f"{CHANGES_USER} ({patched.settings.user.source})"
    if reason is NON_ROOT and target.user == "image":
        return f"has an image that runs as {non_root_user(container.image, defaults)}"
    if reason is not None:
        return _INERT[reason.code]
    if container.privileged or container.capabilities.grants(CAPABILITY):
        return ""
    return _DROPS if CAPABILITY in container.capabilities.dropped else _LACKS


def _way_out(obstacle: str) -> str:
    if obstacle.startswith(CHANGES_USER):
        return "let it keep root, or use nodes with LimitMEMLOCK=infinity"
    if obstacle != _DROPS:
        return "it needs nodes with LimitMEMLOCK=infinity"
    nodes = "use nodes whose containerd has LimitMEMLOCK=infinity"
    return f"remove it from capabilities.drop, or {nodes}"


_LACKS, _DROPS = f"lacks {CAPABILITY}", f"drops {CAPABILITY}"
_INERT = {
    USER_NAMESPACE.code: "has a user namespace (hostUsers: false)",
    NON_ROOT.code: "does not run as root",
}


# The network: whether the pod is in the network that its fabric's mode requires.

HOST_NETWORK_WRONG = Reason(
    "HostNetworkWrong",
    "The pod has hostNetwork: true, but the fabric's devices work only in a pod's own network.",
    remedy=(
        "Remove hostNetwork: true from the pod, or choose a fabric that works in the host network "
        "with the annotation rdma.lab/fabric."
    ),
    rdma="no",
)
ROCE_WITHOUT_NETWORKS = Reason(
    "RoceWithoutNetworks",
    "A RoCE device is shared, and the fabric has no networks: with OFED drivers, the pod sees no "
    "GID; with the kernel's own drivers, it uses the node's GIDs.",
    remedy=(
        "Ask the cluster administrator to configure a secondary network (`networks`). Until then, "
        "check NCCL's log for NET/IB: rdma-webhook why POD --logs."
    ),
    rdma="unsure",
)
NETWORKS_NOT_ADDED = Reason(
    "NetworksNotAdded",
    "The fabric's networks could not be appended to the pod's.",
    remedy=(
        "Correct the pod's annotation k8s.v1.cni.cncf.io/networks so that Multus can read it, or "
        "remove it; then create the pod again."
    ),
    rdma="unsure",
)
POD_NETWORK_REASONS = (HOST_NETWORK_WRONG, ROCE_WITHOUT_NETWORKS, NETWORKS_NOT_ADDED)


def judge_pod_network(pod: PatchedPod) -> Verdict | None:
    """Return the problem with the pod's network, or None."""
    fabric = pod.used_fabric
    return (_mode_verdict(pod, fabric) if fabric is not None else None) or _istio_verdict(pod)


def _istio_verdict(pod: PatchedPod) -> Verdict | None:
    istio = pod.hazard_evidence.istio
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
    networks = bool(fabric.networks) or any(resource.network for resource in fabric.resources)
    if networks:
        return _if_not_added(pod)
    if fabric.link_layer == "Ethernet" and fabric.mode == "shared-device":
        problem = f"RoCE fabric {fabric.name} has no networks"
        message = f"{problem}: whether pods see GIDs depends on the driver"
        return Verdict.of(ROCE_WITHOUT_NETWORKS, message)
    return None


def _host_network_verdict(fabric: Fabric) -> Verdict | None:
    if fabric.mode not in MODES_WITH_OWN_DEVICE:
        return None
    message = (
        f"fabric {fabric.name} ({fabric.mode}) does not work in the host network: remove "
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
    "gVisor's kernel has no RDMA devices.",
    remedy="Remove runtimeClassName, or choose a class that is not gVisor.",
    rdma="no",
)
KATA = Reason(
    "KataSandbox",
    "In a Kata virtual machine, only a passed-through NIC works.",
    remedy=(
        "Remove runtimeClassName, or ask the cluster administrator whether Kata virtual machines "
        "get a NIC of their own."
    ),
    rdma="unsure",
)
SANDBOX_REASONS = (GVISOR, KATA)


def judge_pod_sandbox(pod: PatchedPod) -> Verdict | None:
    """Return the obstacle to RDMA in the pod's runtimeClassName, or None."""
    name = pod.view.runtime_class
    if is_gvisor(name):
        message = (
            f"runtimeClassName {name} is gVisor, which has no RDMA devices: remove runtimeClassName"
        )
        return Verdict.of(GVISOR, message)
    if is_kata(name):
        message = f"runtimeClassName {name} is Kata, where only a passed-through NIC works"
        return Verdict.of(KATA, message)
    return None
