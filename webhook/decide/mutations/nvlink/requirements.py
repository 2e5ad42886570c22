"""The requirements of the remap, which gives each container of a pod its own GPUs.

It needs a privileged container, which sees all GPUs of the node, and a command in the spec, since
the entrypoint of an image is unknown. Obstacles are: a choice of devices by the user, in `env` or
in the command; an sshd, whose children do not inherit CUDA_VISIBLE_DEVICES and would see all GPUs;
MIG and shared GPUs; and a ComputeDomain, where CUDA's fabric memory handles (IMEX) need none of
this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from webhook.decide.analysis import PodAnalysis, Target
from webhook.decide.fabric_variables import CHECK_ENV_FROM
from webhook.decide.shell.argv import remap_length
from webhook.model.decision import Reason
from webhook.model.pod import Container, Pod

NAMESPACE = Reason(
    "NamespaceNotAllowed",
    "The configuration does not list the pod's namespace in nvlink.allowNamespaces.",
    remedy="Ask the cluster administrator to add the namespace to nvlink.allowNamespaces.",
)
NO_GPU = Reason(
    "NVLinkWithoutGPU",
    "No container that needs RDMA has whole GPUs of its own.",
    remedy=(
        "To use NVLink between pods, request whole GPUs. Otherwise, remove the annotation "
        "rdma.lab/nvlink."
    ),
)
SHARED_GPU = Reason(
    "NVLinkSharedGPU",
    "A container that needs RDMA has MIG slices or shared GPUs.",
    remedy=(
        "To use NVLink between pods, request whole GPUs. Otherwise, remove the annotation "
        "rdma.lab/nvlink."
    ),
)
COMPUTE_DOMAIN = Reason(
    "ComputeDomain",
    "The pod uses a ComputeDomain, so its commands do not need the webhook's script rdma-remap.",
    remedy="",
)
NOT_PRIVILEGED = Reason(
    "NotPrivileged",
    "NVLink between pods needs privileged containers, but one of the pod's containers with GPUs "
    "is not privileged.",
    remedy="Add privileged: true to the securityContext of each container with GPUs.",
)
NO_COMMAND = Reason(
    "CommandMissing",
    "The spec of a container with GPUs has no command for the webhook's script rdma-remap to run.",
    remedy="Set the container's command in the pod's spec.",
)
OTHER_COUNT = Reason(
    "WrappedDifferently",
    "The command already runs through the webhook's script rdma-remap, but for a number of GPUs "
    "that differs from the container's request.",
    remedy=(
        "Remove the script from the command; the webhook then adds it for the right number of GPUs."
    ),
)
OWN_REMAP = Reason(
    "OwnRemap",
    "The container's command assigns CUDA_VISIBLE_DEVICES itself, so the webhook leaves the "
    "command unchanged.",
    remedy="",
)
SSHD = Reason(
    "RunsSshd",
    "The container runs or may run sshd. Processes that sshd starts do not inherit the "
    "CUDA_VISIBLE_DEVICES that the webhook's script sets, so they would see all GPUs of the node.",
    remedy=(
        "To use NVLink between pods, start the ranks without sshd. Otherwise, remove the "
        "annotation rdma.lab/nvlink."
    ),
)
DEVICES_SET = Reason(
    "VisibleDevicesSet",
    "The container's env selects or orders the CUDA devices, but the webhook's script "
    "rdma-remap must do that.",
    remedy="Remove CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER from env.",
)

#: All reasons against the remap.
OBSTACLES = (
    *(NAMESPACE, NO_GPU, SHARED_GPU, COMPUTE_DOMAIN, NOT_PRIVILEGED, NO_COMMAND),
    *(OTHER_COUNT, OWN_REMAP, SSHD, DEVICES_SET),
)
Obstacle = tuple[Reason, str]

_CLIQUE = "nvidia.com/gpu.clique"
_DEVICES = "CUDA_VISIBLE_DEVICES"
_DEVICE_NAMES = (_DEVICES, "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
#: An assignment in a shell, `env X=…`, or Python's `os.environ["X"] = …`; no comparison, no use.
_ASSIGNED = re.compile(rf"(?<![\w${{]){_DEVICES}(?:[\"']\][ ]?)?=(?!=)")


def obstacles(pod: Pod, analysis: PodAnalysis, targets: list[Target]) -> Iterator[Obstacle]:
    """Yield every missing requirement and every obstacle; nothing if the pod is ready."""
    if analysis.namespace.name not in analysis.configuration.nvlink_namespaces:
        yield NAMESPACE, f"namespace {analysis.namespace.name} is not in nvlink.allowNamespaces"
    for target in analysis.targets:
        if target.partial_gpu:
            yield SHARED_GPU, f"container {target.name} has MIG slices or shared GPUs"
    if not targets:
        yield NO_GPU, "no container has whole GPUs of its own"
    if _in_compute_domain(pod, analysis):
        yield (
            COMPUTE_DOMAIN,
            "the pod uses a ComputeDomain, so its commands do not need the script rdma-remap",
        )
    for target in targets:
        container = pod.container(target.path)
        yield from _container_obstacles(container, analysis, target)
        yield from _env_obstacles(container)


def _container_obstacles(
    container: Container, analysis: PodAnalysis, target: Target
) -> Iterator[Obstacle]:
    name, command = container.name, container.command
    prefix_length = remap_length(command)
    words = "\n".join(command[prefix_length:] + container.args)
    if not container.privileged:
        yield NOT_PRIVILEGED, f"container {name} is not privileged"
    if not command:
        yield NO_COMMAND, f"container {name} has no command in the pod's spec"
    elif prefix_length and command[prefix_length - 1] != str(target.gpus):
        yield (
            OTHER_COUNT,
            f"the command of {name} runs rdma-remap for {command[prefix_length - 1]} GPUs",
        )
    elif analysis.commands.runs_sshd(container.path):
        yield SSHD, f"container {name} runs sshd, whose children would see all GPUs"
    elif _DEVICES in words and _ASSIGNED.search(words):
        yield OWN_REMAP, f"the command of {name} assigns {_DEVICES} itself, and is left unchanged"


def _env_obstacles(container: Container) -> Iterator[Obstacle]:
    user_env = container.env
    for variable in _DEVICE_NAMES:
        if variable in user_env and user_env[variable] != "PCI_BUS_ID":
            yield DEVICES_SET, f"container {container.name} sets {variable}"


def _in_compute_domain(pod: Pod, analysis: PodAnalysis) -> bool:
    if any(claim.is_compute_domain for claim in analysis.claims):
        return True
    return _contains([pod.spec.get(field) for field in _PLACEMENT], _CLIQUE)


def _contains(value: object, text: str) -> bool:
    """Return whether a value is this text, or has it as a key or a value at any depth."""
    pending = [value]
    while pending:
        match pending.pop():
            case dict() as mapping:
                pending += [*mapping, *mapping.values()]
            case list() as values:
                pending += values
            case scalar if scalar == text:
                return True
    return False


_PLACEMENT = ("nodeSelector", "affinity", "topologySpreadConstraints")


# What NCCL and UCX need, besides the remap, to use NVLink between two pods on one node.
#
#   needed                    by     because
#   ------                    --     -------
#   hostPID                   UCX    CUDA takes the IPC handle of an equal PID for its own
#                                    (openucx/ucx 12fe22840b)
#   hostIPC, nothing at       NCCL   it compares st_dev of /dev/shm (p2p.cc), and containerd gives
#     /dev/shm                       the node's /dev/shm only to a hostIPC pod without a mount there
#   hostNetwork, or           NCCL   handles go over abstract sockets, which are local to a network
#     2.29 and a shared /tmp         namespace; from 2.29 on, NCCL_IPC_USE_ABSTRACT_SOCKET=0 makes
#                                    them files in /tmp (before, they are compiled in: ipcsocket.cc)
#   an equal host hash        NCCL   hostnames differ between pods, unless they have hostNetwork
#
# NCCL_HOSTID from the node's name makes the host hashes equal (nvidia/nccl#1781). It is written
# only if everything else is present: otherwise NCCL would leave InfiniBand for a connection that
# cannot be made. NCCL_IPC_USE_ABSTRACT_SOCKET=0 in the user's `env` means that the pod's NCCL has
# that variable.

HOST_ID = "NCCL_HOSTID"
ABSTRACT_SOCKET = "NCCL_IPC_USE_ABSTRACT_SOCKET"

HOST_PID = Reason(
    "HostPIDMissing",
    "The pod lacks hostPID: true, and UCX shares GPU memory only within one PID namespace.",
    remedy="To let UCX share GPU memory between pods, add hostPID: true.",
)
HOST_IPC = Reason(
    "HostIPCMissing",
    "The pod lacks hostIPC: true, which NCCL needs for NVLink between pods.",
    remedy="Add hostIPC: true to the pod.",
)
SHM_MOUNT = Reason(
    "SharedMemoryMounted",
    "A volume is mounted at /dev/shm, but for NVLink between pods, NCCL needs the node's own "
    "/dev/shm.",
    remedy="Remove the volume at /dev/shm.",
)
SOCKETS = Reason(
    "SocketsNotShared",
    "NCCL's sockets cannot connect the pods, which share neither a network namespace nor a /tmp "
    "where NCCL creates its sockets.",
    remedy=(
        "Add hostNetwork: true. If the pod cannot use the host's network, use NCCL 2.29 or newer, "
        f"mount a hostPath volume at /tmp, and set {ABSTRACT_SOCKET}=0 in env."
    ),
)
ENV_FROM = Reason(
    "EnvFrom",
    f"NCCL needs {HOST_ID}, which was not added, since envFrom may set it.",
    remedy=CHECK_ENV_FROM,
)
#: All reasons why NCCL or UCX cannot use NVLink between pods.
TRANSPORT_REASONS = (HOST_PID, HOST_IPC, SHM_MOUNT, SOCKETS, ENV_FROM)

_SHM, _TMP = "/dev/shm", "/tmp"  # noqa: S108 -- mount points
_NODE = {"fieldRef": {"fieldPath": "spec.nodeName"}}


def lacking(
    pod: Pod, analysis: PodAnalysis, targets: list[Target]
) -> Iterator[tuple[str, Reason, str]]:
    """Yield what the pod or a container lacks: container ("" for the pod), reason, sentence."""
    if not pod.host_pid:
        yield "", HOST_PID, "without hostPID, UCX (and NIXL) cannot use NVLink between pods"
    if not pod.host_ipc:
        yield "", HOST_IPC, "without hostIPC, NCCL cannot use NVLink between pods"
    for target in targets:
        if pod.container(target.path).mount_at(_SHM) is not None:
            message = f"with a volume at {_SHM}, NCCL cannot use NVLink between pods"
            yield target.name, SHM_MOUNT, message
        if not analysis.original.host_network and not _shares_sockets(pod, target):
            message = (
                f"without hostNetwork, use NCCL >= 2.29, a hostPath at {_TMP} "
                f"and {ABSTRACT_SOCKET}=0"
            )
            yield target.name, SOCKETS, message
        if _needs_host_id(pod, analysis, target) and analysis.containers[target.path].env_from:
            yield target.name, ENV_FROM, f"envFrom may set {HOST_ID}; add it to env"


def host_id(pod: Pod, analysis: PodAnalysis, target: Target) -> list[dict[str, object]]:
    """Return [NCCL_HOSTID] as items of `env`, if it helps and nothing in the pod sets it; or []."""
    if not _needs_host_id(pod, analysis, target) or analysis.containers[target.path].env_from:
        return []
    return [{"name": HOST_ID, "valueFrom": _NODE}]


def _needs_host_id(pod: Pod, analysis: PodAnalysis, target: Target) -> bool:
    """Return whether NCCL lacks only NCCL_HOSTID; with hostNetwork, hostnames are equal."""
    return (
        not analysis.original.host_network
        and pod.host_ipc
        and pod.container(target.path).mount_at(_SHM) is None
        and _shares_sockets(pod, target)
        and HOST_ID not in pod.container(target.path).env
    )


def _shares_sockets(pod: Pod, target: Target) -> bool:
    """Return whether NCCL's sockets are files in the node's /tmp."""
    container = pod.container(target.path)
    if container.env.get(ABSTRACT_SOCKET) != "0":
        return False
    mount = container.mount_at(_TMP)
    if mount is None or mount.get("readOnly") is True:
        return False
    return any(
        volume.name == mount.get("name") and volume.host_path is not None
        for volume in pod.volumes("hostPath")
    )
