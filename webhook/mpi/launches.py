"""A container's launches of Open MPI: which take the flag against hcoll, and which use ssh.

Why a launch is Open MPI's for sure, and why it takes no flag all the same, mpi/openmpi.py tells.
"""

from __future__ import annotations

from collections.abc import Collection

from webhook.mpi.commands import Commands, Launch
from webhook.mpi.openmpi import judge, reaches_by_ssh, speaks_of_another, telling
from webhook.pod.path import Path
from webhook.shelltext.argv import basename


def open_to_flag(
    commands: Commands, path: Path, names: Collection[str]
) -> tuple[list[Launch], str]:
    """List the launches that take the flag; where there are launches and none does, say why.

    `names` are those of the container's variables. A launch behind sudo or in a script that
    is not read is not ours to edit, and is told of otherwise.
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
    """Whether a container whose variables have these names starts Open MPI ranks over ssh.

    Those get OMPI_* of the launcher's environment, and nothing else without `-x`
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


def _settled(text: str, launches: list[Launch]) -> bool:
    """Whether the command speaks of hcoll outside of launchers' words: an export, say."""
    if "hcoll" not in text and "HCOLL" not in text:
        return False
    words = [word for launch in launches for word in launch.words if word]
    return "HCOLL" in text or text.count("hcoll") > sum(word.count("hcoll") for word in words)
