"""Values as YAML and JSON, in the styles of people and libraries; and invalid texts."""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.fuzz.dice import Dice

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_STYLES = ("block", "block", "commented", "flow", "mixed", "crlf", "json", "json-lines", "wide")


def yaml_of(dice: Dice, value: Any) -> str:
    """Write one document in a random style."""
    style = dice.pick(_STYLES)
    if style in ("json", "json-lines"):
        return json.dumps(value, indent=4 if style == "json-lines" else None, ensure_ascii=False)
    flow = {"flow": True, "mixed": None}.get(style, False)
    width = 10_000 if style == "wide" else 80
    text = str(
        yaml.dump(
            value,
            Dumper=_DUMPER,
            default_flow_style=flow,
            sort_keys=False,
            allow_unicode=dice.one_in(2),
            width=width,
        )
    )
    if style == "commented":
        lines = text.splitlines(keepends=True)
        for _ in range(1 + dice.small(3)):
            lines.insert(dice.below(len(lines) + 1), dice.pick(_LINES))
        return "".join(lines)
    return text.replace("\n", "\r\n") if style == "crlf" else text


_LINES = ("# a comment\n", "\n", "   # deeper\n", "#\n", "\t\n", "---\n", "...\n", "%YAML 1.1\n")
_SIGNS = (
    *(": ", "- ", "\n", "\n  ", "{", "}", "[", "]", ",", "&a ", "*a", "<<: ", "|\n", ">-\n"),
    *("'", '"', "? ", "---\n", "...\n", "#", " #", "%TAG ! x\n", "\t", "\r", "1", "null", "\\"),
    *("\ufeff", "@", "`", "~", "\x1b[31m", "\x85", "\u2028", "\x00", "é", "\u202e", "=", "on"),
    *("&a [*a]", "<<: *a\n", "key: key: 1", "!x ", "--- |\n", '"\\x1b"', '"\\ud800"', "0x1"),
    *("!!int ", "{{ x }}"),
)
_PIECES = (
    *("a: &a [x]\n", "- a\n", "k@: v\n", "%TAG !t@! x\n", "# c\n", "---\n", "{", "[", "- ", "? "),
    *("k@: {}\n", "- *a\n", "&a", "a: b@: ", "'", '"\\n', "\n", " ", ",", "[a],", "!t@ x\n"),
    *("- - ", "a:\n"),
)


def noisy(dice: Dice, text: str) -> str:
    """Insert characters with a meaning in YAML into a text, or remove a part of it."""
    for _ in range(1 + dice.small(3)):
        at = dice.below(len(text) + 1)
        kind = dice.below(3)
        cut = dice.small(20) if kind else 0
        text = text[:at] + (dice.pick(_SIGNS) if kind < 2 else "") + text[at + cut :]
    return text


def swollen(dice: Dice, text: str, size: int) -> str:
    """Insert many copies of a piece at the beginning, the end or inside of a text."""
    piece = dice.pick(_PIECES)
    much = "".join(piece.replace("@", str(number)) for number in range(size // len(piece)))
    at = dice.pick((0, len(text), text.find("\n") + 1))
    return text[:at] + much + text[at:]
