"""The environment of a process, as far as commands change it."""

from __future__ import annotations

from webhook.decide.settings.setting import Memlock, Setting, assigned, is_recorded


class Process:
    """What commands change in a process, compared with the container's first process."""

    __slots__ = ("drops", "memlock", "parent", "ranks", "settings", "user")

    def __init__(self, parent: Process | None = None) -> None:
        self.parent = parent
        self.settings: dict[str, Setting] = {}  #: by name
        self.drops = ""  #: the source of what removes the inherited environment, or ""
        self.user = ""  #: the source of the change to a user other than root, or ""
        self.memlock: Memlock | None = None
        self.ranks: dict[str, Setting] = {}  #: the settings of ranks that it starts over ssh

    @property
    def changed(self) -> bool:
        """Whether anything differs from the parent."""
        return bool(self.settings or self.drops or self.user or self.memlock or self.ranks)

    def current(self, name: str) -> Setting | None:
        """Return the setting of a variable in this process; None if the container's env has it."""
        process: Process | None = self
        while process is not None:
            if name in process.settings:
                return process.settings[name]
            if process.drops:
                return Setting(name, None, process.drops, removed=True)
            process = process.parent
        return None

    def assign(self, name: str, value: str, source: str) -> None:
        """Set a variable, unless it is not recorded or the words leave it as it is."""
        setting = assigned(name, value, source) if is_recorded(name) else None
        if setting is not None:
            self.put(setting)

    def put(self, setting: Setting) -> None:
        """Make a setting; a mere default does not replace a value that the command has set."""
        if setting.default:
            current = self.current(setting.name)
            if current is not None and not current.removed:
                return
            setting = setting._replace(default=current is None)
        self.settings[setting.name] = setting

    def remove(self, name: str, source: str) -> None:
        """Unset a variable."""
        if is_recorded(name):
            self.settings[name] = Setting(name, None, source, removed=True)

    def drop(self, source: str) -> None:
        """Remove all that is inherited."""
        self.settings.clear()
        self.drops = source

    def absorb(self, child: Process) -> None:
        """Take over the changes of a child: it is the process that carries the traffic."""
        if child.drops:
            self.drop(child.drops)
        self.settings.update(child.settings)
        self.user = child.user or self.user
        self.memlock = child.memlock or self.memlock
        self.ranks = child.ranks or self.ranks
