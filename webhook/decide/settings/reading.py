"""Read a container's command: words, scripts, and the programs that start others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from webhook.decide.launchers.commands import HANDS_OVER, MPI_BY_LAUNCHER
from webhook.decide.settings.builtins import BUILTINS, Shell, assignments, possible_settings
from webhook.decide.settings.front_words import apply_engine, apply_front_part, apply_srun
from webhook.decide.settings.launch_options import rank_variables
from webhook.decide.settings.process import Process
from webhook.decide.settings.script_files import (
    BASH_ENV,
    Script,
    ScriptFile,
    ScriptFiles,
    mentions_in,
    script_of,
)
from webhook.decide.settings.setting import (
    UNKNOWN_VALUE,
    CommandSettings,
    OtherUser,
    Setting,
    is_recorded,
    literal,
)
from webhook.decide.settings.terms import mentions
from webhook.decide.settings.users import UserChange, user_change
from webhook.decide.shell.argv import (
    Word,
    basename,
    split_wrappers,
)
from webhook.decide.shell.scripts import Scripts
from webhook.decide.shell.words import Command
from webhook.model.config_maps import DataKey

#: The most shells, users and launchers within each other that are followed.
_DEPTH = 8
#: The builtins that read a script in the same shell.
_SOURCES = frozenset({".", "source"})
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


class Reading:
    """The reading of one container's command."""

    def __init__(self, scripts: Scripts, env: Mapping[str, str | None], files: ScriptFiles) -> None:
        self._scripts = scripts
        self._env = env
        self._files = files
        self._process = Process()
        self._possible: list[Setting] = []
        self._side_processes: list[Process] = []  #: processes that may carry the traffic
        self._harmless: set[str] = set()  #: variables that are set, but for nothing that matters
        self._shells: list[Shell] = []
        self._unread_scripts: dict[DataKey, None] = {}

    def run_container(self, argv: Sequence[Word]) -> None:
        """Read the words of `command` and `args`, also after a script that ends in `exec "$@"`."""
        if not self._scripts.spend_steps(len(argv)):
            return
        words: Sequence[Word] = argv
        while words:
            self._run(words, self._process, 0)
            shell = split_wrappers(words).command
            script = None if shell is None else script_of(words, shell, self._files)
            if script is None or not (script.text or "").rstrip().endswith(HANDS_OVER):
                break
            words = words[script.arguments_start :]

    def result(self, text: str) -> CommandSettings:
        """Return the settings; `text` is the container's whole command."""
        process, side = self._process, self._side_processes
        possible = (*self._possible_settings(), *self.only_mentioned(text))
        droppers = (other.env_dropped_by for other in (process, *side))
        ranks = (other.rank_settings.values() for other in side)
        return CommandSettings(
            certain=process.settings,
            possible=tuple(dict.fromkeys(possible)),
            env_dropped_by=next(filter(None, droppers), ""),
            drops_env=bool(process.env_dropped_by),
            user=_other_user(process, side),
            memlock=process.memlock,
            rank_settings=process.rank_settings,
            possible_rank_settings=tuple(chain.from_iterable(ranks)),
            unread_scripts=tuple(self._unread_scripts),
        )

    def only_mentioned(self, text: str) -> Iterator[Setting]:
        """Yield the settings that a text seems to make, and that no command was seen to make."""
        possible = (setting.name for setting in self._possible_settings())
        of_shells = chain.from_iterable(shell.variables for shell in self._shells)
        known_names = {*self._process.settings, *possible, *self._harmless, *of_shells}
        yield from mentions(text, known_names)
        yield from mentions_in(self._files, known_names)

    def _possible_settings(self) -> list[Setting]:
        by_side_processes = (other.settings.values() for other in self._side_processes)
        return [*self._possible, *chain.from_iterable(by_side_processes)]

    def _run(self, words: Sequence[Word], process: Process, depth: int) -> bool:
        """Apply to a process what the words of a command do before its program starts.

        Return whether that program may carry traffic.
        """
        if depth > _DEPTH:
            return True
        front_parts, index = split_wrappers(words)
        for part in front_parts:
            apply_front_part(words, part, process)
        return index is not None and self._run_program(words, index, process, depth)

    def _run_program(self, words: Sequence[Word], index: int, process: Process, depth: int) -> bool:
        """Apply to a process what its program, the word at `index`, does before any traffic.

        Return whether that program, or another that it starts, may carry traffic.
        """
        script = script_of(words, index, self._files)
        if script is not None:
            self._run_shell(script, process, depth + 1)
            return True
        change = user_change(words, index)
        if change is not None:
            return self._run_as(change, words, process, depth)
        program = basename(words[index] or "")
        if program in MPI_BY_LAUNCHER:
            return self._run_ranks(words[index:], process, depth)
        if program == "srun":
            apply_srun(words[index:], process)
        apply_engine(words[index:], process)
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
        if not change.keeps_ipc_lock:
            process.user_changed_by = source
        for name, value in assignments(change.assignments):
            process.assign(name, value, source)
        if change.script is not None:
            self._run_commands(change.script, self._shell(process), depth + 1)
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

    def _run_shell(self, script: Script, process: Process, depth: int) -> None:
        """Apply a script to the process of its shell, after the script that bash reads before."""
        shell, startup = self._shell(process), self._files.get(self._env.get(BASH_ENV) or "")
        if startup and script.by_bash and self._run_file(startup, shell, depth, last=False):
            return
        if script.file is not None:
            self._run_file(script.file, shell, depth)
        elif script.text is not None:
            self._run_commands(script.text, shell, depth)

    def _shell(self, process: Process) -> Shell:
        shell = Shell(process)
        self._shells.append(shell)
        return shell

    def _run_file(self, file: ScriptFile, shell: Shell, depth: int, *, last: bool = True) -> bool:
        """Apply the script in a file to a shell that runs or sources it, as `_run_commands`."""
        if file.text is None:
            self._unread_scripts[file.key] = None
            return False
        process, shell.process = shell.process, Process(shell.process)
        first_possible, first_side = len(self._possible), len(self._side_processes)
        ended = self._run_commands(file.text, shell, depth, last=last)
        for changed in (shell.process, *self._side_processes[first_side:]):
            changed.move(file.place, file.key)
        self._possible[first_possible:] = [
            setting.moved(file.place, file.key) for setting in self._possible[first_possible:]
        ]
        process.absorb(shell.process)
        shell.process = process
        return ended

    def _run_commands(self, script: str, shell: Shell, depth: int, *, last: bool = True) -> bool:
        """Apply a script to the process of its shell, as its main command gets it.

        `last`: whether nothing that matters runs after the script. Return whether it certainly
        has the main command, after which nothing matters.
        """
        for command in self._scripts.read(script).commands if depth <= _DEPTH else ():
            # A script that several containers run is read once, so its commands count here.
            if not self._scripts.spend_steps(1):
                break
            if self._run_command(command, shell, depth, script if last else None):
                return True
        return False

    def _run_command(self, command: Command, shell: Shell, depth: int, script: str | None) -> bool:
        """Read a command of a script; return whether it certainly is the main command.

        `script` is None if commands that matter may follow after it.
        """
        words = command.words
        file = self._files.get(words[1] or "") if words[0] in _SOURCES and words[1:] else None
        if file is not None:
            return self._source(file, command, shell, depth + 1, script)
        if command.assigns or words[0] in BUILTINS:
            self._run_builtin(command, shell)
            return False
        return self._run_child(command, shell.process, depth, script)

    def _source(
        self, file: ScriptFile, command: Command, shell: Shell, depth: int, script: str | None
    ) -> bool:
        """Apply a file that a script reads with `.`; a condition makes its settings possible."""
        if not command.conditional and not command.isolated:
            return self._run_file(file, shell, depth, last=_is_last(command, script))
        side = Process(shell.process)
        self._run_file(file, self._shell(side), depth)
        if side.changed:
            self._side_processes.append(side)
        return False

    def _run_builtin(self, command: Command, shell: Shell) -> None:
        """Apply assignments, or a builtin that changes the shell itself."""
        if command.conditional or command.isolated:
            self._possible += possible_settings(command.words)
        elif command.assigns:
            shell.assign(command.words, self._env)
        else:
            shell.run(command.words)

    def _run_child(
        self, command: Command, process: Process, depth: int, script: str | None
    ) -> bool:
        """Apply a command to a process of its own, which may be that of the main command."""
        child = Process(process)
        carries = self._run(command.words, child, depth)
        if not carries:
            self._harmless |= child.settings.keys()
        if not (carries and child.changed):
            return False
        if command.conditional or not (_replaces_shell(command) or _is_last(command, script)):
            self._side_processes.append(child)
            return False
        process.absorb(child)
        return True


def _is_last(command: Command, script: str | None) -> bool:
    """Return whether nothing that matters follows a command in its script, nor after that.

    Call it only for commands that `_ENDING` does not pass over: else the work would be quadratic.
    """
    return script is not None and _ENDING.match(script, command.ends[-1]) is not None


def _replaces_shell(command: Command) -> bool:
    """Return whether nothing runs after a command, since `exec` put it in the shell's place."""
    front_parts = split_wrappers(command.words).front_parts
    return not command.isolated and any(part.program == "exec" for part in front_parts)


def _other_user(process: Process, side: Sequence[Process]) -> OtherUser | None:
    source = next(filter(None, (other.user_changed_by for other in (process, *side))), "")
    return OtherUser(source, bool(process.user_changed_by)) if source else None
