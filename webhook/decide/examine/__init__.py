"""Examine a pod before any mutation runs: find its targets and fabric, or why there are none.

`targets` chooses the containers, `fabric_choice` the fabric; `foreign_nic` and `node_selection` say
what speaks against it. Nothing here edits the pod. Start with `examine`, below.
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.decide.examine.fabric_choice import FABRIC_AMBIGUOUS, Resolution, check_name, resolve
from webhook.decide.examine.foreign_nic import FOREIGN_NIC, FOREIGN_REMEDY, foreign_nic
from webhook.decide.examine.node_selection import misdirected
from webhook.decide.examine.targets import Selection, select
from webhook.decide.launchers.commands import Commands
from webhook.decide.scope import NO_CALL, Context, EarlierCall, KnowledgeLevel, Scope
from webhook.model.annotations import Requests
from webhook.model.claims import claims_of
from webhook.model.decision import Denial, Reason
from webhook.model.nodes import NodeInventory
from webhook.model.pod import Container, Pod
from webhook.model.resources import Usage, usage_of

MIRROR_POD = Reason(
    "MirrorPod", "The pod mirrors a static pod, so a change to it has no effect.", rdma="no"
)
WINDOWS_POD = Reason(
    "WindowsPod", "The pod runs on Windows, where Linux capabilities are invalid.", rdma="no"
)
HOST_NETWORK_MISSING = Reason(
    "HostNetworkMissing",
    "The fabric works only in the host's network, and the pod lacks hostNetwork: true.",
    rdma="no",
)
#: Its workers have one, or use a NIC of no fabric: nothing is wrong with that.
FABRIC_NOT_NEEDED = Reason(
    "FabricNotNeeded", "A launcher needs no fabric unless it runs ranks itself.", quiet=True
)

_MIRROR = "kubernetes.io/config.mirror"
_OS = ("kubernetes.io/os", "beta.kubernetes.io/os")
_NOT_SOUGHT = Resolution()

Pairs = list[tuple[Container, Usage]]


class Ineligible(NamedTuple):
    """Why a pod that opted in is left alone."""

    reason: Reason
    #: Whether to say so in its status; not in a mirror pod, which belongs to its kubelet.
    in_status: bool


class FabricKnowledge(NamedTuple):
    """How much is known about a pod's fabric, and why not more."""

    known: KnowledgeLevel
    #: Why the pod as a whole gets less than all mutations, and a sentence that says so.
    why: Reason | None = None
    message: str = ""
    lacks_host_network: bool = False
    #: Whether the pod only has launchers, and no fabric is known for them.
    not_needed: bool = False

    @property
    def foreign(self) -> bool:
        """Whether the pod uses a NIC that no fabric claims, even if its GPU is on a fabric."""
        return self.known is KnowledgeLevel.NIC

    @property
    def closed(self) -> Reason | None:
        """The reason for skipping mutations that need to know more; None if the fabric is known."""
        if self.lacks_host_network:
            return HOST_NETWORK_MISSING
        return FABRIC_NOT_NEEDED if self.not_needed else self.why


class Examined(NamedTuple):
    """The scope of the mutations, and what is known about the pod as a whole."""

    scope: Scope
    standing: FabricKnowledge
    inventory: NodeInventory
    evidence: str = ""
    #: Sentences on labels that the pod requires of its node, and that nothing has.
    misdirected: tuple[str, ...] = ()


def ineligible(pod: Pod) -> Ineligible | None:
    """Say why a pod that opted in is left alone: a static pod's mirror, or one for Windows."""
    if _MIRROR in pod.annotations:
        return Ineligible(MIRROR_POD, in_status=False)
    required = pod.node_selector
    if pod.operating_system == "windows" or "windows" in map(required.get, _OS):
        return Ineligible(WINDOWS_POD, in_status=True)
    return None


def examine(
    pod: Pod,
    requests: Requests,
    context: Context,
    earlier: EarlierCall = NO_CALL,
) -> Examined:
    """Find the targets and the fabric; raise Denial for a request that cannot be met."""
    fabrics = context.fabrics
    check_name(requests, fabrics)
    pairs = [(one, usage_of(one, fabrics)) for one in pod.containers]
    commands = Commands(pod)
    claims = claims_of(pod, context.namespace.claims)
    selection = select(pod, pairs, requests, commands, fabrics, claims=claims)
    # All containers count: a GPU of any container determines the pod's node.
    other = earlier.config not in ("", fabrics.config_hash)
    before = None if other else earlier.fabric
    if selection.why:
        resolution = _NOT_SOUGHT
    else:
        resolution = resolve(pod, pairs, requests, context, before, claims=claims)
    scope = Scope(
        fabric=resolution.fabric,
        targets=selection.targets,
        launchers=selection.launchers,
        requests=requests,
        namespace=context.namespace,
        fabrics=fabrics,
        original=pod,
        containers={one.path: one for one in pod.containers},
        claims=claims,
        commands=commands,
        called_before=bool(earlier.config),
        other_configuration=other,
    )
    foreign = foreign_nic(scope, pairs)
    denies = fabrics.defaults.on_ambiguous == "deny"
    if denies and resolution.ambiguous and not foreign and selection.targets:
        raise Denial(FABRIC_AMBIGUOUS, resolution.message)
    standing = _standing(scope, selection, resolution, foreign)
    known = resolution.fabric is not None
    wrong = misdirected(pod, fabrics, context.inventory, known=known) if selection.targets else ()
    evidence = "" if foreign else resolution.evidence
    return Examined(scope, standing, context.inventory, evidence, wrong)


def _standing(
    scope: Scope, selection: Selection, resolution: Resolution, foreign: str
) -> FabricKnowledge:
    """Say how much is known; messages begin with the specifics, as warnings are cut at 120."""
    if selection.why is not None:
        known = (FOREIGN_NIC, f"{foreign}: {FOREIGN_REMEDY}")
        nothing = known if foreign else (selection.why, selection.message)
        return FabricKnowledge(KnowledgeLevel.NOTHING, *nothing)
    if foreign:
        why = FOREIGN_NIC if scope.targets else None
        remedy = f": {FOREIGN_REMEDY}" if why else ""
        return FabricKnowledge(
            KnowledgeLevel.NIC, why, f"{foreign}{remedy}", not_needed=why is None
        )
    if scope.fabric is None and not scope.targets:
        return FabricKnowledge(KnowledgeLevel.NOTHING, not_needed=True)
    if scope.fabric is None:
        return FabricKnowledge(KnowledgeLevel.NOTHING, resolution.why, resolution.message)
    if scope.fabric.mode == "host-network" and not scope.original.host_network:
        return FabricKnowledge(KnowledgeLevel.NOTHING, lacks_host_network=True)
    return FabricKnowledge(KnowledgeLevel.FABRIC)
