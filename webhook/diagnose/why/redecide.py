"""The decision that the webhook would make today, with a fabrics file, on the pod's template.

A live pod is already patched, so a new decision on it proves little: its resources and variables
would count as the user's own. A pod without a status is decided on unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.decide.examine.fabric_choice import FABRIC_AMBIGUOUS, FABRIC_UNKNOWN
from webhook.decide.examine.gpu_conflict import GPU_NOT_ON_FABRIC
from webhook.decide.verdict.node_reasons import CAPACITY_REASONS
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.explanation import VERDICT_LEVELS
from webhook.diagnose.why.replacement import has_old_template, replacement_remedy
from webhook.kube.objects import PodRecord
from webhook.model.annotations import STATUS_ANNOTATION
from webhook.model.decision import Decision
from webhook.model.fabric import CompiledConfiguration
from webhook.model.finding import Code, Finding
from webhook.model.pod import PodManifest
from webhook.preview.workloads.controllers import controller_pods
from webhook.preview.workloads.templates import templates_of

NOT_COMPARABLE = Code(
    "NotComparable",
    "It is unknown what the webhook would decide today: the pod template could not be read, and "
    "the webhook may have changed the pod, which has the annotation rdma.lab/status.",
    "Preview the manifest of the pod, or of its controller: `rdma-webhook preview -c FABRICS "
    "FILE`.",
)
WOULD_BE = Code(
    "WouldBe",
    "The finding shows what the webhook would decide today. No earlier decision is known.",
)
SAME_TODAY = Code("SameToday", "Today, the webhook would decide as it did at admission.")
OTHER_TODAY = Code(
    "OtherToday",
    "Today, the webhook would decide differently than it did at admission.",
    "Create the pod again to get a new decision.",
)
CONFIGURATION_CHANGED = Code(
    "ConfigurationChanged",
    "The webhook's version or the configuration has changed since the pod was admitted.",
    OTHER_TODAY.remedy,
)
CODES = (NOT_COMPARABLE, WOULD_BE, SAME_TODAY, OTHER_TODAY, CONFIGURATION_CHANGED)

#: The reasons that other fabrics may settle.
_ABOUT_FABRICS = frozenset(
    reason.code
    for reason in (*CAPACITY_REASONS, FABRIC_UNKNOWN, FABRIC_AMBIGUOUS, GPU_NOT_ON_FABRIC)
)
_PREDICATES = {
    "no": "would have no RDMA",
    "unsure": "might have no RDMA",
    "none": "would need no RDMA itself",
}


def redecision_findings(evidence: PodEvidence) -> Iterator[Finding]:
    """Compare today's decision with the status, or without a fabrics file the configurations."""
    if evidence.configuration is None:
        yield from _changed_configuration(evidence)
        return
    source, manifest = unpatched_pod(evidence)
    if manifest is None:
        yield NOT_COMPARABLE.finding("info", NOT_COMPARABLE.meaning)
        return
    decision = decide(manifest, _decision_input(evidence, evidence.configuration))
    yield _comparison(evidence, source, decision)


def with_changed_configuration(answer: Finding, evidence: PodEvidence) -> Finding:
    """Return an answer that names the fabrics at fault, with the remedy if those have changed."""
    if answer.code not in _ABOUT_FABRICS or not _has_changed_configuration(evidence):
        return answer
    start = "Create the pod again: the fabrics of the cluster have changed since its admission."
    return answer._replace(remedy=f"{start} If the answer stays the same: {answer.remedy}")


def _changed_configuration(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield a finding if a pod without certain RDMA may get it from the cluster's fabrics now."""
    if _has_changed_configuration(evidence):
        yield CONFIGURATION_CHANGED.finding("info", CONFIGURATION_CHANGED.meaning)


def _has_changed_configuration(evidence: PodEvidence) -> bool:
    """Return whether the cluster has other fabrics than at the admission of a doubtful pod."""
    status, cluster_configuration = evidence.status, evidence.cluster_configuration
    if status is None or cluster_configuration is None or status.rdma not in ("no", "unsure"):
        return False
    return bool(status.config) and status.config != cluster_configuration.config_hash


def _comparison(evidence: PodEvidence, source: str, decision: Decision) -> Finding:
    verdict = decision.verdict
    assert verdict is not None  # the pod is decided on as if it had opted in
    status, outcome = evidence.status, _outcome_text(decision)
    level, remedy = VERDICT_LEVELS[verdict.rdma], verdict.remedy
    if status is None:
        text = f"If the webhook were called for {source}, the pod {outcome}."
        return WOULD_BE.finding(level, text, remedy)
    if (status.rdma, status.verdict_reason) == (verdict.rdma, verdict.because.code):
        return SAME_TODAY.finding("info", f"As at admission, {source} {outcome}.")
    text = f"Unlike at admission, {source} {outcome}."
    start = OTHER_TODAY.remedy
    if has_old_template(evidence):
        start = replacement_remedy(evidence.owners[0], evidence)
    return OTHER_TODAY.finding(level, text, f"{start} {remedy}".strip())


def _outcome_text(decision: Decision) -> str:
    """Return the decision as a predicate, with the reason unless the pod is equipped."""
    verdict = decision.verdict
    assert verdict is not None
    if verdict.rdma == "yes":
        network = f" over {decision.fabric}" if decision.fabric else ""
        libraries = f" with {verdict.libraries_clause}" if verdict.libraries_clause else ""
        return f"would be equipped for RDMA{network}{libraries}"
    outcome = _PREDICATES[verdict.rdma] if decision.allowed else "would be denied"
    return f"{outcome}: {verdict.message}"


class UnpatchedPod(NamedTuple):
    """A pod without the webhook's changes."""

    #: What shows the pod, such as "this pod" or the title of an owner; "" if nothing does.
    source: str = ""
    #: None if it is unknown.
    manifest: PodManifest | None = None


def unpatched_pod(evidence: PodEvidence) -> UnpatchedPod:
    """Return the pod before the webhook's changes, from its template if it may be patched."""
    owner, manifest = pod_from_template(evidence)
    if manifest is not None:
        return UnpatchedPod(f"a pod from the template of {owner}", manifest)
    may_be_patched = evidence.has_opted_in and STATUS_ANNOTATION in evidence.annotations
    return UnpatchedPod() if may_be_patched else UnpatchedPod("this pod", evidence.pod.manifest)


def pod_from_template(evidence: PodEvidence) -> UnpatchedPod:
    """Return what the nearest owner with the pod's template makes of it."""
    for owner in evidence.owners:
        for template in templates_of(owner.manifest):
            for controller_pod in controller_pods(template):
                if _is_made_from(PodRecord.read(controller_pod.pod), evidence.pod):
                    return UnpatchedPod(owner.title, controller_pod.pod)
    return UnpatchedPod()


def _is_made_from(template: PodRecord, pod: PodRecord) -> bool:
    """Return whether a pod has the containers of a template, and at least its labels."""
    labels = template.metadata.labels.items() <= pod.metadata.labels.items()
    return labels and _containers(template) == _containers(pod)


def _containers(pod: PodRecord) -> list[str]:
    return [container.name for container in pod.spec.containers]


def _decision_input(evidence: PodEvidence, configuration: CompiledConfiguration) -> DecisionInput:
    """Return the input of the webhook's decision."""
    facts = evidence.facts
    return DecisionInput(
        configuration=configuration,
        namespace=facts.namespace(evidence.namespace_name),
        fabric_index=facts.fabric_index(configuration),
        assume_opted_in=True,
    )
