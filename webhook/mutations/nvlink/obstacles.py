"""Find what keeps two pods on one node from reaching each other's GPUs over NVLink.

    needed                    because
    ------                    -------
    privileged                CUDA must see the other pod's GPUs
    a command in the spec     the entrypoint of an image is unknown, and cannot be wrapped
    hostIPC, nothing at       NCCL compares st_dev of /dev/shm (p2p.cc), and containerd gives
      /dev/shm                the node's /dev/shm only to a hostIPC pod without a mount there
    hostNetwork, or the       NCCL 2.29 and later passes memory handles over abstract sockets,
      node's /tmp and         which are local to a network namespace; with
      no abstract sockets     NCCL_IPC_USE_ABSTRACT_SOCKET=0 the sockets are files in /tmp

Obstacles are: a choice of devices by the user; an sshd, whose children do not inherit
CUDA_VISIBLE_DEVICES and would see all GPUs; MIG and shared GPUs; and a ComputeDomain, whose
fabric handles need none of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webhook.decision.outcome import Reason
from webhook.decision.scope import Scope, Target
from webhook.pod.container_env import env_of, has_env_from
from webhook.pod.manifest import PodManifest, at, flag, items, mapping, strings
from webhook.pod.volumes import VOLUMES, mount_at
from webhook.shelltext.argv import unwrap

HOST_ID = "NCCL_HOSTID"
ABSTRACT_SOCKET = "NCCL_IPC_USE_ABSTRACT_SOCKET"

NAMESPACE = Reason("NamespaceNotAllowed", "nvlink.allowNamespaces lacks the pod's namespace.")
NO_GPU = Reason("NoGPU", "No target has whole GPUs of its own.")
SHARED_GPU = Reason("SharedGPU", "A target has MIG slices or shared GPUs.")
COMPUTE_DOMAIN = Reason("ComputeDomain", "The pod uses a ComputeDomain, which does it better.")
HOST_IPC = Reason("HostIPCMissing", "The pod lacks hostIPC: true.")
NOT_PRIVILEGED = Reason("NotPrivileged", "A container with GPUs is not privileged.")
NO_COMMAND = Reason("CommandMissing", "A container with GPUs has no command in the spec.")
OTHER_COUNT = Reason("WrappedDifferently", "The command holds a remap for another number of GPUs.")
SSHD = Reason("RunsSshd", "Processes that sshd starts would see all GPUs of the node.")
SHM_MOUNT = Reason("SharedMemoryMounted", "Something is mounted at /dev/shm.")
DEVICES_SET = Reason("VisibleDevicesSet", "The user chooses CUDA's devices.")
ENV_FROM = Reason("EnvFrom", "envFrom may hold the variables that would have to be set.")
SOCKETS = Reason("SocketsNotShared", "The pods share neither a network namespace nor /tmp.")

#: All reasons of this module.
REASONS = (
    *(NAMESPACE, NO_GPU, SHARED_GPU, COMPUTE_DOMAIN, HOST_IPC, NOT_PRIVILEGED, NO_COMMAND),
    *(OTHER_COUNT, SSHD, SHM_MOUNT, DEVICES_SET, ENV_FROM, SOCKETS),
)
Obstacle = tuple[Reason, str]

_DOMAIN_WORDS = ("compute-domain", "computedomain", "imex")
_CLIQUE = "nvidia.com/gpu.clique"
_DEVICE_NAMES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
_SHM, _TMP = "/dev/shm", "/tmp"  # noqa: S108 -- mount points


def obstacles(pod: PodManifest, scope: Scope, targets: list[Target]) -> Iterator[Obstacle]:
    """Yield everything that is missing or in the way; nothing if the pod is ready."""
    if scope.namespace.name not in scope.fabrics.nvlink_namespaces:
        yield NAMESPACE, f"namespace {scope.namespace.name} is not in nvlink.allowNamespaces"
    for target in scope.targets:
        if target.shared_gpu:
            yield SHARED_GPU, f"container {target.name} has MIG slices or shared GPUs"
    if not targets:
        yield NO_GPU, "no container has whole GPUs of its own"
    if _in_compute_domain(pod):
        yield COMPUTE_DOMAIN, "the pod uses a ComputeDomain, which needs no sharing"
    if not flag(pod, ("spec", "hostIPC")):
        yield HOST_IPC, "the pod lacks hostIPC: true"
    nodes_own = _host_paths(pod)
    for target in targets:
        yield from _of_container(pod, scope, target)
        yield from _of_environment(pod, target, nodes_own, host_network=scope.host_network)


def _of_container(pod: PodManifest, scope: Scope, target: Target) -> Iterator[Obstacle]:
    name, path = target.name, target.path
    command = strings(pod, (*path, "command"))
    ours = unwrap(command)
    if not flag(pod, (*path, "securityContext", "privileged")):
        yield NOT_PRIVILEGED, f"container {name} is not privileged"
    if not command:
        yield NO_COMMAND, f"container {name} has no command in the pod's spec"
    elif ours and command[ours - 1] != str(target.gpus):
        yield OTHER_COUNT, f"the command of {name} holds a remap for {command[ours - 1]} GPUs"
    elif scope.commands.runs_sshd(path):
        yield SSHD, f"container {name} runs sshd, whose children would see all GPUs"
    if mount_at(pod, path, _SHM) is not None:
        yield SHM_MOUNT, f"container {name} mounts a volume at {_SHM}"


def _of_environment(
    pod: PodManifest, target: Target, nodes_own: frozenset[str], *, host_network: bool
) -> Iterator[Obstacle]:
    name, own = target.name, env_of(pod, target.path)
    for variable in _DEVICE_NAMES:
        if variable in own and own[variable] != "PCI_BUS_ID":
            yield DEVICES_SET, f"container {name} sets {variable}"
    if not host_network:
        if not _shares_tmp(pod, target, nodes_own):
            yield SOCKETS, f"container {name} needs hostNetwork or a hostPath at {_TMP}"
        elif own.get(ABSTRACT_SOCKET, "0") != "0":
            yield SOCKETS, f"container {name} needs {ABSTRACT_SOCKET}=0"
    missing = [variable for variable in needed_env(host_network) if variable not in own]
    if missing and has_env_from(pod, target.path):
        yield ENV_FROM, f"envFrom of {name} may hold {', '.join(missing)}: put them into env"


def needed_env(host_network: bool) -> dict[str, dict[str, Any]]:
    """Return the additional variables that NCCL needs, as items of `env`."""
    node = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    needed: dict[str, dict[str, Any]] = {HOST_ID: {"name": HOST_ID, "valueFrom": node}}
    if not host_network:
        needed[ABSTRACT_SOCKET] = {"name": ABSTRACT_SOCKET, "value": "0"}
    return needed


def _host_paths(pod: PodManifest) -> frozenset[str]:
    """Return the names of the volumes that are directories of the node."""
    return frozenset(
        str(volume.get("name"))
        for volume in items(pod, VOLUMES)
        if "hostPath" in volume and at(volume, ("hostPath", "path")) is not None
    )


def _shares_tmp(pod: PodManifest, target: Target, nodes_own: frozenset[str]) -> bool:
    mount = mount_at(pod, target.path, _TMP)
    if mount is None or mount.get("readOnly") is True:
        return False
    return str(mount.get("name")) in nodes_own


def _in_compute_domain(pod: PodManifest) -> bool:
    for claim in items(pod, ("spec", "resourceClaims")):
        words = "\n".join([value for key in _NAMES if isinstance((value := claim.get(key)), str)])
        if any(part in words.lower() for part in _DOMAIN_WORDS):
            return True
    spec = mapping(pod, ("spec",))
    # As a complete string at any depth; much faster than walking the tree.
    return any(repr(_CLIQUE) in repr(spec[field]) for field in _PLACEMENT if field in spec)


_NAMES = ("name", "resourceClaimName", "resourceClaimTemplateName")
_PLACEMENT = ("nodeSelector", "affinity", "topologySpreadConstraints")
