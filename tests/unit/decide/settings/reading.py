"""Read the settings of a container's command."""

from __future__ import annotations

from tests.builders import container, env
from webhook.decide.settings.reader import SettingsReader
from webhook.decide.settings.setting import CommandSettings, Setting
from webhook.model.pod import Pod


def settings_of(*words: str, **variables: str) -> CommandSettings:
    """Read a container with these words and variables."""
    manifest = {"spec": {"containers": [container(command=list(words), env=env(**variables))]}}
    return SettingsReader(Pod(manifest)).settings(("spec", "containers", 0))


def settings_in(script: str, **variables: str) -> CommandSettings:
    """Read a container that runs a script."""
    return settings_of("sh", "-c", script, **variables)


def certain(settings: CommandSettings) -> dict[str, str | None]:
    """Return the certain settings: name → value, None if unknown, "removed" if removed."""
    return {name: value_of(setting) for name, setting in settings.certain.items()}


def possible(settings: CommandSettings) -> dict[str, str | None]:
    """Return the possible settings: name → value."""
    return {setting.name: value_of(setting) for setting in settings.possible}


def value_of(setting: Setting) -> str | None:
    """Return the value of a setting, or "removed"."""
    return "removed" if setting.removed else setting.value
