"""The words of a simple command in a script, as the program gets them.

A word that may become any number of words is unknown (`$X`, `"$@"`, `{a,b}`). A word that stays
a single word keeps its expansions as source text. Sources: POSIX.1-2024, XCU 2.6 and 2.9.1;
bash(1), EXPANSION.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from webhook.decide.shell import patterns
from webhook.decide.shell.argv import Word
from webhook.decide.shell.contexts import TOO_MANY, UNCLEAR, Scanner, UnreadableError


class Command(NamedTuple):
    """A simple command: its words, including leading assignments."""

    words: tuple[Word, ...]
    ends: tuple[int, ...]  #: the offset after each word
    assigns: bool = False  #: whether it only assigns variables
    conditional: bool = False  #: whether it may not run, or run repeatedly: in `if`, after `||`
    isolated: bool = False  #: whether the variables that it sets are lost after it: in `( )`


def command(scanner: Scanner, start: int, end: int) -> Command:
    """Read the command between two offsets.

    Raise UnreadableError if a word continues on the next line, or if there are too many words.
    """
    script = scanner.text
    words: list[Word] = []
    ends: list[int] = []
    offset, assigning = start, True
    while True:
        plain = None if assigning else patterns.PLAIN_WORDS.match(script, offset, end)
        if plain is not None:
            for text in plain.group().replace("\\\n", " ").replace("\t", " ").split(" "):
                if text:
                    offset = script.index(text, offset) + len(text)
                    words.append(None if "{" in text and _is_braces(text) else text)
                    ends.append(offset)
            scanner.steps -= len(words)
            continue
        offset = _after_blanks(script, offset, start, end)
        if offset == end or script[offset] == "#":
            break
        operator = _OPERATOR.match(script, offset, end)
        if operator is not None:
            offset = _after_blanks(script, operator.end(), operator.end(), end)
            offset = _word(scanner, offset, end)[1]
            continue
        begin = offset
        word, offset = _word(scanner, offset, end)
        if assigning and patterns.ASSIGNMENT.match(script, begin, offset):
            word = script[begin:offset] if word is None else word
        else:
            assigning = False
        words.append(word)
        ends.append(offset)
    return Command(tuple(words), tuple(ends), assigning)


_OPERATOR = re.compile(
    rf"(?:{patterns.DESCRIPTOR.pattern})?(?:{patterns.REDIRECTION.pattern})(?!\()"
)


def _after_blanks(script: str, offset: int, start: int, end: int) -> int:
    """Return the offset after blanks.

    Raise UnreadableError if only a line continuation separates two parts: they form one word, and
    there would be no place to insert text between them.
    """
    match = patterns.BLANKS.match(script, offset, end)
    assert match is not None
    after = match.end()
    if start < offset < after < end and not script[offset:after].replace("\\\n", ""):
        raise UnreadableError(UNCLEAR)
    return after


_PIECE = re.compile(
    rf"(?P<plain>[^{patterns.BREAK}$`\"'\\]++)|'(?P<quoted>[^']*+)'|(?P<string>{patterns.SIMPLE})"
    r"|\$'(?P<ansi>[^'\\]*+)'|(?P<coded>\$'(?:[^'\\]++|\\[\s\S])*+')|\\(?P<escaped>[^\n])"
    r"|(?P<expanded>\$(?:[A-Za-z_][A-Za-z0-9_]*+|[0-9@*#?$!-]|\{[^}$`\"'\\{]++\}))|(?P<dollar>\$)"
)
_LISTS = frozenset({"$@", "$*"})


def _word(scanner: Scanner, offset: int, end: int) -> tuple[Word, int]:
    """Read one word; return it and the offset after it."""
    texts: list[str] = []
    plain, last, is_list = "", "", False
    while offset < end:
        kind, text, offset = _part(scanner, offset, end)
        if not kind:
            break
        last = kind
        if kind == "plain":
            plain += text
        elif kind == "string":
            is_list = is_list or _is_list(text)
            text = _unescape(text[1:-1])
        else:
            is_list = is_list or text in _LISTS
        texts.append(text)
    scanner.steps -= 1 + len(texts)
    if scanner.steps < 0:
        raise UnreadableError(TOO_MANY)
    if is_list or (len(texts) == 1 and last == "expanded") or ("{" in plain and _is_braces(plain)):
        return None, offset
    return "".join(texts), offset


def _part(scanner: Scanner, offset: int, end: int) -> tuple[str, str, int]:
    """Read a part of a word; return its kind, its text, and the offset after it."""
    close = scanner.context_ends.get(offset)
    if close is not None:
        return _kind(scanner.text, offset), scanner.text[offset:close], close
    piece = _PIECE.match(scanner.text, offset, end)
    if piece is None:
        return "", "", offset
    kind = piece.lastgroup or ""
    return kind, piece[kind], piece.end()


def _kind(script: str, offset: int) -> str:
    first = script[offset]
    if first == '"':
        return "string"
    stays_single = first in "<>(" or script.startswith("$((", offset)
    return "kept" if stays_single else "expanded"


def _is_braces(plain: str) -> bool:
    """Return whether bash may make several words of unquoted text such as `{a,b}` or `{1..3}`."""
    return "}" in plain and ("," in plain or ".." in plain)


def _unescape(string: str) -> str:
    return _ESCAPE.sub(r"\1", string) if "\\" in string else string


#: Backslashes that have a meaning within double quotes.
_ESCAPE = re.compile(r'\\(?:\n|([$`"\\]))')
_LISTING = re.compile(r"\$@|@|\$\{|\}")


def _is_list(string: str) -> bool:
    """Return whether a string may become several words: it has `$@`, or `@` within `${ }`."""
    if "@" not in string:
        return False
    depth = 0
    for match in _LISTING.finditer(string):
        mark = match.group()
        if mark == "$@" or (mark == "@" and depth):
            return True
        depth += mark == "${"
        depth -= mark == "}" and depth > 0
    return False
