"""What a cluster says that a review of pods depends on, read with the rights of whoever asks.

These are the facts that the webhook has itself: the namespaces of the pods, with their LimitRanges
and quotas, the nodes, how the webhook is registered, and its fabrics. Whatever cannot be read is
told in a note, with what is assumed in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from webhook.admission.registration import (
    OWN_NAMESPACE,
    WEBHOOK_NAME,
    WebhookSetup,
    webhooks_in,
)
from webhook.config.object_form import OBJECT
from webhook.decision.annotations import ENABLE
from webhook.kube.permitted_facts import UNRESTRICTED, PermittedFacts
from webhook.kube.permitted_reads import NOT_FOUND
from webhook.kube.requests import ObjectReads
from webhook.pod.manifest import at
from webhook.preview.cluster_fabrics import ClusterFabrics, FabricsPlace, cluster_fabrics
from webhook.preview.input_facts import LiveFacts
from webhook.workloads.templates import templates_of
from webhook.yamltext.documents import Document

#: The most namespaces that are read, with three requests each.
MOST_NAMESPACES = 100
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


class LiveReading(NamedTuple):
    """What was read of a cluster, and its fabrics: None if not wanted, or not to be read."""

    facts: LiveFacts
    fabrics: ClusterFabrics | None = None


def namespaces_of(documents: Iterable[Document], usual: str, *, enable: bool = False) -> list[str]:
    """Return the namespaces of the pods that ask for RDMA; no decision depends on the others.

    `usual` is that of objects that name none; with `enable`, every pod asks.
    """
    asking = (
        template.namespace or usual
        for document in documents
        for template in templates_of(document.value)
        if enable or at(template.pod, ("metadata", "annotations", ENABLE)) not in (None, "false")
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
    known = PermittedFacts(reads)
    ours = _Webhooks(known)
    webhooks = ours.registered()
    fabrics = ours.fabrics(_home(webhooks), fabrics_instead) if fabrics_instead else None
    for name in namespaces[:MOST_NAMESPACES]:
        known.read_namespace(name)
    if len(namespaces) > MOST_NAMESPACES:
        more = len(namespaces) - MOST_NAMESPACES
        known.notes.append(
            f"{more} more namespaces: not read, as they are too many; {UNRESTRICTED}"
        )
    if claims or (fabrics is not None and fabrics.loaded.fabrics.by_template):
        for name in namespaces[:MOST_NAMESPACES]:
            known.read_claims(name)
    if namespaces:
        known.read_nodes()
    return LiveReading(_facts(known, webhooks), fabrics)


def _facts(known: PermittedFacts, webhooks: tuple[WebhookSetup, ...] | None) -> LiveFacts:
    return LiveFacts(
        objects=tuple(known.objects),
        nodes=known.nodes,
        webhooks=webhooks,
        notes=tuple(known.notes),
        listed=tuple(known.listed),
    )


def _home(webhooks: Iterable[WebhookSetup] | None) -> str:
    """Return the namespace that the webhook runs in."""
    for one in webhooks or ():
        found = at(one.webhook, ("clientConfig", "service", "namespace"))
        if isinstance(found, str):
            return found
    return OWN_NAMESPACE


_REGISTERED = "assumed: the webhook is registered as its manifests do it"


class _UnreadError(Exception):
    """An object could not be read, and a note says why."""


class _Webhooks:
    """Reads how the webhook is registered, and its fabrics."""

    def __init__(self, known: PermittedFacts) -> None:
        self._known = known

    def registered(self) -> tuple[WebhookSetup, ...] | None:
        """Return the webhooks of ours that are registered."""
        what = "mutatingwebhookconfigurations"
        found = self._known.permitted.list(_CONFIGURATIONS, what)
        if found is None:
            self._known.note(f"list {what}", _REGISTERED)
            return None
        setups = webhooks_in(found)
        self._known.notes += filter(None, map(_without_bundle, setups))
        return setups

    def fabrics(self, namespace: str, instead: str) -> ClusterFabrics | None:
        """Return the fabrics of the webhook in a namespace."""
        try:
            found = cluster_fabrics(lambda place: self._place(place, instead), namespace)
        except _UnreadError:
            return None
        notes = self._known.notes
        if found is None:
            notes.append(f"{OBJECT}: not there; {instead}")
            return None
        names = ", ".join(found.loaded.fabrics.fabrics) or "none"
        notes.append(f"fabrics: those of the cluster, {found.source}: {names}")
        if found.outdated:
            notes.append(f"{found.source}: {found.outdated}")
        return found

    def _place(self, place: FabricsPlace, instead: str) -> dict[str, Any] | None:
        """Return an object that may have the fabrics; None if it is not there."""
        if self._known.is_silent():
            raise _UnreadError
        found = self._known.permitted.get(place.path, place.name)
        if found is None and self._known.permitted.unread[-1].code != NOT_FOUND:
            self._known.note(f"get {place.resource}", instead)
            raise _UnreadError
        return found


def _without_bundle(setup: WebhookSetup) -> str:
    """Say of a webhook that it cannot be called; "" if it can."""
    if at(setup.webhook, ("clientConfig", "caBundle")):
        return ""
    return (
        f"{setup.name}: the API server cannot call {WEBHOOK_NAME}, which has no caBundle; assumed: "
        f"whoever runs the cluster will see to it (rdma-webhook certs status)"
    )
