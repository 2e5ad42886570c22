"""Commands: their first words, reserved words, and functions.

Each handler is called at the place where the scanner has stopped; the scanner's mode determines
what is allowed there. A function named like a keyword changes the meaning of that word, so a
script that defines such a function is unclear. Sources: POSIX.1-2024, XCU 2.4 (reserved words),
2.9 and 2.10 (the grammar); bash(1), SHELL GRAMMAR.
"""

from __future__ import annotations

from webhook.decide.shell import contexts, expansions, patterns
from webhook.decide.shell.compound import close_compound, open_list, read_word
from webhook.decide.shell.constructs import open_case, open_condition, open_loop
from webhook.decide.shell.contexts import Scanner, raise_unclear
from webhook.decide.shell.operators import descriptor


def start_word(scanner: Scanner) -> None:
    """Begin a command with the word at this place, or handle a reserved word."""
    start, text = scanner.pos, scanner.text
    word, end = read_word(scanner)
    following = text[end] if end < scanner.limit else "\n"
    if following in patterns.BREAKS:
        if word in _RESERVED:
            _RESERVED[word](scanner, word, end)
            return
        if following == "(" and not patterns.ASSIGNMENT.fullmatch(word):
            begin_function(scanner, word, end)
            return
    if not scanner.skip_commands_without_term():
        scanner.begin_command(start)
        scanner.pos = end
        if "[" in word:
            _skip_subscript(scanner, start)


def _skip_subscript(scanner: Scanner, start: int) -> None:
    """Skip `name[…]`: bash reads up to the closing bracket, operators included."""
    name = patterns.SUBSCRIPTED.match(scanner.text, start, scanner.limit)
    if name is not None:
        subscript = patterns.SUBSCRIPT.match(scanner.text, name.end(), scanner.limit)
        if subscript is None:
            raise_unclear(scanner)
        scanner.pos = max(scanner.pos, subscript.end())


def word_after_compound(scanner: Scanner) -> None:
    """Handle a word after a compound command.

    Only a reserved word that ends the enclosing command or a descriptor is allowed there.
    """
    if patterns.DESCRIPTOR.match(scanner.text, scanner.pos, scanner.limit):
        descriptor(scanner)
        return
    word, end = read_word(scanner)
    if scanner.at(end) not in patterns.BREAKS:
        raise_unclear(scanner)
    close_compound(scanner, word, end)


def argument_parenthesis(scanner: Scanner) -> None:
    """Open an array, or define a function."""
    context, text = scanner.context, scanner.text
    if text[scanner.pos - 1] == "=" and _takes_arrays(scanner):
        expansions.open_array(scanner)
        return
    name = patterns.PLAIN.match(text, context.command_start, scanner.limit)
    assert name is not None
    blanks = patterns.BLANKS.match(text, name.end(), scanner.limit)
    if not name.group() or blanks is None or blanks.end() != scanner.pos:
        raise_unclear(scanner)
    context.command_start = -1
    begin_function(scanner, name.group(), scanner.pos)


def _takes_arrays(scanner: Scanner) -> bool:
    """Return whether the simple command begins with an assignment or declares variables."""
    start, end = scanner.context.command_start, scanner.pos
    if scanner.text[start] in "<>&0123456789":
        return True
    word = patterns.DECLARING.match(scanner.text, start, end)
    return word is not None or patterns.ASSIGNMENT.match(scanner.text, start, end) is not None


def begin_function(scanner: Scanner, name: str, end: int) -> None:
    """Begin the definition of a function, at the parentheses after its name."""
    parentheses = patterns.EMPTY_PARENTHESES.match(scanner.text, end, scanner.limit)
    if parentheses is None:
        raise_unclear(scanner)
    _define(scanner, name, parentheses.end())


def _define(scanner: Scanner, name: str, end: int) -> None:
    if any(word in name for word in scanner.search_terms):
        raise_unclear(scanner)
    scanner.context.mode = contexts.FUNCTION
    scanner.pos = end


def function_body(scanner: Scanner) -> None:
    """Begin the compound command that is the body of a function."""
    word, end = read_word(scanner)
    if scanner.at(end) not in patterns.BREAKS or word not in _COMPOUND:
        raise_unclear(scanner)
    _RESERVED[word](scanner, word, end)


def _define_by_word(scanner: Scanner, _: str, end: int) -> None:
    name = patterns.FUNCTION_NAME.match(scanner.text, end, scanner.limit)
    if name is None:
        raise_unclear(scanner)
    _define(scanner, name.group(1), name.end())


def _negate(scanner: Scanner, _: str, end: int) -> None:
    """Handle `!`: a command follows. In a pipeline, `!` is allowed only at the beginning."""
    if scanner.context.pending_operator == "|":
        raise_unclear(scanner)
    _require_command(scanner, end)


def _require_command(scanner: Scanner, end: int) -> None:
    """Go on after a reserved word that a command must follow."""
    scanner.context.pending_operator = "!"
    scanner.pos = end


def _time(scanner: Scanner, _: str, end: int) -> None:
    """Handle `time`: a reserved word in bash, a program in other shells."""
    timed = patterns.TIMED.match(scanner.text, end, scanner.limit)
    if timed is None:
        _timed_program(scanner, end)
    else:
        _negate(scanner, "", timed.end())


def _timed_program(scanner: Scanner, end: int) -> None:
    """Begin a command with `time`; bash rejects `time` without a command in some places."""
    scanner.begin_command(scanner.pos)
    scanner.pos = patterns.BLANKS.match(scanner.text, end, scanner.limit).end()  # type: ignore[union-attr]
    if scanner.at(scanner.pos) in patterns.BREAKS:
        raise_unclear(scanner)


def _coproc(scanner: Scanner, _: str, end: int) -> None:
    """Handle `coproc`: a command follows; a compound command may have a name in front."""
    named = patterns.COPROCESS.match(scanner.text, end, scanner.limit)
    _require_command(scanner, named.end() if named else end)


def _reject_misplaced(scanner: Scanner, _word: str, _end: int) -> None:
    raise_unclear(scanner)


_COMPOUND = {
    **dict.fromkeys(("{", "if", "while", "until"), open_list),
    **dict.fromkeys(("for", "select"), open_loop),
    "case": open_case,
    "[[": open_condition,
}
_RESERVED = {
    **_COMPOUND,
    **dict.fromkeys(("}", "then", "elif", "else", "fi", "do", "done", "esac"), close_compound),
    "function": _define_by_word,
    "!": _negate,
    "time": _time,
    "coproc": _coproc,
    "in": _reject_misplaced,
    "]]": _reject_misplaced,
}
