"""Pinned memory: whether a target may register it, by IPC_LOCK or by the limit of its node."""

from __future__ import annotations

from typing import NamedTuple

from webhook.decide.mutations.ipc_lock import (
    ADD_CAPABILITY,
    CAPABILITY,
    DROPPED,
    POD_SECURITY,
    RAISE_MEMLOCK,
    RUN_AS_ROOT,
    RUN_AS_ROOT_WITH_IPC_LOCK,
    USER_NAMESPACE,
    ineffective_reason,
    memlock_annotation_key,
)
from webhook.decide.mutations.ipc_lock import MUTATION as IPC_LOCK
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model.annotations import SKIP_ANNOTATION
from webhook.model.decision import Reason, Verdict
from webhook.model.images import non_root_user

_RECORD_MEMLOCK = (
    "If the nodes already raise the memlock limit, ask the cluster administrator to set "
    "`defaults.memlock` in the configuration: to unlimited if LimitMEMLOCK=infinity raises the "
    "limit, to nri if the NRI ulimit-adjuster does."
)
MEMLOCK_LIMITED = Reason(
    "MemlockLimited",
    (
        "In a container, IPC_LOCK is missing or has no effect, and neither the nodes nor an "
        "annotation for the NRI ulimit-adjuster raises the memlock limit."
    ),
    remedy=RUN_AS_ROOT_WITH_IPC_LOCK,
    rdma="no",
)
MEMLOCK_UNKNOWN = Reason(
    "MemlockUnknown",
    "A container lacks IPC_LOCK, or IPC_LOCK has no effect in it; whether the nodes raise the "
    "memlock limit is unknown.",
    remedy=f"{RUN_AS_ROOT_WITH_IPC_LOCK} {_RECORD_MEMLOCK}",
    rdma="unsure",
)
IPC_LOCK_FORBIDDEN = Reason(
    "IpcLockForbidden",
    (
        "The namespace enforces a Pod Security level that forbids IPC_LOCK, and neither the nodes "
        "nor an annotation for the NRI ulimit-adjuster raises the memlock limit."
    ),
    remedy=POD_SECURITY.remedy,
    rdma="no",
)
PINNED_MEMORY_REASONS = (MEMLOCK_LIMITED, MEMLOCK_UNKNOWN, IPC_LOCK_FORBIDDEN, POD_SECURITY)


class MemoryObstacle(NamedTuple):
    """Why IPC_LOCK does not help a target to register memory."""

    #: A predicate, such as "lacks IPC_LOCK".
    clause: str
    #: The change of the pod that helps, as an imperative; "" if only the nodes can help.
    change: str = ""
    remedy: str = RUN_AS_ROOT

    @property
    def way_out(self) -> str:
        """What to change, or which nodes to use."""
        if self.change:
            return f"{self.change}, or use nodes with LimitMEMLOCK=infinity"
        return "it needs nodes with LimitMEMLOCK=infinity"


_NOT_ROOT = MemoryObstacle("does not run as root")
_IN_USER_NAMESPACE = MemoryObstacle("has a user namespace (hostUsers: false)")
_DROPS = MemoryObstacle(f"drops {CAPABILITY}", "remove it from capabilities.drop", DROPPED.remedy)
_SKIPS = MemoryObstacle(
    f"lacks {CAPABILITY}",
    f"remove {IPC_LOCK.name} from {SKIP_ANNOTATION}",
    f"Remove {IPC_LOCK.name} from the annotation {SKIP_ANNOTATION}.",
)
_LACKS = MemoryObstacle(
    f"lacks {CAPABILITY}",
    "add it to capabilities.add",
    ADD_CAPABILITY,
)
_STAY_ROOT = (
    "Remove what changes the user, or drops the capability, from the container's command or the "
    f"script that it runs: {CAPABILITY} has an effect only for root. If the process needs that "
    f"user, {RAISE_MEMLOCK}"
)
#: `defaults.memlock` → why the limit stays low.
_NODES = {
    "limited": "the nodes limit locked memory",
    "nri": "no annotation raises the memlock limit",
}


def judge_pinned_memory(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the obstacle to registering memory in a target, or None.

    A container whose image alone names its user counts as root: see `assumes_root`.
    """
    obstacle, name = pinned_memory_obstacle(pod, patched), patched.target.name
    if obstacle is None or raises_memlock(pod, name):
        return None
    memlock, subject = pod.analysis.configuration.defaults.memlock, f"container {name}"
    level = _forbidding_level(pod, obstacle)
    if level:
        message = (
            f"{subject} lacks IPC_LOCK, since Pod Security {level} of the namespace forbids it"
        )
        if memlock == "unknown":
            return Verdict.of(POD_SECURITY, message)
        return Verdict.of(IPC_LOCK_FORBIDDEN, f"{message}, and {_NODES[memlock]}")
    if memlock == "unknown":
        message = f"{subject} {obstacle.clause}; {obstacle.way_out}"
        return Verdict.of(MEMLOCK_UNKNOWN, message, f"{obstacle.remedy} {_RECORD_MEMLOCK}")
    message = f"{subject} {obstacle.clause}, and {_NODES[memlock]}"
    return Verdict.of(MEMLOCK_LIMITED, message, obstacle.remedy)


def raises_memlock(pod: PatchedPod, container: str) -> bool:
    """Return whether the nodes raise memlock: for all, or by an annotation that the pod has."""
    memlock = pod.analysis.configuration.defaults.memlock
    return memlock == "unlimited" or (
        memlock == "nri" and bool(memlock_annotation_key(pod.view.annotations, container))
    )


def _forbidding_level(pod: PatchedPod, obstacle: MemoryObstacle) -> str:
    """Return the Pod Security level that is why IPC_LOCK is missing, "" if it is not.

    `restricted` also forbids to run as root, without which IPC_LOCK would have no effect.
    """
    level = pod.analysis.namespace.enforced_pod_security
    forbidden = (_LACKS, _SKIPS, *((_NOT_ROOT,) if level == "restricted" else ()))
    return level if obstacle in forbidden else ""


def assumes_root(pod: PatchedPod, patched: PatchedTarget) -> bool:
    """Return whether a target can register memory only if its image runs as root."""
    return patched.target.user == "image" and not raises_memlock(pod, patched.target.name)


def pinned_memory_obstacle(pod: PatchedPod, patched: PatchedTarget) -> MemoryObstacle | None:
    """Return why IPC_LOCK does not help a target, None if it helps."""
    container = patched.container
    reason = ineffective_reason(pod.view, patched.target, pod.analysis.configuration.defaults)
    if reason is not None:
        return _IN_USER_NAMESPACE if reason is USER_NAMESPACE else _other_user(pod, patched)
    if container.privileged or container.capabilities.grants(CAPABILITY):
        return None
    if CAPABILITY in container.capabilities.dropped:
        return _DROPS
    return _SKIPS if IPC_LOCK.name in pod.analysis.annotations.skip else _LACKS


def _other_user(pod: PatchedPod, patched: PatchedTarget) -> MemoryObstacle:
    """Return the obstacle of a target that does not run as root: by the pod, image or command."""
    user, image = pod.view.user_of(patched.container), patched.container.image
    if user == "other":
        return _NOT_ROOT
    image_user = non_root_user(image, pod.analysis.configuration.defaults)
    if user == "image" and image_user:
        return MemoryObstacle(f"has an image that runs as {image_user}")
    assert patched.settings.user is not None
    clause = f"loses {CAPABILITY} ({patched.settings.user.source})"
    return MemoryObstacle(clause, f"let it stay root and keep {CAPABILITY}", _STAY_ROOT)
