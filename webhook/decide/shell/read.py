"""Read the scripts of one pod: find the commands that hold a sought word, within limits.

Only commands around an occurrence of these words are read. A script is left alone as a whole if
it cannot be understood with certainty, or if it exceeds the limits for one pod.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from webhook.decide.shell import patterns
from webhook.decide.shell.contexts import (
    LEVELS,
    TOO_DEEP,
    TOO_MANY,
    UNCLEAR,
    Scan,
    UnreadableError,
    unclear,
)
from webhook.decide.shell.scripts import scan
from webhook.decide.shell.words import Command, command

__all__ = [
    "LARGEST",
    "PROBLEMS",
    "TOO_DEEP",
    "TOO_LARGE",
    "TOO_MANY",
    "UNCLEAR",
    "Script",
    "Scripts",
]

TOO_LARGE = "too large"
LARGEST = 32 * 1024  #: the most characters that are read, over all scripts of a pod
STEPS = 8192  #: the most stops of the scanner in them; 800 scripts of Debian took at most 2,647
SHORT = 4096  #: the most characters of a script whose result is cached (16 results are kept)
PLACES = 128  #: the most sought words in a pod's scripts whose commands are examined

#: Why a script is left alone, as the end of a sentence.
PROBLEMS = {
    TOO_LARGE: f"the scripts of a pod are read up to {LARGEST // 1024} KiB in all",
    TOO_MANY: "with it the pod's scripts have too many commands or words to be read",
    TOO_DEEP: f"it nests deeper than {LEVELS} levels",
    UNCLEAR: "it is not certain how a shell reads it",
}


class Script(NamedTuple):
    """The commands that hold a sought word anywhere, or the reason why none are known."""

    commands: tuple[Command, ...] = ()
    problem: str = ""  #: one of PROBLEMS, or ""


class Scripts:
    """The results for one pod's scripts, searched for `sought`; equal scripts are read once."""

    __slots__ = ("_characters", "_found", "_places", "_sought", "_steps")

    def __init__(self, sought: tuple[str, ...]) -> None:
        self._sought = sought
        self._characters = LARGEST
        self._places = PLACES
        self._steps = STEPS
        self._found: dict[str, Script] = {}

    def read(self, script: str) -> Script:
        """Find the commands that hold a sought word, unless that exceeds the pod's limits."""
        if len(script) > LARGEST:
            return Script(problem=TOO_LARGE)
        found = self._found.get(script)
        if found is None:
            if len(script) > self._characters:
                return Script(problem=TOO_LARGE)
            self._characters -= len(script)
            found = self._found[script] = self._read(script)
        return found

    def allows(self, words: int) -> bool:
        """Count a list of words as well; return False if that exceeds the pod's limits."""
        if words > self._steps:
            return False
        self._steps -= words
        return True

    def _read(self, script: str) -> Script:
        """Read a script, unless a limit is already used up."""
        if not self._steps or not self._places:
            return Script(problem=TOO_MANY)
        found, places, steps = (
            _read_short(script, self._sought)
            if len(script) <= SHORT
            else _read(script, self._sought, self._steps)
        )
        self._steps -= min(steps, self._steps)
        if places > self._places or not self._steps:
            return Script(problem=TOO_MANY)
        self._places -= places
        return found


class _Cost(NamedTuple):
    found: Script
    places: int
    steps: int


def _read(script: str, sought: tuple[str, ...], steps: int = STEPS) -> _Cost:
    """Read a script; return the result and how much of the pod's limits it used."""
    places = _places(script, sought)
    if len(places) > PLACES:
        return _Cost(Script(), len(places), 0)
    scanned = Scan(script, places, steps, sought)
    try:
        found = _commands(scanned)
    except UnreadableError as error:
        found = Script(problem=str(error))
    return _Cost(found, len(places), steps - max(scanned.steps, 0))


#: All pods of a job run the same script.
_read_short = lru_cache(maxsize=16)(_read)


def _places(script: str, sought: tuple[str, ...]) -> list[int]:
    """List the offsets of sought words, ascending."""
    found = []
    for word in sought:
        at = script.find(word)
        while at >= 0:
            found.append(at)
            at = script.find(word, at + 1)
    return sorted(found)


def _is_uncertain(script: str) -> bool:
    """Return whether a script has an impossible character, or joins lines within an operator."""
    if "\0" in script or (not script.isascii() and patterns.FOREIGN.search(script)):
        return True
    at = script.find("\\\n", 1)
    while at >= 0:
        if script[at - 1] in "&|;<>$(" and patterns.CUT.match(script, at - 1):
            return True
        at = script.find("\\\n", at + 2)
    return False


def _commands(scanned: Scan) -> Script:
    if _is_uncertain(scanned.text):
        unclear(scanned)
    scan(scanned)
    found = [command(scanned, start, end) for _, start, end in sorted(scanned.commands)]
    if any("alias" in one.words[:1] for one in found):
        unclear(scanned)
    return Script(tuple(one for one in found if one.words))
