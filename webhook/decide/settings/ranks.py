"""The settings that launchers make for ranks in other pods.

Over ssh, Open MPI's ranks get only what `-x` sets or forwards, and OMPI_*. Hydra, horovodrun and
deepspeed pass on what the launcher has (horovodrun by `-x` for each variable; deepspeed the names
that begin with NCCL, UCX and some others, launcher/runner.py, EXPORT_ENVS).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import MappingProxyType

from webhook.decide.launchers.commands import MPI_BY_LAUNCHER, RAY_HEAD, Commands
from webhook.decide.launchers.openmpi import shows_other_mpi
from webhook.decide.launchers.roles import launchers_of
from webhook.decide.settings.reader import SettingsReader
from webhook.decide.settings.setting import NO_SETTINGS, CommandSettings, Setting
from webhook.decide.shell.argv import basename
from webhook.errors import ShapeError
from webhook.model.config_maps import ConfigMaps
from webhook.model.pod import Path, Pod, PodManifest

_LAUNCHER = "in the launcher's command"


def rank_settings(
    pod: Pod, path: Path, commands: Commands, reader: SettingsReader
) -> CommandSettings:
    """Return what ranks in other pods get from the launcher in the container at `path`."""
    settings = reader.settings_with_files(path)
    if settings is NO_SETTINGS:
        return settings
    if passes_all_on(pod, path, commands):
        return CommandSettings(settings.certain, settings.possible)
    return CommandSettings(settings.rank_settings, settings.possible_rank_settings)


def settings_of_launchers(
    pods: Sequence[PodManifest], config_maps: ConfigMaps = MappingProxyType({})
) -> CommandSettings:
    """Return what the launchers among the pods of a workload set for the ranks in its other pods.

    `config_maps` are the known ones of the pods' namespace, which may have the launchers' scripts.
    Nothing for a workload of one pod, or from a pod that cannot be read: its decision names the
    problem.
    """
    certain: dict[str, Setting] = {}
    possible: list[Setting] = []
    for manifest in pods if len(pods) > 1 else ():
        try:
            members = list(_settings_of_pod(Pod(manifest), config_maps))
        except ShapeError:
            continue
        for settings in members:
            certain.update(
                (name, setting.moved(_LAUNCHER)) for name, setting in settings.certain.items()
            )
            possible += [setting.moved(_LAUNCHER) for setting in settings.possible]
    return CommandSettings(certain, tuple(possible)) if certain or possible else NO_SETTINGS


def _settings_of_pod(pod: Pod, config_maps: ConfigMaps) -> Iterable[CommandSettings]:
    commands, reader = Commands(pod), SettingsReader(pod, config_maps)
    for index, evidence in launchers_of(pod, commands).items():
        if evidence.ranks_in_other_pods:
            yield rank_settings(pod, ("spec", "containers", index), commands, reader)


def overridden_by(base: CommandSettings, overriding: CommandSettings) -> CommandSettings:
    """Return `base` with the `overriding` settings, as a container's with its workload's."""
    if overriding is NO_SETTINGS:
        return base
    return base._replace(
        certain={**base.certain, **overriding.certain},
        possible=base.possible + overriding.possible,
    )


def passes_all_on(pod: Pod, path: Path, commands: Commands) -> bool:
    """Return whether ranks get all variables of the launcher."""
    launcher_commands = commands.other_launcher_commands(path)
    if any(basename(words[0] or "") != RAY_HEAD[0] for words in launcher_commands):
        return True
    launches = [launch for launch in commands.launches(path) if not launch.problem]
    names = (basename(launch.launcher_words[0] or "") for launch in launches)
    if any(MPI_BY_LAUNCHER[name] == "another MPI" for name in names):
        return True
    return bool(launches) and shows_other_mpi(commands.text(path), pod.container(path).env)
