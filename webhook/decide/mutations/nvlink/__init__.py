"""`nvlink`: let two privileged pods on one node use NVLink between their GPUs.

A pod requests this with `rdma.lab/nvlink: share`, in the namespaces that the configuration
allows. CUDA reaches the other pod's GPUs as soon as the containers are privileged, but each
container must compute on its own GPUs. So the remap is the core of this mutation: `remap` has the
script that restricts CUDA to the container's own GPUs, and `requirements` finds the obstacles to
it. The remap applies to all containers of a pod or to none: otherwise some would compute on another
pod's GPUs. `requirements` also lists what else NCCL and UCX need; if that is missing, the result is
only a warning, since a pod may use only one of the two. Nothing here gives a pod a privilege that
it lacks.
"""

from __future__ import annotations

from webhook.decide.analysis import Mutation, PodAnalysis, RdmaAccess, Target
from webhook.decide.draft import Draft
from webhook.decide.mutations.nvlink.remap import wrapping
from webhook.decide.mutations.nvlink.requirements import (
    OBSTACLES,
    OWN_REMAP,
    SSHD,
    TRANSPORT_REASONS,
    host_id,
    lacking,
    obstacles,
)
from webhook.decide.shell.argv import remap_length
from webhook.model.decision import Reason

WRAPPED = Reason(
    "Wrapped",
    "The command now runs through the webhook's script rdma-remap, which restricts CUDA to the "
    "container's own GPUs.",
    remedy="",
)
PRESENT = Reason(
    "Present",
    "The command already runs through the webhook's script rdma-remap, which restricts CUDA to "
    "the container's own GPUs.",
    remedy="",
)
NOT_REQUESTED = Reason(
    "NotRequested",
    "The pod lacks the annotation rdma.lab/nvlink: share.",
    remedy="",
    reportable=False,
)
PART_OF_NODE = Reason(
    "PartOfNode",
    "With the GPU Operator's defaults (CDI), the script rdma-remap, which the webhook puts in "
    "front of the command, cannot identify the container's own GPUs, so it exits with code 1 "
    "unless the container has all GPUs of its node.",
    remedy=(
        "Request all GPUs of the node, or ask the cluster administrator to set deviceListStrategy "
        "of NVIDIA's device plugin to volume-mounts. If your nodes already use volume-mounts or "
        "the NVIDIA Container Toolkit's legacy mode, no action is needed (docs/nvlink.md)."
    ),
)


def mutate(draft: Draft, analysis: PodAnalysis) -> None:
    """Wrap the command of every container with GPUs, or report every obstacle."""
    if not analysis.annotations.nvlink:
        draft.skipped("", NOT_REQUESTED, "the pod does not request it")
        return
    targets = [target for target in analysis.targets if target.gpus > 0]
    unmet = list(obstacles(draft.view, analysis, targets))
    if unmet:
        _report(draft, unmet)
    else:
        _share(draft, analysis, targets)
    if all(reason is OWN_REMAP for reason, _ in unmet):
        for container, reason, message in lacking(draft.view, analysis, targets):
            draft.warned(container, reason, message)


def _report(draft: Draft, unmet: list[tuple[Reason, str]]) -> None:
    """Report the obstacles; a user's own remap is not worth a warning."""
    draft.skipped("", unmet[0][0], "; ".join(message for _, message in unmet))
    for reason, message in unmet:
        if reason is not OWN_REMAP:
            draft.warned("", reason, message)


def _share(draft: Draft, analysis: PodAnalysis, targets: list[Target]) -> None:
    for target in targets:
        _wrap(draft, analysis, target)
    message = (
        "with the GPU Operator's defaults (CDI), a container exits with 1 unless it has all GPUs "
        "of its node"
    )
    draft.warned("", PART_OF_NODE, message)
    for target in targets:
        if analysis.commands.mentions_sshd(target.path):
            message = "if the command starts sshd, sshd's children see all GPUs of the node"
            draft.warned(target.name, SSHD, message)


def _wrap(draft: Draft, analysis: PodAnalysis, target: Target) -> None:
    wrapped = remap_length(draft.container(target.path).command)
    host_id_variable = host_id(draft.view, analysis, target)
    if host_id_variable:
        draft.append((*target.path, "env"), *host_id_variable)
    if not wrapped:
        draft.insert((*target.path, "command"), 0, *wrapping(target.gpus))
    if host_id_variable or not wrapped:
        message = (
            "the command now runs with CUDA_VISIBLE_DEVICES set to the container's own GPUs "
            f"({target.gpus})"
        )
        draft.applied(target.name, WRAPPED, message)
    else:
        draft.already(
            target.name,
            PRESENT,
            "the command already runs through the webhook's script rdma-remap",
        )


MUTATION = Mutation(
    name="nvlink",
    summary=(
        "lets privileged pods on the same node communicate over NVLink, while each of them "
        "computes on its own GPUs"
    ),
    needs=RdmaAccess.NONE,
    reasons=(
        *(WRAPPED, PRESENT, NOT_REQUESTED, PART_OF_NODE),
        *(*OBSTACLES, *TRANSPORT_REASONS),
    ),
    mutate=mutate,
)
