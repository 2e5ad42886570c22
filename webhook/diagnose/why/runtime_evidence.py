"""Evidence from the running pod: the registered memory of processes, and the log of NCCL and UCX.

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
_MOST_PROCESSES = 5


def process_findings(evidence: PodEvidence) -> Iterator[Sentence]:
    """Yield the processes that hold registered memory."""
    for inspection in evidence.processes or ():
        yield from _processes(inspection)


def _processes(inspection: ContainerProcesses) -> Iterator[Sentence]:
    name = inspection.container
    if inspection.problem:
        text = f"Container {name} could not be inspected: {inspection.problem}."
        yield Sentence("NotLookedInto", "unsure", text)
        return
    holding = [process for process in inspection.pinned if process.kibibytes]
    for process in holding[:_MOST_PROCESSES]:
        text = (
            f"In container {name}, process {process.pid} ({process.name}) holds "
            f"{_amount(process.kibibytes)} of registered memory: it uses RDMA."
        )
        yield Sentence("MemoryRegistered", "good", text)
    if holding:
        return
    if inspection.pinned:
        text = (
            f"In container {name}, {len(inspection.pinned)} processes have an RDMA device open, "
            "but none has registered memory."
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
    """Yield the known lines of NCCL, UCX and others in the logs."""
    for log in evidence.logs or ():
        yield from _log(log)


def _log(log: ContainerLog) -> Iterator[Sentence]:
    findings = log.findings
    suffix = ", before its last restart," if log.previous else ""
    title = f"The log of container {log.container}{suffix}"
    if findings.transport or findings.nccl or not findings.seen:
        yield _transport(findings, title)
    for line in findings.seen:
        cause = line.cause
        times = f" ({line.times} times)" if line.times > 1 else ""
        text = f"{cause.means}{times} In the log: {line.line:.{_LONGEST}}"
        yield Sentence(cause.code, _LEVELS[cause.sort], text, cause.remedy)


_LEVELS: dict[str, Level] = {
    "transport": "fact",
    "setting": "problem",
    "slower": "unsure",
    "trouble": "problem",
}


def _transport(findings: LogReport, title: str) -> Sentence:
    if findings.transport == "yes":
        suffixes = {True: ", with GPUDirect RDMA", False: ", without GPUDirect RDMA", None: ""}
        text = f"{title} shows RDMA{suffixes[findings.gpu_direct]}."
        return Sentence("RdmaInUse", "good", text)
    if findings.transport == "no":
        return Sentence("SocketsInUse", "problem", f"{title} shows TCP sockets, not RDMA.", _ABOVE)
    if findings.transport == "mixed":
        text = f"{title} shows both RDMA and TCP sockets."
        return Sentence("MixedTransports", "unsure", text, _MIXED)
    if findings.nccl and not findings.info:
        text = f"{title} does not say which network NCCL uses, since NCCL_DEBUG is not INFO."
        return Sentence("NotTold", "unsure", text, _INFO)
    if findings.nccl:
        text = f"{title} shows no NCCL channel to another machine."
        remedy = "If the job runs on several machines, ask again once it communicates."
        return Sentence("NoChannel", "unsure", text, remedy)
    text = f"{title} has no lines of NCCL or UCX."
    return Sentence("NothingTold", "unsure", text, _INFO)


_ABOVE = "If lines follow, they give the cause. If not, run the job again with NCCL_DEBUG=INFO."
_MIXED = "Compare the ranks: all pods of the job need RDMA, and the same NCCL_IB_HCA."
_INFO = (
    "Set NCCL_DEBUG=INFO (for UCX: UCX_LOG_LEVEL=info) in the container's env, and run the job "
    "again."
)


def rdma_in_use(evidence: PodEvidence) -> tuple[str, str]:
    """Return whether RDMA is in use ("yes", "no", "unsure" or "" if unknown), and the code for it.

    Registered memory proves RDMA. A log covers the whole run; logs from before a restart are left
    out.
    """
    for inspection in evidence.processes or ():
        if any(process.kibibytes for process in inspection.pinned):
            return "yes", "MemoryRegistered"
    transports = [log.findings.transport for log in evidence.logs or () if not log.previous]
    if "no" in transports:
        return "no", "SocketsInUse"
    if "mixed" in transports:
        return "unsure", "MixedTransports"
    return ("yes", "RdmaInUse") if "yes" in transports else ("", "")


#: Layers whose failures come before any RDMA traffic.
_BELOW_TRAFFIC = ("link", "gid", "memory", "verbs")
#: Codes of killed processes, which may have used RDMA before.
_KILLED = frozenset({"KilledForMemory", "OomKilled", "ExitCode137", "ProcessKilled"})


def cause_before_rdma(evidence: PodEvidence) -> Cause | None:
    """Return the lowest cause in the logs of a pod that failed before it used RDMA, or None."""
    if evidence.pod.status.phase != "Failed":
        return None
    logs = [log.findings for log in evidence.logs or () if not log.previous]
    causes = [
        line.cause
        for findings in logs
        for line in findings.seen
        if line.cause.sort == "trouble"
        and line.cause.layer in _BELOW_TRAFFIC
        and line.cause.code not in _KILLED
    ]
    return min(causes, key=lambda cause: LAYERS.index(cause.layer), default=None)
