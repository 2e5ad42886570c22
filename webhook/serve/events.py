"""Events for people: for a pod's owner, that it has no RDMA; for an operator, what is broken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from certs.clock import delays
from webhook.admission.review import AdmissionRequest
from webhook.kube.events import OwnerEvents, Pod, PodEvents, RecordedWarning, WithoutRdma
from webhook.model.decision import Decision
from webhook.model.pod import owners_of
from webhook.serve.log import Log
from webhook.serve.options import ServeOptions

#: Called with each request that was decided, after it has been answered; does not block.
NotifyOwner = Callable[[AdmissionRequest, Decision], None]


def owner_notifier(options: ServeOptions, log: Log, environment: Mapping[str, str]) -> NotifyOwner:
    """Return a function that tells owners; it does nothing outside a pod."""
    reporter = environment.get(POD["name"], "")
    if not reporter:
        return notify_nobody
    events = OwnerEvents(
        reporter,
        lambda: events_client(options.kubeconfig),
        lambda problem: log.write("warning", "could not record the event", problem=problem),
    )

    def tell(request: AdmissionRequest, decision: Decision) -> None:
        for one in to_tell(request, decision):
            events.tell(one)

    return tell


def to_tell(request: AdmissionRequest, decision: Decision) -> list[WithoutRdma]:
    """List what the owners of a pod are told: that it is allowed, but without RDMA.

    A pod that is denied has no Event from here: its controller creates one. Nor has one that is
    only tried (`--dry-run=server`), which does not come to exist.
    """
    verdict = decision.verdict
    if verdict is None or verdict.rdma != "no" or not decision.allowed or request.dry_run:
        return []
    return [
        WithoutRdma(owner, request.namespace, verdict.because.code, verdict.message)
        for owner in owners_of(request.pod)
    ]


def notify_nobody(_request: AdmissionRequest, _decision: Decision) -> None:
    """Do nothing: the status and the metrics report it."""


# Report in a Kubernetes Event what an operator has to fix.

if TYPE_CHECKING:
    from webhook.kube.client import Client

# Tell the owner of a pod that the pod will have no RDMA.

#: The variables that the Deployment sets, by the downward API.
POD = {"name": "POD_NAME", "namespace": "POD_NAMESPACE", "uid": "POD_UID"}

#: Called with the number of good configurations so far, and what is wrong with the current one.
ReportFailure = Callable[[int, str], None]


def failure_reporter(
    options: ServeOptions, log: Log, environment: Mapping[str, str]
) -> ReportFailure:
    """Return a function that reports a broken configuration; it does nothing outside a pod."""
    told = {field: environment.get(variable, "") for field, variable in POD.items()}
    if not all(told.values()):
        return _tell_nobody
    events = PodEvents(
        Pod(**told),
        lambda: events_client(options.kubeconfig),
        delays,
        lambda problem: log.write("warning", "could not record the event", problem=problem),
    )
    return lambda generation, problem: events.warn(
        RecordedWarning("ConfigurationNotUsable", "Load", problem, str(generation))
    )


def _tell_nobody(_generation: int, _problem: str) -> None:
    """Do nothing: the log and the metric report it."""


def events_client(kubeconfig: Path | None) -> Client:
    """Return a client of the API server."""
    from webhook.kube.client import Client  # noqa: PLC0415 -- slow to import

    return Client(kubeconfig)
