"""What a cluster says that a review of pods depends on, read with the rights of whoever asks.

These are the facts that the webhook has itself: the namespaces of the pods, with their LimitRanges
and quotas, how the webhook is registered, and its fabrics. Nodes are left out, since there may be
thousands. Whatever cannot be read is told in a note, with what is assumed in its place.
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
from webhook.decision.claim_facts import TEMPLATE_KIND
from webhook.decision.facts import Facts, key_of
from webhook.errors import ShapeError
from webhook.kube.permitted_reads import FORBIDDEN, NOT_FOUND, ObjectReads, PermittedReads
from webhook.pod.manifest import at
from webhook.preview.cluster_fabrics import ClusterFabrics, FabricsPlace, cluster_fabrics
from webhook.preview.input_facts import LiveFacts
from webhook.workloads.templates import templates_of
from webhook.yamltext.documents import Document

#: The most namespaces that are read, with three requests each.
MOST_NAMESPACES = 100
_RULES = (("limitranges", "LimitRange"), ("resourcequotas", "ResourceQuota"))
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_UNAUTHORIZED = 401
_Item = dict[str, Any]


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
    templates: bool = False,
) -> LiveReading:
    """Read what decisions on pods in these namespaces depend on.

    `templates`: read their ResourceClaimTemplates, too, which are needed if a fabric has claims.

    `fabrics_instead` says which fabrics are used if the cluster's cannot be read; "": they are not
    wanted. Each namespace is read once, and after a request that the API server does not answer,
    none follows. Raises InvalidConfiguration if the cluster's fabrics cannot be used.
    """
    reading = _Reading(reads)
    webhooks = reading.webhooks()
    fabrics = reading.fabrics(_home(webhooks), fabrics_instead) if fabrics_instead else None
    for name in namespaces[:MOST_NAMESPACES]:
        reading.namespace(name)
    if len(namespaces) > MOST_NAMESPACES:
        more = len(namespaces) - MOST_NAMESPACES
        reading.notes.append(
            f"{more} more namespaces: not read, as they are too many; {_NAMESPACE}"
        )
    if templates or (fabrics is not None and fabrics.loaded.fabrics.by_template):
        for name in namespaces[:MOST_NAMESPACES]:
            reading.templates(name)
    facts = LiveFacts(tuple(reading.objects), webhooks, tuple(reading.notes), tuple(reading.listed))
    return LiveReading(facts, fabrics)


def _home(webhooks: Iterable[WebhookSetup] | None) -> str:
    """Return the namespace that the webhook runs in."""
    for one in webhooks or ():
        found = at(one.webhook, ("clientConfig", "service", "namespace"))
        if isinstance(found, str):
            return found
    return OWN_NAMESPACE


_NAMESPACE = "assumed: no Pod Security level and no fabric of its own; its labels stay unknown"
_RULE = "assumed: none of them requires a memory limit"
_TEMPLATE = "whether the fabrics' templates exist stays unknown"
_REGISTERED = "assumed: the webhook is registered as its manifests do it"
_REST = "what was not read by then is assumed as without a cluster"


class _UnreadError(Exception):
    """An object could not be read, and a note says why."""


class _Reading:
    """Reads one thing after the other, and notes what could not be read."""

    def __init__(self, reads: ObjectReads) -> None:
        self._permitted = PermittedReads(reads)
        self.objects: list[_Item] = []
        self.notes: list[str] = []
        self.listed: list[str] = []

    def webhooks(self) -> tuple[WebhookSetup, ...] | None:
        """Return the webhooks of ours that are registered."""
        what = "mutatingwebhookconfigurations"
        found = self._permitted.list(_CONFIGURATIONS, what)
        if found is None:
            self._note(f"list {what}", _REGISTERED)
            return None
        setups = webhooks_in(found)
        self.notes += filter(None, map(_without_bundle, setups))
        return setups

    def fabrics(self, namespace: str, instead: str) -> ClusterFabrics | None:
        """Return the fabrics of the webhook in a namespace."""
        try:
            found = cluster_fabrics(lambda place: self._place(place, instead), namespace)
        except _UnreadError:
            return None
        if found is None:
            self.notes.append(f"{OBJECT}: not there; {instead}")
            return None
        names = ", ".join(found.loaded.fabrics.fabrics) or "none"
        self.notes.append(f"fabrics: those of the cluster, {found.source}: {names}")
        if found.outdated:
            self.notes.append(f"{found.source}: {found.outdated}")
        return found

    def _place(self, place: FabricsPlace, instead: str) -> _Item | None:
        """Return an object that may have the fabrics; None if it is not there."""
        if self._silent():
            raise _UnreadError
        found = self._permitted.get(place.path, place.name)
        if found is None and self._permitted.unread[-1].code != NOT_FOUND:
            self._note(f"get {place.resource}", instead)
            raise _UnreadError
        return found

    def namespace(self, name: str) -> None:
        """Read a namespace, and what it requires of its pods."""
        if self._silent():
            return
        path = f"/api/v1/namespaces/{name}"
        found = self._permitted.get(path, f"namespace {name}")
        if found is None:
            self._note("get namespaces", _NAMESPACE)
        self._keep("Namespace", [] if found is None else [found])
        for resource, kind in _RULES:
            if self._silent():
                return
            items = self._permitted.list(f"{path}/{resource}", f"{resource} of namespace {name}")
            if items is None:
                self._note(f"list {resource}", _RULE)
            self._keep(kind, items or [])

    def templates(self, name: str) -> None:
        """Read the ResourceClaimTemplates of a namespace."""
        if self._silent():
            return
        resource = "resourceclaimtemplates"
        path = f"/apis/resource.k8s.io/v1/namespaces/{name}/{resource}"
        items = self._permitted.list(path, f"{resource} of namespace {name}")
        if items is None:
            self._note(f"list {resource}", _TEMPLATE)
            return
        self._keep(TEMPLATE_KIND, items)
        self.listed.append(name)

    def _silent(self) -> bool:
        """Whether the API server did not answer, or does not know who asks."""
        return any(one.code in (0, _UNAUTHORIZED) for one in self._permitted.unread)

    def _keep(self, kind: str, items: list[_Item]) -> None:
        """Keep objects, which the API server lists without their kind."""
        for item in items:
            typed = {**item, "kind": kind}
            try:
                Facts().extended([typed], "")
            except ShapeError as error:
                self.notes.append(
                    f"{kind} {key_of(item)[1]}: not used as a fact about the cluster: {error}"
                )
            else:
                self.objects.append(typed)

    def _note(self, right: str, assumed: str) -> None:
        """Note why the last request brought nothing, and what is assumed."""
        what, code, said = self._permitted.unread[-1]
        if self._silent():
            self.notes.append(f"{said}; {_REST}")
        elif code == FORBIDDEN:
            self.notes.append(f"{what}: not read, as you lack the right to {right}; {assumed}")
        elif code == NOT_FOUND:
            self.notes.append(f"{what}: not there; {assumed}")
        else:
            self.notes.append(f"{what}: not read, as {said}; {assumed}")


def _without_bundle(setup: WebhookSetup) -> str:
    """Say of a webhook that it cannot be called; "" if it can."""
    if at(setup.webhook, ("clientConfig", "caBundle")):
        return ""
    return (
        f"{setup.name}: the API server cannot call {WEBHOOK_NAME}, which has no caBundle; assumed: "
        f"whoever runs the cluster will see to it (rdma-webhook certs status)"
    )
