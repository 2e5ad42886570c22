"""`ipc-lock`: let the container pin the memory that it registers with the RDMA device.

Registering memory pins pages. Beyond RLIMIT_MEMLOCK (8 MiB in a container) the kernel fails
with ENOMEM unless the process has CAP_IPC_LOCK (drivers/infiniband/core/umem.c).

    securityContext                          outcome
    privileged: true                         already: it has every capability
    capabilities.drop: [IPC_LOCK]            skipped: containerd drops after it adds
    capabilities.add: [IPC_LOCK] or [ALL]    already
    capabilities.add: [CAP_IPC_LOCK]         added, warned: containerd makes it CAP_CAP_IPC_LOCK
    capabilities.drop: [ALL]                 added: containerd handles ALL separately
"""

from __future__ import annotations

from webhook.decision.draft import Draft
from webhook.decision.facts import PSA_ENFORCE
from webhook.decision.outcome import Reason
from webhook.decision.scope import Mutation, Needs, Scope, Target
from webhook.pod.manifest import flag, strings
from webhook.pod.run_as import runs_as_other_user

CAPABILITY = "IPC_LOCK"

ADDED = Reason("Added", "IPC_LOCK was added to the container's capabilities.")
PRESENT = Reason("Present", "The container has IPC_LOCK already.")
PRIVILEGED = Reason("Privileged", "The container is privileged and has every capability.")
DROPPED = Reason("DroppedByUser", "The container drops IPC_LOCK itself; adding it has no effect.")
POD_SECURITY = Reason(
    "PodSecurity", "The namespace enforces a Pod Security level that refuses IPC_LOCK."
)
MISSPELT = Reason(
    "CapPrefix", "CAP_IPC_LOCK is no capability for Kubernetes, which adds the prefix itself."
)
NON_ROOT = Reason(
    "NonRoot", "IPC_LOCK does nothing for a user other than root; the node must raise memlock."
)
USER_NAMESPACE = Reason(
    "UserNamespace", "IPC_LOCK does nothing with hostUsers: false; the node must raise memlock."
)


def mutate(draft: Draft, scope: Scope) -> None:
    """Add IPC_LOCK to every target that lacks it."""
    for target in scope.targets:
        _lock(draft, scope, target)


def _lock(draft: Draft, scope: Scope, target: Target) -> None:
    path = (*target.path, "securityContext")
    added: list[str] = []
    dropped: list[str] = []
    if draft.get(path) is not None:
        if flag(draft.pod, (*path, "privileged")):
            draft.already(target.name, PRIVILEGED, "privileged: it has every capability")
            _warn_where_inert(draft, scope, target)
            return
        added = [name.upper() for name in strings(draft.pod, (*path, "capabilities", "add"))]
        dropped = [name.upper() for name in strings(draft.pod, (*path, "capabilities", "drop"))]
    if CAPABILITY in dropped:
        message = "capabilities.drop names IPC_LOCK, which wins over adding it: remove it there"
        draft.skipped(target.name, DROPPED, message)
        draft.warned(target.name, DROPPED, message)
    elif CAPABILITY in added or "ALL" in added:
        draft.already(target.name, PRESENT, "the container has it already")
        _warn_where_inert(draft, scope, target)
    elif scope.namespace.enforced_pod_security:
        _refuse(draft, scope, target, scope.namespace.enforced_pod_security)
    else:
        _add(draft, scope, target, misspelt="CAP_IPC_LOCK" in added)


def _add(draft: Draft, scope: Scope, target: Target, *, misspelt: bool) -> None:
    draft.append((*target.path, "securityContext", "capabilities", "add"), CAPABILITY)
    draft.applied(target.name, ADDED, "added capability IPC_LOCK, so that memory can be registered")
    if misspelt:
        draft.warned(target.name, MISSPELT, "capability CAP_IPC_LOCK is not known: write IPC_LOCK")
    _warn_where_inert(draft, scope, target)


def _refuse(draft: Draft, scope: Scope, target: Target, level: str) -> None:
    message = (
        f"the namespace enforces Pod Security {level}, which refuses IPC_LOCK: "
        f"label it {PSA_ENFORCE}: privileged"
    )
    if scope.fabrics.defaults.pod_security == "deny":
        draft.failed(target.name, POD_SECURITY, message)
    else:
        draft.skipped(target.name, POD_SECURITY, message)
        # Keep it short: a warning is cut after 120 characters.
        message = f"no IPC_LOCK: namespace label {PSA_ENFORCE}: {level} refuses it"
        draft.warned(target.name, POD_SECURITY, message)


def _warn_where_inert(draft: Draft, scope: Scope, target: Target) -> None:
    """Warn if the kernel will not honor the capability (kubernetes/kubernetes#56374)."""
    if scope.fabrics.defaults.memlock_unlimited:
        return
    spec = draft.pod["spec"]
    if spec.get("hostUsers") is False:
        message = "IPC_LOCK is inert with hostUsers: false; containerd needs LimitMEMLOCK=infinity"
        draft.warned(target.name, USER_NAMESPACE, message)
    elif runs_as_other_user(draft.pod, target.path):
        message = "IPC_LOCK is inert for non-root users; containerd needs LimitMEMLOCK=infinity"
        draft.warned(target.name, NON_ROOT, message)


MUTATION = Mutation(
    name="ipc-lock",
    summary="adds the IPC_LOCK capability, without which registering memory fails",
    needs=Needs.NOTHING,
    reasons=(
        *(ADDED, PRESENT, PRIVILEGED, DROPPED, POD_SECURITY),
        *(MISSPELT, NON_ROOT, USER_NAMESPACE),
    ),
    mutate=mutate,
)
