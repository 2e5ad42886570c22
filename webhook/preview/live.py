"""What a cluster says that a review of pods depends on, and the templates of its workloads.

Both are read with the rights of whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from webhook.admission.registration import WEBHOOK_NAME, WebhookSetup, webhooks_in
from webhook.config.custom_resource import NAME, OBJECT
from webhook.config.load import Loaded, parse_object
from webhook.kube.api import ObjectReads
from webhook.kube.cluster_reads import (
    UNRESTRICTED,
    BestEffortFacts,
    BestEffortReads,
    OwnerChain,
)
from webhook.kube.objects import KubernetesObject, Manifest, Webhook
from webhook.kube.watched_resources import CONFIGURATIONS
from webhook.model.annotations import ENABLE
from webhook.model.facts import LABEL, key_of
from webhook.preview.input_facts import LiveFacts
from webhook.preview.workloads.templates import templates_of
from webhook.text.yaml.documents import Document

# The facts that the webhook has itself: the namespaces of the pods, with their LimitRanges and
# quotas, the nodes, how the webhook is registered, and its fabrics. Whatever cannot be read is
# reported in a note, with what is assumed in its place.

#: The most namespaces that are read, with three requests each.
MOST_NAMESPACES = 100
_REGISTRATIONS = "mutatingwebhookconfigurations"
_REGISTRATIONS_PATH = f"/apis/admissionregistration.k8s.io/v1/{_REGISTRATIONS}"
_REGISTERED = "assumed: the webhook is registered as its manifests do it"
_FABRICS_PATH = f"{CONFIGURATIONS.path}/{NAME}"


class LiveReading(NamedTuple):
    """What was read of a cluster, and its configuration: None if not wanted, or not to be read."""

    facts: LiveFacts
    configuration: Loaded | None = None


def namespaces_of(documents: Iterable[Document], usual: str, *, enable: bool = False) -> list[str]:
    """Return the namespaces of the pods that ask for RDMA; no decision depends on the others.

    `usual` is that of objects that name none; with `enable`, every pod asks.
    """
    asking = (
        template.namespace or usual
        for document in documents
        for template in templates_of(document.value)
        if enable or _opted_in(template.pod)
    )
    return list(dict.fromkeys(asking))


def read_live(
    reads: ObjectReads,
    namespaces: Sequence[str],
    *,
    fabrics_instead: str = "",
    claims: bool = False,
) -> LiveReading:
    """Read what decisions on pods in these namespaces depend on.

    `claims`: read their ResourceClaimTemplates and ResourceClaims, too, which matter if a fabric
    has claims; they are read anyway if a fabric of the cluster has.
    `fabrics_instead` says which fabrics are used if the cluster's cannot be read; "": they are not
    wanted. Each namespace is read once, and after a request that the API server does not answer,
    none follows. Raises InvalidConfiguration if the cluster's fabrics cannot be used.
    """
    known = BestEffortFacts(reads)
    webhooks = _registered(known)
    configuration = _configuration(known, fabrics_instead) if fabrics_instead else None
    for name in namespaces[:MOST_NAMESPACES]:
        known.read_namespace(name)
    if len(namespaces) > MOST_NAMESPACES:
        more = len(namespaces) - MOST_NAMESPACES
        known.notes.append(
            f"{more} more namespaces: not read, as they are too many; {UNRESTRICTED}"
        )
    if claims or (configuration is not None and configuration.fabrics.by_template):
        for name in namespaces[:MOST_NAMESPACES]:
            known.read_claims(name)
    if namespaces:
        known.read_nodes()
    return LiveReading(_facts(known, webhooks), configuration)


def _facts(known: BestEffortFacts, webhooks: tuple[WebhookSetup, ...] | None) -> LiveFacts:
    return LiveFacts(
        objects=tuple(known.objects),
        nodes=known.nodes,
        webhooks=webhooks,
        notes=tuple(known.notes),
        listed=tuple(known.listed),
    )


def _registered(known: BestEffortFacts) -> tuple[WebhookSetup, ...] | None:
    """Return the webhooks of ours that are registered; None if they cannot be read."""
    items = known.permitted.list(_REGISTRATIONS_PATH, _REGISTRATIONS)
    if items is None:
        known.note(f"list {_REGISTRATIONS}", _REGISTERED)
        return None
    setups = webhooks_in(items)
    known.notes += filter(None, map(_without_bundle, setups))
    return setups


def _configuration(known: BestEffortFacts, instead: str) -> Loaded | None:
    """Return the configuration of the cluster; None if it cannot be read."""
    if known.is_silent():
        return None
    item = known.permitted.get(_FABRICS_PATH, OBJECT)
    if item is None:
        known.note(f"get {CONFIGURATIONS.resource}", instead)
        return None
    loaded = parse_object(item, OBJECT)
    names = ", ".join(loaded.fabrics.fabrics) or "none"
    known.notes.append(f"fabrics: those of the cluster, {OBJECT}: {names}")
    return loaded


def _without_bundle(setup: WebhookSetup) -> str:
    """Say of a webhook that it cannot be called; "" if it can."""
    if Webhook.model_validate(setup.webhook).client_config.ca_bundle:
        return ""
    return (
        f"{setup.name}: the API server cannot call {WEBHOOK_NAME}, which has no caBundle; assumed: "
        f"whoever runs the cluster will see to it (rdma-webhook certs status)"
    )


# The templates of the workloads that live in a cluster, read with the rights of whoever asks.
#
# A live pod is already patched, so it cannot be decided on again; its owner's template can. The
# workloads are those that own a pod that opted in, of whatever kind, and those of Kubernetes' own
# kinds without any pod at the moment.

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
    """Objects with templates whose pods opted in, and sentences on what is not among them."""

    objects: list[Manifest]
    namespaces: list[str]
    notes: list[str]


def live_templates(reads: ObjectReads, namespace: str = "") -> LiveTemplates:
    """Read the workloads of a namespace, or with "" of all that have the webhook's label."""
    return _Reading(BestEffortReads(reads)).all(namespace)


class _Reading:
    def __init__(self, permitted: BestEffortReads) -> None:
        self._permitted = permitted
        self._notes: list[str] = []

    def all(self, namespace: str) -> LiveTemplates:
        spaces = [namespace] if namespace else self._labelled()
        objects = [one for space in spaces for one in self._of(space)]
        lacking = [f"{one.what}: not read: {one.said}" for one in self._permitted.unread]
        return LiveTemplates(objects, spaces, [*self._notes, *lacking])

    def _labelled(self) -> list[str]:
        query = {"labelSelector": f"{LABEL}=true"}
        found = self._permitted.list(_NAMESPACE, "the namespaces with the label", query)
        if found == []:
            self._notes.append(f"no namespace has the label {LABEL}=true: the webhook has no pods")
        return [key_of(one)[1] for one in found or ()]

    def _of(self, space: str) -> Iterator[Manifest]:
        """Yield each workload of a namespace whose pods opted in."""
        pods = self._permitted.list(f"{_NAMESPACE}/{space}/pods", f"the pods of {space}") or []
        asking = [KubernetesObject.read(pod) for pod in pods if _opted_in(pod)]
        found = {_identity(one): one for one in self._owners(asking, space)}
        for version, resource, kind in _KINDS:
            path = f"/apis/{version}/namespaces/{space}/{resource}"
            for one in self._permitted.list(path, f"the {resource} of {space}") or ():
                typed = {**one, "apiVersion": version, "kind": kind}
                if _stands_alone(typed) and _templates_ask(typed):
                    found.setdefault(_identity(typed), typed)
        yield from found.values()

    def _owners(self, pods: Iterable[KubernetesObject], space: str) -> Iterator[Manifest]:
        """Yield the uppermost owner with a template of each pod; count those without one."""
        chain, without = OwnerChain(self._permitted, space), 0
        for pod in pods:
            able = [one.manifest for one in chain.of(pod) if templates_of(one.manifest)]
            without += not able
            yield from able[-1:]
        if without:
            self._notes.append(
                f"{without} pod{'s' * (without != 1)} of {space}: not compared, since no template "
                "can be read that they were made from, and they are already patched"
            )


def _opted_in(pod: Manifest) -> bool:
    return KubernetesObject.read(pod).metadata.annotations.get(ENABLE) not in (None, "false")


def _stands_alone(item: Manifest) -> bool:
    """Return whether an object has no controller."""
    return KubernetesObject.read(item).metadata.controller is None


def _templates_ask(item: Manifest) -> bool:
    return any(_opted_in(template.pod) for template in templates_of(item))


def _identity(item: Manifest) -> tuple[str, ...]:
    """Return what tells objects apart that may be read twice; versions of a kind are one."""
    return (str(item.get("kind")), *key_of(item))
