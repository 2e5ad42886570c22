"""Errors for a pair, or a whole run, without a measurement: each has its result or its finding.

`unsure`: the network may be good. `error`: other pods would fail like this one.
"""

from __future__ import annotations

from webhook.diagnose.tools.known_lines import KNOWN_LINES
from webhook.diagnose.verify.results import BenchmarkResult
from webhook.errors import WebhookError
from webhook.kube.objects import PodRecord
from webhook.model.finding import Code, Finding
from webhook.model.names import counted

INTERRUPTED = Code(
    "Interrupted",
    "The run was interrupted.",
    "Run the command again; it repeats all measurements.",
)
NOT_CALLED = Code(
    "NotCalled",
    "The webhook was not called for a pod, so the run ended.",
    'Check that the namespace of the run has the label rdma.lab/enable: "true", and run the '
    "command again.",
)
NO_RDMA = Code(
    "NoRdma",
    "The webhook could not equip a pod for RDMA, so the run ended.",
    "Run the command again, and as soon as it has created the pod, run `rdma-webhook why POD`.",
)
POD_REJECTED = Code(
    "PodRejected",
    "The API server did not create a pod, for instance because of a quota, a policy or a webhook.",
    "Correct what the message blames, such as a webhook, a quota, a policy or the pod's "
    "annotations.",
)
NOT_STARTED = Code(
    "NotStarted",
    "A pod did not start in time, or cannot start, for an unknown reason.",
    "Run the command again, and while it waits for the pod, run `kubectl describe pod POD`.",
)
NOT_ENDED = Code(
    "NotEnded",
    "A client or a launcher of the run did not end in time.",
    "Check that the node of the client or launcher is ready: `kubectl describe node NODE`.",
)
POD_GONE = Code(
    "PodGone",
    "A pod of the run was deleted, but not by the run.",
    "Find out what deletes pods in the namespace: a user, a controller, `kubectl drain`, or "
    "preemption by a pod with a higher priority. Then run the command again.",
)
LOG_UNREADABLE = Code(
    "LogUnreadable",
    "The log of a pod could not be read.",
    "Check that you have the right to get pods/log, and that the node's kubelet responds.",
)
POD_FAILED = Code(
    "PodFailed",
    "A pod ended too early: the kubelet rejected or evicted it, or its container failed.",
    "Correct the problem that the message reports, and run the command again.",
)
POD_CODES = (
    *(POD_REJECTED, NOT_STARTED, POD_FAILED, NOT_ENDED, POD_GONE, LOG_UNREADABLE),
    *(NOT_CALLED, NO_RDMA, INTERRUPTED),
)

_KILLED = next(known_line for known_line in KNOWN_LINES if known_line.code == "OOMKilled")
_MAX_MESSAGE = 400


class MeasurementError(WebhookError):
    """The error for a pair without a measurement."""

    def __init__(self, result: BenchmarkResult) -> None:
        super().__init__(result.finding.text)
        self.result = result


class RunStopError(WebhookError):
    """The error for a run whose other pairs would all fail as well."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.text)
        self.finding = finding


def interruption(done: int, pairs: int) -> RunStopError:
    """Return the error for a run that was interrupted before all of its pairs were measured."""
    text = f"The run was interrupted after {done} of {counted(pairs, 'pair')}."
    return RunStopError(INTERRUPTED.finding("unsure", text))


def webhook_not_called(pod: str, problem: Finding | None) -> RunStopError:
    """Return the error for a pod that the webhook was not called for."""
    text = f"The webhook was not called for pod {pod}, which has no annotation rdma.lab/status."
    return RunStopError(_error(problem) if problem else NOT_CALLED.finding("error", text))


def missing_rdma(pod: str, problem: Finding | None) -> RunStopError:
    """Return the error for a pod that has no RDMA according to its status."""
    text = f"The webhook could not equip pod {pod} for RDMA."
    remedy = f"Run the command again, and while it waits for the pod, run `rdma-webhook why {pod}`."
    return RunStopError(_error(problem) if problem else NO_RDMA.finding("error", text, remedy))


def pod_rejection(role: str, node: str, message: str) -> MeasurementError:
    """Return the error for a pod that the API server did not create."""
    return _unsure(POD_REJECTED, f"The {role} for {node} was not created: {message[:_MAX_MESSAGE]}")


def missed_start(role: str, node: str, seconds: float, problem: Finding | None) -> MeasurementError:
    """Return the error for a pod that did not start in time."""
    return _no_start(f"The {role} on {node} did not start within {seconds:g} s.", problem)


def impossible_start(role: str, node: str, problem: Finding | None) -> MeasurementError:
    """Return the error for a pod that can never start."""
    return _no_start(f"The {role} on {node} cannot start.", problem)


def _no_start(sentence: str, problem: Finding | None) -> MeasurementError:
    if problem is None:
        return _unsure(NOT_STARTED, sentence)
    finding = Finding("unsure", problem.code, f"{sentence} {problem.text}", problem.remedy)
    return MeasurementError(BenchmarkResult(finding))


def timeout(role: str, node: str, seconds: float) -> MeasurementError:
    """Return the error for a client or a launcher that did not end."""
    return _unsure(NOT_ENDED, f"The {role} on {node} did not end within {seconds:g} s.")


def pod_deletion(role: str, node: str) -> MeasurementError:
    """Return the error for a pod that was deleted from outside the run."""
    return _unsure(POD_GONE, f"The {role} on {node} was deleted during the run.")


def log_failure(role: str, node: str, message: str) -> MeasurementError:
    """Return the error for a log that could not be read."""
    text = f"The log of the {role} on {node} could not be read: {message[:_MAX_MESSAGE]}"
    return _unsure(LOG_UNREADABLE, text)


def pod_failure(role: str, node: str, pod: PodRecord, before: str = "it ran") -> MeasurementError:
    """Return the error for a pod that ended before an event: by default, before it ran."""
    message = " ".join(pod.status.message.split())[:_MAX_MESSAGE]
    reason = ": ".join(filter(None, (pod.status.reason, message)))
    return _unsure(POD_FAILED, f"The {role} on {node} failed before {before}. {reason}".rstrip())


def memory_kill(role: str, node: str) -> MeasurementError:
    """Return the error for a pod that had too little memory."""
    text = f"The {role} on {node} was killed. {_KILLED.meaning}"
    finding = Finding("error", _KILLED.code, text, _KILLED.remedy)
    return MeasurementError(BenchmarkResult(finding, citation=_KILLED.source, layer=_KILLED.layer))


def _error(problem: Finding) -> Finding:
    """Return an explanation of `why` as an error of the run."""
    return Finding("error", problem.code, problem.text, problem.remedy)


def _unsure(code: Code, text: str) -> MeasurementError:
    return MeasurementError(BenchmarkResult(code.finding("unsure", text)))
