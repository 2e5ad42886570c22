"""The requests of the pod: its annotations, and the resources of its containers."""

from __future__ import annotations

import json
from collections.abc import Iterator

from webhook.decide.mutations import MUTATIONS
from webhook.diagnose.codes import CODE_ROWS, is_code, remedy_of
from webhook.diagnose.why.evidence import PodEvidence, StatusAnnotation
from webhook.diagnose.why.explanation import Sentence
from webhook.kube.objects import Container, PodSpec
from webhook.model.annotations import ENABLE, PREFIX, WRITTEN
from webhook.model.quantity import is_zero

_LONGEST = 120


def request_findings(evidence: PodEvidence) -> Iterator[Sentence]:
    """Yield findings on the annotations, and on the extended resources of each container."""
    yield from _annotations(evidence)
    requests = [
        f"{container.name or field} requests {', '.join(amounts)}"
        for field, containers in _containers(evidence.pod.spec)
        for container in containers
        if (amounts := _amounts_text(extended_requests(container)))
    ]
    if not requests:
        text = "No container requests a GPU, an RDMA resource or another device."
        yield Sentence("NoDeviceRequested", "fact", text)
    for text in requests:
        yield Sentence("Requests", "fact", f"Container {text}{_by_us(evidence, text)}.")


def _containers(spec: PodSpec) -> Iterator[tuple[str, tuple[Container, ...]]]:
    """Yield the containers of a pod's spec by field, with the field's name in a manifest."""
    yield "initContainers", spec.init_containers
    yield "containers", spec.containers
    yield "ephemeralContainers", spec.ephemeral_containers


def _annotations(evidence: PodEvidence) -> Iterator[Sentence]:
    annotations = [
        f"{key}: {json.dumps(value[:_LONGEST], ensure_ascii=False)}"
        for key, value in evidence.annotations.items()
        if key.startswith(PREFIX) and key not in WRITTEN
    ]
    if annotations:
        yield Sentence("Annotations", "fact", f"The pod has {', '.join(sorted(annotations))}.")
    else:
        yield Sentence("NoAnnotations", "fact", f"The pod has no annotation {ENABLE}.")


def _by_us(evidence: PodEvidence, text: str) -> str:
    applied = evidence.status.applied if evidence.status else ()
    if isinstance(applied, tuple) and "rdma-resources" in applied and "rdma" in text:
        return " (the webhook wrote the RDMA resource)"
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

_SUMMARIES = {mutation.name: mutation.summary for mutation in MUTATIONS}


def applied_findings(evidence: PodEvidence) -> Iterator[Sentence]:
    """Yield each applied mutation, and each other code of the status once."""
    status = evidence.status
    if status is None:
        yield Sentence("Nothing", "fact", "Nothing.")
        return
    yield from _applied(status.applied)
    reported = {status.because}
    for codes in (_pod_reasons(status), status.skipped, status.warned):
        if isinstance(codes, int):
            text = f"{codes} more reasons, for which the annotation has no room."
            yield Sentence("Shortened", "unsure", text, _PREVIEW)
            continue
        for code in codes:
            if code not in reported:
                reported.add(code)
                yield code_finding(code, status)


_PREVIEW = "Run rdma-webhook preview on the pod's manifest to see all of them."


def _pod_reasons(status: StatusAnnotation) -> tuple[str, ...]:
    return (status.reason,) if status.reason else ()


def _applied(names: tuple[str, ...] | int) -> Iterator[Sentence]:
    if not names:
        yield Sentence("NothingApplied", "fact", "It changed nothing.")
    elif isinstance(names, int):
        text = f"It applied {names} mutations; the annotation has no room for their names."
        yield Sentence("Shortened", "unsure", text, _PREVIEW)
    else:
        for name in names:
            summary = _SUMMARIES.get(name, "not known to this version of rdma-webhook")
            yield Sentence("Applied", "good", f"{name}: {summary}.")


def code_finding(code: str, status: StatusAnnotation) -> Sentence:
    """Return the meaning of a code of the status, in the mutations that were not applied."""
    if not is_code(code):
        text = f"{code}: not known to this version of rdma-webhook."
        return Sentence(
            code, "unsure", text, "Use the version of rdma-webhook that runs in the cluster."
        )
    rows = [row for row in CODE_ROWS if row.code == code and not row.quiet]
    applied = () if isinstance(status.applied, int) else status.applied
    skipped = [row for row in rows if row.part not in applied] or rows
    whens = " Or: ".join(dict.fromkeys(row.when for row in skipped))
    remedy = remedy_of(code)
    return Sentence(code, "unsure" if remedy else "fact", f"{code}: {whens}", remedy)
