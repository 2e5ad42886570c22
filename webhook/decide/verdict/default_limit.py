"""The memory limit that a LimitRange gave to a container, and that stays.

Registered memory is pinned, and counts against the limit: a process that registers more is killed.
A limit that the user wrote is the user's choice, but nobody chose the default of a LimitRange for
this job. The admission plugin LimitRanger records what it has set in an annotation (kubernetes,
plugin/pkg/admission/limitranger/admission.go, mergeContainerResources).
"""

from __future__ import annotations

from webhook.decide.mutations.memory_limit import MUTATION as MEMORY_LIMIT
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model.decision import Reason, Verdict
from webhook.model.pod import Container, Pod
from webhook.model.pod.qos import amount_at

DEFAULT_LIMIT = Reason(
    "DefaultMemoryLimit",
    "A container got its memory limit from the default of a LimitRange, and all memory that "
    "the container registers counts against that limit.",
    remedy=(
        "If the default limit covers the job's memory and all memory that the job registers, set "
        "rdma.lab/memory-limit: keep. Otherwise, set a higher limits.memory for the container."
    ),
    rdma="unsure",
)
DEFAULT_LIMIT_REASONS = (DEFAULT_LIMIT,)
#: `LimitRanger plugin set: cpu, memory request for container a; memory limit for container a`
_ANNOTATION, _PREFIX = "kubernetes.io/limit-ranger", "LimitRanger plugin set: "


def judge_default_limit(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the verdict on a target whose limit nobody chose, or None."""
    annotations, container = pod.analysis.annotations, patched.container
    if annotations.memory_limit == "keep" or MEMORY_LIMIT.name in annotations.skip:
        return None
    if not _is_limited(container) or not _is_default(pod.view, container):
        return None
    limit, rejection = container.limits["memory"], pod.analysis.namespace.memory_limit_rejection
    # Short, since a warning is cut after 120 characters.
    text = f"its default limit of {limit}, since {rejection}"
    if not rejection:
        text = f"the default memory limit {limit} of a LimitRange"
    return Verdict.of(DEFAULT_LIMIT, f"container {container.name} keeps {text}")


def _is_limited(container: Container) -> bool:
    limit = container.limits.get("memory")
    return limit is not None and amount_at(limit, (*container.path, "limits", "memory")) > 0


def _is_default(pod: Pod, container: Container) -> bool:
    """Return whether LimitRanger has set the memory limit of a container."""
    kind = "init container" if container.path[1] == "initContainers" else "container"
    for entry in (pod.annotation(_ANNOTATION) or "").removeprefix(_PREFIX).split("; "):
        resources, _, subject = entry.partition(" limit for ")
        if subject == f"{kind} {container.name}" and "memory" in resources.split(", "):
            return True
    return False
