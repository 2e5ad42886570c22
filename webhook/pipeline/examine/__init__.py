"""What is to be known of a pod before anything is done to it: who, on which fabric, or why not."""

from __future__ import annotations

from typing import Any, NamedTuple

from webhook.decision.annotations import ENABLE, FABRIC, Requests
from webhook.decision.outcome import Reason
from webhook.decision.resources import Usage, unclaimed, usage_of
from webhook.decision.scope import Context, Scope
from webhook.errors import Denial
from webhook.fabric.records import Fabrics
from webhook.mpi.commands import Commands
from webhook.pipeline.examine.fabric_choice import (
    FABRIC_AMBIGUOUS,
    FABRIC_UNKNOWN,
    Resolution,
    check_name,
    resolve,
)
from webhook.pipeline.examine.foreign_nic import FOREIGN_NIC, foreign_nic
from webhook.pipeline.examine.targets import NO_TARGET, Selection, select
from webhook.pod.env import Environments
from webhook.pod.manifest import Container, PodManifest, at, containers_of, mapping

MIRROR_POD = Reason("MirrorPod", "A static pod's mirror: changing it has no effect.")
WINDOWS_POD = Reason("WindowsPod", "A Windows pod: capabilities are invalid there.")

_MIRROR = "kubernetes.io/config.mirror"
_OS = ("kubernetes.io/os", "beta.kubernetes.io/os")

Pairs = list[tuple[Container, Usage]]


class Examined(NamedTuple):
    """The scope of the mutations, and what is said of the pod as a whole."""

    scope: Scope
    evidence: str
    #: Why the pod gets less than the set, and a sentence for it.
    why: Reason | None = None
    message: str = ""


def ineligible(pod: PodManifest, annotations: dict[str, Any]) -> Reason | None:
    """Say why a pod that opted in is none for us: a static pod's mirror, or for Windows."""
    if _MIRROR in annotations:
        return MIRROR_POD
    mapping(pod, ("spec",))
    selector = mapping(pod, ("spec", "nodeSelector"))
    if at(pod, ("spec", "os", "name")) == "windows" or any(
        selector.get(key) == "windows" for key in _OS
    ):
        return WINDOWS_POD
    return None


def examine(
    pod: PodManifest, annotations: dict[str, Any], requests: Requests, context: Context
) -> Examined:
    """Find targets and fabric; a request that cannot be met is a Denial."""
    fabrics = context.fabrics
    check_name(requests, fabrics)
    containers = tuple(containers_of(pod))
    pairs = [(one, usage_of(one.manifest, one.path, fabrics)) for one in containers]
    commands = Commands(pod)
    selection = select(pod, pairs, requests, commands, fabrics)
    resolution, foreign = Resolution(None, ""), ""
    if selection.why is None:
        # A GPU beside the targets fixes the pod's node as well as one of theirs.
        resolution = resolve(pod, pairs, requests, context)
        others = len(annotations) > (ENABLE in annotations)
        if others or "resourceClaims" in pod["spec"] or _any_foreign(pairs):
            foreign = foreign_nic(_chosen(pairs, selection), pod, fabrics)
    stray = _unclaimed(pairs, fabrics) if selection.why is NO_TARGET else ""
    why, message = _why(selection, foreign, resolution, stray)
    if why is FABRIC_AMBIGUOUS and selection.targets and fabrics.defaults.on_ambiguous == "deny":
        raise Denial(FABRIC_AMBIGUOUS.code, message)
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
        host_network=at(pod, ("spec", "hostNetwork")) is True,
        annotations=annotations,
    )
    evidence = "" if foreign else resolution.evidence
    return Examined(scope, evidence, why, message)


def _unclaimed(pairs: Pairs, fabrics: Fabrics) -> str:
    """Name a device of an app container that no fabric claims: it may be a GPU of this site."""
    for container, _ in pairs:
        if container.kind == "app":
            for name in unclaimed(container.manifest, fabrics):
                return f"no fabric claims {name} in container {container.name}, no GPU or RDMA else"
    return ""


def _any_foreign(pairs: Pairs) -> bool:
    return any(usage.foreign for _, usage in pairs)


def _chosen(pairs: Pairs, selection: Selection) -> Pairs:
    """Pair the targets and launchers with what they request."""
    paths = {target.path for target in selection.targets}
    paths.update(launcher.path for launcher in selection.launchers)
    return [pair for pair in pairs if pair[0].path in paths]


def _why(
    selection: Selection, foreign: str, resolution: Resolution, stray: str
) -> tuple[Reason | None, str]:
    """Say why the pod gets less, what is particular first: a warning holds 120 characters."""
    if selection.why is not None:
        return selection.why, stray or selection.why.when.removesuffix(".")
    if foreign:
        return FOREIGN_NIC, f"{foreign} is another vendor's NIC, which no fabric claims"
    if resolution.why is FABRIC_AMBIGUOUS:
        return FABRIC_AMBIGUOUS, f"{resolution.message}: name one with {FABRIC}"
    if resolution.why is FABRIC_UNKNOWN:
        return FABRIC_UNKNOWN, resolution.message.removesuffix(".")
    return None, ""
