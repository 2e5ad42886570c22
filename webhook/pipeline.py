"""The decision: `decide(pod, context)` is the only place where a patch is made.

It never raises and never edits the pod. `/mutate`, the preview and the command
line all render its `Decision`.
"""

from __future__ import annotations

from typing import Any

from webhook.core import annotations as words
from webhook.core.annotations import Requests, opted_in, parse_requests
from webhook.core.decision import Decision, Outcome, Reason
from webhook.core.draft import Draft
from webhook.core.fabric import Fabric, Fabrics
from webhook.core.pod import Container, PodManifest, at, containers_of, describe, mapping
from webhook.core.resolve import (
    FABRIC_AMBIGUOUS,
    FABRIC_UNKNOWN,
    FOREIGN_NIC,
    Resolution,
    foreign_nic,
    resolve,
)
from webhook.core.resources import Usage, usage_of
from webhook.core.scope import Context, Mutation, Needs, Scope
from webhook.core.status import render
from webhook.core.targets import GPU_BY_CLAIM, NO_TARGET, Selection, select
from webhook.core.warnings import single_lines
from webhook.errors import Denial, ShapeError
from webhook.mutations import MUTATIONS

PATCHED = Reason("Patched", "The pod was changed as the outcomes say.")
ALREADY_PATCHED = Reason("AlreadyPatched", "Everything is in place; nothing was left to change.")
NOT_OPTED_IN = Reason("NotOptedIn", 'The pod has no annotation rdma.lab/enable: "true".')
MIRROR_POD = Reason("MirrorPod", "A static pod's mirror: changing it has no effect.")
WINDOWS_POD = Reason("WindowsPod", "A Windows pod: capabilities are invalid there.")
INVALID_POD = Reason("InvalidPod", "A field has a type or value that the API server refuses.")
INTERNAL_ERROR = Reason("InternalError", "A defect of the webhook; failurePolicy decides.")
DENIALS = (
    Reason("InvalidAnnotation", "A rdma.lab/* annotation is malformed or names what is not there."),
    Reason("ContainersRequired", "rdma.lab/fabric is there, but which container needs it is open."),
    Reason("FabricConflict", "Two things in the pod name different fabrics."),
    FABRIC_AMBIGUOUS,
    INVALID_POD,
    Reason("MutationFailed", "A mutation cannot let the pod through; its outcome says why."),
)
#: Every reason for a whole decision, as documented in docs/reasons.md.
DECISION_REASONS = (
    PATCHED,
    ALREADY_PATCHED,
    NOT_OPTED_IN,
    MIRROR_POD,
    WINDOWS_POD,
    NO_TARGET,
    GPU_BY_CLAIM,
    FABRIC_UNKNOWN,
    FOREIGN_NIC,
    *DENIALS,
    INTERNAL_ERROR,
)
UNKNOWN_ANNOTATION = Reason("UnknownAnnotation", "A rdma.lab/* key that means nothing to us.")
FACTS_UNKNOWN = Reason(
    "NamespaceUnknown", "The namespace is not known yet: its default is not used, limits are kept."
)
SKIPPED_BY_USER = Reason("SkippedByUser", "The pod lists the mutation in rdma.lab/skip.")
HOST_NETWORK_MISSING = Reason(
    "HostNetworkMissing", "The fabric works in the host's network only, and the pod is not in it."
)
#: Reasons that the pipeline gives instead of a mutation; `request` stands for the pod's own words.
PIPELINE_REASONS = (
    SKIPPED_BY_USER,
    HOST_NETWORK_MISSING,
    FABRIC_UNKNOWN,
    FABRIC_AMBIGUOUS,
    FOREIGN_NIC,
    UNKNOWN_ANNOTATION,
    FACTS_UNKNOWN,
)

CHAIN = tuple(mutation.name for mutation in MUTATIONS)
_NAMES = frozenset(CHAIN)
_DENIAL = {reason.code: reason for reason in DENIALS}
_MIRROR = "kubernetes.io/config.mirror"
_OS = ("kubernetes.io/os", "beta.kubernetes.io/os")
_STATUS_PATH = ("metadata", "annotations", words.STATUS)


def decide(pod: PodManifest, context: Context) -> Decision:
    """Decide what to do with a pod, or with anything that claims to be one."""
    try:
        return _decide(pod, context)
    except Denial as error:
        return Decision(allowed=False, reason=_DENIAL[error.code], message=str(error), pod=pod)
    except ShapeError as error:
        return Decision(allowed=False, reason=INVALID_POD, message=str(error), pod=pod)
    except RecursionError:
        message = "the pod is nested too deeply"
        return Decision(allowed=False, reason=INVALID_POD, message=message, pod=pod)
    except Exception as error:  # noqa: BLE001 -- a defect of ours must reach failurePolicy, not the loop
        return Decision(
            allowed=False, reason=INTERNAL_ERROR, message="internal error", pod=pod, error=error
        )


def _decide(pod: PodManifest, context: Context) -> Decision:
    if pod.__class__ is not dict:
        msg = f"a pod must be a mapping, but is {describe(pod)}"
        raise ShapeError(msg)
    annotations = mapping(pod, ("metadata", "annotations"))
    if not opted_in(annotations) and not context.enable:
        return Decision(allowed=True, reason=NOT_OPTED_IN, message=NOT_OPTED_IN.when, pod=pod)
    ineligible = _ineligible(pod, annotations)
    if ineligible is not None:
        return _left_alone(pod, annotations, ineligible, context)
    requests = parse_requests(annotations, _NAMES)
    scope, resolution, why = _scope(pod, annotations, requests, context)
    draft = Draft(pod)
    _note_request(draft, scope)
    _mutate(draft, scope, why if why in (FOREIGN_NIC, FABRIC_UNKNOWN, FABRIC_AMBIGUOUS) else None)
    return _conclude(draft, scope, resolution, why)


def _ineligible(pod: PodManifest, annotations: dict[str, Any]) -> Reason | None:
    if _MIRROR in annotations:
        return MIRROR_POD
    mapping(pod, ("spec",))
    selector = mapping(pod, ("spec", "nodeSelector"))
    if at(pod, ("spec", "os", "name")) == "windows" or any(
        selector.get(k) == "windows" for k in _OS
    ):
        return WINDOWS_POD
    return None


def _left_alone(
    pod: PodManifest, annotations: dict[str, Any], why: Reason, context: Context
) -> Decision:
    """Say on a Windows pod why it got nothing; a mirror pod belongs to its kubelet."""
    draft = Draft(pod)
    if why is WINDOWS_POD:
        config_hash = context.fabrics.config_hash
        status = render(annotations, (), fabric=None, why=why, config_hash=config_hash, chain=CHAIN)
        if draft.get(_STATUS_PATH) != status:
            draft.set(_STATUS_PATH, status)
    message = why.when.removesuffix(".")
    return Decision(
        allowed=True,
        reason=why,
        message=message,
        patch=tuple(draft.ops),
        pod=draft.pod,
        warnings=single_lines(why, message, ()),
    )


def _scope(
    pod: PodManifest, annotations: dict[str, Any], requests: Requests, context: Context
) -> tuple[Scope, Resolution, Reason | None]:
    fabrics = context.fabrics
    containers = tuple(containers_of(pod))
    usages = tuple(usage_of(one.manifest, one.path, fabrics) for one in containers)
    selection = select(pod, containers, usages, requests)
    pairs = _chosen(containers, usages, selection)
    resolution = resolve(pod, pairs, requests, context)
    why = selection.why or _foreign(pairs, pod, fabrics) or resolution.why
    if why is FOREIGN_NIC:
        resolution = Resolution(None, "", FOREIGN_NIC, f"{foreign_nic(pairs, pod, fabrics)}")
    elif why is FABRIC_AMBIGUOUS and selection.targets and fabrics.defaults.on_ambiguous == "deny":
        raise Denial(FABRIC_AMBIGUOUS.code, _sentence(why, resolution))
    scope = Scope(
        fabric=resolution.fabric,
        targets=selection.targets,
        launchers=selection.launchers,
        requests=requests,
        namespace=context.namespace,
        fabrics=fabrics,
        original=pod,
        containers=containers,
        host_network=at(pod, ("spec", "hostNetwork")) is True,
        annotations=annotations,
    )
    return scope, resolution, why


def _chosen(
    containers: tuple[Container, ...], usages: tuple[Usage, ...], selection: Selection
) -> list[tuple[Container, Usage]]:
    """Pair the targets and launchers with what they request."""
    paths = {target.path for target in selection.targets}
    paths.update(launcher.path for launcher in selection.launchers)
    return [pair for pair in zip(containers, usages, strict=True) if pair[0].path in paths]


def _foreign(
    pairs: list[tuple[Container, Usage]], pod: PodManifest, fabrics: Fabrics
) -> Reason | None:
    return FOREIGN_NIC if pairs and foreign_nic(pairs, pod, fabrics) else None


def _note_request(draft: Draft, scope: Scope) -> None:
    draft.mutation = "request"
    for sentence in scope.requests.unknown:
        draft.warned("", UNKNOWN_ANNOTATION, sentence)
    if not scope.namespace.known:
        draft.warned("", FACTS_UNKNOWN, FACTS_UNKNOWN.when)
    if scope.fabric is not None and scope.targets and _off_host_network(scope.fabric, scope):
        message = f"no RDMA: fabric {scope.fabric.name} needs hostNetwork, which the pod lacks"
        draft.warned("", HOST_NETWORK_MISSING, message)


def _mutate(draft: Draft, scope: Scope, unknown: Reason | None) -> None:
    """Run the chain in its order on the targets, or on launchers what is theirs."""
    if not scope.targets and not scope.launchers:
        return
    for mutation in MUTATIONS:
        if not scope.targets and not mutation.on_launchers:
            continue
        draft.mutation = mutation.name
        if mutation.name in scope.requests.skip:
            draft.skipped("", SKIPPED_BY_USER, SKIPPED_BY_USER.when)
            continue
        closed = _closed(mutation, scope, unknown)
        if closed is not None:
            draft.skipped("", closed, closed.when)
            continue
        mutation.mutate(draft, scope)


def _closed(mutation: Mutation, scope: Scope, unknown: Reason | None) -> Reason | None:
    """Say why too little is known of the fabric for a mutation, None where it may act."""
    if mutation.needs is Needs.NOTHING:
        return None
    if unknown is not None and not (unknown is FOREIGN_NIC and mutation.needs is Needs.NIC):
        return unknown
    if mutation.needs is Needs.FABRIC and scope.fabric is not None:
        return HOST_NETWORK_MISSING if _off_host_network(scope.fabric, scope) else None
    return None


def _off_host_network(fabric: Fabric, scope: Scope) -> bool:
    return fabric.mode == "host-network" and not scope.host_network


def _conclude(draft: Draft, scope: Scope, resolution: Resolution, why: Reason | None) -> Decision:
    failed = next((one for one in draft.outcomes if one.status == "failed"), None)
    if failed is not None:
        return _refused(draft, failed, scope.original)
    message = "" if why is None else _sentence(why, resolution)
    outcomes = tuple(draft.outcomes)
    _write_status(draft, scope, resolution, why)
    fabric = resolution.fabric.name if resolution.fabric else None
    return Decision(
        allowed=True,
        reason=why or (PATCHED if draft.ops else ALREADY_PATCHED),
        message=message,
        fabric=fabric,
        evidence=resolution.evidence,
        outcomes=outcomes,
        patch=tuple(draft.ops),
        pod=draft.pod,
        warnings=single_lines(why, message, outcomes),
        audit={"fabric": fabric or "", "config": scope.fabrics.config_hash},
    )


def _sentence(why: Reason, resolution: Resolution) -> str:
    """Say why the pod got less, what is particular first: a warning holds 120 characters."""
    if why is FABRIC_AMBIGUOUS:
        return f"{resolution.message}: name one with {words.FABRIC}"
    if why is FOREIGN_NIC:
        return f"{resolution.message} is another vendor's NIC, which no fabric claims"
    if why is FABRIC_UNKNOWN:
        return resolution.message.removesuffix(".")
    return why.when.removesuffix(".")


def _refused(draft: Draft, failed: Outcome, original: PodManifest) -> Decision:
    where = f" (container {failed.container})" if failed.container else ""
    return Decision(
        allowed=False,
        reason=_DENIAL["MutationFailed"],
        message=f"{failed.mutation}: {failed.message}{where}",
        outcomes=tuple(draft.outcomes),
        pod=original,
    )


def _write_status(draft: Draft, scope: Scope, resolution: Resolution, why: Reason | None) -> None:
    status = render(
        mapping(draft.pod, ("metadata", "annotations")),
        draft.outcomes,
        fabric=resolution.fabric.name if resolution.fabric else None,
        why=why,
        config_hash=scope.fabrics.config_hash,
        chain=CHAIN,
    )
    if draft.get(_STATUS_PATH) != status:
        draft.set(_STATUS_PATH, status)
