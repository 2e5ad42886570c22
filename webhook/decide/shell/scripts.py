"""Find the commands of a shell script with a linear scanner that no input can stop or slow down.

The scanner reads a script once, from the front, and only moves forward. It keeps a stack of
contexts, at most 64 levels deep, instead of recursing. Regular expressions that never backtrack
skip text without significant characters. If bash would reject the script, or shells read it
differently, the script is unclear, and there is no result for it.

Sources: POSIX.1-2024, XCU 2 (Shell Command Language); bash(1). The tests compare with bash.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from webhook.decide.shell import constructs, contexts, expansions, grammar, operators, patterns
from webhook.decide.shell.contexts import (
    LEVELS,
    TOO_DEEP,
    TOO_MANY,
    UNCLEAR,
    Handler,
    Scanner,
    ShellContext,
    UnreadableError,
    raise_unclear,
)
from webhook.decide.shell.words import Command, command


def scan(scanner: Scanner) -> None:
    """Find the commands that contain a search term.

    Raise UnreadableError if the script nests too deep, has too many parts or is unclear.
    """
    text, remaining = scanner.text, scanner.steps
    try:
        for remaining in range(remaining - 1, 0, -1):  # noqa: B007, B020 -- counts down; used after the loop
            context = scanner.context
            mode = context.mode
            run = mode.skip(text, scanner.pos, scanner.limit)
            assert run is not None
            scanner.pos = offset = run.end()
            if offset < scanner.limit:
                mode.handlers.get(text[offset], mode.other)(scanner)
            elif _end(scanner, context):
                return
    finally:
        scanner.steps = remaining
    raise UnreadableError(TOO_MANY)


_ENDS = frozenset(
    {contexts.START, contexts.ARGUMENTS, contexts.AFTER_COMPOUND, contexts.REDIRECTED}
)


def _end(scanner: Scanner, context: ShellContext) -> bool:
    """End the context whose limit is reached; return whether it is the script itself.

    The script is unclear if only a word or character can end that context.
    """
    if context.construct == contexts.DOCUMENT:
        expansions.close_document(scanner)
        return False
    mode = context.mode_after_word if context.mode is contexts.SINGLE_WORD else context.mode
    if context.pending_operator or scanner.here_documents or mode not in _ENDS:
        raise_unclear(scanner)
    scanner.end_command()
    if context.construct == contexts.BACKTICKS:
        expansions.close_backticks(scanner)
    elif context.construct != contexts.SCRIPT:
        raise_unclear(scanner)
    return context.construct == contexts.SCRIPT


_WITHIN_WORDS: dict[str, Handler] = {
    '"': expansions.open_string,
    "$": expansions.dollar,
    "`": expansions.backticks,
}
_BETWEEN_COMMANDS: dict[str, Handler] = {
    "\n": operators.newline,
    ";": operators.semicolon,
    "&": operators.ampersand,
    "|": operators.bar,
    ")": operators.close_parenthesis,
    "#": operators.comment,
}
_REDIRECTING: dict[str, Handler] = {"<": operators.redirection, ">": operators.redirection}
_PROCESSES: dict[str, Handler] = {
    "<": expansions.open_process_substitution,
    ">": expansions.open_process_substitution,
}
_LINES: dict[str, Handler] = {"\n": expansions.line_end, "#": operators.comment}


def _set(mode: contexts.Mode, handlers: dict[str, Handler], other: Handler = raise_unclear) -> None:
    mode.handlers, mode.other = handlers, other


_set(
    contexts.START,
    {
        **_BETWEEN_COMMANDS,
        "\n": expansions.line_end,
        "(": operators.subshell,
        "<": operators.angle,
        ">": operators.angle,
    },
    grammar.start_word,
)
_set(
    contexts.ARGUMENTS,
    {
        **_BETWEEN_COMMANDS,
        **_WITHIN_WORDS,
        "(": grammar.argument_parenthesis,
        "<": operators.angle,
        ">": operators.angle,
    },
)
_set(contexts.AFTER_COMPOUND, {**_BETWEEN_COMMANDS, **_REDIRECTING}, grammar.word_after_compound)
_set(contexts.REDIRECTED, {**_BETWEEN_COMMANDS, **_REDIRECTING}, operators.descriptor)
_set(contexts.FUNCTION, {**_LINES, "(": operators.subshell}, grammar.function_body)
_set(
    contexts.SINGLE_WORD,
    {
        **_WITHIN_WORDS,
        **dict.fromkeys("<>", operators.word_angle),
        **dict.fromkeys(" \t\n;&|)", operators.end_of_word),
        "\\": operators.word_backslash,
    },
)
_set(
    contexts.LISTED,
    {
        **_WITHIN_WORDS,
        **_PROCESSES,
        ";": constructs.end_of_list,
        "\n": constructs.end_of_listed_line,
        "#": operators.comment,
    },
)
_set(contexts.BEFORE_LOOP_BODY, {**_LINES, ";": constructs.loop_semicolon}, constructs.loop_body)
_set(contexts.CASE_IN, _LINES, constructs.case_in)
_set(contexts.CASE_NEXT, {**_LINES, "(": constructs.case_parenthesis}, constructs.case_next)
_set(contexts.CASE_PATTERNS, {**_WITHIN_WORDS, ")": constructs.end_of_patterns})
_set(
    contexts.ELEMENTS,
    {**_WITHIN_WORDS, **_PROCESSES, ")": expansions.close_array, "#": operators.comment},
)
_set(
    contexts.IN_CONDITION,
    {**_WITHIN_WORDS, "]": constructs.close_condition, "&": constructs.condition_and},
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


# Read the scripts of one pod: find the commands that contain a search term, within limits.
#
# Only commands around an occurrence of a term are read. A whole script is ignored if its
# meaning is uncertain, or if it exceeds the limits for one pod.

__all__ = [
    "MAX_CHARACTERS",
    "PROBLEMS",
    "TOO_DEEP",
    "TOO_LARGE",
    "TOO_MANY",
    "UNCLEAR",
    "ScriptReading",
    "Scripts",
]

TOO_LARGE = "too large"
MAX_CHARACTERS = 32 * 1024  #: the maximum number of characters to read in a pod's scripts
STEPS = 8192  #: the maximum number of the scanner's stops; 800 scripts of Debian took at most 2,647
SHORT = 4096  #: the longest script, in characters, whose result is cached (16 results are kept)
#: The maximum number of occurrences of search terms in a pod's scripts, each with a command to
#: examine.
MAX_OCCURRENCES = 128
#: The same in a short script, whose result is cached; the pod's own limit may be lower.
MAX_SHORT_OCCURRENCES = 1024

#: The reasons for ignoring a script, each as the end of a sentence.
PROBLEMS = {
    TOO_LARGE: f"the pod's scripts exceed {MAX_CHARACTERS // 1024} KiB in total",
    TOO_MANY: "the pod's scripts have too many commands or words in total",
    TOO_DEEP: f"it is nested more than {LEVELS} levels deep",
    UNCLEAR: "it is unclear how a shell interprets it",
}


class ScriptReading(NamedTuple):
    """The commands that contain a search term, or the reason why they are unknown."""

    commands: tuple[Command, ...] = ()
    problem: str = ""  #: one of PROBLEMS, or ""


class Scripts:
    """The readings of one pod's scripts, searched for some terms; equal scripts are read once."""

    __slots__ = ("_characters", "_occurrences", "_results", "_search_terms", "_steps")

    def __init__(
        self, search_terms: tuple[str, ...], max_occurrences: int = MAX_OCCURRENCES
    ) -> None:
        self._search_terms = search_terms
        self._characters = MAX_CHARACTERS
        self._occurrences = max_occurrences
        self._steps = STEPS
        self._results: dict[str, ScriptReading] = {}

    def read(self, script: str) -> ScriptReading:
        """Find the commands with a search term, unless that exceeds the pod's limits."""
        if len(script) > MAX_CHARACTERS:
            return ScriptReading(problem=TOO_LARGE)
        reading = self._results.get(script)
        if reading is None:
            if len(script) > self._characters:
                return ScriptReading(problem=TOO_LARGE)
            self._characters -= len(script)
            reading = self._results[script] = self._read(script)
        return reading

    def spend_steps(self, words: int) -> bool:
        """Take a list of words from the pod's remaining steps; return False if too few remain."""
        if words > self._steps:
            return False
        self._steps -= words
        return True

    def _read(self, script: str) -> ScriptReading:
        """Read a script, unless a limit is already exhausted."""
        if not self._steps or not self._occurrences:
            return ScriptReading(problem=TOO_MANY)
        reading, occurrences, steps = (
            _read_short(script, self._search_terms)
            if len(script) <= SHORT
            else _read(script, self._search_terms, self._steps, self._occurrences)
        )
        self._steps -= min(steps, self._steps)
        if occurrences > self._occurrences or not self._steps:
            return ScriptReading(problem=TOO_MANY)
        self._occurrences -= occurrences
        return reading


class _MeteredReading(NamedTuple):
    """A reading, and what it takes from the pod's limits."""

    reading: ScriptReading
    occurrences: int
    steps: int


def _read(
    script: str,
    search_terms: tuple[str, ...],
    steps: int = STEPS,
    max_occurrences: int = MAX_SHORT_OCCURRENCES,
) -> _MeteredReading:
    """Read a script; return the result and its share of the pod's limits."""
    offsets = _offsets_of(script, search_terms)
    if len(offsets) > max_occurrences:
        return _MeteredReading(ScriptReading(), len(offsets), 0)
    scanner = Scanner(script, offsets, steps, search_terms)
    try:
        reading = _commands(scanner)
    except UnreadableError as error:
        reading = ScriptReading(problem=str(error))
    return _MeteredReading(reading, len(offsets), steps - max(scanner.steps, 0))


#: All pods of a job run the same script.
_read_short = lru_cache(maxsize=16)(_read)


def _offsets_of(script: str, search_terms: tuple[str, ...]) -> list[int]:
    """List the offsets of the search terms, ascending."""
    offsets = []
    for term in search_terms:
        offset = script.find(term)
        while offset >= 0:
            offsets.append(offset)
            offset = script.find(term, offset + 1)
    return sorted(offsets)


def _is_uncertain(script: str) -> bool:
    """Return whether a script has an impossible character, or joins lines within an operator."""
    if "\0" in script or (not script.isascii() and patterns.IMPOSSIBLE.search(script)):
        return True
    offset = script.find("\\\n", 1)
    while offset >= 0:
        if script[offset - 1] in "&|;<>$(" and patterns.CUT.match(script, offset - 1):
            return True
        offset = script.find("\\\n", offset + 2)
    return False


def _commands(scanner: Scanner) -> ScriptReading:
    if _is_uncertain(scanner.text):
        raise_unclear(scanner)
    scan(scanner)
    commands = [
        command(scanner, start, end)._replace(conditional=conditional, isolated=isolated)
        for _, start, end, conditional, isolated in sorted(scanner.commands)
    ]
    if any("alias" in read.words[:1] for read in commands):
        raise_unclear(scanner)
    return ScriptReading(tuple(read for read in commands if read.words))
