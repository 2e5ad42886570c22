"""The evidence about a pod: objects as the API server returns them, logs and processes.

`collector` or `file_collector` provides it. Everything except the pod may be missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, PlainValidator

from webhook.admission.registration import Registration
from webhook.diagnose.tools.logs import LogReport
from webhook.kube.objects import (
    Event,
    KubernetesObject,
    NodeRecord,
    PodRecord,
)
from webhook.kube.records import LenientObject, Text
from webhook.model.annotations import ENABLE_ANNOTATION, STATUS_ANNOTATION
from webhook.model.config_maps import ConfigMaps
from webhook.model.fabric import CompiledConfiguration
from webhook.model.facts import Facts
from webhook.model.nodes import Node

_NO_FACTS = Facts()


class RdmaProcess(NamedTuple):
    """A process that has an RDMA device open, and the memory that it has registered."""

    pid: int
    name: str
    registered_kib: int


class MissingClaim(NamedTuple):
    """A ResourceClaim that does not exist, or is being deleted."""

    name: str
    is_ending: bool = False


class UnmountableClaim(NamedTuple):
    """A PersistentVolumeClaim that a pod cannot mount."""

    name: str
    state: Literal["missing", "ending", "unbound"]
    #: The StorageClass of an unbound claim; "" if it names none.
    storage_class: str = ""
    is_class_missing: bool = False
    #: Of the StorageClass; "" if that is unknown.
    provisioner: str = ""


class UnfinishedPod(NamedTuple):
    """A pod of the cluster that has not ended: its node, and its requests."""

    #: NAMESPACE/NAME.
    name: str
    uid: str = ""
    #: "" if it has none yet.
    node: str = ""
    scheduler: str = ""
    #: Extended resource → amount.
    amounts: Mapping[str, int] = MappingProxyType({})
    #: Its kind and name; "" without one.
    controller: str = ""


class MemoryRights(NamedTuple):
    """The user of a new process in a container, and the memory that it may lock."""

    user: int
    #: Whether the capability has an effect.
    has_ipc_lock: bool
    #: The limit (ulimit -l); None for no limit.
    limit_kib: int | None


class ContainerProcesses(NamedTuple):
    """The processes of a container, or the problem that prevented their inspection."""

    container: str
    rdma_processes: tuple[RdmaProcess, ...] = ()
    problem: str = ""
    rights: MemoryRights | None = None
    #: The names of its network interfaces; () if they are not known.
    interfaces: tuple[str, ...] = ()


class ContainerLog(NamedTuple):
    """The report on the log of a container."""

    container: str
    report: LogReport
    #: Whether it is the log from before the last restart.
    previous: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEvidence:
    """The evidence about a pod; None marks parts that were not read."""

    pod: PodRecord
    namespace: KubernetesObject | None = None
    #: The pod's controller, its controller, and so on.
    owners: tuple[KubernetesObject, ...] = ()
    #: Events of the pod and of its owners, oldest first.
    events: tuple[Event, ...] | None = None
    #: All registrations of the webhook pods.rdma.lab; () if it is not installed.
    registrations: tuple[Registration, ...] | None = None
    #: All nodes while the pod is pending, else its own; () if that does not exist.
    nodes: tuple[NodeRecord, ...] | None = None
    #: Whether `nodes` has the pod's own node if that exists; a file may lack it.
    includes_own_node: bool = True
    #: The ResourceClaims in the pod's spec that it cannot get.
    missing_claims: tuple[MissingClaim, ...] = ()
    #: The PersistentVolumeClaims that it cannot mount.
    unmountable_claims: tuple[UnmountableClaim, ...] = ()
    #: The nodes by name, for the placement of the pod: all of them while it waits for one; later
    #: its own, if the verdict depends on it. From files: all nodes in the files.
    placement_nodes: Mapping[str, Node] = field(default_factory=dict)
    #: The pods that may hold what it waits for; None if they were not read.
    unfinished_pods: tuple[UnfinishedPod, ...] | None = None
    processes: tuple[ContainerProcesses, ...] | None = None
    logs: tuple[ContainerLog, ...] | None = None
    #: The configuration for a decision today.
    configuration: CompiledConfiguration | None = None
    #: The configuration of the cluster.
    cluster_configuration: CompiledConfiguration | None = None
    #: The webhooks and policies that may change the pod after the webhook: see `later_admission`.
    later_mutators: tuple[str, ...] | None = None
    #: All others that may have changed it when it was created, before or after the webhook.
    other_mutators: tuple[str, ...] | None = None
    #: The pod's RuntimeClass, if it adds labels to nodeSelectors; "" otherwise.
    runtime_class: str = ""
    #: The facts for a decision today: the namespace, its rules and claims, and the nodes.
    facts: Facts = _NO_FACTS
    #: The ConfigMaps with variables or scripts of the pod, as they were when it was created.
    config_maps: ConfigMaps = field(default_factory=dict)
    #: The others, which were changed since: name → when, as the API server writes times.
    changed_config_maps: Mapping[str, str] = field(default_factory=dict)
    #: Sentences on what could not be read.
    unread_sentences: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The pod's name, "" if it has none."""
        return self.pod.metadata.name

    @property
    def namespace_name(self) -> str:
        """The name of the pod's namespace."""
        return self.pod.metadata.namespace or "default"

    @property
    def annotations(self) -> dict[str, str]:
        """The pod's annotations whose values are strings."""
        annotations = self.pod.metadata.annotations
        return {key: value for key, value in annotations.items() if isinstance(value, str)}

    @property
    def has_opted_in(self) -> bool:
        """Whether the annotation has any value but "false"."""
        return self.annotations.get(ENABLE_ANNOTATION) not in (None, "false")

    @property
    def status(self) -> StatusAnnotation | None:
        """The content of `rdma.lab/status`; None if the webhook cannot have written it.

        The webhook writes no status into a pod that did not opt in, so such a status was copied.
        """
        if not self.has_opted_in:
            return None
        return read_status(self.annotations.get(STATUS_ANNOTATION, ""))


def _codes(value: object) -> tuple[str, ...] | int:
    """Return a list of codes, or their count if the annotation had no room for the codes."""
    if isinstance(value, int):
        return int(value)
    return tuple(code for code in value if isinstance(code, str)) if isinstance(value, list) else ()


Codes = Annotated[tuple[str, ...] | int, PlainValidator(_codes)]


class StatusAnnotation(LenientObject):
    """The content of `rdma.lab/status`."""

    rdma: Literal["yes", "no", "unsure", "none"]
    verdict_reason: Text = Field("", alias="because")
    assumption_reason: Text = Field("", alias="assumed")
    fabric: Text = ""
    #: The names, separated by commas; "" for NCCL alone, and for none.
    libraries: Text = ""
    config: Text = ""
    decision_reason: Text = Field("", alias="reason")
    applied: Codes = ()
    skipped: Codes = ()
    warned: Codes = ()

    @property
    def codes(self) -> frozenset[str]:
        """All its codes of reasons, except for lists that had no room."""
        lists = (codes for codes in (self.skipped, self.warned) if not isinstance(codes, int))
        return frozenset({self.verdict_reason, self.decision_reason}.union(*lists))


def read_status(written: str) -> StatusAnnotation | None:
    """Read the annotation; None for anything but an object with a verdict."""
    try:
        return StatusAnnotation.model_validate(json.loads(written))
    except (ValueError, RecursionError):
        return None
