"""The state of the shell scanner: a stack of contexts, and the commands so far.

A context is a part of the text with its own end: a script, `( )`, `$( )`, `if … fi`, a string.
In each context the scanner is in a mode, which determines what it skips and what stops it
(scripts.py).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from webhook.decide.shell import patterns

TOO_DEEP = "too deep"
TOO_MANY = "too many"
UNCLEAR = "unclear"
LEVELS = 64  #: the deepest nesting that the scanner follows

#: The constructs of contexts: the kind of each, or the part of a compound command that the scanner
#: is in.
SCRIPT, SUBSHELL, GROUP = "script", "(", "{"
SUBSTITUTION, BACKTICKS, ARRAY = "$(", "`", "=("
STRING, PARAMETER, ARITHMETIC, DOCUMENT = '"', "${", "((", "<<"
CONDITION, IF, THEN, ELSE = "[[", "if", "then", "else"
WHILE, LOOP, DO, CASE, CASE_BODY = "while", "for", "do", "case", "case body"


class UnreadableError(Exception):
    """A script cannot be read with certainty; the argument is TOO_DEEP, TOO_MANY or UNCLEAR."""


def raise_unclear(_: Scanner) -> NoReturn:
    """Raise UnreadableError: a shell would reject the script, or shells may read it differently."""
    raise UnreadableError(UNCLEAR)


class Mode:
    """The text that the scanner skips, and the handlers for the first other character."""

    __slots__ = ("handlers", "other", "skip")

    def __init__(self, run: re.Pattern[str]) -> None:
        self.skip = run.match
        self.handlers: dict[str, Handler] = {}
        self.other: Handler = raise_unclear


START = Mode(patterns.BLANKS)  # where a command may begin, and reserved words are recognized
ARGUMENTS = Mode(patterns.WORDS)  # after the first word or redirection of a simple command
AFTER_COMPOUND = Mode(patterns.BLANKS)
REDIRECTED = Mode(patterns.BLANKS)  # after a redirection of one, where no word may follow
FUNCTION = Mode(patterns.BLANKS)  # after `name()`, where a compound command must follow
SINGLE_WORD = Mode(patterns.WORD)  # within a single word; the mode `mode_after_word` follows
LISTED = Mode(patterns.LISTED)  # after `for NAME in`
BEFORE_LOOP_BODY = Mode(patterns.BLANKS)  # where `do` or `{` must follow
CASE_IN = Mode(patterns.BLANKS)  # where `in` must follow
CASE_NEXT = Mode(patterns.BLANKS)  # where a pattern or `esac` follows
CASE_PATTERNS = Mode(patterns.PATTERNS)
ELEMENTS = Mode(patterns.ELEMENTS)
IN_CONDITION = Mode(patterns.CONDITION)
IN_STRING = Mode(patterns.STRING)
IN_DOCUMENT = Mode(patterns.DOCUMENT)
IN_PARAMETER = Mode(patterns.PARAMETER)
IN_QUOTED_PARAMETER = Mode(patterns.PARAMETER_IN_QUOTES)
IN_ARITHMETIC = Mode(patterns.ARITHMETIC)


class HereDocument(NamedTuple):
    """A here-document whose operator has been read, but not its text."""

    delimiter: str
    ignores_tabs: bool  #: whether leading tabs of its lines are ignored (`<<-`)
    literal: bool  #: whether its delimiter is quoted, so that nothing in it is expanded


class ShellContext:
    """One level of nesting."""

    __slots__ = (
        *("command_start", "conditional", "construct", "depth", "has_command", "here_documents"),
        *("isolated", "limit", "list_ended", "mode", "mode_after_word", "next_is_conditional"),
        *("outer_pos", "pending_operator", "piped", "quoted", "start"),
    )

    def __init__(self, construct: str, mode: Mode, start: int) -> None:
        self.construct = construct
        self.mode = mode
        self.start = start  #: the offset at which it begins
        self.command_start = -1  #: the offset of the current simple command; -1 if there is none
        #: The last word, if a command must follow it: an operator such as `&&`, and "!" for each of
        #: `!`, `time` and `coproc`. "" for any other word.
        self.pending_operator = ""
        self.has_command = False  #: whether this part contains a command
        self.list_ended = False  #: whether a separator has ended what this `for` loops over
        self.quoted = ""  #: STRING or DOCUMENT if this is text within either, else ""
        self.mode_after_word = mode  #: the mode that follows SINGLE_WORD
        self.depth = 0  #: the depth of parentheses in arithmetic
        #: Whether the next command runs only if an earlier one of its list failed or passed a test.
        self.next_is_conditional = False
        self.conditional = False  #: whether it may run never or repeatedly: a branch, a function
        self.isolated = False  #: whether its variables are lost at its end, as in `( )`
        self.piped = False  #: whether the current command reads from a pipe
        #: Values of the surrounding context, saved while this one has its own.
        self.limit = -1
        self.here_documents: deque[HereDocument] = deque()
        self.outer_pos = 0


_LISTS = frozenset({"&&", "||"})
#: The constructs that run in a shell of their own.
_ISOLATING = frozenset({SUBSHELL, SUBSTITUTION, BACKTICKS})
#: The constructs that run once, and always.
_SEQUENTIAL = frozenset({SCRIPT, SUBSHELL, SUBSTITUTION, BACKTICKS, GROUP, STRING, ARRAY, DOCUMENT})


class CommandRange(NamedTuple):
    """A command with a search term, as offsets, and how it runs."""

    term: int  #: the offset of its first search term
    start: int
    end: int
    conditional: bool = False  #: whether it may not run, or run repeatedly
    isolated: bool = False  #: whether the variables that it sets are lost after it


class Scanner:
    """A script, the position of the scanner in it, and the commands so far."""

    __slots__ = (
        *(
            "commands",
            "context",
            "context_ends",
            "here_documents",
            "limit",
            "outer_contexts",
            "term_offsets",
            "pos",
            "search_terms",
        ),
        *("steps", "text", "_coming", "_loose", "_next_offset"),
    )

    def __init__(
        self, text: str, term_offsets: list[int], steps: int, search_terms: tuple[str, ...] = ()
    ) -> None:
        self.text = text
        self.search_terms = search_terms  #: the terms at `term_offsets`
        self.steps = steps  #: the remaining number of stops
        self.pos = 0
        self.limit = len(text)
        self.context = ShellContext(SCRIPT, START, 0)
        self.outer_contexts: list[ShellContext] = []  #: those around `context`, from the script on
        self.here_documents: deque[HereDocument] = deque()  #: the pending here-documents
        self.term_offsets = term_offsets  #: ascending
        self.commands: list[CommandRange] = []  #: the commands with a search term
        self.context_ends: dict[int, int] = {}  #: begin → end of each context within a word
        self._coming = iter(term_offsets)
        self._next_offset = next(self._coming, len(text))  # the first that is not passed yet
        self._loose: list[int] = []  # passed offsets that no command has claimed yet

    def enter(self, context: ShellContext) -> None:
        """Go one level deeper."""
        if len(self.outer_contexts) == LEVELS:
            raise UnreadableError(TOO_DEEP)
        outer = self.context
        context.conditional = (
            outer.conditional
            or outer.next_is_conditional
            or outer.mode is FUNCTION
            or context.construct not in _SEQUENTIAL
        )
        context.isolated = outer.isolated or context.construct in _ISOLATING
        self.outer_contexts.append(outer)
        self.context = context

    def leave(self) -> ShellContext:
        """Go back to the surrounding context; return the context that ends."""
        ended = self.context
        self.context = self.outer_contexts.pop()
        return ended

    def leave_part_of_word(self, end: int) -> None:
        """End a context that is part of a word, at `end`.

        Shells differ on whether pending here-documents begin after a line break within it.
        """
        start = self.leave().start
        if self.here_documents and self.text.find("\n", start, end) >= 0:
            raise_unclear(self)
        self.context_ends[start] = end
        self.pos = end

    def begin_command(self, start: int) -> None:
        """Begin a simple command."""
        context = self.context
        context.command_start = start
        context.has_command = True
        context.piped = context.pending_operator == "|"
        context.pending_operator = ""
        context.mode = ARGUMENTS

    def end_command(self) -> None:
        """End the simple command, if the scanner is in one."""
        context = self.context
        start = context.command_start
        if start >= 0:
            context.command_start = -1
            if self._loose or self._next_offset < self.pos:
                self._claim(start)

    def _claim(self, start: int) -> None:
        """Assign to the command at `start` the offsets that no command within it has claimed."""
        loose, first = self._loose, -1
        self._pass_offsets()
        while loose and loose[-1] >= start:
            first = loose.pop()
        if first >= 0:
            self.commands.append(self._range(first, start))

    def _range(self, term: int, start: int) -> CommandRange:
        context, text, end = self.context, self.text, self.pos
        operator = text[end : min(end + 2, self.limit)]
        in_own_shell = operator[:1] in ("|", "&") and operator not in _LISTS
        return CommandRange(
            term,
            start,
            end,
            context.conditional or context.next_is_conditional,
            context.isolated or context.piped or in_own_shell,
        )

    def skip_commands_without_term(self) -> bool:
        """Skip simple commands without a search term, which are most of a script.

        Return whether any were skipped.
        """
        start = self.pos
        if self.here_documents:  # they begin after the next line break, which must not be skipped
            return False
        if self._next_offset < start:
            self._pass_offsets()
        stop = min(self.limit, self._next_offset)
        passed = patterns.COMMANDS.match(self.text, start, stop)
        assert passed is not None
        end = passed.end()
        if end == start:
            return False
        self.pos = end
        context = self.context
        context.has_command = True
        context.pending_operator = ""
        context.next_is_conditional = False
        return True

    def _pass_offsets(self) -> None:
        while self._next_offset < self.pos:
            self._loose.append(self._next_offset)
            self._next_offset = next(self._coming, len(self.text))

    def has_term(self, start: int, end: int) -> bool:
        """Return whether a search term begins between two offsets."""
        index = bisect_left(self.term_offsets, start)
        return index < len(self.term_offsets) and self.term_offsets[index] < end

    def at(self, offset: int) -> str:
        """Return the character at an offset, or a line break at the end of the context."""
        return self.text[offset] if offset < self.limit else "\n"


Handler = Callable[[Scanner], None]
