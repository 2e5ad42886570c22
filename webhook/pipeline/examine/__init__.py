"""Examine a pod before any mutation runs: find its targets and fabric, or why there are none."""

from __future__ import annotations

from typing import Any, NamedTuple

from webhook.decision.annotations import ENABLE, Requests
from webhook.decision.facts import NodeInventory
from webhook.decision.outcome import Denial, Reason
from webhook.decision.resources import Usage, usage_of
from webhook.decision.scope import Context, Needs, Scope
from webhook.mpi.commands import Commands
from webhook.pipeline.examine.fabric_choice import FABRIC_AMBIGUOUS, Resolution, check_name, resolve
from webhook.pipeline.examine.foreign_nic import FOREIGN_NIC, foreign_nic
from webhook.pipeline.examine.targets import Selection, select
from webhook.pod.container_env import Environments
from webhook.pod.manifest import Container, PodManifest, at, containers_of, mapping

MIRROR_POD = Reason("MirrorPod", "A static pod's mirror: changing it has no effect.", rdma="no")
WINDOWS_POD = Reason("WindowsPod", "A Windows pod: capabilities are invalid there.", rdma="no")
HOST_NETWORK_MISSING = Reason(
    "HostNetworkMissing",
    "The fabric works in the host's network only, and the pod is not in it.",
    rdma="no",
)

_MIRROR = "kubernetes.io/config.mirror"
_OS = ("kubernetes.io/os", "beta.kubernetes.io/os")

Pairs = list[tuple[Container, Usage]]


class Ineligible(NamedTuple):
    """Why a pod that opted in is left alone."""

    reason: Reason
    #: Whether to say so in its status; not in a mirror pod, which belongs to its kubelet.
    in_status: bool


class Standing(NamedTuple):
    """How much is known about a pod's fabric, and why not more."""

    known: Needs
    #: Why the pod as a whole gets less than all mutations, and a sentence that says so.
    why: Reason | None = None
    message: str = ""
    lacks_host_network: bool = False

    @property
    def foreign(self) -> bool:
        """Whether the pod uses a NIC that no fabric claims, even if its GPU is on a fabric."""
        return self.known is Needs.NIC

    @property
    def closed(self) -> Reason | None:
        """The reason for skipping mutations that need to know more; None if the fabric is known."""
        return HOST_NETWORK_MISSING if self.lacks_host_network else self.why


class Examined(NamedTuple):
    """The scope of the mutations, and what is known about the pod as a whole."""

    scope: Scope
    standing: Standing
    inventory: NodeInventory
    evidence: str = ""


def ineligible(pod: PodManifest, annotations: dict[str, Any]) -> Ineligible | None:
    """Say why a pod that opted in is left alone: a static pod's mirror, or one for Windows."""
    if _MIRROR in annotations:
        return Ineligible(MIRROR_POD, in_status=False)
    mapping(pod, ("spec",))
    selector = mapping(pod, ("spec", "nodeSelector"))
    if at(pod, ("spec", "os", "name")) == "windows" or any(
        selector.get(key) == "windows" for key in _OS
    ):
        return Ineligible(WINDOWS_POD, in_status=True)
    return None


def examine(
    pod: PodManifest, annotations: dict[str, Any], requests: Requests, context: Context
) -> Examined:
    """Find the targets and the fabric; raise Denial for a request that cannot be met."""
    fabrics = context.fabrics
    check_name(requests, fabrics)
    containers = tuple(containers_of(pod))
    pairs = [(one, usage_of(one.manifest, one.path, fabrics)) for one in containers]
    commands = Commands(pod)
    selection = select(pod, pairs, requests, commands, fabrics)
    host_network = at(pod, ("spec", "hostNetwork")) is True
    resolution, foreign = Resolution(), ""
    if selection.why is None:
        # All containers count: a GPU of any container determines the pod's node.
        resolution = resolve(pod, pairs, requests, context)
        others = any(key != ENABLE for key in annotations)
        if others or "resourceClaims" in pod["spec"] or _any_foreign(pairs):
            foreign = foreign_nic(_chosen(pairs, selection), pod, fabrics)
        standing = _standing(resolution, foreign, host_network=host_network)
    else:
        standing = Standing(Needs.NOTHING, selection.why, selection.message)
    denies = fabrics.defaults.on_ambiguous == "deny"
    if denies and resolution.ambiguous and not foreign and selection.targets:
        raise Denial(FABRIC_AMBIGUOUS, resolution.message)
    scope = Scope(
        fabric=resolution.fabric,
        targets=selection.targets,
        launchers=selection.launchers,
        requests=requests,
        namespace=context.namespace,
        fabrics=fabrics,
        original=pod,
        containers=containers,
        commands=commands,
        env=Environments(pod),
        host_network=host_network,
        annotations=annotations,
    )
    evidence = "" if foreign else resolution.evidence
    return Examined(scope, standing, context.inventory, evidence)


def _standing(resolution: Resolution, foreign: str, *, host_network: bool) -> Standing:
    """Say how much is known; messages begin with the specifics, as warnings are cut at 120."""
    if foreign:
        message = f"{foreign} is another vendor's NIC, which no fabric claims"
        return Standing(Needs.NIC, FOREIGN_NIC, message)
    if resolution.fabric is None:
        return Standing(Needs.NOTHING, resolution.why, resolution.message)
    if resolution.fabric.mode == "host-network" and not host_network:
        return Standing(Needs.NOTHING, lacks_host_network=True)
    return Standing(Needs.FABRIC)


def _any_foreign(pairs: Pairs) -> bool:
    return any(usage.foreign for _, usage in pairs)


def _chosen(pairs: Pairs, selection: Selection) -> Pairs:
    """Pair the targets and launchers with what they request."""
    paths = {target.path for target in selection.targets}
    paths.update(launcher.path for launcher in selection.launchers)
    return [pair for pair in pairs if pair[0].path in paths]
