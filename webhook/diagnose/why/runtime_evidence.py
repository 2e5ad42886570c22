"""What was seen at work: memory that processes have registered, and what NCCL and UCX wrote.

A registered page counts in VmPin of /proc/PID/status (linux, drivers/infiniband/core/umem.c:
`mm->pinned_vm`), so a process that has an RDMA device open and VmPin above zero uses RDMA.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.diagnose.tools.causes import LAYERS, Cause
from webhook.diagnose.tools.logs import LogReport
from webhook.diagnose.why.evidence import ContainerLog, ContainerProcesses, PodEvidence
from webhook.diagnose.why.explanation import Level, Sentence

_LONGEST = 200
_KIB = 1024
_MOST = 5


def process_findings(evidence: PodEvidence) -> Iterator[Sentence]:
    """Tell which processes hold registered memory."""
    for found in evidence.processes or ():
        yield from _processes(found)


def _processes(found: ContainerProcesses) -> Iterator[Sentence]:
    name = found.container
    if found.problem:
        text = f"Container {name} could not be inspected: {found.problem}."
        yield Sentence("NotLookedInto", "unsure", text)
        return
    holding = [one for one in found.pinned if one.kibibytes]
    for one in holding[:_MOST]:
        text = (
            f"In container {name}, process {one.pid} ({one.name}) holds {_amount(one.kibibytes)} "
            "of registered memory: it uses RDMA."
        )
        yield Sentence("MemoryRegistered", "good", text)
    if holding:
        return
    if found.pinned:
        text = (
            f"In container {name}, {len(found.pinned)} processes have an RDMA device open, but "
            "none has registered memory."
        )
        remedy = (
            "Ask again while the job communicates. If this does not change, read its log: --logs."
        )
        yield Sentence("NothingRegistered", "unsure", text, remedy)
    else:
        text = f"In container {name}, no process has an RDMA device open."
        remedy = (
            "Ask again while the job communicates. If this does not change, read its log: --logs."
        )
        yield Sentence("NoDeviceOpen", "unsure", text, remedy)


def _amount(kibibytes: int) -> str:
    if kibibytes < _KIB:
        return f"{kibibytes} KiB"
    return f"{kibibytes / _KIB:,.0f} MiB"


def log_findings(evidence: PodEvidence) -> Iterator[Sentence]:
    """Tell what NCCL, UCX and others wrote, the known lines only."""
    for log in evidence.logs or ():
        yield from _log(log)


def _log(log: ContainerLog) -> Iterator[Sentence]:
    findings = log.findings
    before = ", before its last restart," if log.previous else ""
    whose = f"The log of container {log.container}{before}"
    if findings.transport or findings.nccl or not findings.seen:
        yield _transport(findings, whose)
    for seen in findings.seen:
        cause = seen.cause
        times = f" ({seen.times} times)" if seen.times > 1 else ""
        text = f"{cause.means}{times} In the log: {seen.line:.{_LONGEST}}"
        yield Sentence(cause.code, _LEVELS[cause.sort], text, cause.remedy)


_LEVELS: dict[str, Level] = {
    "transport": "fact",
    "setting": "problem",
    "slower": "unsure",
    "trouble": "problem",
}


def _transport(findings: LogReport, whose: str) -> Sentence:
    if findings.transport == "yes":
        how = {True: ", with GPUDirect RDMA", False: ", without GPUDirect RDMA", None: ""}
        text = f"{whose} shows RDMA{how[findings.gpu_direct]}."
        return Sentence("RdmaInUse", "good", text)
    if findings.transport == "no":
        return Sentence("SocketsInUse", "problem", f"{whose} shows TCP sockets, not RDMA.", _ABOVE)
    if findings.transport == "mixed":
        text = f"{whose} shows both RDMA and TCP sockets."
        return Sentence("MixedTransports", "unsure", text, _MIXED)
    if findings.nccl and not findings.info:
        text = f"{whose} does not say which network NCCL uses, since NCCL_DEBUG is not INFO."
        return Sentence("NotTold", "unsure", text, _INFO)
    if findings.nccl:
        text = f"{whose} shows no NCCL channel to another machine."
        remedy = "If the job runs on several machines, ask again once it communicates."
        return Sentence("NoChannel", "unsure", text, remedy)
    text = f"{whose} has no lines of NCCL or UCX."
    return Sentence("NothingTold", "unsure", text, _INFO)


_ABOVE = "If lines follow, they give the cause. If not, run the job again with NCCL_DEBUG=INFO."
_MIXED = "Compare the ranks: all pods of the job need RDMA, and the same NCCL_IB_HCA."
_INFO = (
    "Set NCCL_DEBUG=INFO (for UCX: UCX_LOG_LEVEL=info) in the container's env, and run the job "
    "again."
)


def rdma_in_use(evidence: PodEvidence) -> tuple[str, str]:
    """Return what was seen at work, "yes", "no" or "", and the code that says so.

    Registered memory proves RDMA. A log tells of the whole run, the newest log first.
    """
    for found in evidence.processes or ():
        if any(one.kibibytes for one in found.pinned):
            return "yes", "MemoryRegistered"
    told = [log.findings.transport for log in evidence.logs or () if not log.previous]
    if "no" in told:
        return "no", "SocketsInUse"
    if "mixed" in told:
        return "unsure", "MixedTransports"
    return ("yes", "RdmaInUse") if "yes" in told else ("", "")


#: What fails in these layers fails before any RDMA traffic.
_BELOW_TRAFFIC = ("link", "gid", "memory", "verbs")
#: A process that was killed may have used RDMA before.
_KILLED = frozenset({"KilledForMemory", "OomKilled", "ExitCode137", "ProcessKilled"})


def cause_before_rdma(evidence: PodEvidence) -> Cause | None:
    """Return what made a failed pod fail before it used RDMA: the lowest cause in its logs."""
    if evidence.pod.status.phase != "Failed":
        return None
    logs = [log.findings for log in evidence.logs or () if not log.previous]
    causes = [
        seen.cause
        for findings in logs
        for seen in findings.seen
        if seen.cause.sort == "trouble"
        and seen.cause.layer in _BELOW_TRAFFIC
        and seen.cause.code not in _KILLED
    ]
    return min(causes, key=lambda cause: LAYERS.index(cause.layer), default=None)
