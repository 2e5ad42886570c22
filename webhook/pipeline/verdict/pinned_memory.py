"""The memory: whether a target's processes may register (pin) more than a few MiB."""

from __future__ import annotations

from webhook.decision.outcome import Reason, Verdict
from webhook.decision.scope import Target
from webhook.mutations.ipc_lock import CAPABILITY, NON_ROOT, USER_NAMESPACE, inert
from webhook.mutations.ipc_lock.ulimits import raised_by
from webhook.pipeline.verdict.seen import Seen
from webhook.pod.capabilities import capabilities_of
from webhook.pod.run_as import user_of

MEMLOCK_LIMITED = Reason(
    "MemlockLimited",
    "IPC_LOCK does not help a container, and neither the nodes nor an annotation raise memlock.",
    rdma="no",
)
MEMLOCK_UNKNOWN = Reason(
    "MemlockUnknown",
    "IPC_LOCK does not help a container, and nothing says whether the nodes raise memlock.",
    rdma="unsure",
)
REASONS = (MEMLOCK_LIMITED, MEMLOCK_UNKNOWN)


def judge(seen: Seen, target: Target) -> Verdict | None:
    """Return why a target may not be able to register memory, None if it can.

    A container whose image alone names its user counts as root: see `assumes_root`.
    """
    why = _why_inert(seen, target)
    if not why:
        return None
    memlock = seen.scope.fabrics.defaults.memlock
    if memlock == "unknown":
        message = f"{target.name} {why}: only nodes with memlock raised let it register memory"
        return Verdict.of(MEMLOCK_UNKNOWN, message)
    if memlock == "limited":
        message = f"{target.name} {why}, and the nodes limit memlock"
        return Verdict.of(MEMLOCK_LIMITED, message)
    return _by_annotation(seen, target, why) if memlock == "nri" else None


def assumes_root(seen: Seen, target: Target) -> bool:
    """Return whether a target has no problem here only if its image runs as root."""
    memlock = seen.scope.fabrics.defaults.memlock
    if memlock == "unlimited" or user_of(seen.pod, target.path) != "image":
        return False
    return memlock != "nri" or not raised_by(seen.annotations, target.name)


def _by_annotation(seen: Seen, target: Target, why: str) -> Verdict | None:
    if raised_by(seen.annotations, target.name):
        return None
    message = f"{target.name} {why}, and no annotation raises memlock"
    return Verdict.of(MEMLOCK_LIMITED, message)


def _why_inert(seen: Seen, target: Target) -> str:
    """Say why IPC_LOCK does not help a target, "" if it does."""
    reason = inert(seen.pod, target.path, seen.scope.fabrics.defaults)
    if reason is not None:
        if reason is NON_ROOT and user_of(seen.pod, target.path) == "image":
            return "has an image that does not run as root"
        return _INERT[reason.code]
    has = seen.privileged(target) or capabilities_of(seen.pod, target.path).grants(CAPABILITY)
    return "" if has else "lacks IPC_LOCK"


_INERT = {
    USER_NAMESPACE.code: "has a user namespace (hostUsers: false)",
    NON_ROOT.code: "does not run as root",
}
