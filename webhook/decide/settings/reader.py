"""Read the settings of a pod's commands and hooks, and of scripts in ConfigMaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

from webhook.decide.settings.reading import Reading
from webhook.decide.settings.script_files import NO_FILES, ScriptFiles, files_of_pod
from webhook.decide.settings.setting import NO_SETTINGS, CommandSettings, Setting
from webhook.decide.settings.terms import TERMS, may_set
from webhook.decide.settings.written_files import writes_files, writes_only_nccl_file
from webhook.decide.shell.argv import Word, remap_length
from webhook.decide.shell.scripts import MAX_CHARACTERS, Scripts
from webhook.model.config_maps import ConfigMaps, ReadEnv, read_env
from webhook.model.pod import Path, Pod
from webhook.model.pod.hooks import HookCommand, hook_commands

#: The most occurrences of search terms in a pod's scripts: a script may set many variables.
_MAX_OCCURRENCES = 1024


class SettingsReader:
    """The settings of one pod's commands, each read once, on demand.

    `config_maps` are the known ConfigMaps, which only a preview may have.
    """

    __slots__ = (
        *("_config_maps", "_env", "_files", "_pod", "_scripts", "_scripts_with_files"),
        *("_settings", "_settings_with_files"),
    )

    def __init__(self, pod: Pod, config_maps: ConfigMaps = MappingProxyType({})) -> None:
        self._pod = pod
        self._config_maps = config_maps
        self._env: dict[Path, ReadEnv] = {}
        self._files: Mapping[Path, ScriptFiles] | None = None
        #: All containers share the limits on scripts.
        self._scripts: Scripts | None = None
        self._scripts_with_files: Scripts | None = None
        self._settings: dict[Path, CommandSettings] = {}
        self._settings_with_files: dict[Path, CommandSettings] = {}

    def env(self, path: Path) -> ReadEnv:
        """Return the variables of the container at `path`, also from known ConfigMaps."""
        env = self._env.get(path)
        if env is None:
            env = self._env[path] = read_env(self._pod.container(path), self._config_maps)
        return env

    def settings(self, path: Path) -> CommandSettings:
        """Return the settings that the command of the container at `path` makes."""
        settings = self._settings.get(path)
        if settings is None:
            settings = self._settings[path] = self._read(path, self._pod.container(path).env)
        return settings

    def settings_with_files(self, path: Path) -> CommandSettings:
        """Return the settings with what ConfigMaps show: scripts that the command runs, and env.

        Only a verdict may depend on these: admission cannot read them.
        """
        settings = self._settings_with_files.get(path)
        if settings is None:
            settings = self._settings_with_files[path] = self._read_with_files(path)
        return settings

    def text_with_files(self, path: Path) -> str:
        """Return the words of the command, one per line, and its scripts in ConfigMaps."""
        return "\n".join((self._pod.container(path).command_text, *self.script_texts(path)))

    def script_texts(self, path: Path) -> list[str]:
        """Return the texts of its scripts in ConfigMaps, up to the limit for a pod."""
        texts, room = list[str](), MAX_CHARACTERS
        for text in dict.fromkeys(file.text or "" for file in self._files_of(path).values()):
            if 0 < len(text) <= room:
                texts.append(text)
                room -= len(text)
        return texts

    def _files_of(self, path: Path) -> ScriptFiles:
        if self._files is None:
            self._files = files_of_pod(self._pod, self._config_maps)
        return self._files.get(path, NO_FILES)

    def _read(self, path: Path, env: Mapping[str, str | None]) -> CommandSettings:
        container = self._pod.container(path)
        if not may_set(container.command_text):
            return NO_SETTINGS
        argv = container.expanded_words
        reading = self._run(argv[remap_length(argv) :], env)
        return reading.result(container.command_text)

    def _read_with_files(self, path: Path) -> CommandSettings:
        """Read a command; its scripts are also searched for the names of the pod's files."""
        container, files, env = self._pod.container(path), self._files_of(path), self.env(path)
        if not files:
            is_same = env.variables == container.env
            return self.settings(path) if is_same else self._read(path, env.variables)
        if self._scripts_with_files is None:
            words = dict.fromkeys(chain.from_iterable((self._files or {}).values()))
            self._scripts_with_files = Scripts((*TERMS, *words), _MAX_OCCURRENCES)
        reading = Reading(self._scripts_with_files, env.variables, files)
        argv = container.expanded_words
        reading.run_container(argv[remap_length(argv) :])
        return reading.result(container.command_text)

    def written_by_hooks(self, path: Path) -> tuple[Setting, ...]:
        """Return the settings that hooks of the container at `path` write into files.

        What a hook exports stays in its own process.
        """
        container = self._pod.container(path)
        hooks = hook_commands(container.manifest)
        return tuple(setting for hook in hooks for setting in self._written(hook, container.env))

    def _written(self, hook: HookCommand, env: Mapping[str, str | None]) -> Iterator[Setting]:
        text = hook.text
        if may_set(text) and writes_files(text):
            source = f"text in its {hook.name}"
            yields_to_env = writes_only_nccl_file(text)
            for setting in self._run(hook.words, env).only_mentioned(text):
                yield setting._replace(source=source, yields_to_env=yields_to_env)

    def _run(self, argv: Sequence[Word], env: Mapping[str, str | None]) -> Reading:
        if self._scripts is None:
            self._scripts = Scripts(TERMS, _MAX_OCCURRENCES)
        reading = Reading(self._scripts, env, NO_FILES)
        reading.run_container(argv)
        return reading
