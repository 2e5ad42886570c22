"""The input of a decision, and the analysis of the pod that a mutation gets besides the draft."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from webhook.decide.draft import Draft
from webhook.decide.launchers.commands import Commands
from webhook.decide.settings.reader import SettingsReader
from webhook.decide.settings.setting import NO_SETTINGS, CommandSettings
from webhook.model.annotations import UserAnnotations
from webhook.model.claims import Claim, brings_gpu, may_claim_gpu
from webhook.model.decision import Reason
from webhook.model.fabric import CompiledConfiguration, Fabric
from webhook.model.facts import NamespaceFacts
from webhook.model.nodes import FabricIndex
from webhook.model.pod import Container, Kind, Path, Pod, User
from webhook.model.resources import is_gpu, other_extended_resources


class Target(NamedTuple):
    """A container that gets all mutations."""

    name: str
    path: Path  #: ("spec", "containers", 0)
    kind: Kind
    #: The number of its whole GPUs; 0 if it has none, or has any partial GPU.
    gpus: int
    #: Whether it has a MIG slice, or a time-sliced or virtual GPU. It then gets no NICs per GPU
    #: and no NVLink.
    partial_gpu: bool
    #: The RDMA resources that it requests itself, even with quantity 0.
    rdma: tuple[str, ...] = ()
    #: The user that it runs as, as far as the pod determines it.
    user: User = "image"


class Launcher(NamedTuple):
    """A container that starts ranks, in a pod without targets; it gets only `env` and `hcoll`."""

    name: str
    path: Path
    #: The evidence for a launcher, such as "label mpi-job-role".
    evidence: str = ""
    #: Whether its ranks certainly run in other pods; else it may run them itself.
    ranks_in_other_pods: bool = True


class RdmaAccess(IntEnum):
    """A pod's access to RDMA, as far as it is known; a mutation needs one of these, or more."""

    #: No fabric is known, or the pod lacks the hostNetwork that its fabric needs.
    NONE = 0
    #: The pod uses an RDMA NIC; if no more is known, it is a NIC that no fabric lists.
    ANY_NIC = 1
    #: The pod can use the NIC of its fabric.
    FABRIC = 2


class EarlierCall(NamedTuple):
    """The call that wrote a pod's status, according to that status.

    The API server calls again if another plugin changed the pod after us; and a user may create
    a pod from the manifest of an existing pod.
    """

    #: The hash of its configuration; "" if there was no call.
    config: str = ""
    #: The fabric that it chose.
    fabric: str | None = None


#: The value for a pod without an earlier call.
NO_CALL = EarlierCall()


class DecisionInput(NamedTuple):
    """Everything besides the pod that a decision depends on."""

    configuration: CompiledConfiguration
    namespace: NamespaceFacts
    fabric_index: FabricIndex
    #: Whether to decide as if the pod had opted in.
    assume_opted_in: bool = False
    #: What the pod's workload sets outside the pod: its launcher for ranks, or Ray for workers.
    workload_settings: CommandSettings = NO_SETTINGS


class PodAnalysis(NamedTuple):
    """The parts and properties of the pod that the mutations read, and never change.

    `Applicability` decides which mutations run.
    """

    #: The fabric, with any `RdmaAccess`: also if the pod uses a foreign NIC or lacks hostNetwork.
    fabric: Fabric | None
    targets: tuple[Target, ...]
    launchers: tuple[Launcher, ...]
    annotations: UserAnnotations
    namespace: NamespaceFacts
    configuration: CompiledConfiguration
    #: The incoming pod.
    original: Pod
    #: All containers of the original, by their paths.
    containers: Mapping[Path, Container]
    #: The DRA claims of the original.
    claims: tuple[Claim, ...]
    #: The commands that the containers of the original run.
    commands: Commands
    #: The settings that those commands make.
    settings_reader: SettingsReader
    #: Whether there was an earlier call for this pod.
    called_before: bool = False
    #: Whether the status on the pod is from a call with another configuration.
    status_from_other_configuration: bool = False
    #: What the pod's workload sets outside the pod.
    workload_settings: CommandSettings = NO_SETTINGS

    @property
    def has_gpu(self) -> bool:
        """Whether a container of the pod has a GPU, or a device that may be one."""
        return (
            may_claim_gpu(self.original, self.configuration)
            or self.fabric_brings_gpu
            or any(
                other_extended_resources(container, self.configuration)
                or any(is_gpu(name, self.configuration) for name in container.limits)
                for container in self.original.containers
            )
        )

    @property
    def fabric_brings_gpu(self) -> bool:
        """Whether a template of the fabric certainly brings a GPU with its NIC."""
        return self.fabric is not None and any(
            brings_gpu(claim.template, self.configuration, self.namespace.claim_facts)
            for claim in self.fabric.claim_templates
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """A mutation: a function with its description, listed in `webhook.decide.mutations`."""

    name: str  #: kebab-case, as in rdma.lab/skip
    summary: str
    needs: RdmaAccess
    reasons: tuple[Reason, ...]
    mutate: Callable[[Draft, PodAnalysis], None]
    #: Whether it applies to launchers too; in a pod without targets only such mutations run.
    on_launchers: bool = False
