"""Find the commands of a shell script with a linear scanner that no input can stop or slow down.

The scanner reads a script once, from the front, and only moves forward. It keeps a stack of
contexts, at most 64 levels deep, instead of recursing. Regular expressions that never backtrack
skip the text in which nothing can happen. Where bash would reject the script, or shells read it
differently, the script is unclear, and no result is given for it.

Sources: POSIX.1-2024, XCU 2 (Shell Command Language); bash(1). The tests compare with bash.
"""

from __future__ import annotations

from webhook.decide.shell import contexts, expansions, grammar
from webhook.decide.shell.contexts import (
    TOO_MANY,
    Handler,
    Scan,
    ShellContext,
    UnreadableError,
    unclear,
)


def scan(found: Scan) -> None:
    """Find the commands that hold a sought word.

    Raise UnreadableError if the script nests too deep, has too many parts or is unclear.
    """
    text, left = found.text, found.steps
    try:
        for left in range(left - 1, 0, -1):  # noqa: B007, B020 -- counts down; used after the loop
            context = found.context
            mode = context.mode
            run = mode.skip(text, found.pos, found.limit)
            assert run is not None
            found.pos = at = run.end()
            if at < found.limit:
                mode.handlers.get(text[at], mode.other)(found)
            elif _end(found, context):
                return
    finally:
        found.steps = left
    raise UnreadableError(TOO_MANY)


_ENDS = frozenset({contexts.START, contexts.ARGUMENTS, contexts.AFTER, contexts.REDIRECTED})


def _end(found: Scan, context: ShellContext) -> bool:
    """End the context whose limit is reached; return whether it is the script itself.

    The script is unclear if that context can only be ended by a word or character.
    """
    if context.phase == contexts.DOCUMENT:
        expansions.close_document(found)
        return False
    mode = context.then if context.mode is contexts.ONE_WORD else context.mode
    if context.needs or found.documents or mode not in _ENDS:
        unclear(found)
    found.end_command()
    if context.phase == contexts.BACKTICKS:
        expansions.close_backticks(found)
    elif context.phase != contexts.SCRIPT:
        unclear(found)
    return context.phase == contexts.SCRIPT


_WITHIN_WORDS: dict[str, Handler] = {
    '"': expansions.string,
    "$": expansions.dollar,
    "`": expansions.backticks,
}
_BETWEEN_COMMANDS: dict[str, Handler] = {
    "\n": grammar.newline,
    ";": grammar.semicolon,
    "&": grammar.ampersand,
    "|": grammar.bar,
    ")": grammar.close_parenthesis,
    "#": grammar.comment,
}
_REDIRECTING: dict[str, Handler] = {"<": grammar.redirection, ">": grammar.redirection}
_PROCESSES: dict[str, Handler] = {"<": expansions.process, ">": expansions.process}
_LINES: dict[str, Handler] = {"\n": expansions.line_end, "#": grammar.comment}


def _set(mode: contexts.Mode, handlers: dict[str, Handler], other: Handler = unclear) -> None:
    mode.handlers, mode.other = handlers, other


_set(
    contexts.START,
    {
        **_BETWEEN_COMMANDS,
        "\n": expansions.line_end,
        "(": grammar.subshell,
        "<": grammar.angle,
        ">": grammar.angle,
    },
    grammar.start_word,
)
_set(
    contexts.ARGUMENTS,
    {
        **_BETWEEN_COMMANDS,
        **_WITHIN_WORDS,
        "(": grammar.argument_parenthesis,
        "<": grammar.angle,
        ">": grammar.angle,
    },
)
_set(contexts.AFTER, {**_BETWEEN_COMMANDS, **_REDIRECTING}, grammar.after_word)
_set(contexts.REDIRECTED, {**_BETWEEN_COMMANDS, **_REDIRECTING}, grammar.descriptor)
_set(contexts.FUNCTION, {**_LINES, "(": grammar.subshell}, grammar.function_body)
_set(
    contexts.ONE_WORD,
    {
        **_WITHIN_WORDS,
        **dict.fromkeys("<>", grammar.word_angle),
        **dict.fromkeys(" \t\n;&|)", grammar.end_of_word),
        "\\": grammar.word_backslash,
    },
)
_set(
    contexts.LISTED,
    {
        **_WITHIN_WORDS,
        **_PROCESSES,
        ";": grammar.end_of_list,
        "\n": grammar.end_of_listed_line,
        "#": grammar.comment,
    },
)
_set(contexts.LOOP_BODY, {**_LINES, ";": grammar.loop_semicolon}, grammar.loop_body)
_set(contexts.CASE_IN, _LINES, grammar.case_in)
_set(contexts.CASE_NEXT, {**_LINES, "(": grammar.case_parenthesis}, grammar.case_next)
_set(contexts.CASE_PATTERNS, {**_WITHIN_WORDS, ")": grammar.end_of_patterns})
_set(
    contexts.ELEMENTS,
    {**_WITHIN_WORDS, **_PROCESSES, ")": expansions.close_array, "#": grammar.comment},
)
_set(
    contexts.IN_CONDITION,
    {**_WITHIN_WORDS, "]": grammar.close_condition, "&": grammar.condition_and},
)
_set(contexts.IN_STRING, {**_WITHIN_WORDS, '"': expansions.close_string})
_set(contexts.IN_DOCUMENT, {"$": expansions.dollar, "`": expansions.backticks})
_set(
    contexts.IN_PARAMETER,
    {**_WITHIN_WORDS, "}": expansions.close_parameter},
)
_set(
    contexts.IN_QUOTED_PARAMETER,
    {
        **_WITHIN_WORDS,
        '"': expansions.string_in_parameter,
        "}": expansions.close_parameter,
        "'": expansions.quote_in_parameter,
    },
)
_set(
    contexts.IN_ARITHMETIC,
    {
        **_WITHIN_WORDS,
        "(": expansions.open_parenthesis,
        ")": expansions.close_arithmetic,
    },
)
