"""What a cluster says that a review of pods depends on, read with the rights of whoever asks.

These are the facts that the webhook has itself: the namespaces of the pods, with their LimitRanges
and quotas, the nodes, how the webhook is registered, and its fabrics. Whatever cannot be read is
told in a note, with what is assumed in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from webhook.admission.registration import WEBHOOK_NAME, WebhookSetup, webhooks_in
from webhook.config.custom_resource import NAME, OBJECT
from webhook.config.load import Loaded, parse_object
from webhook.kube.api import ObjectReads
from webhook.kube.permitted_facts import UNRESTRICTED, PermittedFacts
from webhook.kube.watched_resources import CONFIGURATIONS
from webhook.model.annotations import ENABLE
from webhook.model.pod import at
from webhook.preview.input_facts import LiveFacts
from webhook.preview.workloads.templates import templates_of
from webhook.text.yaml.documents import Document

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


def _facts(known: PermittedFacts, webhooks: tuple[WebhookSetup, ...] | None) -> LiveFacts:
    return LiveFacts(
        objects=tuple(known.objects),
        nodes=known.nodes,
        webhooks=webhooks,
        notes=tuple(known.notes),
        listed=tuple(known.listed),
    )


def _registered(known: PermittedFacts) -> tuple[WebhookSetup, ...] | None:
    """Return the webhooks of ours that are registered; None if they cannot be read."""
    items = known.permitted.list(_REGISTRATIONS_PATH, _REGISTRATIONS)
    if items is None:
        known.note(f"list {_REGISTRATIONS}", _REGISTERED)
        return None
    setups = webhooks_in(items)
    known.notes += filter(None, map(_without_bundle, setups))
    return setups


def _configuration(known: PermittedFacts, instead: str) -> Loaded | None:
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
    if at(setup.webhook, ("clientConfig", "caBundle")):
        return ""
    return (
        f"{setup.name}: the API server cannot call {WEBHOOK_NAME}, which has no caBundle; assumed: "
        f"whoever runs the cluster will see to it (rdma-webhook certs status)"
    )
