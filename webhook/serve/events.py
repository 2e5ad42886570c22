"""Events for the owners of pods that will have no RDMA."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from webhook.admission.review import AdmissionRequest
from webhook.config.names import is_dns_label
from webhook.kube.access import connect
from webhook.kube.events import MAX_NOTE_LENGTH, OwnerEvents, WithoutRdma
from webhook.model.decision import Decision
from webhook.model.names import MAX_SUBDOMAIN_LENGTH
from webhook.model.pod import OwnerReference, Pod, owners_of
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions

#: The variables that the Deployment sets, by the downward API.
POD_VARIABLES = {"name": "POD_NAME", "namespace": "POD_NAMESPACE"}
#: The longest apiVersion, kind, name and uid of an owner that rdma-webhook-guard-events allows, in
#: bytes. A pod may have longer ones, although no object has, and notices wait in memory.
_MAX_LENGTHS = (128, 64, MAX_SUBDOMAIN_LENGTH, 64)
#: The kinds of owners that the guard allows; a Node owns its mirror pods.
_KIND = re.compile("(?!(pod|namespace|node)$)[a-z0-9]+", re.IGNORECASE | re.ASCII)
#: Called with each decided request after its answer, and the client's address; does not block.
NotifyOwner = Callable[[AdmissionRequest, Decision, str], None]


def owner_notifier(
    options: ServeOptions, metrics: Metrics, log: Log, environment: Mapping[str, str]
) -> NotifyOwner:
    """Return a function that notifies owners; it does nothing outside a pod."""
    pod_name = environment.get(POD_VARIABLES["name"], "")
    if not pod_name:
        return notify_nobody
    events = OwnerEvents(
        pod_name, lambda: connect(options.kubeconfig), event_failure_reporter(metrics, log)
    )

    def notify(request: AdmissionRequest, decision: Decision, client_address: str) -> None:
        for notice in owner_notices(request, decision):
            events.tell(notice, client_address)

    return notify


def owner_notices(request: AdmissionRequest, decision: Decision) -> list[WithoutRdma]:
    """Return notices for the owners of a pod that is allowed, but without RDMA.

    A denied pod gets no Event from here: its controller creates one. Nor does a pod of a dry run
    (`--dry-run=server`), or one that the API server refuses for the name of a container, which the
    message may repeat: neither ever exists.
    """
    verdict = decision.verdict
    if verdict is None or verdict.rdma != "no" or not decision.allowed or request.dry_run:
        return []
    if not all(is_dns_label(container.name) for container in Pod(request.pod).containers):
        return []
    return [
        WithoutRdma(
            owner, request.namespace, verdict.because.code, verdict.message[:MAX_NOTE_LENGTH]
        )
        for owner in owners_of(request.pod)
        if _may_be_notified(owner)
    ]


def _may_be_notified(owner: OwnerReference) -> bool:
    """Return whether the guard allows an Event about an owner; all objects' names are ASCII."""
    texts = zip(owner, _MAX_LENGTHS, strict=True)
    return bool(_KIND.fullmatch(owner.kind)) and all(
        len(text) <= limit and text.isascii() and text.isprintable() for text, limit in texts
    )


def notify_nobody(_request: AdmissionRequest, _decision: Decision, _address: str) -> None:
    """Do nothing: the status and the metrics have the decision."""


def event_failure_reporter(metrics: Metrics, log: Log) -> Callable[[str], None]:
    """Return a function that reports why an Event could not be created; for any thread."""

    def report(problem: str) -> None:
        metrics.event_failures.inc()
        log.write("warning", "could not record the event", problem=problem)

    return report
