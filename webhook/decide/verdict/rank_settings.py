"""A launcher: whether it keeps the ranks in other pods off RDMA."""

from __future__ import annotations

from collections.abc import Mapping

from webhook.decide.analysis import Launcher, PodAnalysis
from webhook.decide.launchers.mpi_transport import worst_tcp_setting
from webhook.decide.launchers.openmpi import MCA_PREFIX
from webhook.decide.settings.effective import effective_env
from webhook.decide.settings.ranks import passes_all_on, rank_settings
from webhook.decide.settings.setting import Setting
from webhook.decide.verdict.libraries.mpi import unless_nccl
from webhook.decide.verdict.libraries.usage import without_ours
from webhook.model.config_maps import ReadEnv
from webhook.model.decision import Reason, Verdict
from webhook.model.pod import Path
from webhook.model.traffic_libraries import moves_data_by_mpi, shows_no_library
from webhook.model.transport_variables import nccl_ib_disabled, nccl_net_socket

RANKS_OFF = Reason(
    "RanksWithoutRdma",
    "The launcher turns RDMA off for the ranks that it starts in other pods: for NCCL, or for MPI "
    "if MPI moves the ranks' data.",
    remedy="In the launcher's command, script or env, remove the setting that turns RDMA off.",
    rdma="no",
)
RANK_REASONS = (RANKS_OFF,)


def judge_rank_settings(analysis: PodAnalysis) -> Verdict | None:
    """Return the problem that a pod's launchers make for ranks in other pods, or None."""
    verdicts = (_verdict(analysis, launcher) for launcher in analysis.launchers)
    return next(filter(None, verdicts), None)


def _verdict(analysis: PodAnalysis, launcher: Launcher) -> Verdict | None:
    settings = _settings_of_ranks(analysis, launcher.path)
    env = {name: setting.value for name, setting in settings.items()}
    switches = {"NCCL_IB_DISABLE": nccl_ib_disabled(env), "NCCL_NET": nccl_net_socket(env)}
    for name, value in switches.items():
        if value:
            text = f"{name}={value:.40} ({settings[name].source})"
            message = f"container {launcher.name} starts its ranks with {text}; remove that setting"
            return _verdict_by(settings[name], message)
    return _mpi_verdict(analysis, launcher, settings)


def _settings_of_ranks(analysis: PodAnalysis, path: Path) -> Mapping[str, Setting]:
    """Return the certain settings, and what the ranks get from the launcher's own variables.

    Some launchers pass all of these on; the others do so with a name in `-x`, where the command
    may only have a default.
    """
    pod, commands, reader = analysis.original, analysis.commands, analysis.settings_reader
    settings = rank_settings(pod, path, commands, reader).certain
    if reader.settings_with_files(path).drops_env:
        return settings
    gets_all = passes_all_on(pod, path, commands)
    names = [
        name
        for name in reader.env(path).variables
        if (settings[name].yields_to_env if name in settings else gets_all)
    ]
    return {**settings, **{name: _of_env(reader.env(path), name) for name in names}}


def _of_env(env: ReadEnv, name: str) -> Setting:
    """Return a variable of the launcher's `env` as a setting.

    It yields to `env`, being a part of it: the key of a ConfigMap that has it overrides nothing.
    """
    key = env.keys.get(name)
    source = key.title if key else "env"
    return Setting(name, env.variables[name], source, yields_to_env=True, key=key)


def _mpi_verdict(
    analysis: PodAnalysis, launcher: Launcher, settings: Mapping[str, Setting]
) -> Verdict | None:
    """Return the verdict on ranks whose data MPI moves, or may move.

    Open MPI's ranks get the launcher's OMPI_*.
    """
    path, reader = launcher.path, analysis.settings_reader
    is_certain = moves_data_by_mpi(reader.text_with_files(path))
    if not is_certain and not _may_use_mpi(analysis, path):
        return None
    own_env = reader.env(path).variables
    of_launcher = effective_env(own_env, reader.settings_with_files(path), present=own_env)
    env = {name: value for name, value in of_launcher.items() if name.startswith(MCA_PREFIX)}
    env |= {name: setting.value for name, setting in settings.items()}
    tcp = worst_tcp_setting(analysis.commands, path, env, analysis.fabric)
    if tcp is None or not tcp.certain:
        return None
    setting = settings.get(tcp.variable)
    text = f"{tcp.text} ({setting.source})" if setting else tcp.text
    message = f"container {launcher.name} starts MPI's ranks with {text}; remove that setting"
    verdict = _verdict_by(setting, message)
    return verdict if is_certain else unless_nccl(verdict)


def _may_use_mpi(analysis: PodAnalysis, path: Path) -> bool:
    """Return whether MPI starts a program that shows no library."""
    reader = analysis.settings_reader
    own_env = without_ours(reader.env(path).variables, analysis.fabric)
    return bool(analysis.commands.launches(path)) and shows_no_library(
        reader.text_with_files(path), own_env
    )


def _verdict_by(setting: Setting | None, message: str) -> Verdict:
    """Return the verdict, with the key of a ConfigMap that has the setting's script."""
    verdict = Verdict.of(RANKS_OFF, message)
    if setting is None:
        return verdict
    return verdict.with_key(setting.key, overrides_env=not setting.yields_to_env)
