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
from webhook.decide.shell.contexts import TOO_MANY, UNCLEAR, Scan, UnreadableError


class Command(NamedTuple):
    """A simple command: its words, including leading assignments."""

    words: tuple[Word, ...]
    ends: tuple[int, ...]  #: the offset after each word


def command(scan: Scan, start: int, end: int) -> Command:
    """Read the command between two offsets; return no words if it only assigns variables.

    Raise UnreadableError if a word continues on the next line, or if there are too many words.
    """
    script = scan.text
    words: list[Word] = []
    ends: list[int] = []
    at, assigning = start, True
    while True:
        plain = None if assigning else patterns.PLAIN_WORDS.match(script, at, end)
        if plain is not None:
            for text in plain.group().replace("\\\n", " ").replace("\t", " ").split(" "):
                if text:
                    at = script.index(text, at) + len(text)
                    words.append(None if "{" in text and _is_braces(text) else text)
                    ends.append(at)
            scan.steps -= len(words)
            continue
        at = _after_blanks(script, at, start, end)
        if at == end or script[at] == "#":
            break
        operator = _OPERATOR.match(script, at, end)
        if operator is not None:
            at = _after_blanks(script, operator.end(), operator.end(), end)
            at = _word(scan, at, end)[1]
            continue
        begin = at
        word, at = _word(scan, at, end)
        if assigning and patterns.ASSIGNMENT.match(script, begin, at):
            word = script[begin:at]
        else:
            assigning = False
        words.append(word)
        ends.append(at)
    return Command((), ()) if assigning else Command(tuple(words), tuple(ends))


_OPERATOR = re.compile(
    rf"(?:{patterns.DESCRIPTOR.pattern})?(?:{patterns.REDIRECTION.pattern})(?!\()"
)


def _after_blanks(script: str, at: int, start: int, end: int) -> int:
    """Return the offset after blanks.

    Raise UnreadableError if only a line continuation separates two parts: they form one word, and
    there would be no place to insert text between them.
    """
    match = patterns.BLANKS.match(script, at, end)
    assert match is not None
    after = match.end()
    if start < at < after < end and not script[at:after].replace("\\\n", ""):
        raise UnreadableError(UNCLEAR)
    return after


_PIECE = re.compile(
    rf"(?P<plain>[^{patterns.BREAK}$`\"'\\]++)|'(?P<quoted>[^']*+)'|(?P<string>{patterns.SIMPLE})"
    r"|\$'(?P<ansi>[^'\\]*+)'|(?P<coded>\$'(?:[^'\\]++|\\[\s\S])*+')|\\(?P<escaped>[^\n])"
    r"|(?P<expanded>\$(?:[A-Za-z_][A-Za-z0-9_]*+|[0-9@*#?$!-]|\{[^}$`\"'\\{]++\}))|(?P<dollar>\$)"
)
_LISTS = frozenset({"$@", "$*"})


def _word(scan: Scan, at: int, end: int) -> tuple[Word, int]:
    """Read one word; return it and the offset after it."""
    texts: list[str] = []
    plain, last, is_list = "", "", False
    while at < end:
        kind, text, at = _part(scan, at, end)
        if not kind:
            break
        last = kind
        if kind == "plain":
            plain += text
        elif kind == "string":
            is_list = is_list or _is_list(text)
            text = _unescaped(text[1:-1])
        else:
            is_list = is_list or text in _LISTS
        texts.append(text)
    scan.steps -= 1 + len(texts)
    if scan.steps < 0:
        raise UnreadableError(TOO_MANY)
    if is_list or (len(texts) == 1 and last == "expanded") or ("{" in plain and _is_braces(plain)):
        return None, at
    return "".join(texts), at


def _part(scan: Scan, at: int, end: int) -> tuple[str, str, int]:
    """Read a part of a word; return its kind, its text, and the offset after it."""
    close = scan.closes.get(at)
    if close is not None:
        return _kind(scan.text, at), scan.text[at:close], close
    piece = _PIECE.match(scan.text, at, end)
    if piece is None:
        return "", "", at
    kind = piece.lastgroup or ""
    return kind, piece[kind], piece.end()


def _kind(script: str, at: int) -> str:
    first = script[at]
    if first == '"':
        return "string"
    stays_single = first in "<>(" or script.startswith("$((", at)
    return "kept" if stays_single else "expanded"


def _is_braces(plain: str) -> bool:
    """Return whether bash may make several words of unquoted text such as `{a,b}` or `{1..3}`."""
    return "}" in plain and ("," in plain or ".." in plain)


def _unescaped(string: str) -> str:
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
