"""Operators: what ends, joins and groups commands, and redirections.

Each handler is called at the place where the scanner has stopped. Sources: POSIX.1-2024, XCU 2.7,
2.9 and 2.10; bash(1), REDIRECTION.
"""

from __future__ import annotations

from webhook.decide.shell import contexts, expansions, patterns
from webhook.decide.shell.compound import begin_compound, leave_compound, open_compound
from webhook.decide.shell.contexts import Scanner, raise_unclear


def newline(scanner: Scanner) -> None:
    """End a command at a line break."""
    scanner.end_command()
    scanner.context.mode = contexts.START
    scanner.context.next_is_conditional = False
    expansions.line_end(scanner)


def comment(scanner: Scanner) -> None:
    """Skip a comment."""
    scanner.pos = patterns.COMMENT.match(scanner.text, scanner.pos, scanner.limit).end()  # type: ignore[union-attr]


def semicolon(scanner: Scanner) -> None:
    """End a command, or, at `;;`, `;&` or `;;&`, a clause of a `case`."""
    context, following = scanner.context, scanner.at(scanner.pos + 1)
    if following in ";&":
        _end_case_part(scanner)
        return
    if context.mode is contexts.START:
        raise_unclear(scanner)
    scanner.end_command()
    context.mode = contexts.START
    context.next_is_conditional = False
    scanner.pos += 1


def _end_case_part(scanner: Scanner) -> None:
    context = scanner.context
    if context.construct != contexts.CASE_BODY or context.pending_operator:
        raise_unclear(scanner)
    scanner.end_command()
    scanner.pos += 3 if scanner.text.startswith(";;&", scanner.pos) else 2
    context.mode = contexts.CASE_NEXT


def ampersand(scanner: Scanner) -> None:
    """Handle `&`, `&&`, `&>` and `&>>`."""
    following = scanner.at(scanner.pos + 1)
    if following == ">":
        redirection(scanner)
    elif following == "&":
        _operator(scanner, 2, "&&")
    else:
        _operator(scanner, 1, "")


def bar(scanner: Scanner) -> None:
    """Handle `|`, `|&` and `||`."""
    following = scanner.at(scanner.pos + 1)
    _operator(scanner, 2 if following in "|&" else 1, "||" if following == "|" else "|")


def _operator(scanner: Scanner, length: int, pending_operator: str) -> None:
    context = scanner.context
    if context.mode is contexts.START:
        raise_unclear(scanner)
    may_skip = context.next_is_conditional or (
        pending_operator == "||" or (pending_operator == "&&" and _is_test(scanner))
    )
    scanner.end_command()
    context.mode = contexts.START
    context.pending_operator = pending_operator
    context.next_is_conditional = bool(pending_operator) and may_skip
    scanner.pos += length


def _is_test(scanner: Scanner) -> bool:
    """Return whether the current command tests something, or is a compound command."""
    start = scanner.context.command_start
    return start < 0 or patterns.TEST.match(scanner.text, start, scanner.limit) is not None


def close_parenthesis(scanner: Scanner) -> None:
    """End `( )`, `$( )` or `<( )`; `( )` must not be empty."""
    context = scanner.context
    if context.pending_operator or context.construct not in (
        contexts.SUBSHELL,
        contexts.SUBSTITUTION,
    ):
        raise_unclear(scanner)
    scanner.end_command()
    if context.construct == contexts.SUBSTITUTION:
        expansions.close_commands(scanner)
        return
    if not context.has_command:
        raise_unclear(scanner)
    leave_compound(scanner, scanner.pos + 1)


def subshell(scanner: Scanner) -> None:
    """Open `(` or `((`."""
    if scanner.at(scanner.pos + 1) == "(":
        begin_compound(scanner)
        expansions.arithmetic(scanner, 2)
        return
    open_compound(scanner, contexts.SUBSHELL, scanner.pos + 1)


def angle(scanner: Scanner) -> None:
    """Open a process substitution, or skip a redirection."""
    if scanner.at(scanner.pos + 1) != "(":
        redirection(scanner)
        return
    if scanner.context.mode is contexts.START:
        scanner.begin_command(scanner.pos)
    expansions.open_process_substitution(scanner)


def redirection(scanner: Scanner) -> None:
    """Skip the operator of a redirection; the target follows."""
    start = scanner.pos
    operator = patterns.REDIRECTION.match(scanner.text, start, scanner.limit)
    assert operator is not None
    scanner.pos = patterns.BLANKS.match(scanner.text, operator.end(), scanner.limit).end()  # type: ignore[union-attr]
    following = scanner.at(scanner.pos)
    process = following in "<>" and scanner.at(scanner.pos + 1) == "("
    if following in "\n|&;()<>#" and not process:
        raise_unclear(scanner)
    if patterns.DESCRIPTOR.match(scanner.text, scanner.pos, scanner.limit):
        raise_unclear(scanner)
    _redirect(scanner, start)
    if operator.group() in ("<<", "<<-"):
        expansions.here_document(scanner, operator.group())


def _redirect(scanner: Scanner, start: int) -> None:
    mode = scanner.context.mode
    if mode is contexts.START:
        scanner.begin_command(start)
    elif mode is not contexts.ARGUMENTS:
        scanner.context.mode = contexts.SINGLE_WORD
        scanner.context.mode_after_word = contexts.REDIRECTED


def descriptor(scanner: Scanner) -> None:
    """Skip the descriptor of a redirection, where nothing else is allowed."""
    match = patterns.DESCRIPTOR.match(scanner.text, scanner.pos, scanner.limit)
    if match is None:
        raise_unclear(scanner)
    scanner.pos = match.end()
    redirection(scanner)


def end_of_word(scanner: Scanner) -> None:
    """Leave the mode SINGLE_WORD."""
    scanner.context.mode = scanner.context.mode_after_word


def word_angle(scanner: Scanner) -> None:
    """Open a process substitution, or end the word at a redirection."""
    if scanner.at(scanner.pos + 1) == "(":
        expansions.open_process_substitution(scanner)
    else:
        end_of_word(scanner)


def word_backslash(scanner: Scanner) -> None:
    """Skip a backslash and line break, which join two lines within a word."""
    if not scanner.text.startswith("\\\n", scanner.pos):
        raise_unclear(scanner)
    scanner.pos += 2
