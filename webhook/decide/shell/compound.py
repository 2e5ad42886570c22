"""Compound commands: how they begin, go on to their next part, and end.

Sources: POSIX.1-2024, XCU 2.9.4; bash(1), Compound Commands.
"""

from __future__ import annotations

from webhook.decide.shell import contexts, patterns
from webhook.decide.shell.contexts import Mode, Scanner, ShellContext, raise_unclear

_CLOSED = ""  # the part after the last word of a compound command
#: For each part of a compound command: the reserved words that end it, and the part that follows.
_NEXT = {
    contexts.GROUP: {"}": _CLOSED},
    contexts.IF: {"then": contexts.THEN},
    contexts.THEN: {"elif": contexts.IF, "else": contexts.ELSE, "fi": _CLOSED},
    contexts.ELSE: {"fi": _CLOSED},
    contexts.WHILE: {"do": contexts.DO},
    contexts.DO: {"done": _CLOSED},
    contexts.CASE_BODY: {"esac": _CLOSED},
}
_NONE: dict[str, str] = {}


def read_word(scanner: Scanner) -> tuple[str, int]:
    """Read the unquoted beginning of a word; a word that continues on the next line is unclear."""
    text, limit = scanner.text, scanner.limit
    match = patterns.PLAIN.match(text, scanner.pos, limit)
    assert match is not None
    end = match.end()
    if end < limit and text[end] == "\\":
        joined = patterns.JOINED.match(text, end, limit)
        if joined is not None:
            end = joined.end()
            if scanner.at(end) not in patterns.BREAKS:
                raise_unclear(scanner)
    return match.group(), end


def begin_compound(scanner: Scanner) -> None:
    """Note that a compound command begins here."""
    scanner.context.has_command = True
    scanner.context.pending_operator = ""


def open_compound(
    scanner: Scanner, construct: str, end: int, mode: Mode = contexts.START
) -> ShellContext:
    """Enter a construct behind its first word, which ends at `end`."""
    begin_compound(scanner)
    inner = ShellContext(construct, mode, scanner.pos)
    scanner.enter(inner)
    scanner.pos = end
    return inner


def open_list(scanner: Scanner, word: str, end: int) -> None:
    """Open `{`, `if`, `while` or `until`; a list of commands follows."""
    open_compound(scanner, contexts.WHILE if word == "until" else word, end)


def close_compound(scanner: Scanner, word: str, end: int) -> None:
    """Go on to the next part of a compound command, or end it."""
    context = scanner.context
    part = _NEXT.get(context.construct, _NONE).get(word)
    empty = not context.has_command and context.construct != contexts.CASE_BODY
    if part is None or context.pending_operator or empty:
        raise_unclear(scanner)
    elif part == _CLOSED:
        leave_compound(scanner, end)
    else:
        context.construct = part
        context.mode = contexts.START
        context.has_command = False
        scanner.pos = end


def leave_compound(scanner: Scanner, end: int) -> None:
    """End a compound command."""
    scanner.leave()
    scanner.context.mode = contexts.AFTER_COMPOUND
    scanner.pos = end
