r"""Escape text from users, so that only visible characters reach a terminal, a log or a comment.

The characters that are replaced by their escapes are: control characters (a terminal takes
them for commands), line breaks (YAML has five, a log has one), marks of the direction of text
(they reorder what is read), invisible characters and halves of surrogate pairs. Every writer
escapes its output here as the last step. Escaping text a second time changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: Invisible, although Unicode calls them letters and marks: fillers and variation selectors.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d173-\U0001d17a\U000e0100-\U000e01ef]"
)
#: The number of characters cached with their replacements; most writing systems have fewer.
_MAX_CACHED = 4096
#: The last character with four hex digits; JSON needs two surrogates for those after it.
_LAST_WITH_FOUR_DIGITS = 0xFFFF


def visible(text: str) -> str:
    r"""Escape invisible characters as Python does, on one line: `\x1b`, `\n`, `\u202e`."""
    return text if text.isascii() and text.isprintable() else text.translate(_VISIBLE)


def visible_lines(text: str) -> str:
    """Escape invisible characters in a text of several lines, and keep its line breaks."""
    return "\n".join(map(visible, text.split("\n")))


def visible_json(text: str) -> str:
    r"""Escape invisible characters in a JSON text without changing its meaning: `\u001b`."""
    return text if text.isascii() and "\x7f" not in text else text.translate(_VISIBLE_JSON)


class _Escapes(dict[int, str]):
    """A table for `str.translate`: the number of a character → its replacement."""

    def __init__(self, escape: Callable[[str], str]) -> None:
        super().__init__()
        self._escape = escape

    def __missing__(self, number: int) -> str:
        char = chr(number)
        replacement = char if char.isprintable() and not _BLANK.match(char) else self._escape(char)
        if len(self) < _MAX_CACHED:
            self[number] = replacement
        return replacement


# No codecs are used here: Python imports a codec's module when it is first needed, and at that
# time the worker that computes previews can no longer open files.
def _python_escape(char: str) -> str:
    number = ord(char)
    if not char.isprintable():
        return repr(char)[1:-1]
    return f"\\u{number:04x}" if number <= _LAST_WITH_FOUR_DIGITS else f"\\U{number:08x}"


def _json_escape(char: str) -> str:
    number = ord(char)
    if number <= _LAST_WITH_FOUR_DIGITS:
        return f"\\u{number:04x}"
    high, low = divmod(number - _LAST_WITH_FOUR_DIGITS - 1, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


_VISIBLE = _Escapes(_python_escape)
_VISIBLE_JSON = _Escapes(_json_escape)
_VISIBLE_JSON[ord("\n")] = "\n"  # between the values of an indented text
