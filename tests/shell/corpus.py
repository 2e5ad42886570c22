"""The scripts of corpus.txt, and more with every kind of launch in every place."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).with_name("corpus.txt")
_MARKS = ("=> ", "-> ", "=!", "=?")


class Case(NamedTuple):
    """A script, its subject, and the judgment lines that follow it."""

    about: str
    script: str
    judged: tuple[str, ...]


def head() -> str:
    """Return the text before the first script."""
    return PAGE.read_text(encoding="utf-8").partition("\n%% ")[0]


def written() -> list[Case]:
    """Read the scripts of the page."""
    _, *parts = PAGE.read_text(encoding="utf-8").removesuffix("\n").split("\n%% ")
    return [_case(part) for part in parts]


def _case(part: str) -> Case:
    about, _, text = part.partition("\n")
    lines = text.split("\n")
    split = len(lines)
    while split and lines[split - 1].startswith(_MARKS):
        split -= 1
    return Case(about, "\n".join(lines[:split]), tuple(lines[split:]))


#: Places where a shell allows a command.
PLACES = {
    "alone": "@",
    "list": "true; @; true",
    "and": "true && @ && true",
    "or": "false || @",
    "left": "@ | cat",
    "right": "true | @",
    "background": "@ & wait",
    "negated": "! @",
    "subshell": "( @ )",
    "group": "{ @; }",
    "condition": "if @; then :; fi",
    "then": "if true; then @; fi",
    "else": "if false; then :; else @; fi",
    "loop": "for i in 1; do @; done",
    "while": "while @; do break; done",
    "case": "case a in (a) @ ;; esac",
    "function": "f() { @; }; f",
    "substitution": "X=$(@)",
    "string": 'X="a $(@) b"',
    "backticks": "X=`@`",
    "here-document": "cat <<E\n$(@)\nE",
    "process": "cat < <(@)",
}
#: Launches to put there, with the words that the launcher gets.
LAUNCHES = {
    "mpirun -x A a": "mpirun -x A a",
    "A=b mpirun 'c d' \"e\"": "mpirun 'c d' e",
    "env A=b timeout 9 mpirun a 2>/dev/null": "mpirun a",
    ">/dev/null mpirun a >>log": "mpirun a",
    "mpirun \\\n  -np 2 \\\n  a": "mpirun -np 2 a",
    "mpiexec ${X:-a}b": "mpiexec ab",
}


def generated() -> list[Case]:
    """Put every launch into every place."""
    return [
        Case(f"{name}: {launch!r}", place.replace("@", launch), (f"=> {words}",))
        for (name, place), (launch, words) in itertools.product(PLACES.items(), LAUNCHES.items())
    ]
