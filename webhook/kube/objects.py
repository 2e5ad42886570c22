"""Kubernetes objects as records of the fields that the program reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import Field, SkipValidation

from webhook.kube.container_states import ContainerStatus
from webhook.kube.records import (
    Flag,
    Items,
    LenientObject,
    Presence,
    Text,
    Texts,
    Values,
    text_of,
)

#: A Kubernetes object as JSON.
Manifest = dict[str, object]


# The parts that objects of all kinds have.


class Named(LenientObject):
    """An object with a name: a node's metadata, a scheduling gate, the status of a claim."""

    name: Text = ""


class ObjectReference(Named):
    """The object that an Event is about."""

    kind: Text = ""
    uid: Text = ""
    #: A part of the object, such as `spec.containers{main}`.
    field_path: Text = ""

    @property
    def title(self) -> str:
        """The kind and name, for sentences."""
        return f"{self.kind} {self.name}".strip()


class OwnerReference(ObjectReference):
    """An entry of `metadata.ownerReferences`."""

    api_version: Text = ""
    #: Whether the owner is the controller of the object.
    controller: Flag = False


class _OwnedMetadata(LenientObject):
    labels: Values = Field(default_factory=dict, alias="f:labels")
    annotations: Values = Field(default_factory=dict, alias="f:annotations")


class _OwnedFields(LenientObject):
    metadata: _OwnedMetadata = Field(default_factory=_OwnedMetadata, alias="f:metadata")
    #: Of a ConfigMap.
    data: Presence = Field(default=False, alias="f:data")
    binary_data: Presence = Field(default=False, alias="f:binaryData")


class ManagedFields(LenientObject):
    """An entry of `metadata.managedFields`: the fields of one manager, and its last write."""

    time: Text = ""
    fields_v1: _OwnedFields = Field(default_factory=_OwnedFields)


class Metadata(LenientObject):
    """The `metadata` of an object."""

    name: Text = ""
    namespace: Text = ""
    uid: Text = ""
    labels: Texts = Field(default_factory=dict)
    #: Unparsed: in a file, a value may have any type.
    annotations: Values = Field(default_factory=dict)
    creation_timestamp: Text = ""
    is_deleted: Presence = Field(default=False, alias="deletionTimestamp")
    owner_references: Items[OwnerReference] = ()
    managed_fields: Items[ManagedFields] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The reference to the object's controller; None if it has none."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    def label_written_at(self, key: str) -> str:
        """Return when the manager of a label last wrote; "" if unknown.

        Times of the API server are RFC 3339 in UTC and in whole seconds, so they compare as text.
        """
        entries = ((edit.time, edit.fields_v1.metadata.labels) for edit in self.managed_fields)
        return _last_written(entries, key)

    def annotation_written_at(self, key: str) -> str:
        """Return when the manager of an annotation last wrote, as `label_written_at` does."""
        entries = ((edit.time, edit.fields_v1.metadata.annotations) for edit in self.managed_fields)
        return _last_written(entries, key)


def _last_written(entries: Iterable[tuple[str, dict[str, object]]], key: str) -> str:
    return max((time for time, owned in entries if owned.get(f"f:{key}") is not None), default="")


class KubernetesObject(LenientObject):
    """An object of any kind."""

    kind: Text = ""
    metadata: Metadata = Field(default_factory=Metadata)
    #: The object as read, for decisions, and for the search for pod templates.
    manifest: Annotated[Manifest, SkipValidation] = Field(default_factory=dict)

    @classmethod
    def read(cls, manifest: object) -> Self:
        """Read an object; anything but a mapping becomes an empty one."""
        fields = manifest if isinstance(manifest, dict) else {}
        return cls.model_validate({**fields, "manifest": fields})

    @property
    def title(self) -> str:
        """The kind and name, for sentences."""
        return f"{self.kind} {self.metadata.name}".strip()


# Pods: their progress and requests.


class Resources(LenientObject):
    """The requests and limits of a container."""

    requests: Values = Field(default_factory=dict)
    limits: Values = Field(default_factory=dict)


class Container(LenientObject):
    """A container of a pod's spec."""

    name: Text = ""
    #: "Always" for an init container that is a sidecar.
    restart_policy: Text = ""
    resources: Resources = Field(default_factory=Resources)

    @property
    def memory_limit(self) -> str:
        """The unparsed memory limit; "" without one."""
        return text_of(self.resources.limits.get("memory"))


class PodResourceClaim(LenientObject):
    """A claim of a pod: the name of a ResourceClaim, or of its template."""

    name: Text = ""
    resource_claim_name: Text = ""
    resource_claim_template_name: Text = ""


class _ClaimVolume(LenientObject):
    """The part of a volume that names a PersistentVolumeClaim."""

    claim_name: Text = ""


class PodVolume(LenientObject):
    """A volume of a pod."""

    persistent_volume_claim: _ClaimVolume = Field(default_factory=_ClaimVolume)


class PodSpec(LenientObject):
    """The `spec` of a pod."""

    node_name: Text = ""
    scheduler_name: Text = ""
    volumes: Items[PodVolume] = ()
    host_pid: Flag = Field(default=False, alias="hostPID")
    host_users: Flag = True
    os: Named = Field(default_factory=Named)
    containers: Items[Container] = ()
    init_containers: Items[Container] = ()
    ephemeral_containers: Items[Container] = ()
    resource_claims: Items[PodResourceClaim] = ()
    scheduling_gates: Items[Named] = ()

    @property
    def volume_claim_names(self) -> list[str]:
        """The names of the PersistentVolumeClaims that it mounts, each once."""
        names = (volume.persistent_volume_claim.claim_name for volume in self.volumes)
        return list(filter(None, dict.fromkeys(names)))


class Condition(LenientObject):
    """A condition of a pod or a node."""

    type: Text = ""
    status: Text = ""
    reason: Text = ""
    message: Text = ""


class Conditions(LenientObject):
    """The part of a status that has conditions."""

    conditions: Items[Condition] = ()

    def condition(self, name: str) -> Condition:
        """Return the condition of this type; an empty one if missing."""
        return next((entry for entry in self.conditions if entry.type == name), Condition())

    @property
    def is_ready(self) -> bool:
        """Whether the kubelet reports the pod or the node as ready."""
        return self.condition("Ready").status == "True"


class PodStatus(Conditions):
    """The `status` of a pod."""

    phase: Text = ""
    reason: Text = ""
    message: Text = ""
    pod_ip: Text = Field(default="", alias="podIP")
    #: The node on which the scheduler stops other pods for this one; since Kubernetes 1.35 also the
    #: node that it has chosen, while volumes and claims are bound.
    nominated_node_name: Text = ""
    init_container_statuses: Items[ContainerStatus] = ()
    container_statuses: Items[ContainerStatus] = ()
    resource_claim_statuses: Items[Named] = ()

    @property
    def has_ended(self) -> bool:
        """Whether no container of the pod will run again."""
        return self.phase in ("Succeeded", "Failed")


class PodRecord(KubernetesObject):
    """A pod of a cluster, or one printed by `kubectl get -o yaml`."""

    spec: PodSpec = Field(default_factory=PodSpec)
    status: PodStatus = Field(default_factory=PodStatus)

    @property
    def waits_for_node(self) -> bool:
        """Whether a pod of a cluster has no node yet."""
        return self.status.phase == "Pending" and not self.spec.node_name


# Events.


class Event(LenientObject):
    """An Event, of the core group or of events.k8s.io."""

    metadata: Metadata = Field(default_factory=Metadata)
    type: Text = ""
    reason: Text = ""
    message: Text = ""
    #: The message in events.k8s.io.
    note: Text = ""
    involved_object: ObjectReference = Field(default_factory=ObjectReference)
    #: The involved object in events.k8s.io.
    regarding: ObjectReference = Field(default_factory=ObjectReference)
    last_timestamp: Text = ""
    event_time: Text = ""

    @property
    def about(self) -> ObjectReference:
        """The object that the Event is about."""
        is_core = self.involved_object != ObjectReference()
        return self.involved_object if is_core else self.regarding

    def concerns(self, subject: KubernetesObject) -> bool:
        """Return whether the Event is about an object, not an earlier one of the same name."""
        about = self.about
        return about.title == subject.title and about.uid in ("", subject.metadata.uid)

    @property
    def text(self) -> str:
        """The message."""
        return self.message or self.note

    @property
    def time(self) -> str:
        """The time of the last occurrence, in the API server's form, which compares as text."""
        return self.last_timestamp or self.event_time or self.metadata.creation_timestamp


# Nodes.


class NodeSpec(LenientObject):
    """The `spec` of a node."""

    unschedulable: Flag = False


class NodeStatus(Conditions):
    """The `status` of a node."""

    allocatable: Values = Field(default_factory=dict)


class NodeRecord(LenientObject):
    """A node: its resources, and whether it accepts pods."""

    #: Only the name, since a cluster may have thousands of nodes.
    metadata: Named = Field(default_factory=Named)
    spec: NodeSpec = Field(default_factory=NodeSpec)
    status: NodeStatus = Field(default_factory=NodeStatus)


# The kinds of an API server.


class ApiResource(LenientObject):
    """A resource of a version of an API group."""

    name: Text = ""
    kind: Text = ""
    namespaced: Flag = False


class ApiResourceList(LenientObject):
    """The resources of a version of an API group."""

    resources: Items[ApiResource] = ()
