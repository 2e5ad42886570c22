"""Read what the user of a command may read: nodes, owners, and the facts of a decision.

The user may have few rights. An object that cannot be read is then no error, but it is
reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

from webhook.errors import ClusterError, ShapeError
from webhook.kube.api import ObjectReads, Query, StatusError, path_segment, single_line
from webhook.kube.objects import (
    ApiResource,
    ApiResourceList,
    KubernetesObject,
    Manifest,
    OwnerReference,
)
from webhook.kube.reflector import read_list
from webhook.kube.watched_resources import CLAIM_TEMPLATES, CLAIMS, NODES, Item, WatchedResource
from webhook.model.claims import CLAIM_KIND, TEMPLATE_KIND, is_made_for_pod
from webhook.model.facts import Facts, key_of
from webhook.model.inventory import Reservation, reservation_of, reserved_on_nodes
from webhook.model.nodes import Node
from webhook.model.pod import MAX_OWNERS

# Read objects, and record failed reads.

FORBIDDEN, NOT_FOUND = 403, 404
_PAGE = 500


class ReadFailure(NamedTuple):
    """An object or list that could not be read, and the reason."""

    subject: str
    #: HTTP status of the API server's answer; 0 if it did not answer.
    code: int
    #: The message of the API server or the client, on one line.
    message: str


class BestEffortReads:
    """Reads objects and lists; returns None for failed reads, and adds them to `failures`."""

    def __init__(self, reads: ObjectReads) -> None:
        self._reads = reads
        #: The failures, each once.
        self.failures: list[ReadFailure] = []

    def get(self, path: str, subject: str, query: Query | None = None) -> Manifest | None:
        """Return an object; None if it cannot be read."""
        try:
            return self._reads.get(path, query or {})
        except ClusterError as error:
            self.record_failure(subject, error)
            return None

    def list(self, path: str, subject: str, query: Query | None = None) -> list[Manifest] | None:
        """Return the items of all pages of a list; None if one cannot be read."""
        manifests: list[Manifest] = []
        page: dict[str, str] = {**(query or {}), "limit": str(_PAGE)}
        while True:
            answer = self.get(path, subject, page)
            if answer is None:
                return None
            items, metadata = answer.get("items"), answer.get("metadata")
            if isinstance(items, list):
                manifests.extend(manifest for manifest in items if isinstance(manifest, dict))
            after = metadata.get("continue") if isinstance(metadata, dict) else None
            if not after:
                return manifests
            page = {**page, "continue": str(after)}

    def record_failure(self, subject: str, error: ClusterError) -> None:
        """Record a failed read."""
        code = error.code if isinstance(error, StatusError) else 0
        failure = ReadFailure(subject, code, reason_of(error))
        if failure not in self.failures:
            self.failures.append(failure)


def reason_of(error: ClusterError) -> str:
    """Return the message of an error on one line."""
    return single_line(error).rstrip(".")


# Read the nodes of a cluster once, and the reservations of its pods, in little memory.
#
# No other request waits for these lists, so their pages are large.

_Projection = TypeVar("_Projection")


def _countable_reservation(pod: Item) -> Reservation | None:
    """Return a pod's reservation; None also if it cannot be counted.

    Users decide on it, and the API server accepts 1e30: one pod must not hide all others.
    """
    try:
        return reservation_of(pod)
    except ShapeError:
        return None


_PODS = WatchedResource(resource="pods", project=_countable_reservation)


def nodes_of_cluster(reads: ObjectReads) -> dict[str, Node]:
    """Return all nodes by name; raise ClusterError if they cannot be read."""
    return nodes_as(NODES.project, reads)


def nodes_as(
    project: Callable[[Item], _Projection | None], reads: ObjectReads
) -> dict[str, _Projection]:
    """Return projections of all nodes by name; raise ClusterError if they cannot be read."""
    nodes = WatchedResource(resource=NODES.resource, project=project)
    projections = read_list(reads, nodes).projections
    return {name: node for (_, name), node in projections.items()}


def best_effort_nodes(
    project: Callable[[Item], _Projection | None],
    reads: ObjectReads,
    best_effort_reads: BestEffortReads,
) -> dict[str, _Projection] | None:
    """Return nodes as `nodes_as` does; None after a failed read, which is then recorded."""
    try:
        return nodes_as(project, reads)
    except ClusterError as error:
        best_effort_reads.record_failure("nodes", error)
        return None


def reserved_in_cluster(reads: ObjectReads) -> tuple[dict[str, dict[str, int]] | None, str]:
    """Return node → resource → the amount that its pods have reserved; or None and a reason.

    The reason is a refusal; raises ClusterError if the API server does not answer.
    """
    try:
        reservations = read_list(reads, _PODS).projections
    except StatusError as error:
        return None, f"pods cannot be listed ({error})"
    return reserved_on_nodes(reservations.values()), ""


# Read the owners of an object: a pod's controller, its controller, and so on.


class OwnerChain:
    """Reads the owners of objects in one namespace, each kind and each owner once."""

    def __init__(self, best_effort_reads: BestEffortReads, namespace: str) -> None:
        """Read with limited rights; an owner that cannot be read ends a chain."""
        self._best_effort_reads = best_effort_reads
        self._namespace = namespace
        self._kinds: dict[str, tuple[ApiResource, ...]] = {}
        self._owners: dict[tuple[str, str, str], KubernetesObject | None] = {}

    def of(self, owned: KubernetesObject) -> tuple[KubernetesObject, ...]:
        """Return the controller, its controller, and so on, as far as they can be read."""
        owners: list[KubernetesObject] = []
        while len(owners) < MAX_OWNERS and (reference := owned.metadata.controller):
            owner = self._owner(reference)
            if owner is None:
                break
            owners.append(owner)
            owned = owner
        return tuple(owners)

    def _owner(self, reference: OwnerReference) -> KubernetesObject | None:
        key = (reference.api_version, reference.kind, reference.name)
        if key not in self._owners:
            self._owners[key] = self._read(*key)
        return self._owners[key]

    def _read(self, version: str, kind: str, name: str) -> KubernetesObject | None:
        group, slash, number = version.rpartition("/")
        group_path = f"/apis/{path_segment(group)}" if slash else "/api"
        root = f"{group_path}/{path_segment(number)}"
        for resource in self._kinds_of(version, root):
            if resource.kind == kind and "/" not in resource.name:
                if not resource.namespaced:
                    return None  # the Node of a mirror pod
                collection = f"{root}/namespaces/{self._namespace}/{resource.name}"
                path = f"{collection}/{path_segment(name)}"
                owner = self._best_effort_reads.get(path, f"{kind} {name}")
                typed = owner and {**owner, "apiVersion": version, "kind": kind}
                return KubernetesObject.read(typed) if typed else None
        return None

    def _kinds_of(self, version: str, root: str) -> tuple[ApiResource, ...]:
        if version not in self._kinds:
            answer = self._best_effort_reads.get(root, f"the kinds of {version}")
            self._kinds[version] = ApiResourceList.model_validate(answer).resources
        return self._kinds[version]


# Read the facts of a decision, as far as a person may.
#
# These are a namespace, its LimitRanges and quotas, its ResourceClaimTemplates and ResourceClaims,
# the ConfigMaps with variables or scripts of containers, and the nodes. For each failed read, a
# note has the assumption made instead; once a request goes unanswered, no more are sent.

#: The assumption about a namespace that was not read.
UNRESTRICTED = "assumed to set no Pod Security level and no fabric; the labels remain unknown"
_NO_MEMORY_LIMIT = "assumed to require no memory limit"
_TEMPLATES_UNREAD = "whether the fabrics' templates exist remains unknown"
_CLAIMS_UNREAD = "their requests are guessed from the names in the pod"
_CONFIG_MAP_UNREAD = "its variables remain unknown, and its scripts are assumed to be harmless"
_NODES_UNREAD = "the nodes' resources and fabrics remain unknown"
_REMAINING = "everything else is treated as if there were no cluster"
_MEMORY_LIMIT_KINDS = (("limitranges", "LimitRange"), ("resourcequotas", "ResourceQuota"))
_UNAUTHORIZED = 401


class FactsReader:
    """Reads the facts of a decision one after the other, keeps them, and notes failed reads."""

    def __init__(
        self, reads: ObjectReads, best_effort_reads: BestEffortReads | None = None
    ) -> None:
        """Prepare; `best_effort_reads` records failed reads."""
        self._reads = reads
        self.best_effort_reads = best_effort_reads or BestEffortReads(reads)
        self.objects: list[Manifest] = []
        self.nodes: Mapping[str, Node] = {}
        self.notes: list[str] = []
        #: The namespaces whose ResourceClaimTemplates have all been read.
        self.namespaces_with_complete_templates: list[str] = []

    def is_unreachable(self) -> bool:
        """Whether the API server did not answer, or did not accept the credentials."""
        return any(
            failure.code in (0, _UNAUTHORIZED) for failure in self.best_effort_reads.failures
        )

    def read_namespace(self, name: str) -> None:
        """Read a namespace, and its requirements for pods."""
        if self.is_unreachable():
            return
        path = f"/api/v1/namespaces/{path_segment(name)}"
        namespace = self.best_effort_reads.get(path, f"namespace {name}")
        if namespace is None:
            self.note("get namespaces", UNRESTRICTED)
        self._keep("Namespace", [] if namespace is None else [namespace])
        for resource, kind in _MEMORY_LIMIT_KINDS:
            if self.is_unreachable():
                return
            items = self.best_effort_reads.list(
                f"{path}/{resource}", f"{resource} of namespace {name}"
            )
            if items is None:
                self.note(f"list {resource}", _NO_MEMORY_LIMIT)
            self._keep(kind, items or [])

    def read_claims(self, name: str) -> None:
        """Read the ResourceClaimTemplates and ResourceClaims of a namespace."""
        if self._claims(CLAIM_TEMPLATES, TEMPLATE_KIND, name, _TEMPLATES_UNREAD):
            self.namespaces_with_complete_templates.append(name)
        self._claims(CLAIMS, CLAIM_KIND, name, _CLAIMS_UNREAD)

    def read_config_map(self, namespace: str, name: str) -> None:
        """Read a ConfigMap from which containers get variables, scripts or files of libraries."""
        if self.is_unreachable():
            return
        collection = f"/api/v1/namespaces/{path_segment(namespace)}/configmaps"
        config_map = self.best_effort_reads.get(
            f"{collection}/{path_segment(name)}", f"ConfigMap {namespace}/{name}"
        )
        if config_map is None:
            self.note("get configmaps", _CONFIG_MAP_UNREAD)
        else:
            self._keep("ConfigMap", [config_map])

    def read_nodes(self) -> None:
        """Read all nodes; there may be thousands."""
        if self.is_unreachable():
            return
        nodes = best_effort_nodes(NODES.project, self._reads, self.best_effort_reads)
        if nodes is None:
            self.note("list nodes", _NODES_UNREAD)
        self.nodes = nodes or {}

    def facts(self, known: Facts) -> Facts:
        """Return `known`, completed with the facts that were read."""
        return known.with_fallback(
            self.objects, self.namespaces_with_complete_templates, self.nodes
        )

    def note(self, right: str, assumed: str) -> None:
        """Note why the last request failed, and the assumption made instead."""
        subject, code, message = self.best_effort_reads.failures[-1]
        if self.is_unreachable():
            self.notes.append(f"{message}; {_REMAINING}")
        elif code == FORBIDDEN:
            self.notes.append(f"{subject}: not read, as you lack the right to {right}; {assumed}")
        elif code == NOT_FOUND:
            self.notes.append(f"{subject}: does not exist; {assumed}")
        else:
            self.notes.append(f"{subject}: not read ({message}); {assumed}")

    def _claims(
        self, watched: WatchedResource[object], kind: str, namespace: str, assumed: str
    ) -> bool:
        """Read the objects of a kind in a namespace; return whether that worked."""
        if self.is_unreachable():
            return False
        path = replace(watched, namespace=namespace).path
        items = self.best_effort_reads.list(path, f"{watched.resource} of namespace {namespace}")
        if items is None:
            self.note(f"list {watched.resource}", assumed)
            return False
        self._keep(kind, [claim for claim in items if not is_made_for_pod(claim)])
        return True

    def _keep(self, kind: str, items: list[Manifest]) -> None:
        """Keep objects with their kind, which the API server omits from lists."""
        for manifest in items:
            typed = {**manifest, "kind": kind}
            try:
                Facts().with_objects([typed], "")
            except ShapeError as error:
                title = f"{kind} {key_of(manifest)[1]}"
                self.notes.append(f"{title}: not taken into account, since {error}")
            else:
                self.objects.append(typed)
