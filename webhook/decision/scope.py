"""What a mutation may know of the pod besides the draft."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from webhook.decision.annotations import Requests
from webhook.decision.draft import Draft
from webhook.decision.facts import NamespaceFacts, NodeInventory
from webhook.decision.outcome import Reason
from webhook.fabric.records import Fabric, Fabrics
from webhook.mpi.commands import Commands
from webhook.pod.container_env import Environments
from webhook.pod.manifest import Container, Kind, PodManifest
from webhook.pod.path import Path


class Target(NamedTuple):
    """A container that gets the whole set."""

    name: str
    path: Path  #: ("spec", "containers", 0)
    kind: Kind
    #: Whole GPUs of its own; 0 for none, and for MIG or shared ones.
    gpus: int
    #: MIG slices or time-sliced GPUs: a GPU, but never NICs per GPU, nor NVLink.
    shared_gpu: bool
    #: RDMA resources that it requests itself, be it 0 of them.
    rdma: tuple[str, ...] = ()


class Launcher(NamedTuple):
    """A container that starts MPI ranks elsewhere: `env` and `hcoll` only."""

    name: str
    path: Path


class Needs(IntEnum):
    """How much of a pod's fabric is known, and how much must be before a mutation may act."""

    NOTHING = 0
    #: The fabric, or that the pod uses another vendor's NIC.
    NIC = 1
    FABRIC = 2


class Context(NamedTuple):
    """Everything that a decision depends on besides the pod."""

    fabrics: Fabrics
    namespace: NamespaceFacts
    inventory: NodeInventory
    #: Decide as if the pod had opted in.
    enable: bool = False


@dataclass(slots=True, kw_only=True)
class Scope:
    """One pod's decision so far; mutations read it and never write it."""

    fabric: Fabric | None
    targets: tuple[Target, ...]
    launchers: tuple[Launcher, ...]
    requests: Requests
    namespace: NamespaceFacts
    fabrics: Fabrics
    #: What the user wrote, before us.
    original: PodManifest
    #: All containers of the original, of every kind.
    containers: tuple[Container, ...]
    #: What those of the original run.
    commands: Commands
    #: And their environments.
    env: Environments
    host_network: bool
    annotations: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One mutation: a record with a function, listed in `webhook.mutations.MUTATIONS`."""

    name: str  #: kebab-case, as in rdma.lab/skip
    summary: str
    needs: Needs
    reasons: tuple[Reason, ...]
    mutate: Callable[[Draft, Scope], None]
    #: Whether it acts on launchers too; without targets only such mutations run.
    on_launchers: bool = False
