"""Tell the owner of a pod, in a Kubernetes Event, that the pod will have no RDMA."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from webhook.admission.review import AdmissionRequest
from webhook.kube.owner_events import OwnerEvents, WithoutRdma
from webhook.model.decision import Decision
from webhook.model.owner_references import owners_of
from webhook.serve.log import Log
from webhook.serve.options import ServeOptions
from webhook.serve.pod_events import POD, events_client

#: Called with each request that was decided, after it has been answered; does not block.
TellOwner = Callable[[AdmissionRequest, Decision], None]


def tell_owner_by(options: ServeOptions, log: Log, environment: Mapping[str, str]) -> TellOwner:
    """Return a function that tells owners; it does nothing outside a pod."""
    reporter = environment.get(POD["name"], "")
    if not reporter:
        return tell_nobody
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


def tell_nobody(_request: AdmissionRequest, _decision: Decision) -> None:
    """Do nothing: the status and the metrics report it."""
