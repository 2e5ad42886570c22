"""Reads of what decides on pods: the configuration, and the webhooks and policies after ours."""

from __future__ import annotations

from typing import NamedTuple

from webhook.config.custom_resource import CONFIGURATION_TITLE
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import parse_object
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.later_admission import later_mutators, other_mutators
from webhook.kube.api import ObjectReads, path_segment
from webhook.kube.cluster_reads import NOT_FOUND, BestEffortReads
from webhook.kube.objects import Manifest
from webhook.kube.watched_resources import CONFIGURATION_PATH
from webhook.model.fabric import CompiledConfiguration
from webhook.model.facts import NamespaceFacts
from webhook.model.pod import at

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
WEBHOOKS_PATH = f"{_ADMISSION}/mutatingwebhookconfigurations"
_POLICIES_PATH = f"{_ADMISSION}/mutatingadmissionpolicies"
_RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


def installed_configuration(
    reads: ObjectReads, best_effort_reads: BestEffortReads
) -> CompiledConfiguration | None:
    """Return the cluster's configuration; None without one that can be read and used."""
    tolerant_reads = BestEffortReads(reads)
    manifest = tolerant_reads.get(CONFIGURATION_PATH, CONFIGURATION_TITLE)
    _record(best_effort_reads, tolerant_reads)
    try:
        return parse_object(manifest, CONFIGURATION_TITLE).compiled if manifest else None
    except InvalidConfiguration:
        return None


class Mutators(NamedTuple):
    """What may have changed a pod, besides the webhook; None if the webhooks cannot be read."""

    #: After the webhook.
    later: tuple[str, ...] | None = None
    #: Before or after it.
    others: tuple[str, ...] | None = None
    #: The pod's RuntimeClass, if it adds labels to nodeSelectors; "" otherwise.
    runtime_class: str = ""


def mutators_of(
    reads: ObjectReads, best_effort_reads: BestEffortReads, evidence: PodEvidence
) -> Mutators:
    """Return what may have changed the pod when it was created."""
    webhooks = best_effort_reads.list(WEBHOOKS_PATH, "mutatingwebhookconfigurations")
    if webhooks is None:
        return Mutators()
    labels = None if evidence.namespace is None else evidence.namespace.metadata.labels
    namespace = NamespaceFacts(name=evidence.namespace_name, labels=labels)
    policies = _policies(reads, best_effort_reads)
    arguments = (webhooks, policies, evidence.pod.manifest, namespace)
    later, others = tuple(later_mutators(*arguments)), tuple(other_mutators(*arguments))
    return Mutators(later, others, _runtime_class(best_effort_reads, evidence))


def _runtime_class(best_effort_reads: BestEffortReads, evidence: PodEvidence) -> str:
    """Return the title of the pod's RuntimeClass, if it adds labels to nodeSelectors; else ""."""
    name = at(evidence.pod.manifest, ("spec", "runtimeClassName"))
    if not isinstance(name, str):
        return ""
    path = f"{_RUNTIME_CLASSES}/{path_segment(name)}"
    manifest = best_effort_reads.get(path, f"RuntimeClass {name}") or {}
    selects = at(manifest, ("scheduling", "nodeSelector"))
    return f"RuntimeClass {name} (scheduling.nodeSelector)" if selects else ""


def _policies(reads: ObjectReads, best_effort_reads: BestEffortReads) -> list[Manifest]:
    """Return the MutatingAdmissionPolicies; [] in a cluster without the kind."""
    tolerant_reads = BestEffortReads(reads)
    policies = tolerant_reads.list(_POLICIES_PATH, "mutatingadmissionpolicies")
    _record(best_effort_reads, tolerant_reads)
    return policies or []


def _record(best_effort_reads: BestEffortReads, tolerant_reads: BestEffortReads) -> None:
    """Record the failed reads in `best_effort_reads`, other than of what does not exist."""
    best_effort_reads.failures += [
        failure for failure in tolerant_reads.failures if failure.code != NOT_FOUND
    ]
