"""A launcher: whether its command keeps the ranks in other pods off RDMA."""

from __future__ import annotations

from collections.abc import Mapping

from webhook.decide.analysis import Launcher, PodAnalysis
from webhook.decide.launchers.mpi_transport import tcp_settings
from webhook.decide.launchers.openmpi import MCA_PREFIX
from webhook.decide.settings.ranks import rank_settings
from webhook.model.decision import Reason, Verdict
from webhook.model.traffic_libraries import moves_data_by_mpi
from webhook.model.transport_variables import nccl_ib_disabled, nccl_net_socket

RANKS_OFF = Reason(
    "RanksWithoutRdma",
    "The launcher's command turns RDMA off for the ranks that it starts in other pods: that of "
    "NCCL, or of MPI where that moves their data.",
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
            setting = settings.certain[name]
            text = f"{name}={value:.40} ({setting.source})"
            message = f"container {launcher.name} starts its ranks with {text}: remove it"
            return Verdict.of(RANKS_OFF, message).by_key(setting.key, overrides_env=True)
    return _mpi_verdict(analysis, launcher, env)


def _mpi_verdict(
    analysis: PodAnalysis, launcher: Launcher, env: Mapping[str, str | None]
) -> Verdict | None:
    """Return the verdict on MPI's own benchmarks; Open MPI's ranks get its parameters from env."""
    commands, own_env = analysis.commands, analysis.containers[launcher.path].env
    if not moves_data_by_mpi(commands.text(launcher.path)):
        return None
    parameters = {name: own_env[name] for name in own_env if name.startswith(MCA_PREFIX)}
    settings = tcp_settings(commands, launcher.path, {**parameters, **env}, analysis.fabric)
    for setting in settings:
        if setting.certain:
            message = f"container {launcher.name} starts MPI's ranks with {setting.text}: remove it"
            return Verdict.of(RANKS_OFF, message)
    return None
