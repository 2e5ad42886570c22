"""The laws of pods whose container is a launcher that runs a shell script."""

from __future__ import annotations

import re
import subprocess
from functools import cached_property
from typing import Any

from tests.fuzz.cost import Allowance
from tests.fuzz.laws.broken import broken
from tests.fuzz.laws.mutations import MUTATE_LAWS, Answered
from webhook.decide.launchers.commands import Commands, LauncherCommand
from webhook.model.pod import Path, Pod

_FIRST: Path = ("spec", "containers", 0)
_FLAG = " -mca coll_hcoll_enable 0"
_LAUNCHES = re.compile(r"(mpirun|mpiexec|rterun)[\w.-]*$")


class Scripted(Answered):
    """A pod whose only container is a launcher that runs a shell script."""

    allowance = Allowance(0.05, 2.5e-7)

    @cached_property
    def launches(self) -> tuple[LauncherCommand, ...]:
        """The launches in the pod's commands."""
        return Commands(Pod(self.pod)).launches(_FIRST)

    @property
    def words(self) -> list[str]:
        """The container's words before the decision."""
        return _words(self.pod)

    @property
    def edited(self) -> bool:
        """Return whether a word of the container has changed."""
        return _words(self.after) != self.words


def _words(pod: Any) -> list[str]:
    container = pod["spec"]["containers"][0]
    return [*container["command"], *container.get("args", ())]


def the_flag_follows_a_launcher(observed: Scripted) -> None:
    """The flag is inserted only directly after a launcher's word."""
    if not observed.decided or not observed.edited:
        return
    for before, after in _edited(observed):
        ends = [match.start() for match in re.finditer(_FLAG, after)]
        for end in ends if _FLAG not in before else ():
            word = re.sub(r"\\\n|[\\\'\"]", "", after[:end])
            if not _LAUNCHES.search(word):
                broken(f"the flag stands behind {after[:end][-40:]!r}")


def _edited(observed: Scripted) -> list[tuple[str, str]]:
    """Pair each changed word with its new text."""
    pairs = zip(observed.words, _words(observed.after), strict=False)
    return [(before, after) for before, after in pairs if before != after]


def bash_takes_both(observed: Scripted) -> None:
    """A script that bash accepts is accepted with the flag, too."""
    if not observed.decided or not observed.edited:
        return
    for before, after in _edited(observed):
        if _is_script(before) and not _is_script(after):
            broken(f"bash took {before!r:.200}, but not {after!r:.200}")


def _is_script(text: str) -> bool:
    command = ["bash", "--norc", "-n"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    return done.returncode == 0


SHELL_LAWS = (the_flag_follows_a_launcher, bash_takes_both, *MUTATE_LAWS)
