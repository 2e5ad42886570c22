"""The facts of a cluster that previews depend on, and the templates of its workloads.

Both are read with the user's rights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from webhook.admission.registration import WEBHOOK_NAME, Registration, registrations_in
from webhook.admission.selection import ca_bundle_of
from webhook.config.custom_resource import CONFIGURATION_TITLE
from webhook.config.load import LoadedConfiguration, parse_object
from webhook.kube.api import ObjectReads
from webhook.kube.cluster_reads import (
    UNRESTRICTED,
    BestEffortReads,
    FactsReader,
    OwnerChain,
)
from webhook.kube.objects import KubernetesObject, Manifest
from webhook.kube.watched_resources import CONFIGURATION_PATH, CONFIGURATIONS
from webhook.model.annotations import ENABLE_ANNOTATION
from webhook.model.facts import OPT_IN_LABEL, key_of
from webhook.model.names import counted
from webhook.preview.input_facts import ConfigMapKey, LiveFacts, config_map_keys
from webhook.preview.workloads.derived import derived_templates
from webhook.preview.workloads.templates import Template, templates_of
from webhook.text.yaml.documents import Document

# The same facts as in the webhook: the namespaces of the pods, with their LimitRanges and quotas,
# the nodes, the webhook's registration, and its fabrics. A note reports each unreadable object,
# with the assumption in its place.

#: The largest number of namespaces to read, with three requests each.
MAX_NAMESPACES = 100
_REGISTRATIONS = "mutatingwebhookconfigurations"
_REGISTRATIONS_PATH = f"/apis/admissionregistration.k8s.io/v1/{_REGISTRATIONS}"
_REGISTERED = "assumed to be as in the webhook's manifests"


class LiveReading(NamedTuple):
    """The facts and the configuration of a cluster."""

    live_facts: LiveFacts
    #: None if it was not requested, or cannot be read.
    configuration: LoadedConfiguration | None = None


def namespaces_of(
    documents: Iterable[Document], default_namespace: str, *, enable: bool = False
) -> list[str]:
    """Return the namespaces of the pods that opted in; no decision depends on the others.

    Objects without a namespace are in `default_namespace`. With `enable`, every pod has opted in.
    """
    templates = _templates_that_opted_in(documents, enable=enable)
    return list(dict.fromkeys(template.namespace or default_namespace for template in templates))


def config_maps_of(
    documents: Iterable[Document], default_namespace: str, *, enable: bool = False
) -> set[ConfigMapKey]:
    """Return the ConfigMaps on which decisions on the pods that opted in depend.

    It has the same parameters as `namespaces_of`.
    """
    return config_map_keys(_templates_that_opted_in(documents, enable=enable), default_namespace)


def _templates_that_opted_in(documents: Iterable[Document], *, enable: bool) -> Iterator[Template]:
    for document in documents:
        for template in (*templates_of(document.value), *derived_templates(document.value)):
            if enable or _opted_in(template.pod):
                yield template


def read_live(
    reads: ObjectReads,
    namespaces: Sequence[str],
    *,
    read_fabrics: bool = False,
    unread_clause: str = "",
    claims: bool = False,
    config_maps: Iterable[ConfigMapKey] = (),
) -> LiveReading:
    """Read the facts that decisions on pods in these namespaces depend on.

    `claims`: also read their ResourceClaimTemplates and ResourceClaims, which matter if a fabric
    has claims; they are read anyway if a fabric of the cluster has claims.
    `config_maps`: the ConfigMaps on which these decisions depend; no more are read than namespaces.
    `read_fabrics`: also read the cluster's fabrics; if they cannot be read, the note about that
    ends with the `unread_clause`: the fabrics in their place, or what to do. Each namespace is read
    once. No request follows one without an answer. Raises InvalidConfiguration if the cluster's
    fabrics cannot be used.
    """
    facts_reader = FactsReader(reads)
    registrations = _read_registrations(facts_reader)
    configuration = _read_configuration(facts_reader, unread_clause) if read_fabrics else None
    for name in namespaces[:MAX_NAMESPACES]:
        facts_reader.read_namespace(name)
    if len(namespaces) > MAX_NAMESPACES:
        excess = len(namespaces) - MAX_NAMESPACES
        failure_note = (
            f"{counted(excess, 'more namespace')}: not read, since the limit is {MAX_NAMESPACES}"
        )
        facts_reader.notes.append(f"{failure_note}; {UNRESTRICTED}")
    if claims or (configuration is not None and configuration.compiled.uses_claims):
        for name in namespaces[:MAX_NAMESPACES]:
            facts_reader.read_claims(name)
    for key in sorted(config_maps)[:MAX_NAMESPACES]:
        facts_reader.read_config_map(*key)
    if namespaces:
        facts_reader.read_nodes()
    return LiveReading(_live_facts(facts_reader, registrations), configuration)


def _live_facts(
    facts_reader: FactsReader, registrations: tuple[Registration, ...] | None
) -> LiveFacts:
    return LiveFacts(
        objects=tuple(facts_reader.objects),
        nodes=facts_reader.nodes,
        registrations=registrations,
        notes=tuple(facts_reader.notes),
        namespaces_with_complete_templates=tuple(facts_reader.namespaces_with_complete_templates),
    )


def _read_registrations(facts_reader: FactsReader) -> tuple[Registration, ...] | None:
    """Return the registrations of our webhook; None if they cannot be read."""
    items = facts_reader.best_effort_reads.list(_REGISTRATIONS_PATH, _REGISTRATIONS)
    if items is None:
        facts_reader.note(f"list {_REGISTRATIONS}", _REGISTERED)
        return None
    registrations = registrations_in(items)
    facts_reader.notes += filter(None, map(_missing_bundle_note, registrations))
    return registrations


def _read_configuration(
    facts_reader: FactsReader, unread_clause: str
) -> LoadedConfiguration | None:
    """Return the configuration of the cluster; None if it cannot be read."""
    if facts_reader.is_unreachable():
        return None
    manifest = facts_reader.best_effort_reads.get(CONFIGURATION_PATH, CONFIGURATION_TITLE)
    if manifest is None:
        facts_reader.note(f"get {CONFIGURATIONS.resource}", unread_clause)
        return None
    loaded = parse_object(manifest, CONFIGURATION_TITLE)
    names = ", ".join(loaded.compiled.fabrics) or "none"
    facts_reader.notes.append(f"fabrics from the cluster ({CONFIGURATION_TITLE}): {names}")
    return loaded


def _missing_bundle_note(registration: Registration) -> str:
    """Return a note for a webhook that cannot be called; "" if it can be."""
    if ca_bundle_of(registration):
        return ""
    return (
        f"{registration.webhook_configuration_name}: the API server cannot call {WEBHOOK_NAME}, "
        "which has no caBundle; this report assumes that the cluster administrator will fix that "
        "(rdma-webhook certs status)"
    )


# The templates of the workloads in a cluster, read with the user's rights.
#
# A live pod is already patched, so it cannot be decided on again; its owner's template can. The
# workloads are the owners of pods that opted in, of any kind, and workloads of Kubernetes' own
# kinds that have no pod at the moment.

#: Kubernetes' own kinds with a pod template: path, resource, kind.
_KINDS = (
    ("apps/v1", "deployments", "Deployment"),
    ("apps/v1", "statefulsets", "StatefulSet"),
    ("apps/v1", "daemonsets", "DaemonSet"),
    ("batch/v1", "jobs", "Job"),
    ("batch/v1", "cronjobs", "CronJob"),
)
_NAMESPACE = "/api/v1/namespaces"


class LiveTemplates(NamedTuple):
    """Objects with templates whose pods opted in, and sentences on omissions."""

    objects: list[Manifest]
    namespaces: list[str]
    notes: list[str]


def live_templates(reads: ObjectReads, namespace: str = "") -> LiveTemplates:
    """Read the workloads of a namespace; with "", of all namespaces with the webhook's label."""
    return _TemplateReader(BestEffortReads(reads)).all(namespace)


class _TemplateReader:
    def __init__(self, best_effort_reads: BestEffortReads) -> None:
        self._best_effort_reads = best_effort_reads
        self._notes: list[str] = []

    def all(self, namespace: str) -> LiveTemplates:
        namespaces = [namespace] if namespace else self._labeled_namespaces()
        objects = [workload for name in namespaces for workload in self._workloads_of(name)]
        unread_notes = [
            f"{failure.subject}: not read ({failure.message})"
            for failure in self._best_effort_reads.failures
        ]
        return LiveTemplates(objects, namespaces, [*self._notes, *unread_notes])

    def _labeled_namespaces(self) -> list[str]:
        query = {"labelSelector": f"{OPT_IN_LABEL}=true"}
        namespaces = self._best_effort_reads.list(
            _NAMESPACE, "the namespaces with the label", query
        )
        if namespaces == []:
            self._notes.append(
                f"no namespace has the label {OPT_IN_LABEL}=true, so the webhook is called for no "
                "pod"
            )
        return [key_of(namespace)[1] for namespace in namespaces or ()]

    def _workloads_of(self, namespace: str) -> Iterator[Manifest]:
        """Yield each workload of a namespace whose pods opted in."""
        pods = (
            self._best_effort_reads.list(
                f"{_NAMESPACE}/{namespace}/pods", f"the pods of {namespace}"
            )
            or []
        )
        opted_in = [KubernetesObject.read(pod) for pod in pods if _opted_in(pod)]
        workloads = {_identity(owner): owner for owner in self._owners(opted_in, namespace)}
        for version, resource, kind in _KINDS:
            path = f"/apis/{version}/namespaces/{namespace}/{resource}"
            for manifest in (
                self._best_effort_reads.list(path, f"the {resource} of {namespace}") or ()
            ):
                typed = {**manifest, "apiVersion": version, "kind": kind}
                if _has_no_controller(typed) and _has_opted_in_template(typed):
                    workloads.setdefault(_identity(typed), typed)
        yield from workloads.values()

    def _owners(self, pods: Iterable[KubernetesObject], namespace: str) -> Iterator[Manifest]:
        """Yield each pod's uppermost owner with a template, and note how many pods have none."""
        chain, ownerless = OwnerChain(self._best_effort_reads, namespace), 0
        for pod in pods:
            owners = [owner.manifest for owner in chain.of(pod) if templates_of(owner.manifest)]
            ownerless += not owners
            yield from owners[-1:]
        if ownerless:
            self._notes.append(
                f"{counted(ownerless, 'pod')} of {namespace}: not compared, since existing "
                "pods are already patched, and no template of theirs could be read"
            )


def _opted_in(pod: Manifest) -> bool:
    return KubernetesObject.read(pod).metadata.annotations.get(ENABLE_ANNOTATION) not in (
        None,
        "false",
    )


def _has_no_controller(manifest: Manifest) -> bool:
    """Return whether no controller owns an object."""
    return KubernetesObject.read(manifest).metadata.controller is None


def _has_opted_in_template(manifest: Manifest) -> bool:
    return any(_opted_in(template.pod) for template in templates_of(manifest))


def _identity(manifest: Manifest) -> tuple[str, ...]:
    """Return the key of an object that may be read twice, the same in every version of its kind."""
    return (str(manifest.get("kind")), *key_of(manifest))
