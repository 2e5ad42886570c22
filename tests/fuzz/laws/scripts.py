"""The laws of pods whose container is a launcher that runs a shell script."""

from __future__ import annotations

import re
import subprocess
from functools import cached_property
from typing import Any

from tests.fuzz.cost import Allowance
from tests.fuzz.laws.broken import broken
from tests.fuzz.laws.mutations import MUTATE_LAWS, Answered
from webhook.decide.launchers.commands import Commands, Launch
from webhook.model.pod import Path, Pod

_FIRST: Path = ("spec", "containers", 0)
_FLAG = " -mca coll_hcoll_enable 0"
_LAUNCHES = re.compile(r"(mpirun|mpiexec|rterun)[\w.-]*$")


class Scripted(Answered):
    """A pod whose only container is a launcher that runs a shell script."""

    allowance = Allowance(0.05, 2.5e-7)

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """The launches that were found."""
        return Commands(Pod(self.pod)).launches(_FIRST)

    @property
    def words(self) -> list[str]:
        """The container's words before the decision."""
        return _words(self.pod)

    @property
    def edited(self) -> bool:
        """Whether a word of the container has changed."""
        return _words(self.after) != self.words


def _words(pod: Any) -> list[str]:
    one = pod["spec"]["containers"][0]
    return [*one["command"], *one.get("args", ())]


def a_place_is_behind_a_launcher(seen: Scripted) -> None:
    """The flag is inserted only directly after a launcher's word."""
    if not seen.decided or not seen.edited:
        return
    for before, after in _edited(seen):
        ends = [found.start() for found in re.finditer(_FLAG, after)]
        for end in ends if _FLAG not in before else ():
            word = re.sub(r"\\\n|[\\\'\"]", "", after[:end])
            if not _LAUNCHES.search(word):
                broken(f"the flag stands behind {after[:end][-40:]!r}")


def _edited(seen: Scripted) -> list[tuple[str, str]]:
    """Pair each changed word with its new text."""
    pairs = zip(seen.words, _words(seen.after), strict=False)
    return [(before, after) for before, after in pairs if before != after]


def bash_takes_both(seen: Scripted) -> None:
    """A script that bash accepts is accepted with the flag, too."""
    if not seen.decided or not seen.edited:
        return
    for before, after in _edited(seen):
        if _is_script(before) and not _is_script(after):
            broken(f"bash took {before!r:.200}, but not {after!r:.200}")


def _is_script(text: str) -> bool:
    command = ["bash", "--norc", "-n"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    return done.returncode == 0


SHELL_LAWS = (a_place_is_behind_a_launcher, bash_takes_both, *MUTATE_LAWS)
