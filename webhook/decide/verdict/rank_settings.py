"""A launcher: whether its command keeps the ranks in other pods off RDMA."""

from __future__ import annotations

from webhook.decide.analysis import Launcher, PodAnalysis
from webhook.decide.settings.ranks import rank_settings
from webhook.model.decision import Reason, Verdict
from webhook.model.transport_variables import nccl_ib_disabled, nccl_net_socket

RANKS_OFF = Reason(
    "RanksWithoutRdma",
    "The launcher's command turns NCCL's RDMA off for the ranks that it starts in other pods.",
    remedy="Remove the setting from the launcher's command.",
    rdma="no",
)
RANK_REASONS = (RANKS_OFF,)


def judge_rank_settings(analysis: PodAnalysis) -> Verdict | None:
    """Return the problem that a pod's launchers make for ranks in other pods, or None."""
    verdicts = (_verdict(analysis, launcher) for launcher in analysis.launchers)
    return next(filter(None, verdicts), None)


def _verdict(analysis: PodAnalysis, launcher: Launcher) -> Verdict | None:
    pod, commands, reader = analysis.original, analysis.commands, analysis.command_reader
    settings = rank_settings(pod, launcher.path, commands, reader)
    env = {name: setting.value for name, setting in settings.certain.items()}
    switches = {"NCCL_IB_DISABLE": nccl_ib_disabled(env), "NCCL_NET": nccl_net_socket(env)}
    for name, value in switches.items():
        if value:
            subject = f"container {launcher.name} starts its ranks with {name}={value:.40}"
            message = f"{subject}: remove it ({settings.certain[name].source})"
            return Verdict.of(RANKS_OFF, message)
    return None
