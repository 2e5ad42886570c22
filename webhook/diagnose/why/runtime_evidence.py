"""Evidence from the running pod: the registered memory of processes, and the log of NCCL and UCX.

A registered page counts in VmPin of /proc/PID/status (linux, drivers/infiniband/core/umem.c:
`mm->pinned_vm`), so a process that has an RDMA device open and VmPin above zero uses RDMA.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from webhook.diagnose.tools.known_lines import LAYERS, KnownLine, LineKind
from webhook.diagnose.tools.logs import LogReport
from webhook.diagnose.why.container_status import SEE_LOG_CHAPTER, has_failed
from webhook.diagnose.why.evidence import (
    ContainerLog,
    ContainerProcesses,
    PodEvidence,
    StatusAnnotation,
)
from webhook.diagnose.why.explanation import VERDICT_LEVELS
from webhook.model.decision import Rdma
from webhook.model.finding import Code, Finding, Level
from webhook.model.names import shortened_list

_CORRECT_FAILURE = "If the last line of the log names the cause, correct that."
_RUN_AGAIN = (
    "Run `rdma-webhook why POD --exec` again while the job communicates. If nothing changes, "
    "search the log: `rdma-webhook why POD --logs`."
)
_USE_INFO = (
    "Set NCCL_DEBUG=INFO (for UCX: UCX_LOG_LEVEL=info) in the container's env, and run the job "
    "again."
)
NOT_INSPECTED = Code(
    "NotInspected",
    "The processes of a container could not be inspected, so they do not show whether RDMA is in "
    "use. The finding gives the reason.",
)
MEMORY_REGISTERED = Code(
    "MemoryRegistered", "A process has an RDMA device open and has registered memory: it uses RDMA."
)
NOTHING_REGISTERED = Code(
    "NothingRegistered",
    "A container has processes with an RDMA device open, but none of them has registered memory.",
    _RUN_AGAIN,
)
NO_DEVICE_OPEN = Code(
    "NoDeviceOpen", "In at least one container, no process has an RDMA device open.", _RUN_AGAIN
)
RDMA_IN_USE = Code("RdmaInUse", "The log shows that the traffic uses RDMA.")
SOCKETS_IN_USE = Code(
    "SocketsInUse",
    "The log shows that the traffic uses TCP sockets, not RDMA.",
    "If the log shows the cause, a finding after this one names it. Otherwise, run the job again "
    "with NCCL_DEBUG=INFO.",
)
MIXED_TRANSPORTS = Code(
    "MixedTransports",
    "The log shows both RDMA and TCP sockets.",
    "Compare the ranks: all pods of the job need RDMA and the same NCCL_IB_HCA.",
)
TRANSPORT_UNKNOWN = Code(
    "TransportUnknown",
    "The log has lines from NCCL, but does not show which network NCCL uses, since NCCL_DEBUG is "
    "not INFO.",
    _USE_INFO,
)
NO_CHANNEL = Code(
    "NoChannel",
    "The log shows no NCCL channel to another node.",
    "If the job runs on several nodes, run `rdma-webhook why POD --logs` again after the job "
    "starts to communicate.",
)
NOTHING_LOGGED = Code("NothingLogged", "The log has no lines from NCCL or UCX.", _USE_INFO)
CODES = (
    NOT_INSPECTED,
    MEMORY_REGISTERED,
    NOTHING_REGISTERED,
    NO_DEVICE_OPEN,
    RDMA_IN_USE,
    SOCKETS_IN_USE,
    MIXED_TRANSPORTS,
    TRANSPORT_UNKNOWN,
    NO_CHANNEL,
    NOTHING_LOGGED,
)

_MAX_LINE = 200
_KIB = 1024
_MAX_PROCESSES = 5


def process_findings(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield a finding on the RDMA devices and registered memory of each inspected container."""
    for processes in evidence.processes or ():
        yield from _findings_on_processes(processes)


def _findings_on_processes(processes: ContainerProcesses) -> Iterator[Finding]:
    name = processes.container
    if processes.problem:
        text = f"The processes of container {name} could not be inspected: {processes.problem}."
        yield NOT_INSPECTED.finding("unsure", text)
        return
    holding = [process for process in processes.rdma_processes if process.registered_kib]
    for process in holding[:_MAX_PROCESSES]:
        text = (
            f"In container {name}, process {process.pid} ({process.name}) has registered "
            f"{_memory_text(process.registered_kib)} of memory: it uses RDMA."
        )
        yield MEMORY_REGISTERED.finding("ok", text)
    if holding:
        return
    if processes.rdma_processes:
        openers = [f"{process.pid} ({process.name})" for process in processes.rdma_processes]
        text = (
            f"In container {name}, no process with an RDMA device open has registered memory: "
            f"{shortened_list(openers, _MAX_PROCESSES)}."
        )
        yield NOTHING_REGISTERED.finding("unsure", text)
    else:
        text = f"In container {name}, no process has an RDMA device open."
        yield NO_DEVICE_OPEN.finding("unsure", text)


def _memory_text(kibibytes: int) -> str:
    if kibibytes < _KIB:
        return f"{kibibytes} KiB"
    return f"{kibibytes / _KIB:,.0f} MiB"


def log_findings(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield the known lines of NCCL, UCX and others in the logs."""
    statuses = evidence.pod.status.container_statuses
    failed = {status.name for status in statuses if has_failed(status)}
    for log in evidence.logs or ():
        yield from _findings_on_log(log, is_failed=log.container in failed)


def _findings_on_log(log: ContainerLog, *, is_failed: bool) -> Iterator[Finding]:
    report = log.report
    suffix = " from before its last restart" if log.previous else ""
    title = f"The log of container {log.container}{suffix}"
    if report.rdma_use or report.nccl:
        yield _finding_on_transport(report, title)
    elif not report.line_counts:
        yield _finding_without_lines(report, title, is_failed=is_failed)
    for line in report.line_counts:
        known_line = line.known_line
        times = f" ({line.times} times)" if line.times > 1 else ""
        text = f"{known_line.meaning} In the log{times}: {line.line:.{_MAX_LINE}}"
        yield known_line.finding(_LEVELS[known_line.kind], text)


_LEVELS: dict[LineKind, Level] = {
    "transport": "info",
    "setting": "error",
    "slower": "unsure",
    "failure": "error",
}


def _finding_on_transport(report: LogReport, title: str) -> Finding:
    if report.rdma_use == "yes":
        suffixes = {True: ", with GPUDirect RDMA", False: ", without GPUDirect RDMA", None: ""}
        text = f"{title} shows RDMA{suffixes[report.gpu_direct]}."
        return RDMA_IN_USE.finding("ok", text)
    if report.rdma_use == "no":
        return SOCKETS_IN_USE.finding("error", f"{title} shows TCP sockets, not RDMA.")
    if report.rdma_use == "mixed":
        return MIXED_TRANSPORTS.finding("unsure", f"{title} shows both RDMA and TCP sockets.")
    if report.nccl and not report.info:
        text = f"{title} does not show which network NCCL uses, since NCCL_DEBUG is not INFO."
        return TRANSPORT_UNKNOWN.finding("unsure", text)
    return NO_CHANNEL.finding("unsure", f"{title} shows no NCCL channel to another node.")


def _finding_without_lines(report: LogReport, title: str, *, is_failed: bool) -> Finding:
    """Return the finding on a log without known lines; the last may be the cause of a failure."""
    text = f"{title} has no lines from NCCL or UCX."
    if not report.last_line:
        return NOTHING_LOGGED.finding("unsure", text)
    text = f"{text} Its last line is: {report.last_line:.{_MAX_LINE}}"
    remedy = _CORRECT_FAILURE if is_failed else NOTHING_LOGGED.remedy
    return NOTHING_LOGGED.finding("unsure", text, remedy)


class TransportInUse(NamedTuple):
    """Whether a running pod uses RDMA, and the code of the evidence for that."""

    rdma: Rdma
    code: Code


def transport_evidence(evidence: PodEvidence) -> TransportInUse | None:
    """Return whether RDMA is in use, with the code for it; None if unknown.

    Registered memory proves RDMA. A log covers the whole run; logs from before a restart are left
    out.
    """
    for processes in evidence.processes or ():
        if any(process.registered_kib for process in processes.rdma_processes):
            return TransportInUse("yes", MEMORY_REGISTERED)
    rdma_uses = [log.report.rdma_use for log in evidence.logs or () if not log.previous]
    if "no" in rdma_uses:
        return TransportInUse("no", SOCKETS_IN_USE)
    if "mixed" in rdma_uses:
        return TransportInUse("unsure", MIXED_TRANSPORTS)
    return TransportInUse("yes", RDMA_IN_USE) if "yes" in rdma_uses else None


#: Layers whose failures come before any RDMA traffic.
_BELOW_TRAFFIC = ("link", "gid", "memory", "verbs")
#: Codes of killed processes, which may have used RDMA before.
_KILLED = frozenset({"KilledForMemory", "OOMKilled", "ExitCode137", "ProcessKilled"})


def cause_before_rdma(evidence: PodEvidence) -> KnownLine | None:
    """Return the lowest cause in the logs of a pod that failed before it used RDMA, or None."""
    if evidence.pod.status.phase != "Failed":
        return None
    reports = [log.report for log in evidence.logs or () if not log.previous]
    causes = [
        line.known_line
        for report in reports
        for line in report.line_counts
        if line.known_line.kind == "failure"
        and line.known_line.layer in _BELOW_TRAFFIC
        and line.known_line.code not in _KILLED
    ]
    return min(causes, key=lambda cause: LAYERS.index(cause.layer), default=None)


_USES = {
    MEMORY_REGISTERED: "RDMA is in use: a process of the pod has registered memory",
    RDMA_IN_USE: "The log shows that RDMA is in use",
    SOCKETS_IN_USE: "RDMA is not in use: the log shows TCP sockets",
    MIXED_TRANSPORTS: "RDMA is only partly in use: the log also shows TCP sockets",
}


def finding_by_use(in_use: TransportInUse, status: StatusAnnotation | None) -> Finding:
    """Return the finding for RDMA or sockets in use, with the verdict at admission, if any."""
    rdma, code = in_use
    remedy = "" if rdma == "yes" else SEE_LOG_CHAPTER
    return code.finding(VERDICT_LEVELS[rdma], f"{_USES[code]} ({verdict_clause(status)}).", remedy)


def verdict_clause(status: StatusAnnotation | None) -> str:
    """Return the clause on the verdict at admission."""
    clauses = {
        "yes": "at admission, the pod was equipped",
        "no": "at admission, the pod was not equipped",
        "unsure": "at admission, this was uncertain",
        "none": "at admission, the pod was treated as a launcher",
    }
    return clauses[status.rdma] if status is not None else "the webhook was not called"
