"""What NCCL and UCX need, besides the remap, to use NVLink between two pods on one node.

    needed                    by     because
    ------                    --     -------
    hostPID                   UCX    legacy CUDA IPC handles do not cross PID namespaces
                                     (openucx/ucx 12fe22840b)
    hostIPC, nothing at       NCCL   it compares st_dev of /dev/shm (p2p.cc), and containerd gives
      /dev/shm                       the node's /dev/shm only to a hostIPC pod without a mount there
    hostNetwork, or           NCCL   handles go over abstract sockets, which are local to a network
      2.29 and a shared /tmp         namespace; from 2.29 on, NCCL_IPC_USE_ABSTRACT_SOCKET=0 makes
                                     them files in /tmp (before, they are compiled in: ipcsocket.cc)
    an equal host hash        NCCL   hostnames differ between pods, unless they have hostNetwork

NCCL_HOSTID from the node's name makes the host hashes equal (nvidia/nccl#1781). It is written only
where all else is there: otherwise NCCL would leave InfiniBand for a connection that cannot be made.
A user whose `env` sets NCCL_IPC_USE_ABSTRACT_SOCKET=0 says that the pod's NCCL has that variable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webhook.decide.scope import Scope, Target
from webhook.model.container import env_of
from webhook.model.decision import Reason
from webhook.model.pod import PodManifest, at, flag, items
from webhook.model.volumes import VOLUMES, mount_at

HOST_ID = "NCCL_HOSTID"
ABSTRACT_SOCKET = "NCCL_IPC_USE_ABSTRACT_SOCKET"

HOST_PID = Reason("HostPIDMissing", "UCX shares GPU memory only within one PID namespace.")
HOST_IPC = Reason("HostIPCMissing", "The pod lacks hostIPC: true, which NCCL needs.")
SHM_MOUNT = Reason("SharedMemoryMounted", "Something is mounted at /dev/shm, which NCCL compares.")
SOCKETS = Reason("SocketsNotShared", "NCCL's sockets: the pods share no network namespace or /tmp.")
ENV_FROM = Reason("EnvFrom", f"envFrom may set {HOST_ID}, which would have to be set.")
#: All reasons of this module.
TRANSPORT_REASONS = (HOST_PID, HOST_IPC, SHM_MOUNT, SOCKETS, ENV_FROM)

_SHM, _TMP = "/dev/shm", "/tmp"  # noqa: S108 -- mount points
_NODE = {"fieldRef": {"fieldPath": "spec.nodeName"}}


def lacking(
    pod: PodManifest, scope: Scope, targets: list[Target]
) -> Iterator[tuple[str, Reason, str]]:
    """Yield what the pod or a container lacks: container ("" for the pod), reason, sentence."""
    if not flag(pod, ("spec", "hostPID")):
        yield "", HOST_PID, "without hostPID, UCX (and NIXL) cannot use NVLink between pods"
    if not flag(pod, ("spec", "hostIPC")):
        yield "", HOST_IPC, "without hostIPC, NCCL cannot use NVLink between pods"
    for target in targets:
        if mount_at(pod, target.path, _SHM) is not None:
            message = f"with a volume at {_SHM}, NCCL cannot use NVLink between pods"
            yield target.name, SHM_MOUNT, message
        if not scope.host_network and not _shares_sockets(pod, target):
            message = (
                f"NCCL needs hostNetwork, or 2.29, a hostPath at {_TMP} and {ABSTRACT_SOCKET}=0"
            )
            yield target.name, SOCKETS, message
        if _wants_host_id(pod, scope, target) and scope.env.has_env_from(target.path):
            yield target.name, ENV_FROM, f"envFrom may set {HOST_ID}: add it to env"


def host_id(pod: PodManifest, scope: Scope, target: Target) -> list[dict[str, Any]]:
    """Return NCCL_HOSTID as an item of `env`, if it helps and nothing in the pod sets it."""
    if not _wants_host_id(pod, scope, target) or scope.env.has_env_from(target.path):
        return []
    return [{"name": HOST_ID, "valueFrom": _NODE}]


def _wants_host_id(pod: PodManifest, scope: Scope, target: Target) -> bool:
    """Return whether NCCL_HOSTID is all that NCCL lacks; with hostNetwork hostnames are equal."""
    return (
        not scope.host_network
        and flag(pod, ("spec", "hostIPC"))
        and mount_at(pod, target.path, _SHM) is None
        and _shares_sockets(pod, target)
        and HOST_ID not in env_of(pod, target.path)
    )


def _shares_sockets(pod: PodManifest, target: Target) -> bool:
    """Return whether NCCL's sockets are files in the node's /tmp."""
    if env_of(pod, target.path).get(ABSTRACT_SOCKET) != "0":
        return False
    mount = mount_at(pod, target.path, _TMP)
    if mount is None or mount.get("readOnly") is True:
        return False
    return any(
        volume.get("name") == mount.get("name") and at(volume, ("hostPath", "path")) is not None
        for volume in items(pod, VOLUMES)
    )
