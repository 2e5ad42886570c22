"""Whether new processes of a pod may lock memory: what admission assumes of an image.

`kubectl exec` starts a process with the user, the capabilities and the limits of the container, so
a shell shows what the image's own first process got, unless that changed its user since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from webhook.decide.mutations.ipc_lock import ADD_CAPABILITY, CAPABILITY, RUN_AS_ROOT
from webhook.decide.verdict.command_memlock import ENOUGH_MEMLOCK_KIB
from webhook.diagnose.why.evidence import MemoryRights, PodEvidence
from webhook.diagnose.why.request import extended_requests
from webhook.diagnose.why.stand_in import is_gpu_name
from webhook.model.finding import Code, Finding

MAY_LOCK_MEMORY = Code(
    "MayLockMemory",
    "A process that is started in the container may lock as much memory as RDMA needs.",
)
CANNOT_LOCK_MEMORY = Code(
    "CannotLockMemory",
    "A process that is started in the container cannot lock as much memory as RDMA needs: "
    f"{CAPABILITY} is not in effect, and the limit on locked memory (ulimit -l) is too low.",
    RUN_AS_ROOT,
)
CODES = (MAY_LOCK_MEMORY, CANNOT_LOCK_MEMORY)


def memory_rights_findings(evidence: PodEvidence, targets: Collection[str]) -> Iterator[Finding]:
    """Yield a finding on each inspected container that the verdict is about.

    `targets` are the names of those; if it is empty, they are the containers with a GPU or an RDMA
    resource.
    """
    names = targets or _requesting(evidence)
    for processes in evidence.processes or ():
        if processes.rights is not None and processes.container in names:
            yield _finding(evidence, processes.container, processes.rights)


def _requesting(evidence: PodEvidence) -> set[str]:
    return {
        container.name
        for container in evidence.pod.spec.containers
        if any(
            name.startswith("rdma/") or is_gpu_name(name) for name in extended_requests(container)
        )
    }


def cannot_lock_memory(evidence: PodEvidence, targets: Collection[str]) -> Finding | None:
    """Return the finding on a container that cannot register memory, or None."""
    findings = memory_rights_findings(evidence, targets)
    return next((item for item in findings if item.code == CANNOT_LOCK_MEMORY.code), None)


def proves_memory_rights(evidence: PodEvidence, targets: Collection[str]) -> bool:
    """Return whether each container that the verdict is about may lock memory."""
    codes = [finding.code for finding in memory_rights_findings(evidence, targets)]
    count = len(targets or _requesting(evidence))
    return codes == [MAY_LOCK_MEMORY.code] * count and count > 0


def _finding(evidence: PodEvidence, container: str, rights: MemoryRights) -> Finding:
    """Return the finding on a container.

    A process in a user namespace may show the capability, but to lock memory it needs that of the
    node (linux, mm/mlock.c, can_do_mlock).
    """
    is_outside = evidence.pod.spec.host_users
    start = f"In container {container}, a new process runs as {_user(rights)}"
    if rights.has_ipc_lock and is_outside:
        return MAY_LOCK_MEMORY.finding("ok", f"{start}, and {CAPABILITY} is in effect.")
    if rights.limit_kib is None or rights.limit_kib >= ENOUGH_MEMLOCK_KIB:
        return MAY_LOCK_MEMORY.finding("ok", f"{start}, and the limit on locked memory is high.")
    namespace = "" if is_outside else " of a user namespace (hostUsers: false)"
    limit = f"may lock only {rights.limit_kib} KiB of memory (ulimit -l)"
    text = f"{start}{namespace} without {CAPABILITY} in effect, and {limit}: it cannot use RDMA."
    lacks_capability = is_outside and not rights.user
    remedy = ADD_CAPABILITY if lacks_capability else RUN_AS_ROOT
    return CANNOT_LOCK_MEMORY.finding("error", text, remedy)


def _user(rights: MemoryRights) -> str:
    return f"user {rights.user}" if rights.user else "root"
