"""Whether new processes of a pod may lock memory: what admission assumes of an image.

`kubectl exec` starts a process with the user, the capabilities and the limits of the container, so
a shell shows what the image's own first process got, unless that changed its user since.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.decide.mutations.ipc_lock import CAPABILITY, RUN_AS_ROOT
from webhook.decide.verdict.command_memlock import ENOUGH_MEMLOCK
from webhook.diagnose.why.evidence import MemoryRights, PodEvidence, StatusAnnotation
from webhook.diagnose.why.request import extended_requests
from webhook.model.finding import Code, Finding

MAY_LOCK_MEMORY = Code(
    "MayLockMemory", "A new process of a container may lock as much memory as RDMA needs."
)
CANNOT_LOCK_MEMORY = Code(
    "CannotLockMemory",
    f"A new process of a container cannot register memory: {CAPABILITY} has no effect for its "
    "user, and the limit of locked memory (ulimit -l) is low.",
    RUN_AS_ROOT,
)
CODES = (MAY_LOCK_MEMORY, CANNOT_LOCK_MEMORY)


def memory_rights_findings(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield a finding on each inspected container that requests devices."""
    requesting = _requesting(evidence)
    for inspection in evidence.processes or ():
        if inspection.rights is not None and inspection.container in requesting:
            yield _finding(inspection.container, inspection.rights)


def _requesting(evidence: PodEvidence) -> set[str]:
    return {
        container.name for container in evidence.pod.spec.containers if extended_requests(container)
    }


def cannot_lock_memory(evidence: PodEvidence) -> Finding | None:
    """Return the finding on a container that cannot register memory; None if memory is in use."""
    has_registered = any(
        process.registered_kib
        for inspection in evidence.processes or ()
        for process in inspection.rdma_processes
    )
    findings = () if has_registered else memory_rights_findings(evidence)
    return next((item for item in findings if item.code == CANNOT_LOCK_MEMORY.code), None)


def without_assumption(
    evidence: PodEvidence, status: StatusAnnotation | None
) -> StatusAnnotation | None:
    """Return a status without the assumption that the image runs as root, if a shell proved it."""
    findings = [*memory_rights_findings(evidence)]
    proves_all = len(findings) == len(_requesting(evidence)) > 0
    if status is None or not proves_all or cannot_lock_memory(evidence):
        return status
    return status.model_copy(update={"assumed": ""})


def _finding(container: str, rights: MemoryRights) -> Finding:
    start = f"In container {container}, a new process runs as {_user(rights)}"
    if rights.has_ipc_lock:
        return MAY_LOCK_MEMORY.finding("ok", f"{start}, and {CAPABILITY} is in effect.")
    if rights.limit_kib is None or rights.limit_kib >= ENOUGH_MEMLOCK:
        return MAY_LOCK_MEMORY.finding("ok", f"{start}, and the limit of locked memory is high.")
    limit = f"may lock only {rights.limit_kib} KiB of memory (ulimit -l)"
    text = f"{start} without {CAPABILITY} in effect, and {limit}: it cannot use RDMA."
    return CANNOT_LOCK_MEMORY.finding("error", text)


def _user(rights: MemoryRights) -> str:
    return f"user {rights.user}" if rights.user else "root"
