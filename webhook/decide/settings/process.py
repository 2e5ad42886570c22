"""The environment of a process, as far as commands change it."""

from __future__ import annotations

from webhook.decide.settings.setting import (
    IN_COMMAND,
    Memlock,
    Setting,
    is_recorded,
    setting_by_assignment,
)
from webhook.model.config_maps import DataKey


class Process:
    """What commands change in a process, compared with the container's first process."""

    __slots__ = (
        *("env_dropped_by", "memlock", "parent", "rank_settings", "settings"),
        "user_changed_by",
    )

    def __init__(self, parent: Process | None = None) -> None:
        self.parent = parent
        self.settings: dict[str, Setting] = {}  #: by name
        self.env_dropped_by = ""  #: the source of what removes the inherited environment, or ""
        #: The source of the change to a user other than root, or without IPC_LOCK; or "".
        self.user_changed_by = ""
        self.memlock: Memlock | None = None
        #: The settings of ranks that it starts over ssh.
        self.rank_settings: dict[str, Setting] = {}

    @property
    def changed(self) -> bool:
        """Whether anything differs from the parent."""
        return bool(
            self.settings
            or self.env_dropped_by
            or self.user_changed_by
            or self.memlock
            or self.rank_settings
        )

    def current(self, name: str) -> Setting | None:
        """Return what commands made of a variable, or None if no command changed it.

        If one removed it, alone or with the environment, the setting is `removed`.
        """
        process: Process | None = self
        while process is not None:
            if name in process.settings:
                return process.settings[name]
            if process.env_dropped_by:
                return Setting(name, None, process.env_dropped_by, removed=True)
            process = process.parent
        return None

    def assign(self, name: str, value: str, source: str) -> None:
        """Set a variable, unless it is not recorded or the words leave it as it is."""
        setting = setting_by_assignment(name, value, source) if is_recorded(name) else None
        if setting is not None:
            self.put(setting)

    def put(self, setting: Setting) -> None:
        """Make a setting; a mere default does not replace a value that the command has set."""
        if setting.yields_to_env:
            current = self.current(setting.name)
            if current is not None and not current.removed:
                return
            setting = setting._replace(yields_to_env=current is None)
        self.settings[setting.name] = setting

    def remove(self, name: str, source: str) -> None:
        """Unset a variable."""
        if is_recorded(name):
            self.settings[name] = Setting(name, None, source, removed=True)

    def drop(self, source: str) -> None:
        """Remove all that is inherited."""
        self.settings.clear()
        self.env_dropped_by = source

    def absorb(self, child: Process) -> None:
        """Take over the changes of a child: it is the process that carries the traffic."""
        if child.env_dropped_by:
            self.drop(child.env_dropped_by)
        self.settings.update(child.settings)
        self.user_changed_by = child.user_changed_by or self.user_changed_by
        self.memlock = child.memlock or self.memlock
        self.rank_settings = child.rank_settings or self.rank_settings

    def move(self, place: str, key: DataKey) -> None:
        """Attribute all changes to words in `place`, instead of words in the command."""
        for settings in (self.settings, self.rank_settings):
            settings.update((name, setting.moved(place, key)) for name, setting in settings.items())
        self.env_dropped_by = self.env_dropped_by.replace(IN_COMMAND, place)
        self.user_changed_by = self.user_changed_by.replace(IN_COMMAND, place)
        if self.memlock is not None:
            source = self.memlock.source.replace(IN_COMMAND, place)
            self.memlock = self.memlock._replace(source=source)
