"""The verdict: whether the pod is equipped for RDMA, as far as admission can see.

The pod is judged by its network, its runtime and the nodes of its fabric, and each target by its
device, its memory and its environment. A `no` anywhere is the verdict, else the first `unsure`: a
pod takes the worst of its targets. The facts are those that the decision has anyway, and the pod as
it is after the patch, so a second call comes to the same verdict.

    yes      whatever admission can see is right
    no       RDMA cannot work, and the message says what to do
    unsure   something that admission cannot see decides
    none     the pod launches ranks in other pods, and has no traffic of its own
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from webhook.decide.admission_warnings import Surroundings
from webhook.decide.draft import Draft
from webhook.decide.examine import Examined
from webhook.decide.scope import Launcher
from webhook.decide.verdict.devices import (
    CLAIM_REASONS,
    DEVICE_REASONS,
    judge_device,
    judge_device_claim,
)
from webhook.decide.verdict.judged_pod import JudgedPod, JudgedTarget
from webhook.decide.verdict.libraries import (
    MPI_REASONS,
    NCCL_REASONS,
    PARAMETER_SERVER_REASONS,
    judge_mpi_transport,
    judge_nccl_settings,
    judge_parameter_server,
)
from webhook.decide.verdict.nodes import (
    CAPACITY_REASONS,
    GPU_MODEL_REASONS,
    judge_gpu_model,
    judge_node_capacity,
)
from webhook.decide.verdict.pod_settings import (
    PINNED_MEMORY_REASONS,
    POD_NETWORK_REASONS,
    SANDBOX_REASONS,
    assumes_root,
    judge_pinned_memory,
    judge_pod_network,
    judge_pod_sandbox,
)
from webhook.model.annotations import FABRIC
from webhook.model.decision import Reason, Verdict

EQUIPPED = Reason(
    "Equipped", "Device, memory, network and environment are right for RDMA.", rdma="yes"
)
LAUNCHER = Reason(
    "Launcher", "The pod only starts work in other pods, whose verdicts count.", rdma="none"
)
RANKS_UNKNOWN = Reason(
    "RanksUnknown",
    "The pod starts ranks, and nothing says whether they run in it or in other pods.",
    rdma="unsure",
)

#: Outside the network that its fabric needs, nothing else is done to a pod, so this comes first.
_OF_POD: tuple[Callable[[JudgedPod], Verdict | None], ...] = (
    judge_pod_network,
    judge_pod_sandbox,
    judge_gpu_model,
    judge_node_capacity,
)
_PARTS: tuple[Callable[[JudgedPod, JudgedTarget], Verdict | None], ...] = (
    judge_device,
    judge_device_claim,
    judge_pinned_memory,
    judge_nccl_settings,
    judge_mpi_transport,
    judge_parameter_server,
)


def judge(draft: Draft, examined: Examined, around: Surroundings) -> Verdict:
    """Judge a pod that has been examined, and that the mutations have changed."""
    scope, standing = examined.scope, examined.standing
    if scope.targets:
        seen = JudgedPod.of(draft, examined, around)
        return _worst(_problems(seen)) or Verdict.of(EQUIPPED, _equipped(seen))
    if scope.launchers:
        return _of_launchers(scope.launchers)
    assert standing.why is not None  # a pod without targets and launchers is always told why
    return Verdict.of(standing.why, standing.message)


def _equipped(seen: JudgedPod) -> str:
    """Say that all is right, and what was assumed."""
    assumed = [one.target.name for one in seen.targets if assumes_root(seen, one)]
    if not assumed:
        return EQUIPPED.sentence
    if len(seen.targets) == 1:
        return f"{EQUIPPED.sentence}, assuming that the image runs as root"
    listed = ", ".join(assumed)
    return f"{EQUIPPED.sentence}, assuming that images run as root (containers {listed})"


def _of_launchers(launchers: tuple[Launcher, ...]) -> Verdict:
    for one in launchers:
        if not one.elsewhere:
            message = f"if the ranks run in this pod, set {FABRIC} ({one.evidence})"
            return Verdict.of(RANKS_UNKNOWN, message)
    message = f"{LAUNCHER.sentence} ({launchers[0].evidence})"
    return Verdict.of(LAUNCHER, message[0].lower() + message[1:])


def _problems(seen: JudgedPod) -> Iterator[Verdict]:
    for of_pod in _OF_POD:
        found = of_pod(seen)
        if found is not None:
            yield found
    for target in seen.targets:
        for part in _PARTS:
            found = part(seen, target)
            if found is not None:
                yield found


def _worst(problems: Iterator[Verdict]) -> Verdict | None:
    unsure = None
    for found in problems:
        if found.rdma == "no":
            return found
        unsure = unsure or found
    return unsure


REASONS: tuple[Reason, ...] = (
    EQUIPPED,
    LAUNCHER,
    RANKS_UNKNOWN,
    *POD_NETWORK_REASONS,
    *SANDBOX_REASONS,
    *DEVICE_REASONS,
    *CLAIM_REASONS,
    *PINNED_MEMORY_REASONS,
    *NCCL_REASONS,
    *MPI_REASONS,
    *PARAMETER_SERVER_REASONS,
    *GPU_MODEL_REASONS,
    *CAPACITY_REASONS,
)
