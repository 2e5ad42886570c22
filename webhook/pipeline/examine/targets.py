"""Choose the targets: the containers with GPUs or RDMA devices, or those that launch MPI ranks.

The first rule that fits decides (see `select`); the documentation has the same order.
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.decision.annotations import CONTAINERS, FABRIC, INVALID_ANNOTATION, Requests
from webhook.decision.outcome import Denial, Reason
from webhook.decision.resources import Usage, unclaimed
from webhook.decision.scope import Launcher, Target
from webhook.fabric.records import Fabrics
from webhook.fabric.variables import site_names
from webhook.mpi.commands import Commands
from webhook.mpi.roles import launchers_of
from webhook.pod.manifest import Container, PodManifest, at, items

NO_TARGET = Reason(
    "NoTarget", "No container has a GPU or an RDMA device, and none was named.", rdma="no"
)
GPU_BY_CLAIM = Reason(
    "GPUByClaim",
    "The pod's devices come by DRA claims, which do not say what they are: name the containers.",
    rdma="no",
)
CONTAINERS_REQUIRED = Reason(
    "ContainersRequired",
    "rdma.lab/fabric is there, but which container needs it is open.",
    rdma="no",
)


class Selection(NamedTuple):
    """The containers to work on; or why there are none, and a sentence that says so."""

    targets: tuple[Target, ...] = ()
    launchers: tuple[Launcher, ...] = ()
    why: Reason | None = None
    message: str = ""


def select(
    pod: PodManifest,
    pairs: list[tuple[Container, Usage]],
    requests: Requests,
    commands: Commands,
    fabrics: Fabrics,
) -> Selection:
    """Choose the targets; raise Denial for an unknown container name, or for an unclear choice."""
    if requests.containers is not None:
        return Selection(_named(pairs, requests.containers))
    apps = [pair for pair in pairs if pair[0].kind == "app"]
    targets = [_target(*pair) for pair in apps if pair[1].gpus]
    targets = targets or [_target(*pair) for pair in apps if pair[1].has_rdma]
    if targets:
        return Selection(tuple(targets))
    starting = launchers_of(pod, commands, site_names(fabrics))
    launchers = tuple(
        Launcher(container.name, container.path)
        for index, (container, _) in enumerate(apps)
        if index in starting
    )
    if launchers:
        return Selection(launchers=launchers)
    if requests.fabric is not None and apps:
        return Selection((_only(apps),))
    if _claims(pod, pairs):
        return Selection(why=GPU_BY_CLAIM, message=GPU_BY_CLAIM.sentence)
    return Selection(why=NO_TARGET, message=_unclaimed(apps, fabrics) or NO_TARGET.sentence)


def _target(container: Container, usage: Usage) -> Target:
    shared = usage.shared_gpu or usage.virtual_gpu
    rdma = tuple(name for name, _ in usage.rdma)
    return Target(container.name, container.path, container.kind, usage.whole_gpus, shared, rdma)


def _named(pairs: list[tuple[Container, Usage]], names: tuple[str, ...]) -> tuple[Target, ...]:
    by_name = {
        container.name: _target(container, usage)
        for container, usage in pairs
        if container.kind != "ephemeral"
    }
    for name in names:
        if name not in by_name:
            have = ", ".join(by_name) or "none"
            msg = (
                f"annotation {CONTAINERS} names {name!r:.80}, but the pod's containers are: {have}"
            )
            raise Denial(INVALID_ANNOTATION, msg)
    return tuple(by_name[name] for name in names)


def _only(pairs: list[tuple[Container, Usage]]) -> Target:
    if len(pairs) == 1:
        return _target(*pairs[0])
    have = ", ".join(container.name for container, _ in pairs)
    msg = (
        f"annotation {FABRIC} asks for a fabric, but no container has a GPU or an RDMA device: "
        f"name the ones that need it with {CONTAINERS} (the pod has: {have})"
    )
    raise Denial(CONTAINERS_REQUIRED, msg)


def _claims(pod: PodManifest, pairs: list[tuple[Container, Usage]]) -> bool:
    return bool(at(pod, ("spec", "resourceClaims"))) and any(
        items(one.manifest, ("resources", "claims"), one.path) for one, _ in pairs
    )


def _unclaimed(apps: list[tuple[Container, Usage]], fabrics: Fabrics) -> str:
    """Name a device of an app container that no fabric claims: it may be one of the site's GPUs."""
    for container, _ in apps:
        for name in unclaimed(container.manifest, fabrics):
            return f"no fabric claims {name} in container {container.name}, no GPU or RDMA else"
    return ""
