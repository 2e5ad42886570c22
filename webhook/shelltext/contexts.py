"""Where the shell scanner is: a stack of contexts, and the commands that it has found.

A context is what a closing word or character ends: a script, `( )`, `$( )`, `if … fi`, a string.
In each the scanner is in one mode, which says what it skips and what stops it (scan.py).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from webhook.shelltext import patterns

TOO_DEEP = "too deep"
TOO_MANY = "too many"
UNCLEAR = "unclear"
LEVELS = 64  #: of nesting that are followed

#: What a context is, or the part of it that the scanner is in; `then` ends where `fi` comes.
SCRIPT, SUBSHELL, GROUP = "script", "(", "{"
SUBSTITUTION, BACKTICKS, ARRAY = "$(", "`", "=("
STRING, PARAMETER, ARITHMETIC, DOCUMENT = '"', "${", "((", "<<"
CONDITION, IF, THEN, ELSE = "[[", "if", "then", "else"
WHILE, LOOP, DO, CASE, BODY = "while", "for", "do", "case", "case body"


class UnreadableError(Exception):
    """The script stays as it is; the argument is TOO_DEEP, TOO_MANY or UNCLEAR."""


def unclear(_: Scan) -> NoReturn:
    """Give up: a shell would reject this, or it is not known how shells read it."""
    raise UnreadableError(UNCLEAR)


class Mode:
    """What is skipped, and what is done at the first character that is not."""

    __slots__ = ("handlers", "other", "skip")

    def __init__(self, run: re.Pattern[str]) -> None:
        self.skip = run.match
        self.handlers: dict[str, Handler] = {}
        self.other: Handler = unclear


START = Mode(patterns.BLANKS)  # where a command may begin, and reserved words count
ARGUMENTS = Mode(patterns.WORDS)  # behind the first word or redirection of a simple command
AFTER = Mode(patterns.BLANKS)  # behind a compound command
REDIRECTED = Mode(patterns.BLANKS)  # and behind a redirection there, where no word may follow
FUNCTION = Mode(patterns.BLANKS)  # behind `name()`, where a compound command must follow
ONE_WORD = Mode(patterns.WORD)  # in a word behind which `then` goes on
LISTED = Mode(patterns.LISTED)  # behind `for NAME in`
LOOP_BODY = Mode(patterns.BLANKS)  # where `do` or `{` must follow
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
    """A here-document whose text is still to come."""

    delimiter: str
    tabs: bool  #: whether tabs in front of its lines do not count
    literal: bool  #: whether nothing in it is expanded


class ShellContext:
    """One level of nesting."""

    __slots__ = (
        *("command", "depth", "documents", "filled", "limit", "mode", "needs", "phase"),
        *("quoted", "resume", "start", "then"),
    )

    def __init__(self, phase: str, mode: Mode, start: int) -> None:
        self.phase = phase
        self.mode = mode
        self.start = start  #: where it begins
        self.command = -1  #: where the simple command begins that the scanner is in
        self.needs = ""  #: the operator behind which a command must follow, `&&` say
        self.filled = False  #: whether a command stands in this part of it
        self.quoted = ""  #: STRING or DOCUMENT, where this is text within one
        self.then = mode  #: of ONE_WORD
        self.depth = 0  #: of parentheses in arithmetic
        #: What the surrounding context has, where this one has its own.
        self.limit = -1
        self.documents: deque[HereDocument] = deque()
        self.resume = 0


_LISTS = frozenset({"&&", "||"})


class Scan:
    """A script, how far it is read, and what was found."""

    __slots__ = (
        *(
            "closes",
            "commands",
            "context",
            "documents",
            "limit",
            "outer",
            "places",
            "pos",
            "sought",
        ),
        *("steps", "text", "_coming", "_loose", "_place"),
    )

    def __init__(
        self, text: str, places: list[int], steps: int, sought: tuple[str, ...] = ()
    ) -> None:
        self.text = text
        self.sought = sought  #: the words that stand there
        self.steps = steps  #: how often it may still stop
        self.pos = 0
        self.limit = len(text)
        self.context = ShellContext(SCRIPT, START, 0)
        self.outer: list[ShellContext] = []
        self.documents: deque[HereDocument] = deque()  #: that begin behind this line
        self.places = places  #: where sought words stand, ascending
        #: Of commands that hold a sought word: where that stands, begin and end.
        self.commands: list[tuple[int, int, int]] = []
        self.closes: dict[int, int] = {}  #: where what is opened within a word ends
        self._coming = iter(places)
        self._place = next(self._coming, len(text))  # the first that is not passed yet
        self._loose: list[int] = []  # those passed that no command has claimed

    def enter(self, context: ShellContext) -> None:
        """Go one level deeper."""
        if len(self.outer) == LEVELS:
            raise UnreadableError(TOO_DEEP)
        self.outer.append(self.context)
        self.context = context

    def leave(self) -> ShellContext:
        """Return to the surrounding context; give the one that ends."""
        ended = self.context
        self.context = self.outer.pop()
        return ended

    def leave_word(self, end: int) -> None:
        """End a context that is part of a word, at `end`.

        Whether here-documents begin behind a line break in it is not the same in all shells.
        """
        start = self.leave().start
        if self.documents and self.text.find("\n", start, end) >= 0:
            unclear(self)
        self.closes[start] = end
        self.pos = end

    def begin_command(self, start: int) -> None:
        """Begin a simple command."""
        context = self.context
        context.command = start
        context.filled = True
        context.needs = ""
        context.mode = ARGUMENTS

    def end_command(self) -> None:
        """End the simple command, if the scanner is in one."""
        context = self.context
        start = context.command
        if start >= 0:
            context.command = -1
            if self._loose or self._place < self.pos:
                self._claim(start)

    def _claim(self, start: int) -> None:
        """Give the command from `start` on the places in it that no command within it has."""
        loose, first = self._loose, -1
        self._pass_places()
        while loose and loose[-1] >= start:
            first = loose.pop()
        if first >= 0:
            self.commands.append((first, start, self.pos))

    def pass_commands(self) -> bool:
        """Pass over simple commands that hold no sought word; most of a script are such."""
        start = self.pos
        if self.documents:  # which begin behind the next line break
            return False
        if self._place < start:
            self._pass_places()
        stop = min(self.limit, self._place)
        passed = patterns.COMMANDS.match(self.text, start, stop)
        assert passed is not None
        end = passed.end()
        if end == start:
            return False
        self.pos = end
        context = self.context
        context.filled = True
        last = self.text[end - 2 : end]
        context.needs = last if last in _LISTS else "|" if last[-1] in "|&" else ""
        return True

    def _pass_places(self) -> None:
        while self._place < self.pos:
            self._loose.append(self._place)
            self._place = next(self._coming, len(self.text))

    def is_sought(self, start: int, end: int) -> bool:
        """Whether a sought word begins between two offsets."""
        at = bisect_left(self.places, start)
        return at < len(self.places) and self.places[at] < end

    def at(self, offset: int) -> str:
        """Return the character at an offset; a line break where the context ends."""
        return self.text[offset] if offset < self.limit else "\n"


Handler = Callable[[Scan], None]
