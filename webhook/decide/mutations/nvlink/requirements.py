"""Find what keeps the remap from giving each container of a pod its own GPUs.

Needed are a privileged container, which sees all GPUs of the node, and a command in the spec, since
the entrypoint of an image is unknown. Obstacles are: a choice of devices by the user, in `env` or
in the command; an sshd, whose children do not inherit CUDA_VISIBLE_DEVICES and would see all GPUs;
MIG and shared GPUs; and a ComputeDomain, whose fabric handles need none of this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from webhook.decide.scope import Scope, Target
from webhook.decide.shell.argv import unwrap
from webhook.model.container import env_of
from webhook.model.decision import Reason
from webhook.model.pod import PodManifest, flag, mapping, strings

NAMESPACE = Reason("NamespaceNotAllowed", "nvlink.allowNamespaces lacks the pod's namespace.")
NO_GPU = Reason("NoGPU", "No target has whole GPUs of its own.")
SHARED_GPU = Reason("SharedGPU", "A target has MIG slices or shared GPUs.")
COMPUTE_DOMAIN = Reason("ComputeDomain", "The pod uses a ComputeDomain, which does it better.")
NOT_PRIVILEGED = Reason("NotPrivileged", "A container with GPUs is not privileged.")
NO_COMMAND = Reason("CommandMissing", "A container with GPUs has no command in the spec.")
OTHER_COUNT = Reason("WrappedDifferently", "The command holds a remap for another number of GPUs.")
OWN_REMAP = Reason("OwnRemap", "The user's command assigns CUDA_VISIBLE_DEVICES itself.")
SSHD = Reason("RunsSshd", "Processes that sshd starts would see all GPUs of the node.")
DEVICES_SET = Reason("VisibleDevicesSet", "The user chooses CUDA's devices.")

#: All reasons of this module.
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


def obstacles(pod: PodManifest, scope: Scope, targets: list[Target]) -> Iterator[Obstacle]:
    """Yield everything that is missing or in the way; nothing if the pod is ready."""
    if scope.namespace.name not in scope.fabrics.nvlink_namespaces:
        yield NAMESPACE, f"namespace {scope.namespace.name} is not in nvlink.allowNamespaces"
    for target in scope.targets:
        if target.shared_gpu:
            yield SHARED_GPU, f"container {target.name} has MIG slices or shared GPUs"
    if not targets:
        yield NO_GPU, "no container has whole GPUs of its own"
    if _in_compute_domain(pod, scope):
        yield COMPUTE_DOMAIN, "the pod uses a ComputeDomain, which needs no sharing"
    for target in targets:
        yield from _of_container(pod, scope, target)
        yield from _of_environment(pod, target)


def _of_container(pod: PodManifest, scope: Scope, target: Target) -> Iterator[Obstacle]:
    name, path = target.name, target.path
    command = strings(pod, (*path, "command"))
    ours = unwrap(command)
    words = "\n".join(command[ours:] + strings(pod, (*path, "args")))
    if not flag(pod, (*path, "securityContext", "privileged")):
        yield NOT_PRIVILEGED, f"container {name} is not privileged"
    if not command:
        yield NO_COMMAND, f"container {name} has no command in the pod's spec"
    elif ours and command[ours - 1] != str(target.gpus):
        yield OTHER_COUNT, f"the command of {name} holds a remap for {command[ours - 1]} GPUs"
    elif scope.commands.runs_sshd(path):
        yield SSHD, f"container {name} runs sshd, whose children would see all GPUs"
    elif _DEVICES in words and _ASSIGNED.search(words):
        yield OWN_REMAP, f"the command of {name} assigns {_DEVICES} itself, and stays as it is"


def _of_environment(pod: PodManifest, target: Target) -> Iterator[Obstacle]:
    own = env_of(pod, target.path)
    for variable in _DEVICE_NAMES:
        if variable in own and own[variable] != "PCI_BUS_ID":
            yield DEVICES_SET, f"container {target.name} sets {variable}"


def _in_compute_domain(pod: PodManifest, scope: Scope) -> bool:
    if any(claim.is_domain for claim in scope.claims):
        return True
    spec = mapping(pod, ("spec",))
    # As a complete string at any depth; much faster than walking the tree.
    return any(repr(_CLIQUE) in repr(spec[field]) for field in _PLACEMENT if field in spec)


_PLACEMENT = ("nodeSelector", "affinity", "topologySpreadConstraints")
