"""Loops over words, `case` and `[[ ]]`: compound commands with a grammar of their own.

Sources: POSIX.1-2024, XCU 2.9.4; bash(1), Compound Commands.
"""

from __future__ import annotations

from webhook.decide.shell import contexts, expansions, patterns
from webhook.decide.shell.compound import leave_compound, open_compound, read_word
from webhook.decide.shell.contexts import Scanner, raise_unclear


def open_condition(scanner: Scanner, _: str, end: int) -> None:
    """Open `[[`."""
    open_compound(scanner, contexts.CONDITION, end, contexts.IN_CONDITION)


def close_condition(scanner: Scanner) -> None:
    """End `[[` if `]]` is a whole word; any other bracket is part of a word."""
    text, start = scanner.text, scanner.pos
    if (
        text.startswith("]]", start)
        and text[start - 1] in patterns.BREAKS
        and scanner.at(start + 2) in patterns.BREAKS
    ):
        if scanner.here_documents and text.find("\n", scanner.context.start, start) >= 0:
            raise_unclear(scanner)
        leave_compound(scanner, start + 2)
        return
    scanner.pos += 1


def condition_and(scanner: Scanner) -> None:
    """Skip `&&` within a condition."""
    if scanner.at(scanner.pos + 1) != "&":
        raise_unclear(scanner)
    scanner.pos += 2


def open_loop(scanner: Scanner, word: str, end: int) -> None:
    """Open `for` or `select`, up to the list of words or the body."""
    usual = (
        None if scanner.here_documents else patterns.LOOP.match(scanner.text, end, scanner.limit)
    )
    if usual is not None:
        open_compound(scanner, contexts.DO, usual.end())
        return
    name = patterns.NAME.match(scanner.text, end, scanner.limit)
    if name is None:
        _open_arithmetic_loop(scanner, word, end)
        return
    inner = open_compound(scanner, contexts.LOOP, name.end(), contexts.BEFORE_LOOP_BODY)
    if scanner.here_documents:
        raise_unclear(scanner)
    scanner.pos = patterns.BEFORE_COMMAND.match(scanner.text, scanner.pos, scanner.limit).end()  # type: ignore[union-attr]
    following, word_end = read_word(scanner)
    if following == "in" and scanner.at(word_end) in patterns.BREAKS:
        inner.mode = contexts.LISTED
        scanner.pos = word_end
    elif scanner.at(scanner.pos) == ";":
        end_of_list(scanner)


def _open_arithmetic_loop(scanner: Scanner, word: str, end: int) -> None:
    end = patterns.BLANKS.match(scanner.text, end, scanner.limit).end()  # type: ignore[union-attr]
    if word != "for" or not scanner.text.startswith("((", end):
        raise_unclear(scanner)
    open_compound(scanner, contexts.LOOP, end)
    expansions.arithmetic(scanner, 2)


def end_of_list(scanner: Scanner) -> None:
    """End the words of a `for` at a semicolon."""
    scanner.context.mode = contexts.BEFORE_LOOP_BODY
    scanner.context.list_ended = True
    scanner.pos += 1


def end_of_listed_line(scanner: Scanner) -> None:
    """End the words of a `for` at a line break."""
    scanner.context.mode = contexts.BEFORE_LOOP_BODY
    scanner.context.list_ended = True
    expansions.line_end(scanner)


def loop_semicolon(scanner: Scanner) -> None:
    """Skip the semicolon after `for (( ))`."""
    if scanner.context.list_ended:
        raise_unclear(scanner)
    scanner.context.list_ended = True
    scanner.pos += 1


def loop_body(scanner: Scanner) -> None:
    """Begin a loop's body: `do`, or in bash also `{`."""
    word, end = read_word(scanner)
    if scanner.at(end) not in patterns.BREAKS or word not in ("do", "{"):
        raise_unclear(scanner)
    scanner.context.construct = word
    scanner.context.mode = contexts.START
    scanner.pos = end


def open_case(scanner: Scanner, _: str, end: int) -> None:
    """Open `case`, up to its word."""
    inner = open_compound(scanner, contexts.CASE, end, contexts.SINGLE_WORD)
    inner.mode_after_word = contexts.CASE_IN
    scanner.pos = patterns.BLANKS.match(scanner.text, end, scanner.limit).end()  # type: ignore[union-attr]
    if scanner.at(scanner.pos) in "\n|&;()<>#":
        raise_unclear(scanner)


def case_in(scanner: Scanner) -> None:
    """Skip the `in` of a `case`."""
    word, end = read_word(scanner)
    if scanner.at(end) not in patterns.BREAKS or word != "in":
        raise_unclear(scanner)
    scanner.context.mode = contexts.CASE_NEXT
    scanner.pos = end


def case_next(scanner: Scanner) -> None:
    """Begin the patterns of the next clause of a `case`, or end the `case`."""
    word, end = read_word(scanner)
    if word == "esac" and scanner.at(end) in patterns.BREAKS:
        leave_compound(scanner, end)
        return
    scanner.context.mode = contexts.CASE_PATTERNS


def case_parenthesis(scanner: Scanner) -> None:
    """Skip the optional parenthesis before the patterns of a `case`."""
    scanner.pos = patterns.BLANKS.match(scanner.text, scanner.pos + 1, scanner.limit).end()  # type: ignore[union-attr]
    if scanner.at(scanner.pos) == ")":
        raise_unclear(scanner)
    scanner.context.mode = contexts.CASE_PATTERNS


def end_of_patterns(scanner: Scanner) -> None:
    """Begin the commands after the patterns of a `case`."""
    context = scanner.context
    context.construct = contexts.CASE_BODY
    context.mode = contexts.START
    context.has_command = False
    context.pending_operator = ""
    scanner.pos += 1
