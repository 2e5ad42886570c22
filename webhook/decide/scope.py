"""What a mutation knows about the pod, besides the draft."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from webhook.decide.draft import Draft
from webhook.decide.launchers.commands import Commands
from webhook.model.annotations import Requests
from webhook.model.claims import Claim, brings_gpu, may_claim_gpu
from webhook.model.decision import Reason
from webhook.model.fabric import Fabric, Fabrics
from webhook.model.facts import NamespaceFacts
from webhook.model.nodes import NodeInventory
from webhook.model.pod import Container, Kind, Path, Pod, User
from webhook.model.resources import is_gpu, unclaimed


class Target(NamedTuple):
    """A container that gets all mutations."""

    name: str
    path: Path  #: ("spec", "containers", 0)
    kind: Kind
    #: The number of its whole GPUs; 0 if it has none, or MIG slices or shared GPUs.
    gpus: int
    #: Whether it has MIG slices or time-sliced GPUs, which never get NICs per GPU or NVLink.
    shared_gpu: bool
    #: RDMA resources that it requests itself, even with quantity 0.
    rdma: tuple[str, ...] = ()
    #: Which user it runs as, as far as the pod says.
    user: User = "image"


class Launcher(NamedTuple):
    """A container that starts ranks in other pods; it gets only `env` and `hcoll`."""

    name: str
    path: Path
    #: What it was taken for a launcher by, such as "label mpi-job-role".
    evidence: str = ""
    #: Whether its ranks certainly run in other pods; else it may run them itself.
    elsewhere: bool = True


class KnowledgeLevel(IntEnum):
    """How much is known about a pod's fabric, or must be known before a mutation may act."""

    NOTHING = 0
    #: Which NIC the pod uses: the fabric's, or another vendor's.
    NIC = 1
    FABRIC = 2


class EarlierCall(NamedTuple):
    """What the status of a pod says about the call that wrote it.

    The API server calls again if another plugin changed the pod after us; and a user may create
    a pod from the manifest of one that exists.
    """

    #: The hash of its configuration; "" if there was no call.
    config: str = ""
    #: The fabric that it chose.
    fabric: str | None = None


#: For a pod that nobody was called for yet.
NO_CALL = EarlierCall()


class Context(NamedTuple):
    """Everything that a decision depends on besides the pod."""

    fabrics: Fabrics
    namespace: NamespaceFacts
    inventory: NodeInventory
    #: Decide as if the pod had opted in.
    enable: bool = False


class Scope(NamedTuple):
    """The decision on one pod so far; mutations only read it."""

    fabric: Fabric | None
    targets: tuple[Target, ...]
    launchers: tuple[Launcher, ...]
    requests: Requests
    namespace: NamespaceFacts
    fabrics: Fabrics
    #: The pod as it came in.
    original: Pod
    #: All containers of the original, by their paths.
    containers: Mapping[Path, Container]
    #: The DRA claims of the original.
    claims: tuple[Claim, ...]
    #: The commands that the containers of the original run.
    commands: Commands
    #: Whether there was an earlier call for this pod.
    called_before: bool = False
    #: Whether it equipped the pod under a configuration that is not this one.
    other_configuration: bool = False

    @property
    def has_gpu(self) -> bool:
        """Whether a container of the pod has a GPU, or a device that may be one."""
        return (
            may_claim_gpu(self.original, self.fabrics)
            or self.claims_gpu
            or any(
                unclaimed(one, self.fabrics)
                or any(is_gpu(name, self.fabrics) for name in one.limits)
                for one in self.original.containers
            )
        )

    @property
    def claims_gpu(self) -> bool:
        """Whether a template of the fabric is known to bring a GPU with its NIC."""
        return self.fabric is not None and any(
            brings_gpu(claim.template, self.fabrics, self.namespace.claims)
            for claim in self.fabric.claims
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One mutation: a record with a function, listed in `webhook.decide.mutations.MUTATIONS`."""

    name: str  #: kebab-case, as in rdma.lab/skip
    summary: str
    needs: KnowledgeLevel
    reasons: tuple[Reason, ...]
    mutate: Callable[[Draft, Scope], None]
    #: Whether it acts on launchers too; in a pod without targets only such mutations run.
    on_launchers: bool = False
