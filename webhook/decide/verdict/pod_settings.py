"""The memory: whether a target's processes may register (pin) more than a few MiB."""

from __future__ import annotations

from webhook.decide.mutations.ipc_lock import CAPABILITY, NON_ROOT, USER_NAMESPACE, inert
from webhook.decide.mutations.ulimits import raised_by
from webhook.decide.verdict.judged_pod import Seen, SeenTarget
from webhook.model.capabilities import capabilities_of
from webhook.model.decision import Reason, Verdict

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
PINNED_MEMORY_REASONS = (MEMLOCK_LIMITED, MEMLOCK_UNKNOWN)


def judge_pinned_memory(seen: Seen, one: SeenTarget) -> Verdict | None:
    """Return why a target may not be able to register memory, None if it can.

    A container whose image alone names its user counts as root: see `assumes_root`.
    """
    why, name = _why_inert(seen, one), one.target.name
    if not why:
        return None
    memlock = seen.scope.fabrics.defaults.memlock
    if memlock == "unknown":
        message = f"{name} {why}: only nodes with memlock raised let it register memory"
        return Verdict.of(MEMLOCK_UNKNOWN, message)
    if memlock == "limited":
        return Verdict.of(MEMLOCK_LIMITED, f"{name} {why}, and the nodes limit memlock")
    if memlock == "unlimited" or raised_by(seen.annotations, name):
        return None
    return Verdict.of(MEMLOCK_LIMITED, f"{name} {why}, and no annotation raises memlock")


def assumes_root(seen: Seen, one: SeenTarget) -> bool:
    """Return whether a target has no problem here only if its image runs as root."""
    memlock = seen.scope.fabrics.defaults.memlock
    if memlock == "unlimited" or one.target.user != "image":
        return False
    return memlock != "nri" or not raised_by(seen.annotations, one.target.name)


def _why_inert(seen: Seen, one: SeenTarget) -> str:
    """Say why IPC_LOCK does not help a target, "" if it does."""
    target = one.target
    reason = inert(seen.pod, target, seen.scope.fabrics.defaults)
    if reason is not None:
        if reason is NON_ROOT and target.user == "image":
            return "has an image that does not run as root"
        return _INERT[reason.code]
    has = one.privileged or capabilities_of(one.manifest, target.path).grants(CAPABILITY)
    return "" if has else "lacks IPC_LOCK"


_INERT = {
    USER_NAMESPACE.code: "has a user namespace (hostUsers: false)",
    NON_ROOT.code: "does not run as root",
}
