"""A container's launches of Open MPI: which accept the flag against hcoll, and which use ssh.

mpi/openmpi.py decides whether a launch is certainly Open MPI's, and what may still rule out the
flag.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from webhook.decide.launchers.commands import Commands, Launch
from webhook.decide.launchers.openmpi import (
    PREFIX,
    judge,
    parameters,
    reaches_by_ssh,
    speaks_of_another,
    telling,
)
from webhook.decide.shell.argv import Word, basename
from webhook.model.path import Path


def open_to_flag(
    commands: Commands, path: Path, names: Collection[str]
) -> tuple[list[Launch], str]:
    """List the launches that accept the flag; if there are launches but none does, say why.

    `names` are the names of the container's variables. A launch behind sudo, or in a script that
    was not read, cannot be edited; `hcoll` warns about it separately.
    """
    launches = [launch for launch in commands.launches(path) if launch.editable]
    if not launches:
        return [], ""
    text = commands.text(path)
    if _settled(text, launches):
        return [], "the command settles hcoll itself"
    if speaks_of_another(text, names):
        return [], "the container speaks of another MPI"
    known = telling(names)
    found, whys = [], []
    for launch in launches:
        verdict = judge(launch.front, launch.words, known)
        why = verdict.obstacle if verdict.proof else "is not proven to be Open MPI"
        if why:
            whys.append(f"{basename(launch.words[0] or '')} {why}")
        else:
            found.append(launch)
    return found, "" if found else ", ".join(dict.fromkeys(whys))


def forwards_by_ssh(commands: Commands, path: Path, names: Collection[str]) -> bool:
    """Return whether a container whose variables have these names starts Open MPI ranks over ssh.

    Such ranks get only OMPI_* from the launcher's environment, and anything else by `-x`
    (Open MPI 4.1, schizo_ompi.c).
    """
    launches = [launch for launch in commands.launches(path) if launch.editable]
    if not launches or speaks_of_another(commands.text(path), names):
        return False
    known = telling(names)
    return any(
        judge(launch.front, launch.words, known).proof and reaches_by_ssh(launch.words, known)
        for launch in launches
    )


def parameters_of(
    commands: Commands, path: Path, own: Mapping[str, Word]
) -> Iterator[dict[str, Word]]:
    """Yield Open MPI's parameters: of the container's variables, `own`, and of each launch.

    A launch adds those of the words in front of it and of its options. What is only known when the
    container runs is None.
    """
    inherited = _assigned(own.items())
    yield inherited
    if not commands.launches(path):
        return
    names = telling(own)
    for launch in commands.launches(path):
        words = launch.launcher if not launch.problem else ()
        if words and judge(launch.front, words, names).proof:
            front = (word.partition("=")[::2] for word in launch.front if word)
            yield inherited | _assigned(front) | parameters(words)


def _assigned(variables: Iterable[tuple[str, Word]]) -> dict[str, Word]:
    return {
        name.removeprefix(PREFIX): value for name, value in variables if name.startswith(PREFIX)
    }


def _settled(text: str, launches: list[Launch]) -> bool:
    """Return whether the command mentions hcoll outside the launchers' words: an export, say."""
    if "hcoll" not in text and "HCOLL" not in text:
        return False
    words = [word for launch in launches for word in launch.words if word]
    return "HCOLL" in text or text.count("hcoll") > sum(word.count("hcoll") for word in words)
