"""Errors for a pair, or a whole run, without a measurement: each has its judgement.

`inconclusive`: the network may be good. `fail`: other pods would fail like this one.
"""

from __future__ import annotations

from webhook.diagnose.tools.causes import CAUSES
from webhook.diagnose.verify.results import BenchmarkResult, Remark
from webhook.diagnose.verify.runs.plan import PodProblem
from webhook.errors import WebhookError
from webhook.kube.objects import Pod

_NOWHERE = (1, 1)
_KILLED = next(cause for cause in CAUSES if cause.code == "OomKilled")
_READ_POD = "Read the pod while a run waits for it: kubectl describe pod."
_LONGEST = 400


class MeasurementError(WebhookError):
    """The error for a pair without a measurement."""

    def __init__(self, judgement: BenchmarkResult) -> None:
        super().__init__(judgement.because)
        self.judgement = judgement


class RunStopError(WebhookError):
    """The error for a run whose other pairs would all fail as well."""

    def __init__(self, remark: Remark) -> None:
        super().__init__(remark.because)
        self.remark = remark


def interrupted(done: int, pairs: int) -> RunStopError:
    """Return the error for a run that was interrupted before all of its pairs were measured."""
    because = f"The run was interrupted after {done} of {pairs} pairs."
    remedy = "Run it again to measure the others."
    return RunStopError(Remark("inconclusive", "Interrupted", because, remedy))


def not_called(pod: str, problem: PodProblem | None) -> RunStopError:
    """Return the error for a pod that the webhook was not called for."""
    details = problem or PodProblem(
        "NotCalled",
        f"The webhook was not called for pod {pod}: it has no rdma.lab/status.",
        'Check that the namespace has the label rdma.lab/enable: "true".',
    )
    return RunStopError(Remark("fail", *details))


def without_rdma(pod: str, problem: PodProblem | None) -> RunStopError:
    """Return the error for a pod that has no RDMA according to its status."""
    details = problem or PodProblem(
        "NoRdma",
        f"The webhook could not equip pod {pod} for RDMA.",
        f"Ask why, while a run waits: rdma-webhook why {pod}.",
    )
    return RunStopError(Remark("fail", *details))


def pod_rejected(role: str, node: str, message: str) -> MeasurementError:
    """Return the error for a pod that the API server did not create."""
    return _inconclusive(
        "PodRejected",
        f"The {role} for {node} was not created. {message[:_LONGEST]}",
        "Change what the message names: a quota, a policy, the annotations or a webhook.",
    )


def not_started(
    role: str, node: str, seconds: float, problem: PodProblem | None
) -> MeasurementError:
    """Return the error for a pod that did not start in time, or never will."""
    start = f"The {role} on {node} did not start within {seconds:g} s."
    if problem is None:
        return _inconclusive("NotStarted", start, _READ_POD)
    return _inconclusive(problem.code, f"{start} {problem.because}", problem.remedy)


def late(role: str, node: str, seconds: float) -> MeasurementError:
    """Return the error for a client that did not end."""
    because = f"The {role} on {node} did not end within {seconds:g} s."
    return _inconclusive("NotEnded", because, "Check that the node and its kubelet answer.")


def pod_gone(role: str, node: str) -> MeasurementError:
    """Return the error for a pod that was deleted from outside the run."""
    return _inconclusive(
        "PodGone",
        f"The {role} on {node} was deleted while the run went on.",
        "Check who deletes pods there: another person, a controller, or the node's eviction.",
    )


def log_unreadable(role: str, node: str, message: str) -> MeasurementError:
    """Return the error for a log that could not be read."""
    return _inconclusive(
        "LogUnreadable",
        f"The log of the {role} on {node} could not be read: {message[:_LONGEST]}",
        "Check that you have the right to get pods/log, and that the node's kubelet answers.",
    )


def pod_failed(role: str, node: str, pod: Pod) -> MeasurementError:
    """Return the error for a pod that ended before its container ran, or was killed."""
    message = " ".join(pod.status.message.split())[:_LONGEST]
    reason = ": ".join(filter(None, (pod.status.reason, message)))
    because = f"The {role} on {node} failed before it ran. {reason}".rstrip()
    return _inconclusive("PodFailed", because, "Repair what the message names, and run it again.")


def killed_for_memory(role: str, node: str) -> MeasurementError:
    """Return the error for a pod that had too little memory."""
    judgement = BenchmarkResult(
        _NOWHERE,
        "fail",
        _KILLED.code,
        f"The {role} on {node} was killed. {_KILLED.means}",
        _KILLED.remedy,
        source=_KILLED.source,
        layer=_KILLED.layer,
    )
    return MeasurementError(judgement)


def _inconclusive(code: str, because: str, remedy: str) -> MeasurementError:
    return MeasurementError(BenchmarkResult(_NOWHERE, "inconclusive", code, because, remedy))
