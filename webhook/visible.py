r"""Write what comes from users so that nothing but words reaches a terminal, a log or a comment.

Whatever is not shown as itself is written as its escape: control characters (a terminal takes
them for commands), line breaks (YAML has five, a log has one), marks of the direction of text
(they reorder what is read), invisible characters and halves of surrogate pairs. Every writer
calls this at its door; what it has written itself is left as it is when it is written again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: Invisible, though for Unicode they are letters and marks: fillers and variation selectors.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d173-\U0001d17a\U000e0100-\U000e01ef]"
)
#: So many characters are remembered with what is written for them; a script has fewer.
_REMEMBERED = 4096
#: Four hex digits are enough up to here; JSON takes two surrogates for what is beyond.
_LAST_OF_FOUR = 0xFFFF


def visible(words: str) -> str:
    r"""Write what is not visible as Python does, on one line: `\x1b`, `\n`, `\u202e`."""
    return words if words.isascii() and words.isprintable() else words.translate(_PLAIN)


def visible_lines(text: str) -> str:
    """Do the same to a text of several lines, of which each stays one."""
    return "\n".join(map(visible, text.split("\n")))


def visible_json(text: str) -> str:
    r"""Do the same to a JSON text, which means the same after it: `\u001b`, `\udb40\udc01`."""
    return text if text.isascii() and "\x7f" not in text else text.translate(_JSON)


class _Escapes(dict[int, str]):
    """What is written for a character, by its number, as `str.translate` asks for it."""

    def __init__(self, escaped: Callable[[str], str]) -> None:
        super().__init__()
        self._escaped = escaped

    def __missing__(self, number: int) -> str:
        char = chr(number)
        written = char if char.isprintable() and not _BLANK.match(char) else self._escaped(char)
        if len(self) < _REMEMBERED:
            self[number] = written
        return written


# Without codecs, whose modules Python looks for when they are needed first: the worker that
# computes previews can open no file then.
def _in_words(char: str) -> str:
    number = ord(char)
    if not char.isprintable():
        return repr(char)[1:-1]
    return f"\\u{number:04x}" if number <= _LAST_OF_FOUR else f"\\U{number:08x}"


def _in_json(char: str) -> str:
    number = ord(char)
    if number <= _LAST_OF_FOUR:
        return f"\\u{number:04x}"
    high, low = divmod(number - _LAST_OF_FOUR - 1, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


_PLAIN = _Escapes(_in_words)
_JSON = _Escapes(_in_json)
_JSON[ord("\n")] = "\n"  # between its values
