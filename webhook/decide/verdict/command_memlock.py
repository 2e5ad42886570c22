"""Locked memory: what a command does to the user and to the limit of its process."""

from __future__ import annotations

from webhook.decide.mutations.ipc_lock import OTHERWISE_KEEP_IPC_LOCK
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.decide.verdict.pinned_memory import pinned_memory_obstacle, raises_memlock
from webhook.model.decision import Reason, Verdict

LOWERED = Reason(
    "MemlockLowered",
    "A container's command lowers the limit on locked memory with ulimit -l, and IPC_LOCK has no "
    "effect in that container.",
    remedy="Remove ulimit -l from the container's command, or from the script that it runs.",
    rdma="no",
)
USER_POSSIBLE = Reason(
    "UserMayChange",
    "A container's command may drop IPC_LOCK, or change to a user other than root, for whom "
    "IPC_LOCK has no effect.",
    remedy=(
        "If the process that uses RDMA runs as root and keeps IPC_LOCK, no action is needed. "
        f"{OTHERWISE_KEEP_IPC_LOCK}"
    ),
    rdma="unsure",
)
COMMAND_MEMLOCK_REASONS = (LOWERED, USER_POSSIBLE)

#: A limit that is enough for RDMA: libraries register buffers of some hundred MiB.
ENOUGH_MEMLOCK_KIB = 1024 * 1024
_LONGEST = 19  # digits; a longer number is more than any limit


def judge_command_memlock(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the obstacle to registering memory that a target's command makes, or None."""
    name, settings = patched.target.name, patched.settings
    if settings.memlock is None and settings.user is None:
        return None
    obstacle = pinned_memory_obstacle(pod, patched)
    if obstacle and settings.memlock is not None and _is_low(settings.memlock.limit):
        limit = f"the memlock limit is {settings.memlock.limit} KiB ({settings.memlock.source})"
        return Verdict.of(
            LOWERED, f"container {name} {obstacle.clause}, and {limit}; remove that limit"
        )
    if obstacle or settings.user is None or raises_memlock(pod, name):
        return None
    message = f"container {name} may lose IPC_LOCK ({settings.user.source})"
    return Verdict.of(USER_POSSIBLE, f"{message}, which has an effect only for root")


def _is_low(limit: str) -> bool:
    return limit.isdecimal() and len(limit) <= _LONGEST and int(limit) < ENOUGH_MEMLOCK_KIB
