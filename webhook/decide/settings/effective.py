"""A container's variables as the process that carries the traffic gets them, innermost first.

    setting                                                    source
    -------                                                    ------
    assignments, `export`, `env`, `unset` in its own script    POSIX.1-2024, XCU 2.9.1 and 2.14;
                                                               env(1) of coreutils 9.1
    `mpirun -x NAME=VALUE`; Hydra's `-env`, then its `-genv`   run: Open MPI 4.1.4, MPICH 4.0.2
    what the launcher has, for ranks in its own container      run, as above
    for ranks over ssh: `-x NAME`, and Open MPI's OMPI_*       schizo_ompi.c of Open MPI 4.1
    the container's `env`, then `envFrom`; not for children    sshd(8), su(1), sudoers(5);
      of sshd, `su -`, `sudo` without -E, `env -i`             run: util-linux 2.38, sudo 1.9
    NCCL: $NCCL_CONF_FILE or ~/.nccl.conf, /etc/nccl.conf      nccl, src/misc/param.cc

A setting counts only if no setting above it has the same name. A script in a ConfigMap, and the one
that BASH_ENV names, are as its own script. What a hook writes into a file is only possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from webhook.decide.settings.setting import CommandSettings, Setting
from webhook.decide.settings.terms import OFF_VALUE_BY_VARIABLE

#: The most values of an uncertain variable that are judged; if there are more, it may have any.
_MOST = 2


def effective_env(
    env: Mapping[str, str | None], settings: CommandSettings, *, present: Mapping[str, str | None]
) -> Mapping[str, str | None]:
    """Return a container's `env` as its command changes it: name → value, None if unknown.

    `present` are the variables after the patch: a default in the command (`${NAME:-1}`) applies to
    none of these.
    """
    if not settings.changes_env:
        return env
    effective = {} if settings.drops_env else dict(env)
    for setting in settings_in_effect(settings, present=present):
        if setting.removed:
            effective.pop(setting.name, None)
        else:
            effective[setting.name] = setting.value
    return effective


def settings_in_effect(
    settings: CommandSettings, *, present: Mapping[str, str | None]
) -> Iterator[Setting]:
    """Yield the certain settings, without the defaults of variables that are present."""
    for setting in settings.certain.values():
        if _applies(setting, settings, present):
            yield setting


def _applies(
    setting: Setting, settings: CommandSettings, present: Mapping[str, str | None]
) -> bool:
    """Return whether a setting is not the default of a variable that the process has."""
    return settings.drops_env or not (setting.yields_to_env and setting.name in present)


def uncertain(settings: CommandSettings, *, present: Mapping[str, str | None]) -> Iterator[Setting]:
    """Yield the settings that may keep a library off RDMA.

    The value is None if it is unknown, or if a variable has more than _MOST.
    """
    computed = (
        setting
        for setting in settings_in_effect(settings, present=present)
        if setting.value is None and not setting.removed
    )
    possible = (
        setting
        for setting in settings.possible
        if not setting.removed and _applies(setting, settings, present)
    )
    by_name: dict[str, list[Setting]] = {}
    for setting in (*computed, *possible):
        if setting.name in OFF_VALUE_BY_VARIABLE:
            by_name.setdefault(setting.name, []).append(setting)
    for settings_of_name in by_name.values():
        if len(settings_of_name) > _MOST:
            yield settings_of_name[0]._replace(value=None)
        else:
            yield from settings_of_name
