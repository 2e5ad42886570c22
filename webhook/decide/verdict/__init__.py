"""The verdict: whether the pod is equipped for RDMA, as far as admission can see.

The pod is judged by its network, its runtime and the nodes of its fabric, and each target by its
device, its memory and its environment. If any check says `no`, that is the verdict; otherwise it is
the first `unsure`. So the worst target decides. The input is the decision's facts and the pod after
the patch, so a second call comes to the same verdict.

    yes      everything that admission can see is right
    no       RDMA cannot work, and the message has the remedy
    unsure   it depends on something that admission cannot see
    none     the pod launches ranks in other pods, and has no traffic of its own
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from webhook.decide.admission_warnings import PodHazards
from webhook.decide.analysis import Launcher
from webhook.decide.draft import Draft
from webhook.decide.examine import Examination
from webhook.decide.verdict.command_memlock import (
    COMMAND_MEMLOCK_REASONS,
    judge_command_memlock,
)
from webhook.decide.verdict.command_settings import UNCERTAIN_REASONS, judge_uncertain_settings
from webhook.decide.verdict.default_limit import DEFAULT_LIMIT_REASONS, judge_default_limit
from webhook.decide.verdict.devices import (
    CLAIM_REASONS,
    DEVICE_REASONS,
    judge_device,
    judge_device_claim,
)
from webhook.decide.verdict.gpu_model import (
    GPU_MODEL_REASONS,
    judge_gpu,
    judge_gpu_model,
    judge_resource_label,
)
from webhook.decide.verdict.libraries import (
    LIBRARY_REASONS,
    clause_on_libraries,
    judge_libraries,
    libraries_of,
    with_libraries,
)
from webhook.decide.verdict.node_reasons import CAPACITY_REASONS
from webhook.decide.verdict.nodes import judge_node_capacity
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.decide.verdict.pinned_memory import (
    PINNED_MEMORY_REASONS,
    assumes_root,
    judge_pinned_memory,
)
from webhook.decide.verdict.pod_settings import (
    POD_NETWORK_REASONS,
    SANDBOX_REASONS,
    judge_pod_network,
    judge_pod_sandbox,
)
from webhook.decide.verdict.rank_settings import RANK_REASONS, judge_rank_settings
from webhook.model.annotations import FABRIC_ANNOTATION
from webhook.model.config_maps import DataKey
from webhook.model.decision import Reason, Verdict

EQUIPPED = Reason(
    "Equipped", "Device, memory, network and environment are right for RDMA.", remedy="", rdma="yes"
)
LAUNCHER = Reason(
    "Launcher",
    "The pod only starts ranks in other pods; see the verdicts of those pods.",
    remedy="Check the pods of the ranks instead: `rdma-webhook why POD`.",
    rdma="none",
)
ROOT_ASSUMED = Reason(
    "RootAssumed",
    "No user (runAsUser) is set for a container that needs RDMA, so the webhook assumes that the "
    "container's image runs as root. If `kubectl exec POD -c CONTAINER -- id -u` prints a number "
    "other than 0, IPC_LOCK has no effect.",
    remedy=(
        "If `kubectl exec POD -c CONTAINER -- id -u` prints 0, no action is needed. Otherwise, set "
        "runAsUser: 0 in securityContext."
    ),
)
#: The end of the sentence of a `yes` with this assumption.
IMAGE_RUNS_AS_ROOT = "assuming that the image runs as root"
RANKS_UNKNOWN = Reason(
    "RanksUnknown",
    "The pod starts ranks, but whether they run in this pod or in other pods is unknown.",
    remedy=(
        "If ranks run in the pod itself and use RDMA, set rdma.lab/fabric to the name of the pod's "
        "fabric. If the pod only starts ranks in other pods, no action is needed."
    ),
    rdma="unsure",
)

#: The network comes first: a pod outside the network that its fabric needs gets none of the
#: mutations that need the fabric.
_POD_JUDGES: tuple[Callable[[PatchedPod], Verdict | None], ...] = (
    judge_pod_network,
    judge_pod_sandbox,
    judge_gpu,
    judge_resource_label,
    judge_gpu_model,
    judge_node_capacity,
)
_TARGET_JUDGES: tuple[Callable[[PatchedPod, PatchedTarget], Verdict | None], ...] = (
    judge_device,
    judge_device_claim,
    judge_command_memlock,
    judge_pinned_memory,
    judge_libraries,
    judge_uncertain_settings,
    judge_default_limit,
)


def judge(draft: Draft, examination: Examination, hazards: PodHazards) -> Verdict:
    """Judge a pod that has been examined and mutated."""
    analysis, applicability = examination.analysis, examination.applicability
    if analysis.targets:
        pod = with_libraries(PatchedPod.of(draft, examination, hazards))
        libraries, libraries_clause = libraries_of(pod), clause_on_libraries(pod)
        verdict = _worst(_problems(pod)) or _equipped(pod, libraries_clause)
        return verdict._replace(libraries=libraries, libraries_clause=libraries_clause)
    if analysis.launchers:
        return judge_rank_settings(analysis) or _launcher_verdict(analysis.launchers)
    assert (
        applicability.reason is not None
    )  # a pod without targets and launchers always has a reason
    return Verdict.of(applicability.reason, applicability.message)


def _equipped(pod: PatchedPod, libraries_clause: str) -> Verdict:
    """Return a `yes`: the libraries, unless NCCL alone, and the assumptions."""
    root = _root_assumption(pod)
    keys = (key for patched in pod.decisive_targets for key in patched.settings.unread_scripts)
    unread_script = next(keys, None)
    clause = unread_clause(unread_script, root) if unread_script else ""
    message = f"{EQUIPPED.sentence}{equipped_end(libraries_clause, root + clause)}"
    assumption = ROOT_ASSUMED if root else None
    return Verdict.of(EQUIPPED, message)._replace(
        assumption=assumption, unread_script=unread_script
    )


def equipped_end(libraries_clause: str, assumption_clause: str) -> str:
    """Return the end of the sentence of a `yes`: libraries, assumptions, and a clause on NCCL.

    `libraries_clause` is that of a Verdict, which ends with the clause on NCCL.
    """
    libraries, separator, nccl_clause = libraries_clause.partition("; ")
    start = " with " if libraries_clause else ""
    return f"{start}{libraries}{assumption_clause}{separator}{nccl_clause}"


def unread_clause(unread_script: DataKey, assumption_clause: str) -> str:
    """Return the clause on a script that was not read, after the clause on what else is assumed."""
    start = " and" if assumption_clause else ", assuming"
    return f"{start} that {unread_script.title}, which was not read, does not turn RDMA off"


def _root_assumption(pod: PatchedPod) -> str:
    """Return the clause on images that a `yes` assumes to run as root, or ""."""
    assumed = [
        patched.target.name for patched in pod.decisive_targets if assumes_root(pod, patched)
    ]
    if not assumed:
        return ""
    if len(pod.decisive_targets) == 1:
        return f", {IMAGE_RUNS_AS_ROOT}"
    return f", assuming that images run as root (containers {', '.join(assumed)})"


def _launcher_verdict(launchers: tuple[Launcher, ...]) -> Verdict:
    for launcher in launchers:
        if not launcher.ranks_in_other_pods:
            remedy = f"if its ranks run in this pod, set {FABRIC_ANNOTATION}"
            return Verdict.of(RANKS_UNKNOWN, f"launcher ({launcher.evidence}): {remedy}")
    return Verdict.of(LAUNCHER, f"launcher ({launchers[0].evidence}): {LAUNCHER.clause}")


def _problems(pod: PatchedPod) -> Iterator[Verdict]:
    for judge_pod in _POD_JUDGES:
        verdict = judge_pod(pod)
        if verdict is not None:
            yield verdict
    for target in pod.decisive_targets:
        for judge_target in _TARGET_JUDGES:
            verdict = judge_target(pod, target)
            if verdict is not None:
                yield verdict


def _worst(problems: Iterator[Verdict]) -> Verdict | None:
    unsure = None
    for verdict in problems:
        if verdict.rdma == "no":
            return verdict
        unsure = unsure or verdict
    return unsure


JUDGE_REASONS: tuple[Reason, ...] = (
    EQUIPPED,
    LAUNCHER,
    RANKS_UNKNOWN,
    *POD_NETWORK_REASONS,
    *SANDBOX_REASONS,
    *DEVICE_REASONS,
    *CLAIM_REASONS,
    *COMMAND_MEMLOCK_REASONS,
    *PINNED_MEMORY_REASONS,
    *DEFAULT_LIMIT_REASONS,
    *LIBRARY_REASONS,
    *UNCERTAIN_REASONS,
    *RANK_REASONS,
    *GPU_MODEL_REASONS,
    *CAPACITY_REASONS,
)
