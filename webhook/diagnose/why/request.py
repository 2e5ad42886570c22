"""The requests of the pod, and what the webhook did with them.

The requests are the pod's annotations and the resources of its containers; the annotation
`rdma.lab/status` has the webhook's changes, and its reasons for making none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from webhook.decide.mutations import MUTATIONS
from webhook.decide.mutations.memory_limit import REQUIRED
from webhook.diagnose.why.evidence import PodEvidence, StatusAnnotation
from webhook.diagnose.why.reasons import REASONS
from webhook.diagnose.why.webhook_call import STATUS_NOT_OURS, STATUS_UNREADABLE
from webhook.kube.objects import Container, PodSpec
from webhook.model.annotations import (
    ENABLE_ANNOTATION,
    PREFIX,
    STATUS_ANNOTATION,
    WEBHOOK_ANNOTATIONS,
)
from webhook.model.finding import Code, Finding
from webhook.model.names import counted
from webhook.model.quantity import is_zero

NO_DEVICE_REQUESTED = Code(
    "NoDeviceRequested", "No container requests a GPU, an RDMA resource or another device."
)
REQUESTS = Code("Requests", "A container requests extended resources, such as GPUs and NICs.")
ANNOTATIONS = Code(
    "Annotations",
    "The pod has annotations whose names begin with rdma.lab/, besides those that the webhook "
    "writes.",
)
NO_ANNOTATIONS = Code("NoAnnotations", f"The pod has no annotation {ENABLE_ANNOTATION}.")

_MAX_VALUE = 120


def request_findings(evidence: PodEvidence, status: StatusAnnotation | None) -> Iterator[Finding]:
    """Yield findings on the annotations, and on the extended resources of each container.

    `status`: that of the pod, if the webhook was called for it.
    """
    yield _annotations(evidence)
    requests = [
        f"{container.name or field} requests {', '.join(amounts)}"
        for field, containers in _containers(evidence.pod.spec)
        for container in containers
        if (amounts := _amounts_text(extended_requests(container)))
    ]
    if not requests:
        yield NO_DEVICE_REQUESTED.finding("info", NO_DEVICE_REQUESTED.meaning)
    for text in requests:
        yield REQUESTS.finding("info", f"Container {text}{_addition_note(status, text)}.")


def _containers(spec: PodSpec) -> Iterator[tuple[str, tuple[Container, ...]]]:
    """Yield the containers of a pod's spec by field, with the field's name in a manifest."""
    yield "initContainers", spec.init_containers
    yield "containers", spec.containers
    yield "ephemeralContainers", spec.ephemeral_containers


def _annotations(evidence: PodEvidence) -> Finding:
    annotations = [
        f"{key}: {json.dumps(value[:_MAX_VALUE], ensure_ascii=False)}"
        for key, value in evidence.annotations.items()
        if key.startswith(PREFIX) and key not in WEBHOOK_ANNOTATIONS
    ]
    if annotations:
        return ANNOTATIONS.finding("info", f"The pod sets {', '.join(sorted(annotations))}.")
    return NO_ANNOTATIONS.finding("info", NO_ANNOTATIONS.meaning)


def _addition_note(status: StatusAnnotation | None, text: str) -> str:
    applied = status.applied if status else ()
    if isinstance(applied, tuple) and "rdma-resources" in applied and "rdma" in text:
        return " (the webhook added the RDMA resource)"
    return ""


def extended_requests(container: Container) -> dict[str, str]:
    """Return the nonzero extended resources that a container requests, or limits."""
    resources = container.resources
    amounts = (*resources.requests.items(), *resources.limits.items())
    return {
        name: str(amount) for name, amount in amounts if "/" in name and not _is_zero_amount(amount)
    }


def _is_zero_amount(amount: object) -> bool:
    try:
        return is_zero(amount)
    except (ValueError, TypeError):
        return False


def _amounts_text(amounts: dict[str, str]) -> list[str]:
    return [f"{name}: {amount}" for name, amount in sorted(amounts.items())]


def rdma_requests(evidence: PodEvidence) -> list[str]:
    """Return the requested resources whose names begin with `rdma/`, sorted."""
    return sorted(
        {
            name
            for container in evidence.pod.spec.containers
            for name in extended_requests(container)
            if name.startswith("rdma/")
        }
    )


# The changes of the webhook to the pod, and its reasons for making none, from `rdma.lab/status`.

NOTHING = Code("Nothing", "The webhook changed nothing, since it was not called for the pod.")
NOTHING_APPLIED = Code(
    "NothingApplied", "The webhook was called for the pod, but applied no mutation."
)
APPLIED = Code("Applied", "The webhook applied a mutation to the pod.")
SHORTENED = Code(
    "Shortened",
    "The annotation rdma.lab/status has no room for the names of all mutations and reasons.",
    "Run `rdma-webhook preview` on the pod's manifest to see all of them.",
)
UNKNOWN_CODE = Code(
    "UnknownCode",
    "The annotation rdma.lab/status has a reason code that this version of rdma-webhook does not "
    "know.",
    "Use the version of rdma-webhook that runs in the cluster.",
)

_SUMMARIES = {mutation.name: mutation.summary for mutation in MUTATIONS}


def applied_findings(evidence: PodEvidence, called: Finding) -> Iterator[Finding]:
    """Yield each applied mutation, and each other code of the status once.

    `called` is the finding on whether the webhook was called.
    """
    status = evidence.status
    if called.code == STATUS_UNREADABLE.code:
        yield called._replace(text=f"Unknown: {STATUS_ANNOTATION} cannot be read.")
        return
    if called.code == STATUS_NOT_OURS.code and called.level == "unsure":
        yield called._replace(text=f"Unknown: {STATUS_ANNOTATION} proves nothing here.")
        return
    if status is None or called.code == STATUS_NOT_OURS.code:
        yield NOTHING.finding("info", "Nothing, since the webhook was not called.")
        return
    yield from _mutation_findings(status.applied)
    reported = {status.verdict_reason}
    for codes in (_pod_reasons(status), status.skipped, status.warned):
        if isinstance(codes, int):
            text = f"The annotation has no room for {counted(codes, 'more reason')}."
            yield SHORTENED.finding("unsure", text)
            continue
        for code in codes:
            if code not in reported:
                reported.add(code)
                finding = reason_finding(code, status)
                yield finding._replace(text=f"{finding.text}{_limits_in_force(code, evidence)}")


def _limits_in_force(code: str, evidence: PodEvidence) -> str:
    """Return a sentence on the memory limits that the namespace requires, or ""."""
    if code != REQUIRED.code:
        return ""
    limits = [
        f"{container.name} {container.memory_limit}"
        for container in evidence.pod.spec.containers
        if container.memory_limit
    ]
    return f" In force: {', '.join(limits)}." if limits else ""


def _pod_reasons(status: StatusAnnotation) -> tuple[str, ...]:
    return tuple(filter(None, (status.decision_reason, status.assumption_reason)))


def _mutation_findings(names: tuple[str, ...] | int) -> Iterator[Finding]:
    if not names:
        yield NOTHING_APPLIED.finding("info", "The webhook was called, but applied no mutation.")
    elif isinstance(names, int):
        count = counted(names, "mutation")
        text = f"The webhook applied {count}. The annotation has no room for their names."
        yield SHORTENED.finding("unsure", text)
    else:
        for name in names:
            summary = _SUMMARIES.get(name)
            meaning = (
                f"it {summary}" if summary else "this version of rdma-webhook does not know it"
            )
            yield APPLIED.finding("ok", f"{name}: applied ({meaning}).")


def reason_finding(code: str, status: StatusAnnotation) -> Finding:
    """Explain a reason code of the status, as it applies to the mutations that were not applied."""
    rows = REASONS.get(code)
    if rows is None:
        text = f"{code}: this version of rdma-webhook does not know this code."
        return UNKNOWN_CODE.finding("unsure", text)
    applied = () if isinstance(status.applied, int) else status.applied
    reportable = [row for row in rows if row.reason.reportable]
    skipped = [row for row in reportable if row.part not in applied] or reportable
    meanings = " Or: ".join(dict.fromkeys(row.reason.meaning for row in skipped))
    remedy = rows[0].reason.remedy
    is_info = not remedy or code == status.assumption_reason  # an assumption of a `yes`
    return Finding("info" if is_info else "unsure", code, meanings, remedy)


CODES = (
    ANNOTATIONS,
    NO_ANNOTATIONS,
    REQUESTS,
    NO_DEVICE_REQUESTED,
    NOTHING,
    NOTHING_APPLIED,
    APPLIED,
    SHORTENED,
    UNKNOWN_CODE,
)
