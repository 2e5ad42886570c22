"""The scripts of one pod: the commands in them that hold a word we look for, within bounds.

Only occurrences of the words are looked up. A script that is not understood for certain is left
alone as a whole, and so are those that would go beyond what is read for one pod.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from webhook.shelltext import patterns
from webhook.shelltext.contexts import (
    LEVELS,
    TOO_DEEP,
    TOO_MANY,
    UNCLEAR,
    Scan,
    UnreadableError,
    unclear,
)
from webhook.shelltext.scan import scan
from webhook.shelltext.words import Command, command

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
LARGEST = 32 * 1024  #: characters of all scripts of a pod that are read
STEPS = 8192  #: stops of the scanner in them; 800 scripts of a Debian took at most 2,647
SHORT = 4096  #: characters of a script that is remembered, as are 15 others
PLACES = 128  #: sought words in them whose commands are looked at

#: Why a script is left alone, as the end of a sentence.
PROBLEMS = {
    TOO_LARGE: f"the scripts of a pod are read up to {LARGEST // 1024} KiB in all",
    TOO_MANY: "with it the pod's scripts have too many commands or words to be read",
    TOO_DEEP: f"it nests deeper than {LEVELS} levels",
    UNCLEAR: "it is not certain how a shell reads it",
}


class Script(NamedTuple):
    """The commands that hold a sought word anywhere, or why there are none."""

    commands: tuple[Command, ...] = ()
    problem: str = ""  #: one of PROBLEMS, or ""


class Scripts:
    """What was read of one pod's scripts, in search of some words; equal ones are read once."""

    __slots__ = ("_characters", "_found", "_places", "_sought", "_steps")

    def __init__(self, sought: tuple[str, ...]) -> None:
        self._sought = sought
        self._characters = LARGEST
        self._places = PLACES
        self._steps = STEPS
        self._found: dict[str, Script] = {}

    def read(self, script: str) -> Script:
        """Find the commands that hold a sought word, unless that is beyond the pod's bounds."""
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
        """Take a list of words into account, too; False if that is beyond the pod's bounds."""
        if words > self._steps:
            return False
        self._steps -= words
        return True

    def _read(self, script: str) -> Script:
        """Read a script; once a bound is used up no other is begun."""
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
    """Read a script, and say what that took of the pod's bounds."""
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
    """Whether it holds what no script can, or lines joined where an operator may be cut in two."""
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
