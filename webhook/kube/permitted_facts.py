"""What a person may read of the facts that the webhook has when it decides.

These are a namespace, its LimitRanges and quotas, its ResourceClaimTemplates and ResourceClaims,
and the nodes. Whatever cannot be read is told in a note, with what is assumed in its place; after a
request that the API server does not answer, none follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from webhook.errors import ShapeError
from webhook.kube.api import ObjectReads
from webhook.kube.cluster_inventory import permitted_nodes
from webhook.kube.cluster_reads import FORBIDDEN, NOT_FOUND, PermittedReads, ReadObject
from webhook.kube.watched_resources import CLAIM_TEMPLATES, CLAIMS, NODES, Kind
from webhook.model.claim_facts import CLAIM_KIND, TEMPLATE_KIND, is_made_for_pod
from webhook.model.facts import Facts, key_of
from webhook.model.nodes import Node

#: What is assumed of a namespace that was not read.
UNRESTRICTED = "assumed: no Pod Security level and no fabric of its own; its labels stay unknown"
_RULE = "assumed: none of them requires a memory limit"
_TEMPLATE = "whether the fabrics' templates exist stays unknown"
_CLAIM = "what they request is guessed from the names in the pod"
_NODES_UNREAD = "what the nodes offer, and which fabrics they belong to, stays unknown"
_REST = "what was not read by then is assumed as without a cluster"
_RULES = (("limitranges", "LimitRange"), ("resourcequotas", "ResourceQuota"))
_UNAUTHORIZED = 401


class PermittedFacts:
    """Reads one thing after the other, and notes what could not be read."""

    def __init__(self, reads: ObjectReads, permitted: PermittedReads | None = None) -> None:
        """Prepare; `permitted` is where the account of what could not be read is kept."""
        self._reads = reads
        self.permitted = permitted or PermittedReads(reads)
        self.objects: list[ReadObject] = []
        self.nodes: Mapping[str, Node] = {}
        self.notes: list[str] = []
        #: The namespaces whose ResourceClaimTemplates are all among the objects.
        self.listed: list[str] = []

    def is_silent(self) -> bool:
        """Whether the API server did not answer, or does not know who asks."""
        return any(one.code in (0, _UNAUTHORIZED) for one in self.permitted.unread)

    def read_namespace(self, name: str) -> None:
        """Read a namespace, and what it requires of its pods."""
        if self.is_silent():
            return
        path = f"/api/v1/namespaces/{name}"
        found = self.permitted.get(path, f"namespace {name}")
        if found is None:
            self.note("get namespaces", UNRESTRICTED)
        self._keep("Namespace", [] if found is None else [found])
        for resource, kind in _RULES:
            if self.is_silent():
                return
            items = self.permitted.list(f"{path}/{resource}", f"{resource} of namespace {name}")
            if items is None:
                self.note(f"list {resource}", _RULE)
            self._keep(kind, items or [])

    def read_claims(self, name: str) -> None:
        """Read the ResourceClaimTemplates and ResourceClaims of a namespace."""
        if self._claims(CLAIM_TEMPLATES, TEMPLATE_KIND, name, _TEMPLATE):
            self.listed.append(name)
        self._claims(CLAIMS, CLAIM_KIND, name, _CLAIM)

    def read_nodes(self) -> None:
        """Read all nodes, of which there may be thousands."""
        if self.is_silent():
            return
        found = permitted_nodes(NODES.project, self._reads, self.permitted)
        if found is None:
            self.note("list nodes", _NODES_UNREAD)
        self.nodes = found or {}

    def facts(self, above: Facts) -> Facts:
        """Return facts with what was read beneath them."""
        return above.above(self.objects, self.listed, self.nodes)

    def note(self, right: str, assumed: str) -> None:
        """Note why the last request brought nothing, and what is assumed."""
        what, code, said = self.permitted.unread[-1]
        if self.is_silent():
            self.notes.append(f"{said}; {_REST}")
        elif code == FORBIDDEN:
            self.notes.append(f"{what}: not read, as you lack the right to {right}; {assumed}")
        elif code == NOT_FOUND:
            self.notes.append(f"{what}: not there; {assumed}")
        else:
            self.notes.append(f"{what}: not read, as {said}; {assumed}")

    def _claims(self, kind: Kind, name: str, space: str, assumed: str) -> bool:
        """Read the objects of a kind in a namespace; return whether that was possible."""
        if self.is_silent():
            return False
        path = replace(kind, namespace=space).path
        items = self.permitted.list(path, f"{kind.resource} of namespace {space}")
        if items is None:
            self.note(f"list {kind.resource}", assumed)
            return False
        self._keep(name, [item for item in items if not is_made_for_pod(item)])
        return True

    def _keep(self, kind: str, items: list[ReadObject]) -> None:
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
