"""Find the MPI launchers and sshd that a container's `command` and `args` run.

Kubernetes joins both lists into one. Without `command`, the image's entrypoint runs with
`args` as its arguments. If these begin with a launcher or a shell, the entrypoint is assumed
to end in `exec "$@"`, since no other entrypoint could use them.

    found                                             ignored
    -----                                             -------
    mpirun …; sh -c "… mpirun …"                      words of quotes, comments, heredocs
    env, exec, time, timeout 60, numactl … mpirun     ssh host mpirun
    && || | ; if for while ( ) { } $( ) functions     eval, xargs, $MPIRUN, aliases
    sh -c '… exec "$@"' sh mpirun …                   sh -c in a script; what a script file does
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from webhook.decide.shell.argv import Word, basename, command_at, remap_length, script_at
from webhook.decide.shell.scripts import TOO_MANY, Scripts
from webhook.model.pod import Path, Pod

#: Programs that may clear the environment of the launcher that they run.
_OTHER_USER = frozenset({"doas", "gosu", "runuser", "su", "su-exec", "sudo"})
_PRINTING = frozenset({"-V", "--version", "-version", "-h", "--help", "-help"})
#: The end of a script that then runs the words after it.
HANDS_OVER = 'exec "$@"'
#: `sshd` as a word, or the service that Debian calls `ssh`, started by any service manager.
_SSH_SERVER = re.compile(
    r"\bsshd\b|\bservice\s+ssh\b|\binit\.d/ssh\b|\bsystemctl\s+(?:[\w.-]+\s+){1,3}ssh\b"
)


class LauncherCommand(NamedTuple):
    """A launcher that a container runs, with the words of the command that runs it."""

    #: The path of the first of the words, such as ("args", 1), or of the script around them.
    path: Path
    #: The offset after that word in a script; None in a list of words.
    script_offset: int | None
    front: tuple[Word, ...]  #: wrappers and assignments in front of it
    #: The words from the launcher on, or from the program in `run_by`.
    words_with_runner: tuple[Word, ...]
    #: The program that runs it, such as "sudo", and that may hide the container's environment.
    run_by: str = ""
    #: The reason why a script was not read (scripts.PROBLEMS); then there are no words.
    problem: str = ""

    @property
    def editable(self) -> bool:
        """Whether words may be inserted after the launcher's."""
        return not self.run_by and not self.problem

    @property
    def launcher_words(self) -> tuple[Word, ...]:
        """The words from the launcher's on, also after sudo or in the script of `su -c`."""
        if not self.run_by:
            return self.words_with_runner
        words = [
            part for word in self.words_with_runner for part in (word.split() if word else (word,))
        ]
        first = next(
            index for index, word in enumerate(words) if basename(word or "") in MPI_BY_LAUNCHER
        )
        return tuple(words[first:])


class _Run(NamedTuple):
    path: Path
    script_offset: int | None
    front: tuple[Word, ...]
    words: tuple[Word, ...]
    problem: str = ""


class _Search:
    """The words to find in a pod's commands, and the commands read so far."""

    __slots__ = ("ran", "scripts", "words")

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.scripts = Scripts(words)
        self.ran: dict[Path, tuple[_Run, ...]] = {}

    def finds(self, text: str) -> bool:
        """Return whether a text has any of the words."""
        return any(map(text.__contains__, self.words))


class Commands:
    """The commands of one pod as the user wrote them, each read once, on demand.

    Most commands have no search term, so each is joined into a text and searched before it is read.
    """

    __slots__ = ("_pod", "_searches")

    def __init__(self, pod: Pod) -> None:
        self._pod = pod
        self._searches: dict[tuple[str, ...], _Search] = {}

    def text(self, path: Path) -> str:
        """Return all words of the command of the container at `path`, one per line."""
        return self._pod.container(path).command_text

    def launches(self, path: Path) -> tuple[LauncherCommand, ...]:
        """List the launchers that the container at `path` runs, and scripts that may run one."""
        if not may_launch(self.text(path)):
            return ()
        launches = [_launch(run) for run in self._runs(path, SEARCH_TERMS)]
        return tuple(launch for launch in launches if launch is not None)

    def other_launcher_commands(self, path: Path) -> tuple[tuple[Word, ...], ...]:
        """List the words of each launcher of another framework: horovodrun, deepspeed, Ray."""
        text = self.text(path)
        if not any(map(text.__contains__, OTHER_LAUNCHER_TERMS)):
            return ()
        runs = self._runs(path, OTHER_LAUNCHER_TERMS)
        return tuple(run.words for run in runs if run.words and _is_other_launcher(run))

    def runs_sshd(self, path: Path) -> bool:
        """Return whether a container certainly runs sshd: its children do not inherit `env`."""
        return SSHD in self.text(path) and any(
            run.words and basename(run.words[0] or "") == SSHD
            for run in self._runs(path, SEARCH_TERMS)
        )

    def mentions_sshd(self, path: Path) -> bool:
        """Return whether a command has sshd as a word, or starts the service ssh.

        The word may be in a comment, and sshd may run in a script file, which is not read.
        """
        text = self.text(path)
        return "ssh" in text and _SSH_SERVER.search(text) is not None

    def _runs(self, path: Path, search_terms: tuple[str, ...]) -> tuple[_Run, ...]:
        search = self._searches.get(search_terms)
        if search is None:
            search = self._searches[search_terms] = _Search(search_terms)
        runs = search.ran.get(path)
        if runs is None:
            runs = search.ran[path] = tuple(self._read(path, search))
        return runs

    def _read(self, path: Path, search: _Search) -> Iterator[_Run]:
        """Yield the commands of a container; a run without words is an unread script."""
        container = self._pod.container(path)
        argv, split = container.command + container.args, len(container.command)
        index = command_at(argv, remap_length(argv))
        while index is not None:
            script = script_at(argv, index)
            if script is None:
                problem = "" if search.scripts.spend_steps(len(argv)) else TOO_MANY
                words = () if problem else tuple(argv)
                yield _Run(_word_path(index, split), None, words[:index], words[index:], problem)
                return
            yield from _in_script(search, argv[script], _word_path(script, split))
            if not argv[script].rstrip().endswith(HANDS_OVER):
                return
            index = command_at(argv, script + 2)


def _in_script(search: _Search, script: str, path: Path) -> Iterator[_Run]:
    if not search.finds(script):
        return
    commands, problem = search.scripts.read(script)
    if problem and may_launch(script):
        yield _Run(path, None, (), (), problem)
    for words, ends, *_ in commands:
        index = command_at(words)
        if index is not None:
            yield _Run(path, ends[index], words[:index], words[index:])


def _launch(run: _Run) -> LauncherCommand | None:
    path, script_offset, front, words, problem = run
    if problem:
        return LauncherCommand(path, script_offset, front, words, problem=problem)
    name = basename(words[0] or "")
    if name in MPI_BY_LAUNCHER:
        only_prints = len(words) == 1 or words[1] in _PRINTING
        return None if only_prints else LauncherCommand(path, script_offset, front, words)
    if name in _OTHER_USER and any(word and _launches(word) for word in words):
        return LauncherCommand(path, script_offset, front, words, run_by=name)
    return None


def _is_other_launcher(run: _Run) -> bool:
    """Return whether a run starts a launcher of another framework, or the head of a Ray cluster."""
    name = basename(run.words[0] or "")
    program, verb, option = RAY_HEAD
    if name == program:
        return run.words[1:2] == (verb,) and option in run.words
    return name in (HOROVOD, DEEPSPEED)


def _launches(word: str) -> bool:
    """Return whether a word is a launcher or, as for `su -c`, a script that seems to run one."""
    return any(basename(part) in MPI_BY_LAUNCHER for part in word.split())


def _word_path(index: int, split: int) -> Path:
    return ("command", index) if index < split else ("args", index - split)


# The names of launchers: a single table for MPI's, the source of all search terms.
#
# `mpirun.real` is what a site's own `mpirun` wraps, as in Horovod's images. Torchrun and srun are
# not listed: the first starts processes in its own container, and the second is Slurm's: only its
# `--export` is read (settings/launch_options.py).

#: "" if the name is ambiguous: `mpirun` is Open MPI's, MPICH's, Intel MPI's or a site's script.
MpiImplementation = Literal["", "Open MPI", "another MPI"]

MPI_BY_LAUNCHER: Mapping[str, MpiImplementation] = {
    "mpirun": "",
    "mpiexec": "",
    "mpirun.real": "",
    "prterun": "",
    "orterun": "Open MPI",
    "mpirun.openmpi": "Open MPI",
    "mpiexec.openmpi": "Open MPI",
    "mpirun.mpich": "another MPI",
    "mpiexec.mpich": "another MPI",
    "mpiexec.hydra": "another MPI",
    "mpirun_rsh": "another MPI",
}

#: Launchers of other frameworks, which accept none of mpirun's options. Without hosts, horovodrun
#: starts its processes in its own container; deepspeed reads /job/hostfile (launcher/runner.py,
#: DLTS_HOSTFILE), and it cannot use a container without a GPU.
HOROVOD = "horovodrun"
DEEPSPEED = "deepspeed"
#: The head of a Ray cluster. Its search term is the option, since "ray" is part of many words.
RAY_HEAD = ("ray", "start", "--head")

#: The server through which launchers start ranks; its children do not inherit the container's
#: environment.
SSHD = "sshd"

#: The names that contain no other name: a text without any of these contains no launcher.
LAUNCHER_TERMS = tuple(
    word
    for word in MPI_BY_LAUNCHER
    if not any(other in word for other in MPI_BY_LAUNCHER if other != word)
)
#: The words that a script is searched for.
SEARCH_TERMS = (*LAUNCHER_TERMS, SSHD)
#: The same for the launchers of other frameworks.
OTHER_LAUNCHER_TERMS = (HOROVOD, DEEPSPEED, RAY_HEAD[-1])


def may_launch(text: str) -> bool:
    """Return whether a text may name a launcher; runs on every command, so it parses nothing."""
    return any(map(text.__contains__, LAUNCHER_TERMS))
