"""Read the settings of containers' commands: words, scripts, and the programs that start others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from webhook.decide.launchers.commands import HANDS_OVER, MPI_BY_LAUNCHER
from webhook.decide.settings.builtins import BUILTINS, Shell, assignments, possible_settings
from webhook.decide.settings.engine_options import engine_settings
from webhook.decide.settings.launch_options import rank_variables, srun_export
from webhook.decide.settings.process import Process
from webhook.decide.settings.setting import (
    NO_SETTINGS,
    UNKNOWN_VALUE,
    CommandSettings,
    OtherUser,
    Setting,
    is_recorded,
    literal,
)
from webhook.decide.settings.terms import TERMS, may_set, mentions
from webhook.decide.settings.users import UserChange, user_change
from webhook.decide.settings.written_files import writes_files, writes_only_nccl_file
from webhook.decide.shell.argv import (
    Layer,
    Word,
    basename,
    remap_length,
    script_at,
    split_wrappers,
)
from webhook.decide.shell.scripts import Scripts
from webhook.decide.shell.words import Command
from webhook.model.pod import Path, Pod
from webhook.model.pod.hooks import HookCommand, hook_commands

#: The most shells, users and launchers within each other that are followed.
_DEPTH = 8
#: The most search terms in a pod's scripts: a script may set many variables.
_OCCURRENCES = 1024
#: Programs that prepare or report something, but carry no traffic between nodes.
_MINOR = frozenset(
    {
        *("apt", "apt-get", "cat", "chmod", "chown", "cp", "curl", "date", "echo", "env", "exit"),
        *("false", "grep", "hostname", "id", "kill", "ls", "mkdir", "mount", "mv", "nvidia-smi"),
        *("pip", "pip3", "printenv", "printf", "ps", "pwd", "rm", "sed", "service", "sleep"),
        *("ssh-keygen", "sshd", "sysctl", "systemctl", "tail", "tar", "tee", "test", "touch"),
        *("true", "ulimit", "wait", "wget", "whoami", "yum", ":", "["),
    }
)
_NAMES = "|".join(sorted(name for name in _MINOR if name.isalpha()))
#: What may follow the command that carries the traffic: ends of blocks, and minor commands.
_ENDING = re.compile(
    r"(?:[\s;&|})]++|\d?[<>]&?[ ]?[^\s;&|]++"
    rf"|(?:{_NAMES}|:|done|fi)(?=[\s;&|)]|\Z)[^\n;&|)]*+)*+\Z"
)


class CommandReader:
    """The settings of one pod's commands, each read once, on demand."""

    __slots__ = ("_pod", "_scripts", "_settings")

    def __init__(self, pod: Pod) -> None:
        self._pod = pod
        self._scripts: Scripts | None = None
        self._settings: dict[Path, CommandSettings] = {}

    def settings(self, path: Path) -> CommandSettings:
        """Return the settings that the command of the container at `path` makes."""
        settings = self._settings.get(path)
        if settings is None:
            settings = self._settings[path] = self._read(path)
        return settings

    def _read(self, path: Path) -> CommandSettings:
        container = self._pod.container(path)
        if not may_set(container.command_text):
            return NO_SETTINGS
        argv = container.expanded_words
        reading = self._run(argv[remap_length(argv) :], container.env)
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
            source, default = f"text in its {hook.name}", writes_only_nccl_file(text)
            for setting in self._run(hook.words, env).mentioned(text):
                yield setting._replace(source=source, default=default)

    def _run(self, argv: Sequence[Word], env: Mapping[str, str | None]) -> _Reading:
        if self._scripts is None:
            self._scripts = Scripts(TERMS, _OCCURRENCES)
        reading = _Reading(self._scripts, env)
        reading.run_container(argv)
        return reading


class _Reading:
    """The reading of one container's command."""

    def __init__(self, scripts: Scripts, env: Mapping[str, str | None]) -> None:
        self._scripts = scripts
        self._env = env
        self._process = Process()
        self._possible: list[Setting] = []
        self._side_processes: list[Process] = []  #: processes that may carry the traffic
        self._harmless: set[str] = set()  #: variables that are set, but for nothing that matters

    def run_container(self, argv: Sequence[Word]) -> None:
        """Read the words of `command` and `args`, also after a script that ends in `exec "$@"`."""
        if not self._scripts.spend_steps(len(argv)):
            return
        words: Sequence[Word] = argv
        while words:
            self._run(words, self._process, 0)
            shell = split_wrappers(words).command
            script = None if shell is None else script_at(words, shell)
            if script is None or not (words[script] or "").rstrip().endswith(HANDS_OVER):
                break
            words = words[script + 2 :]

    def result(self, text: str) -> CommandSettings:
        """Return the settings; `text` is the container's whole command."""
        process, side = self._process, self._side_processes
        possible = self._possible_settings()
        possible += self.mentioned(text)
        env_dropped_by = process.env_dropped_by or next(
            (other.env_dropped_by for other in side if other.env_dropped_by), ""
        )
        user = next((other.user for other in side if other.user), "")
        return CommandSettings(
            certain=process.settings,
            possible=tuple(dict.fromkeys(possible)),
            env_dropped_by=env_dropped_by,
            drops_env=bool(process.env_dropped_by),
            user=_other_user(process.user, user),
            memlock=process.memlock,
            rank_settings=process.rank_settings,
            possible_rank_settings=tuple(
                setting for other in side for setting in other.rank_settings.values()
            ),
        )

    def mentioned(self, text: str) -> Iterator[Setting]:
        """Yield the settings that a text seems to make, and that no command was seen to make."""
        possible = (setting.name for setting in self._possible_settings())
        yield from mentions(text, {*self._process.settings, *possible, *self._harmless})

    def _possible_settings(self) -> list[Setting]:
        by_side_processes = (other.settings.values() for other in self._side_processes)
        return [*self._possible, *chain.from_iterable(by_side_processes)]

    def _run(self, words: Sequence[Word], process: Process, depth: int) -> bool:
        """Apply to a process what the words of a command do before its program starts.

        Return whether that program may carry traffic.
        """
        if depth > _DEPTH:
            return True
        layers, index = split_wrappers(words)
        for layer in layers:
            _apply_layer(words, layer, process)
        if index is None:
            return False
        script = script_at(words, index)
        if script is not None:
            self._run_script(words[script], process, depth + 1)
            return True
        change = user_change(words, index)
        if change is not None:
            return self._run_as(change, words, process, depth)
        program = basename(words[index] or "")
        if program in MPI_BY_LAUNCHER:
            return self._run_ranks(words[index:], process, depth)
        if program == "srun":
            _apply_srun(words[index:], process)
        _apply_engine(words[index:], process)
        return program not in _MINOR

    def _run_as(
        self, change: UserChange, words: Sequence[Word], process: Process, depth: int
    ) -> bool:
        source = f"{change.description} in its command"
        if change.drops_env:
            preserved = [process.current(name) for name in change.keeps]
            process.drop(source)
            for setting in filter(None, preserved):
                process.put(setting)
        if not change.is_root:
            process.user = source
        for name, value in assignments(change.assignments):
            process.assign(name, value, source)
        if change.script is not None:
            self._run_script(change.script, process, depth + 1)
            return True
        return change.command is not None and self._run(words[change.command :], process, depth + 1)

    def _run_ranks(self, words: Sequence[Word], process: Process, depth: int) -> bool:
        options = rank_variables(words)
        if ":" in words:  # several programs, each with options of its own
            for name, value, option in options.variables:
                if is_recorded(name):
                    source = f"{option} in its command"
                    self._possible.append(Setting(name, literal(value or UNKNOWN_VALUE), source))
            return True
        ssh_rank = Process()
        for name in options.forwarded:
            self._forward(name, process, ssh_rank)
        rank_changes = Process(process)
        for name, value, option in options.variables:
            assigned = UNKNOWN_VALUE if value is None else value
            rank_changes.assign(name, assigned, f"{option} in its command")
        if options.program is not None:
            self._run(words[options.program :], rank_changes, depth + 1)
        ssh_rank.absorb(rank_changes)
        process.absorb(rank_changes)
        process.rank_settings = ssh_rank.settings
        return True

    def _forward(self, name: str, process: Process, ssh_rank: Process) -> None:
        """Give a rank in another pod the launcher's own value of a variable."""
        setting = process.current(name)
        if setting is None and name in self._env:
            setting = Setting(name, self._env[name], "mpirun -x in its command")
        if setting is not None and not setting.removed and is_recorded(name):
            ssh_rank.put(setting)

    def _run_script(self, script: Word, process: Process, depth: int) -> None:
        """Apply a script to the process of its shell, as its main command gets it."""
        if script is None or depth > _DEPTH:
            return
        shell = Shell(process)
        for command in self._scripts.read(script).commands:
            # A script that several containers run is read once, so its commands count here.
            if not self._scripts.spend_steps(1):
                break
            if self._run_command(script, command, shell, depth):
                break
        self._harmless |= shell.variables.keys()

    def _run_command(self, script: str, command: Command, shell: Shell, depth: int) -> bool:
        """Read a command of a script; return whether it is certainly the last one that matters."""
        words, process = command.words, shell.process
        if command.assigns or words[0] in BUILTINS:
            if command.conditional or command.isolated:
                self._possible += possible_settings(words)
            elif words[0] in BUILTINS:
                shell.run(words)
            else:
                shell.assign(words, self._env)
            return False
        child = Process(process)
        carries = self._run(words, child, depth)
        if not carries:
            self._harmless |= child.settings.keys()
        if not (carries and child.changed):
            return False
        replaces = any(layer.program == "exec" for layer in split_wrappers(words).layers)
        is_last = replaces or _ENDING.match(script, command.ends[-1]) is not None
        if is_last and not command.conditional:
            process.absorb(child)
            return True
        self._side_processes.append(child)
        return False


def _apply_layer(words: Sequence[Word], layer: Layer, process: Process) -> None:
    """Apply assignments in front of a command, or what `env` and `exec -c` do."""
    parts = words[layer.start : layer.end]
    if layer.program == "env":
        _apply_env(parts[1:], process)
    elif layer.program == "exec" and "-c" in parts:
        process.drop("exec -c in its command")
    elif not layer.program:
        for name, value in assignments(parts):
            process.assign(name, value, "assignment in its command")


def _apply_env(words: Sequence[Word], process: Process) -> None:
    removed = list(_unset_by_env(words))
    if any(word in ("-", "-i", "--ignore-environment") for word in words):
        process.drop("env -i in its command")
    for name in removed:
        process.remove(name, "env -u in its command")
    for name, value in assignments(words):
        process.assign(name, value, "env in its command")


def _unset_by_env(words: Sequence[Word]) -> Iterator[str]:
    for word, following in zip(words, (*words[1:], None), strict=False):
        if word in ("-u", "--unset") and following:
            yield following
        elif word and word.startswith(("-u", "--unset=")):
            yield word.removeprefix("--unset=").removeprefix("-u")


def _apply_srun(words: Sequence[Word], process: Process) -> None:
    export = srun_export(words)
    if export.drops_env:
        process.drop("srun --export in its command")
    for name, value in export.variables:
        process.assign(name, value, "srun --export in its command")


def _apply_engine(words: Sequence[Word], process: Process) -> None:
    for option, name, value in engine_settings(words):
        process.assign(name, value, f"{option} in its command")


def _other_user(certain: str, possible: str) -> OtherUser | None:
    source = certain or possible
    return OtherUser(source, bool(certain)) if source else None
